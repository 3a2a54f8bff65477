// Catch2, version 2.13 or 3, and the assertions that the tests add to its own.
//
//   CHECK_OK(table.put(key, value));              // prints the Status of what failed
//   CHECK_MESSAGE(sum == expected, "row " << i);  // makes the message only where it is printed
//   RunsWith name_{param_};                       // tells the generated value of what failed
//
// REQUIRE_OK and REQUIRE_MESSAGE end the test case too. These four take no longer than their
// condition where it holds, so loops may use them; a CHECK takes some 20 nanoseconds more. They
// also work on the threads of test_threads.h, where CHECK and REQUIRE abort, and INFO doesn't work.
#pragma once

#define CATCH_CONFIG_ENABLE_ALL_STRINGMAKERS
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // as version 2 has it
#else
#include <catch2/catch.hpp>
#endif

#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

#include "storage/status.h"

namespace stride::test {

// Where and how a test asserts something.
struct Assertion {
  const char* macro;
  const char* expression;
  const char* file;
  int line;
  bool required;
};

// Fails the test case; on a thread of TestThreads, that thread. Throws where the assertion is
// required.
void fail(const Assertion& assertion, const std::string& expanded, const std::string& message);

// Aborts on a thread of the test's, where Catch2's own assertions race.
void require_test_thread(const Catch::AssertionInfo& assertion);

// The operands of an expression, as "1 == 2".
std::string expanded(const Catch::ITransientExpression& expression);

// What expanded() says of an expression that doesn't hold.
template <class Expression>
std::optional<std::string> failure_of(const Expression& expression) {
  if constexpr (requires { expression.makeUnaryExpr(); }) {
    return failure_of(expression.makeUnaryExpr());
  } else {
    if (expression.getResult()) return std::nullopt;
    return expanded(expression);
  }
}

inline const Status& status_of(const Status& status) { return status; }
template <class T>
const Status& status_of(const Result<T>& result) {
  return result.status();
}

template <class T>
void check_ok(const Assertion& assertion, const T& statused) {
  if (!statused.ok()) fail(assertion, status_of(statused).to_string(), "");
}

// The value that a test case was generated for. As a member of a fixture it stands in every
// failure.
class RunsWith {
 public:
  explicit RunsWith(std::string_view value)
      : message_(Catch::MessageBuilder("INFO", CATCH_INTERNAL_LINEINFO, Catch::ResultWas::Info)
                 << "with " << std::string(value)) {}

 private:
  Catch::ScopedMessage message_;
};

#ifndef SKIP
// Catch2 2 has none. Ends the test case for this generated value.
[[noreturn]] void skip(const std::string& why);
#define SKIP(...) ::stride::test::skip((std::ostringstream() << __VA_ARGS__).str())
#endif

// How often the test case that runs was skipped, once for each generated value, and how many
// of its assertions failed.
struct Progress {
  int skips = 0, failures = 0;
};
Progress& progress();
inline bool has_failed() { return progress().failures > 0; }

}  // namespace stride::test

#define STRIDE_ASSERTION(macro, expression, required) \
  ::stride::test::Assertion { macro, expression, __FILE__, __LINE__, required }

#define STRIDE_ASSERT_MESSAGE(macro, required, condition, ...)                               \
  do {                                                                                       \
    if (auto stride_failure_ = ::stride::test::failure_of(Catch::Decomposer() <= condition)) \
      ::stride::test::fail(STRIDE_ASSERTION(macro, #condition, required), *stride_failure_,  \
                           (std::ostringstream() << __VA_ARGS__).str());                     \
  } while (0)

#define CHECK_MESSAGE(condition, ...) \
  STRIDE_ASSERT_MESSAGE("CHECK_MESSAGE", false, condition, __VA_ARGS__)
#define REQUIRE_MESSAGE(condition, ...) \
  STRIDE_ASSERT_MESSAGE("REQUIRE_MESSAGE", true, condition, __VA_ARGS__)

// For a Status or a Result.
#define CHECK_OK(...) \
  ::stride::test::check_ok(STRIDE_ASSERTION("CHECK_OK", #__VA_ARGS__, false), (__VA_ARGS__))
#define REQUIRE_OK(...) \
  ::stride::test::check_ok(STRIDE_ASSERTION("REQUIRE_OK", #__VA_ARGS__, true), (__VA_ARGS__))

template <>
struct Catch::StringMaker<stride::StatusCode> {
  static std::string convert(stride::StatusCode code) { return std::string(to_string(code)); }
};
