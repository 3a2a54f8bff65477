// scan --where and --top, and group --by, beside plain lists of rows.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::cli {
namespace {

// How the test compares the texts of a column's cells. Dates, times, uuids and booleans are written
// so that their texts sort as they do.
enum class Order { integer, floating, text };

struct PlainColumn {
  std::string name;
  const char* type;
  Order order;
  bool quoted_in_json;
  std::function<std::string(std::mt19937_64*)> draw;
};

using PlainCell = std::optional<std::string>;
using PlainRow = std::vector<PlainCell>;

std::string two_digits(unsigned n) { return (n < 10 ? "0" : "") + std::to_string(n); }

std::string drawn_text(std::mt19937_64* random) {
  static const char* const texts[] = {"", "a", "ab", "b", "B,c", "q\"q", "\xC3\xA9", "zz zz"};
  return texts[(*random)() % std::size(texts)];
}

// The first one is the key.
const std::vector<PlainColumn>& plain_columns() {
  using Random = std::mt19937_64;
  auto small = [](Random* random) { return std::to_string(static_cast<int>((*random)() % 9) - 4); };
  auto quarter = [](Random* random) {
    char text[32];
    const double number = static_cast<double>(static_cast<int>((*random)() % 33) - 16) / 4;
    return std::string(text, static_cast<size_t>(snprintf(text, sizeof text, "%g", number)));
  };
  auto date = [](Random* random) {
    return std::to_string(1960 + (*random)() % 20) + "-0" + std::to_string(1 + (*random)() % 2) +
           "-" + two_digits(1 + (*random)() % 3);
  };
  static const std::vector<PlainColumn> columns = {
      {"id", "u64", Order::integer, false, nullptr},
      {"flag", "bool", Order::text, false,
       [](Random* random) { return (*random)() % 2 ? "true" : "false"; }},
      {"i8", "i8", Order::integer, false, small},
      {"i16", "i16", Order::integer, false, small},
      {"i32", "i32", Order::integer, false, small},
      {"i64", "i64", Order::integer, false, small},
      {"u8", "u8", Order::integer, false,
       [](Random* random) { return std::to_string((*random)() % 4 + 126); }},
      {"u32", "u32", Order::integer, false,
       [](Random* random) { return std::to_string((*random)() % 4 + 2147483646); }},
      {"u64", "u64", Order::integer, false,
       [](Random* random) { return std::to_string((*random)() % 3 + 9223372036854775807u); }},
      {"f32", "f32", Order::floating, false, quarter},
      {"f64", "f64", Order::floating, false, quarter},
      {"day", "date", Order::text, true, date},
      {"at", "timestamp[s]", Order::text, true,
       [date](Random* random) {
         return date(random) + " 10:" + two_digits((*random)() % 60) + ":00";
       }},
      {"uid", "uuid", Order::text, true,
       [](Random* random) {
         const char digit = "059af"[(*random)() % 5];
         return std::string(8, digit) + "-0000-1111-2222-333333333333";
       }},
      {"name", "string", Order::text, true, drawn_text},
      {"raw", "bytes", Order::text, true, drawn_text},
      {"two", "bytes[2]", Order::text, true,
       [](Random* random) { return std::string(1, "AZ"[(*random)() % 2]) + "x"; }},
  };
  return columns;
}

size_t plain_column(const std::string& name) {
  for (size_t i = 0; i < plain_columns().size(); ++i)
    if (plain_columns()[i].name == name) return i;
  abort();
}

// 128 bits compare all integers as one type.
__extension__ using PlainWide = __int128;
PlainWide wide_of(const std::string& text) {
  return text[0] == '-' ? PlainWide{std::stoll(text)} : PlainWide{std::stoull(text)};
}

int compare_texts(Order order, const std::string& a, const std::string& b) {
  auto three_way = [](const auto& x, const auto& y) { return x < y ? -1 : int{y < x}; };
  if (order == Order::integer) return three_way(wide_of(a), wide_of(b));
  if (order == Order::floating) return three_way(std::stod(a), std::stod(b));
  return three_way(a, b);
}

// A missing cell comes first.
int compare_plain(Order order, const PlainCell& a, const PlainCell& b) {
  if (!a || !b) return int{a.has_value()} - int{b.has_value()};
  return compare_texts(order, *a, *b);
}

bool plain_holds(const PlainColumn& column, const PlainCell& cell, const std::string& comparison,
                 const std::string& value) {
  if (!cell) {
    if (comparison == "!=") return !value.empty();
    return value.empty() && comparison.back() == '=';
  }
  const bool is_text = column.name == "name" || column.name == "raw";
  if (value.empty() && !is_text) return comparison == "!=";
  const int c = compare_texts(column.order, *cell, value);
  if (comparison == "=") return c == 0;
  if (comparison == "!=") return c != 0;
  if (comparison == "<") return c < 0;
  if (comparison == "<=") return c <= 0;
  return comparison == ">" ? c > 0 : c >= 0;
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text.empty() ? "\"\"" : text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string json_text(const PlainColumn& column, const PlainCell& cell) {
  if (!cell) return "null";
  if (!column.quoted_in_json) return *cell;
  std::string text = "\"";
  for (char c : *cell) text += c == '"' ? std::string("\\\"") : std::string(1, c);
  return text + "\"";
}

struct PlainField {
  std::string name;
  PlainColumn column;
};

std::string plain_header(const std::vector<PlainField>& fields, const std::string& format) {
  std::string line;
  for (const PlainField& field : fields)
    line += (line.empty() ? "" : format == "csv" ? "," : "\t") + field.name;
  return line + "\n";
}

std::string plain_line(const std::vector<PlainField>& fields, const PlainRow& cells,
                       const std::string& format) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i != 0) line += format == "tsv" ? "\t" : ",";
    if (format == "jsonl") {
      line += "\"" + fields[i].name + "\":" + json_text(fields[i].column, cells[i]);
    } else if (cells[i]) {
      line += format == "csv" ? csv_text(*cells[i]) : *cells[i];
    }
  }
  return format == "jsonl" ? "{" + line + "}\n" : line + "\n";
}

class WhereTest : public CliFixture {
 protected:
  // A table of random rows, in one commit or several, and the same rows in order.
  void make_rows(size_t n) {
    std::string schema;
    for (const PlainColumn& column : plain_columns())
      if (column.draw)
        schema += (schema.empty() ? "" : ", ") + column.name + " " + column.type + "?";
    std::string text[2];
    for (size_t i = 0; i < n; ++i) {
      PlainRow row;
      for (const PlainColumn& column : plain_columns()) {
        if (!column.draw) {
          row.emplace_back(std::to_string(i * 7));
        } else if (random_() % 5 == 0) {
          row.emplace_back();
        } else {
          row.emplace_back(column.draw(&random_));
        }
      }
      // JSON tells an empty text from a missing one.
      text[i % 2] += plain_line(all_fields(), row, "jsonl");
      rows_.push_back(std::move(row));
    }
    REQUIRE_MESSAGE(load(file("even.jsonl", text[0]),
                         {"--key", "id", "--key-type", "u64", "--schema", schema}) == 0,
                    error_);
    REQUIRE_MESSAGE(load(file("odd.jsonl", text[1]), {"--key", "id"}) == 0, error_);
  }
  static std::vector<PlainField> all_fields() {
    std::vector<PlainField> fields;
    for (const PlainColumn& column : plain_columns()) fields.push_back({column.name, column});
    return fields;
  }

  std::string pick(const std::vector<std::string>& from) { return from[random_() % from.size()]; }
  std::string any_column(bool with_key = true) {
    const size_t first = with_key ? 0 : 1;
    return plain_columns()[first + random_() % (plain_columns().size() - first)].name;
  }

  // Adds a random --where and drops the rows that do not hold.
  void add_condition(std::vector<std::string>* arguments, std::vector<PlainRow>* left) {
    const size_t c = plain_column(any_column());
    const PlainColumn& column = plain_columns()[c];
    std::string comparison = pick({"=", "!=", "<", "<=", ">", ">="});
    std::string value =
        column.draw ? column.draw(&random_) : std::to_string(random_() % (rows_.size() * 7 + 1));
    if (column.draw && random_() % 6 == 0) {
      value.clear();
      comparison = pick({"=", "!="});
    }
    arguments->push_back("--where");
    const std::string blank = random_() % 4 == 0 ? " " : "";
    arguments->push_back(column.name + blank + comparison + blank + value);
    std::erase_if(*left, [&](const PlainRow& row) {
      return !plain_holds(column, row[c], comparison, value);
    });
  }
  void add_conditions(std::vector<std::string>* arguments, std::vector<PlainRow>* left) {
    for (size_t n = random_() % 4; n != 0; --n) add_condition(arguments, left);
  }
  // The columns that are printed behind the key, all or some.
  std::vector<PlainField> choose_columns(std::vector<std::string>* arguments) {
    std::vector<PlainField> fields = all_fields();
    if (random_() % 2) return fields;
    std::shuffle(fields.begin() + 1, fields.end(), random_);
    fields.resize(2 + random_() % 4);
    std::string names;
    for (size_t i = 1; i < fields.size(); ++i) names += (i == 1 ? "" : ",") + fields[i].name;
    arguments->push_back("--columns");
    arguments->push_back(names);
    return fields;
  }
  static std::string lines_of(const std::vector<PlainField>& fields,
                              const std::vector<PlainRow>& rows, const std::string& format) {
    std::string text = format == "csv" ? plain_header(fields, format) : "";
    for (const PlainRow& row : rows) {
      PlainRow cells;
      for (const PlainField& field : fields) cells.push_back(row[plain_column(field.name)]);
      text += plain_line(fields, cells, format);
    }
    return text;
  }
  void check_output(const std::vector<std::string>& arguments, const std::string& expected) {
    std::string command;
    for (const std::string& argument : arguments) command += argument + " ";
    CHECK_MESSAGE(run(arguments) == 0, command << error_);
    CHECK_MESSAGE(out_ == expected, command);
  }

  std::mt19937_64 random_{test::seed()};
  std::vector<PlainRow> rows_;
};

TEST_CASE_METHOD(WhereTest, "WhereTest.RandomConditions", "[WhereTest]") {
  make_rows(300);
  for (int round = 0; round < test::smaller_under_sanitizers(300, 120); ++round) {
    std::vector<std::string> arguments = {"scan", database_, "t"};
    std::vector<PlainRow> left = rows_;
    add_conditions(&arguments, &left);
    const std::vector<PlainField> fields = choose_columns(&arguments);
    if (random_() % 2) {
      arguments.push_back("--reverse");
      std::reverse(left.begin(), left.end());
    }
    if (random_() % 2) {
      const size_t limit = random_() % 30;
      arguments.insert(arguments.end(), {"--limit", std::to_string(limit)});
      left.resize(std::min(left.size(), limit));
    }
    const std::string format = pick({"tsv", "csv", "jsonl"});
    arguments.insert(arguments.end(), {"--format", format});
    check_output(arguments, lines_of(fields, left, format));
  }
}

TEST_CASE_METHOD(WhereTest, "WhereTest.RandomTopRows", "[WhereTest]") {
  make_rows(300);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> arguments = {"scan", database_, "t"};
    std::vector<PlainRow> left = rows_;
    add_conditions(&arguments, &left);
    const std::vector<PlainField> fields = choose_columns(&arguments);
    const size_t of = plain_column(any_column()), top = random_() % 40;
    const bool reverse = random_() % 2;
    if (reverse) arguments.push_back("--reverse");
    arguments.insert(arguments.end(),
                     {"--top", std::to_string(top), "--of", plain_columns()[of].name});
    std::erase_if(left, [&](const PlainRow& row) { return !row[of]; });
    std::stable_sort(left.begin(), left.end(), [&](const PlainRow& a, const PlainRow& b) {
      const int c = compare_plain(plain_columns()[of].order, a[of], b[of]);
      return reverse ? c < 0 : c > 0;
    });
    left.resize(std::min(left.size(), top));
    const std::string format = pick({"tsv", "csv", "jsonl"});
    arguments.insert(arguments.end(), {"--format", format});
    check_output(arguments, lines_of(fields, left, format));
  }
}

struct PlainAggregate {
  std::string kind;
  size_t column;
};

std::string wide_text(PlainWide number) {
  return number < 0 ? std::to_string(static_cast<int64_t>(number))
                    : std::to_string(static_cast<uint64_t>(number));
}

PlainCell aggregate_of(const PlainAggregate& aggregate, const std::vector<PlainRow>& rows) {
  const PlainColumn& column = plain_columns()[aggregate.column];
  PlainCell result;
  PlainWide integer = 0;
  double real = 0;
  for (const PlainRow& row : rows) {
    const PlainCell& cell = row[aggregate.column];
    if (!cell) continue;
    if (aggregate.kind == "sum") {
      if (column.order == Order::floating)
        real += std::stod(*cell);
      else
        integer += column.name == "flag" ? PlainWide{*cell == "true"} : wide_of(*cell);
      char text[32];
      snprintf(text, sizeof text, "%g", real);
      result = column.order == Order::floating ? text : wide_text(integer);
      continue;
    }
    const int c = result ? compare_plain(column.order, cell, result) : 0;
    if (!result || (aggregate.kind == "min" ? c < 0 : c > 0)) result = cell;
  }
  return result;
}

// What group --by is asked, and what it has to print.
struct GroupQuestion {
  std::vector<size_t> by;
  std::vector<PlainAggregate> aggregates;
  bool count = false;

  bool prints_count() const { return count || aggregates.empty(); }
  std::vector<std::string> arguments() const {
    std::string names;
    for (size_t c : by) names += (names.empty() ? "" : ",") + plain_columns()[c].name;
    std::vector<std::string> all = {"--by", names};
    if (count) all.push_back("--count");
    for (const PlainAggregate& aggregate : aggregates)
      all.insert(all.end(),
                 {"--" + aggregate.kind + "-of", plain_columns()[aggregate.column].name});
    return all;
  }
  std::vector<PlainField> fields() const {
    const PlainColumn number = {"", "", Order::integer, false, nullptr};
    std::vector<PlainField> made;
    auto add = [&](std::string name, const PlainColumn& column) {
      for (size_t i = 0; i < made.size();) i = made[i].name == name ? (name += "_", 0) : i + 1;
      made.push_back({name, column});
    };
    for (size_t c : by) add(plain_columns()[c].name, plain_columns()[c]);
    if (prints_count()) add("count", number);
    for (const PlainAggregate& aggregate : aggregates) {
      const PlainColumn& column = plain_columns()[aggregate.column];
      add(aggregate.kind + "_" + column.name, aggregate.kind == "sum" ? number : column);
    }
    return made;
  }
  // Each with the number by which --top chooses.
  std::vector<std::pair<PlainCell, PlainRow>> lines(const std::vector<PlainRow>& rows) const {
    auto less = [&](const PlainRow& a, const PlainRow& b) {
      for (size_t i = 0; i < by.size(); ++i)
        if (const int c = compare_plain(plain_columns()[by[i]].order, a[i], b[i])) return c < 0;
      return false;
    };
    std::map<PlainRow, std::vector<PlainRow>, decltype(less)> groups(less);
    for (const PlainRow& row : rows) {
      PlainRow cells;
      for (size_t c : by) cells.push_back(row[c]);
      groups[cells].push_back(row);
    }
    std::vector<std::pair<PlainCell, PlainRow>> made;
    for (const auto& [cells, members] : groups) {
      PlainRow line = cells;
      PlainCell rank = std::to_string(members.size());
      if (prints_count()) line.push_back(rank);
      if (!aggregates.empty() && aggregates[0].kind == "sum")
        rank = aggregate_of(aggregates[0], members);
      for (const PlainAggregate& aggregate : aggregates)
        line.push_back(aggregate_of(aggregate, members));
      made.emplace_back(rank, line);
    }
    return made;
  }
};

TEST_CASE_METHOD(WhereTest, "WhereTest.RandomGroups", "[WhereTest]") {
  make_rows(300);
  for (int round = 0; round < test::smaller_under_sanitizers(300, 120); ++round) {
    std::vector<std::string> arguments = {"group", database_, "t"};
    std::vector<PlainRow> left = rows_;
    add_conditions(&arguments, &left);
    GroupQuestion question;
    question.count = random_() % 2;
    question.by = {plain_column(any_column())};
    const size_t second = plain_column(any_column());
    if (random_() % 2 && second != question.by[0]) question.by.push_back(second);
    for (const std::string kind : {"sum", "min", "max"}) {
      for (size_t n = random_() % 3; n != 0; --n) {
        const std::string name =
            kind == "sum" ? pick({"flag", "i8", "i16", "i32", "i64", "u8", "u32", "f32", "f64"})
                          : any_column();
        question.aggregates.push_back({kind, plain_column(name)});
      }
    }
    const std::vector<std::string> asked = question.arguments();
    arguments.insert(arguments.end(), asked.begin(), asked.end());
    auto lines = question.lines(left);
    if (random_() % 2) {
      const size_t top = random_() % 10;
      arguments.insert(arguments.end(), {"--top", std::to_string(top)});
      std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
        return compare_plain(Order::floating, a.first, b.first) > 0;
      });
      lines.resize(std::min(lines.size(), top));
    }
    const std::string format = pick({"tsv", "csv", "jsonl"});
    arguments.insert(arguments.end(), {"--format", format});
    const std::vector<PlainField> fields = question.fields();
    std::string expected = format == "csv" ? plain_header(fields, format) : "";
    for (const auto& line : lines) expected += plain_line(fields, line.second, format);
    check_output(arguments, expected);
  }
}

}  // namespace
}  // namespace stride::cli
