// The main program of every test program: Catch2's, with a last line that tests/run adds up.
//
//   cases: 12 passed, 0 failed, 1 skipped
//
// A test case that is skipped for each of its generated values is skipped. Exits with 77 where all
// are.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include <cstdio>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

struct Cases {
  int passed = 0, failed = 0, skipped = 0;
} cases;

// Counts the cases, and prints the seed of one that fails. Catch2 2 takes another path through all
// assertions where there is a listener, which is slow: there this is the reporter.
#if CATCH_VERSION_MAJOR >= 3
using Base = Catch::EventListenerBase;
#else
using Base = Catch::ConsoleReporter;
#endif

class CaseCounter : public Base {
 public:
  using Base::Base;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    Base::testCaseStarting(info);
    runs_ = depth_ = 0;
    progress() = {};
  }
  // Each run, with one generated value, is a section around all others.
  void sectionStarting(const Catch::SectionInfo& info) override {
    Base::sectionStarting(info);
    if (depth_++ == 0) ++runs_;
  }
  void sectionEnded(const Catch::SectionStats& stats) override {
    --depth_;
    Base::sectionEnded(stats);
  }
  void assertionStarting(const Catch::AssertionInfo& info) override {
    require_test_thread(info);
    Base::assertionStarting(info);
  }
#if CATCH_VERSION_MAJOR >= 3
  void assertionEnded(const Catch::AssertionStats& stats) override {
    progress().skips += stats.assertionResult.getResultType() == Catch::ResultWas::ExplicitSkip;
    progress().failures += !stats.assertionResult.isOk();
  }
#else
  bool assertionEnded(const Catch::AssertionStats& stats) override {
    progress().failures += !stats.assertionResult.isOk();
    return Base::assertionEnded(stats);
  }
#endif
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.assertions.failed > 0) {
      ++cases.failed;
      print_seed_if_chosen();
    } else if (progress().skips > 0 && progress().skips == runs_) {
      ++cases.skipped;
    } else {
      ++cases.passed;
    }
    Base::testCaseEnded(stats);
  }
  void testRunEnded(const Catch::TestRunStats& stats) override {
    Base::testRunEnded(stats);
    std::fflush(stdout);
  }
#if CATCH_VERSION_MAJOR < 3
  static std::string getDescription() { return "the console's, which counts the cases"; }
#endif

 private:
  int runs_ = 0, depth_ = 0;
};

#if CATCH_VERSION_MAJOR >= 3
CATCH_REGISTER_LISTENER(CaseCounter)
#else
CATCH_REGISTER_REPORTER("cases", CaseCounter)
#endif

int run(int argc, char* argv[]) {
  Catch::Session session;
#if CATCH_VERSION_MAJOR < 3
  session.configData().reporterName = "cases";
#endif
  int result = session.run(argc, argv);
  const int total = cases.passed + cases.failed + cases.skipped;
  if (total == 0) return result;
  std::printf("cases: %d passed, %d failed, %d skipped\n", cases.passed, cases.failed,
              cases.skipped);
  if (cases.failed > 0) return 1;
  if (cases.skipped == total) return 77;
  // Catch2 3 says so where each case was skipped for one of its generated values at least.
  constexpr int all_skipped = 4;
  return result == all_skipped ? 0 : result;
}

}  // namespace
}  // namespace stride::test

// Weak: tests/fuzz/blind_driver.cc has a main of its own, and wants the bodies of Catch2 above.
__attribute__((weak)) int main(int argc, char* argv[]) { return stride::test::run(argc, argv); }
