// --where on the first key column, which narrows what is read, beside maps in the order of keys.
#include <map>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

class WhereKeyTest : public CliFixture {};

bool holds(int order, const std::string& comparison) {
  if (comparison == "=") return order == 0;
  if (comparison == "!=") return order != 0;
  if (comparison == "<") return order < 0;
  if (comparison == "<=") return order <= 0;
  if (comparison == ">") return order > 0;
  return order >= 0;
}

template <class T>
int order_of(const T& a, const T& b) {
  return a < b ? -1 : int{b < a};
}

std::string text_of_key(const std::string& text) { return text; }
std::string text_of_key(int number) { return std::to_string(number); }

TEST_CASE_METHOD(WhereKeyTest, "WhereKeyTest.ConditionsOnTheFirstColumn", "[WhereKeyTest]") {
  std::mt19937_64 random(test::seed());
  auto drawn_number = [&] { return static_cast<int>(random() % 9) - 4; };
  auto drawn_text = [&] {
    static const char* const texts[] = {"a", "ab", "b", "ba", "c", "\xC3\xA9"};
    return std::string(texts[random() % std::size(texts)]);
  };
  // Fills a table with key columns and checks each comparison, alone and two together.
  auto check = [&](const std::string& table, const std::string& key_type, auto draw_first,
                   auto draw_second) {
    using First = decltype(draw_first());
    using Second = decltype(draw_second());
    std::map<std::pair<First, Second>, int> rows;
    for (int i = 0; i < 60; ++i) rows[{draw_first(), draw_second()}] = i;
    std::string text = "a,b,n\n";
    for (const auto& [key, n] : rows)
      text +=
          text_of_key(key.first) + "," + text_of_key(key.second) + "," + std::to_string(n) + "\n";
    REQUIRE_MESSAGE(run({"load", database_, table, file(table + ".csv", text), "--key", "a,b",
                         "--key-type", key_type}) == 0,
                    error_);
    for (int round = 0; round < 60; ++round) {
      std::vector<std::string> arguments = {"scan",     database_, table,
                                            "--format", "csv",     "--no-header"};
      auto left = rows;
      for (size_t n = 1 + random() % 2; n != 0; --n) {
        const First value = draw_first();
        static const char* const comparisons[] = {"=", "!=", "<", "<=", ">", ">="};
        const std::string comparison = comparisons[random() % 6];
        arguments.insert(arguments.end(), {"--where", "a" + comparison + text_of_key(value)});
        std::erase_if(left, [&](const auto& row) {
          return !holds(order_of(row.first.first, value), comparison);
        });
      }
      std::string expected;
      for (const auto& [key, n] : left)
        expected +=
            text_of_key(key.first) + "," + text_of_key(key.second) + "," + std::to_string(n) + "\n";
      std::string command;
      for (const std::string& argument : arguments) command += argument + " ";
      REQUIRE_MESSAGE(run(arguments) == 0, command << error_);
      CHECK_MESSAGE(out_ == expected, command);
    }
  };
  check("numbers", "i16,string", drawn_number, drawn_text);
  check("texts", "string,i8", drawn_text, drawn_number);
  check("floats", "f64,i8", drawn_number, drawn_number);
}

// Bounds and conditions together, and rows that are not there.
TEST_CASE_METHOD(WhereKeyTest, "WhereKeyTest.BoundsStay", "[WhereKeyTest]") {
  std::string text = "id,name\n";
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + ",n" + std::to_string(i) + "\n";
  REQUIRE_MESSAGE(run({"load", database_, "t", file("t.csv", text), "--key-type", "i64"}) == 0,
                  error_);
  REQUIRE(run({"scan", database_, "t", "--where", "id=17"}) == 0);
  CHECK(out_ == "17\tn17\n");
  REQUIRE(run({"scan", database_, "t", "--where", "id>=998", "--reverse"}) == 0);
  CHECK(out_ == "999\tn999\n998\tn998\n");
  REQUIRE(run({"scan", database_, "t", "--where", "id<3", "--from", "1"}) == 0);
  CHECK(out_ == "1\tn1\n2\tn2\n");
  REQUIRE(run({"scan", database_, "t", "--where", "id=5000"}) == 0);
  CHECK(out_.empty());
}

}  // namespace
}  // namespace stride::cli
