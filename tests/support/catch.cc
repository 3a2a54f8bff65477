#include "tests/support/catch.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>

#include "tests/support/test_threads.h"

namespace stride::test {

struct Failure {
  Assertion assertion;
  std::string text;
};

struct ThreadFailures {
  mutable std::mutex mutex;
  std::vector<Failure> all;

  void add(Failure failure) {
    std::lock_guard lock(mutex);
    all.push_back(std::move(failure));
  }
};

namespace {

// Ends a thread of TestThreads.
struct RequirementFailed {};

const std::thread::id test_thread = std::this_thread::get_id();
thread_local ThreadFailures* thread_failures = nullptr;

std::string text_of(const Assertion& assertion, const std::string& expanded,
                    const std::string& message) {
  std::string text = std::string(assertion.macro) + "( " + assertion.expression + " )";
  if (!expanded.empty()) text += "\nwith expansion:\n  " + expanded;
  if (!message.empty()) text += "\n" + message;
  return text;
}

void report(const Assertion& assertion, std::string text) {
  Catch::AssertionHandler handler(
      assertion.macro, Catch::SourceLineInfo(assertion.file, static_cast<size_t>(assertion.line)),
      Catch::StringRef(),
      assertion.required ? Catch::ResultDisposition::Normal
                         : Catch::ResultDisposition::ContinueOnFailure);
  handler.handleMessage(Catch::ResultWas::ExplicitFailure, std::move(text));
  handler.complete();
}

}  // namespace

void fail(const Assertion& assertion, const std::string& expanded, const std::string& message) {
  std::string text = text_of(assertion, expanded, message);
  if (thread_failures != nullptr) {
    thread_failures->add({assertion, std::move(text)});
    if (assertion.required) throw RequirementFailed();
    return;
  }
  const bool in_test_case = Catch::getCurrentContext().getResultCapture() != nullptr;
  if (in_test_case && std::this_thread::get_id() == test_thread)
    return report(assertion, std::move(text));
  std::fprintf(stderr, "%s:%d: failed %s:\n%s\n", assertion.file, assertion.line,
               in_test_case ? "on a thread that no TestThreads started" : "outside of a test case",
               text.c_str());
  std::abort();
}

void require_test_thread(const Catch::AssertionInfo& assertion) {
  if (std::this_thread::get_id() == test_thread) return;
  std::fprintf(stderr, "%s:%d: %s on another thread: use CHECK_MESSAGE or CHECK_OK there\n",
               assertion.lineInfo.file, static_cast<int>(assertion.lineInfo.line),
               std::string(assertion.macroName).c_str());
  std::abort();
}

std::string expanded(const Catch::ITransientExpression& expression) {
  std::ostringstream out;
  expression.streamReconstructedExpression(out);
  return out.str();
}

Progress& progress() {
  static Progress of_this_case;
  return of_this_case;
}

#if CATCH_VERSION_MAJOR < 3
void skip(const std::string& why) {
  ++progress().skips;
  std::printf("skipped: %s\n", why.c_str());
  throw Catch::TestFailureException();  // it ends the test case, and says nothing of why
}
#endif

TestThreads::TestThreads() : failures_(std::make_unique<ThreadFailures>()) {}

TestThreads::~TestThreads() { join(); }

void TestThreads::start(std::function<void()> body) {
  threads_.emplace_back([failures = failures_.get(), body = std::move(body)] {
    thread_failures = failures;
    const Assertion no_exception{"TestThreads", "a thread ends without an exception", __FILE__,
                                 __LINE__, false};
    try {
      body();
    } catch (const RequirementFailed&) {
      // It is among the failures.
    } catch (const std::exception& exception) {
      fail(no_exception, exception.what(), "");
    } catch (...) {
      fail(no_exception, "an exception", "");
    }
  });
}

void TestThreads::join() {
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (Failure& failure : failures_->all) {
    failure.assertion.required = false;
    report(failure.assertion, std::move(failure.text));
  }
  failures_->all.clear();
}

bool TestThreads::failed() const {
  std::lock_guard lock(failures_->mutex);
  return !failures_->all.empty();
}

}  // namespace stride::test
