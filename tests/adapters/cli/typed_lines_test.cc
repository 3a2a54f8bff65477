// Delimited text with a schema, most of whose lines are read in one pass: the same rows, and the
// same rows refused with the same words, as where each line is a block of its own, which is too
// short for that.
#include <charconv>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

// Makes the text of a file, cell by cell: most are plain, some are odd, a few are wrong.
class RandomLines {
 public:
  explicit RandomLines(std::mt19937_64* random)
      : random_(*random), delimiter_(one_in(3) ? ';' : ','), end_(one_in(3) ? "\r\n" : "\n") {}

  std::string text(size_t lines) {
    std::string text;
    for (size_t i = 0; i < lines; ++i) text += line();
    if (one_in(4)) text.resize(text.size() - end_.size());
    return text;
  }
  char delimiter() const { return delimiter_; }
  static constexpr const char* schema =
      "a i64?, b f64?, c string, d u8?, e i16, f date?, g timestamp?, h bool?, k "
      "f32?, l u64, m string?, n i32?, o i8?, p u16?, q u32?";

 private:
  bool one_in(uint64_t n) { return random_() % n == 0; }
  size_t below(size_t n) { return random_() % n; }
  std::string digits(size_t most) {
    std::string text;
    for (size_t n = 1 + below(most); n-- > 0;) text += static_cast<char>('0' + below(10));
    return text;
  }
  // Mostly one of so many bits at most.
  std::string integer(size_t bits, bool is_signed) {
    if (one_in(200)) return digits(22);  // with zeros before it, or too long
    if (one_in(200)) ++bits;
    std::string text =
        std::to_string(random_() >> 1 >> (63 - std::min<size_t>(below(bits + 1), 63)));
    if (one_in(300)) text += one_in(2) ? "x" : " ";
    if (one_in(300)) text = "+" + text;
    return (is_signed && one_in(3)) || one_in(300) ? "-" + text : text;
  }
  std::string decimal() {
    std::string text = integer(30, true);
    if (!one_in(5)) text += "." + digits(one_in(10) ? 20 : 5);
    if (one_in(10)) text += "e" + std::to_string(static_cast<int>(below(600)) - 300);
    if (one_in(50)) text = one_in(2) ? "nan" : "-inf";
    if (one_in(50)) text = "." + digits(3);
    if (one_in(50)) text += ".";
    return text;
  }
  std::string words() {
    std::string text;
    for (size_t n = below(one_in(5) ? 100 : 12); n-- > 0;)
      text += one_in(20) ? "\xC3\xA4" : std::string(1, static_cast<char>('a' + below(26)));
    if (one_in(500)) text += "\xFF";
    if (one_in(500)) text += "\r";
    return text;
  }
  std::string time(bool is_date) {
    std::string text =
        std::to_string(1000 + below(9000)) + "-0" + std::to_string(1 + below(9)) + "-1" + digits(1);
    if (is_date) return text;
    text += std::string(one_in(4) ? "T" : " ") + "1" + digits(1) + ":3" + digits(1);
    if (!one_in(5)) text += ":0" + digits(1);
    if (one_in(2)) text += "." + digits(one_in(100) ? 9 : 6);
    if (one_in(5)) text += one_in(2) ? "Z" : "+02:00";
    return text;
  }
  std::string cell(size_t column) {
    if (column != 0 && column != 5 && column != 10 && one_in(10)) return "";
    if (one_in(1000)) return words();
    switch (column) {
      case 0:
        return std::to_string(next_key_++);
      case 2:
      case 9:
        return decimal();
      case 3:
      case 11:
        return words();
      case 6:
      case 7:
        return time(column == 6);
      case 8:
        return one_in(2) ? "true" : "False";
      default:
        return integer(bits[column], bits[column] % 8 != 0);
    }
  }
  std::string line() {
    std::string text;
    // All others have to end as the first one does.
    const bool is_first = next_key_ == 1;
    size_t columns = 16;
    if (one_in(100)) columns = one_in(2) ? below(17) : 17;
    for (size_t i = 0; i < columns; ++i) {
      std::string one = cell(i);
      if (i != 0) text += delimiter_;
      if (one_in(8)) {
        if (one_in(50)) one += "\"\"";
        if (one_in(50)) one += "\n";
        if (one_in(50)) one += delimiter_;
        one = "\"" + one + "\"";
      }
      if (one_in(1000)) one += '"';
      text += one;
    }
    return text + (!is_first && one_in(200) ? "\n" : end_);
  }

  static constexpr size_t bits[] = {0, 63, 0, 0, 8, 15, 0, 0, 0, 0, 64, 0, 31, 7, 16, 32, 8};

  std::mt19937_64& random_;
  char delimiter_;
  std::string end_;
  uint64_t next_key_ = 1;
};

class TypedLinesTest : public CliFixture {
 protected:
  // What a load of the file makes and says.
  struct Loaded {
    int code = 0;
    std::string rows, refused, reasons;
  };
  Loaded loaded(const std::string& path, std::vector<std::string> options) {
    std::filesystem::remove_all(database_);
    const std::string bad = directory_ + "/bad";
    options.insert(options.end(), {"--rejects", bad, "--no-header", "--key-type", "u64"});
    Loaded result;
    result.code = load(path, options);
    result.reasons = error_.substr(0, error_.find("loaded"));
    if (result.code == 0) result.rows = scan({"--format", "csv"});
    result.refused = read(bad);
    return result;
  }
};

TEST_CASE_METHOD(TypedLinesTest, "TypedLinesTest.MakesTheRowsOfTheGeneralParser",
                 "[TypedLinesTest]") {
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < 12; ++round) {
    RandomLines lines(&random);
    const std::string path = file("rows.csv", lines.text(400));
    std::vector<std::string> options = {"--schema", RandomLines::schema, "--delimiter",
                                        std::string(1, lines.delimiter())};
    if (random() % 4 == 0) options.insert(options.end(), {"--line-ends", "any"});
    auto with_blocks = [&](const std::string& bytes) {
      std::vector<std::string> all = options;
      all.insert(all.end(), {"--block-bytes", bytes});
      return loaded(path, all);
    };
    const Loaded one_by_one = with_blocks("1"), at_once = with_blocks("1000000");
    REQUIRE_MESSAGE(one_by_one.code == 0, error_);
    CHECK(at_once.code == 0);
    CHECK(at_once.rows == one_by_one.rows);
    CHECK(at_once.refused == one_by_one.refused);
    CHECK(at_once.reasons == one_by_one.reasons);
    CHECK(std::count(at_once.rows.begin(), at_once.rows.end(), '\n') > 100);
    CHECK(at_once.refused != "");
  }
}

// Not compared with another parser, but with the numbers.
TEST_CASE_METHOD(TypedLinesTest, "TypedLinesTest.ReadsNumbersAsTheyAre", "[TypedLinesTest]") {
  std::mt19937_64 random(test::seed());
  std::string text, rows = "key,a,b,c\n";
  auto shortest = [](auto number) {
    char digits[40];
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  };
  for (uint64_t i = 0; i < 5000; ++i) {
    const uint64_t key = i << 50 | random() >> 20;
    const auto a = static_cast<int64_t>(random()) >> random() % 64;
    const uint64_t b = random() >> random() % 64;
    double c = std::ldexp(static_cast<double>(random() >> 11), -static_cast<int>(random() % 80));
    std::string written = shortest(c);
    if (random() % 2 == 0) {  // as prices have it
      written = std::to_string(random() % 100'000) + "." + std::to_string(100 + random() % 900);
      std::from_chars(written.data(), written.data() + written.size(), c);
    }
    const std::string start = shortest(key) + "," + shortest(a) + "," + shortest(b) + ",";
    text += start + written + "\n";
    rows += start + shortest(c) + "\n";
  }
  const Loaded made = loaded(file("numbers.csv", text), {"--schema", "a i64, b u64, c f64"});
  CHECK(made.code == 0);
  CHECK(made.rows == rows);
}

TEST_CASE_METHOD(TypedLinesTest, "TypedLinesTest.TakesColumnsInAnyOrder", "[TypedLinesTest]") {
  std::string text = "note,n,skipped,when,id\n", rows = "id,n,note\n";
  for (int i = 100; i < 400; ++i) {
    const std::string n = std::to_string(i), id = std::to_string(i * 7);
    text += "note " + n + "," + n + ",,2020-01-01," + id + "\n";
    rows += id + "," + n + ",note " + n + "\n";
  }
  REQUIRE(load(file("rows.csv", text), {"--key", "id", "--key-type", "i64", "--value", "n,note"}) ==
          0);
  CHECK(scan({"--format", "csv"}) == rows);
}

}  // namespace
}  // namespace stride::cli
