#include "adapters/cli/input/row_plan.h"

#include <algorithm>
#include <set>

#include "adapters/cli/text/similar_names.h"

namespace stride::cli {
namespace {

ExitStatus find_column(const RowOptions& options, const std::string& wanted,
                       const std::vector<std::string>& columns, size_t* index) {
  std::string where = is_columnar(options.format) ? "the file" : "the header";
  auto named = std::find(columns.begin(), columns.end(), wanted);
  if (named != columns.end()) {
    *index = static_cast<size_t>(named - columns.begin());
    auto again = std::find(named + 1, columns.end(), wanted);
    if (again == columns.end()) return {};
    return ExitStatus::usage("column " + quoted(wanted) + " is in " + where +
                             " more than once: give its number, " + std::to_string(*index + 1) +
                             " or " + std::to_string(again - columns.begin() + 1));
  }
  bool number = !wanted.empty() && wanted.size() <= 9 &&
                wanted.find_first_not_of("0123456789") == std::string::npos;
  size_t n = number ? std::stoul(wanted) : 0;
  if (n == 0) {
    return ExitStatus::usage(
        "no column " + quoted(wanted) +
        (columns.empty()
             ? ": without --header a column is a number from 1: give its number, or --header"
             : " in " + where + ", which has " + names_text(columns) + ": " +
                   did_you_mean(wanted, columns, "name one of these, or give its number")));
  }
  if (!columns.empty() && n > columns.size()) {
    return ExitStatus::usage("no column " + wanted + ": " + where + " has " +
                             std::to_string(columns.size()) + ", " + names_text(columns) +
                             ": name one of these");
  }
  *index = n - 1;
  return {};
}

}  // namespace

std::string_view name_of(Format format) {
  switch (format) {
    case Format::tsv:
      return "tsv";
    case Format::csv:
      return "csv";
    case Format::jsonl:
      return "jsonl";
    case Format::raw:
      return "raw";
    case Format::parquet:
      return "parquet";
    case Format::arrow:
      break;
  }
  return "arrow";
}

ExitStatus RowPlan::make(const RowOptions& options, const std::vector<std::string>& columns,
                         RowPlan* plan) {
  plan->options = options;
  plan->crlf = options.line_ends == LineEnds::crlf;
  std::set<std::string> names(options.values.begin(), options.values.end());
  if (names.size() != options.values.size())
    return ExitStatus::usage("--value names a column twice");
  if (options.format == Format::jsonl || options.format == Format::raw || options.whole_rows)
    return {};
  if (!options.key.empty())
    STRIDE_CLI_TRY(find_column(options, options.key, columns, &plan->key_column));
  size_t last = plan->key_column;
  if (options.values_wanted) {
    plan->value_is_rest = options.values.empty();
    for (const std::string& name : options.values) {
      size_t index = 0;
      STRIDE_CLI_TRY(find_column(options, name, columns, &index));
      if (std::find(plan->value_columns.begin(), plan->value_columns.end(), index) !=
          plan->value_columns.end())
        return ExitStatus::usage("--value names a column twice");
      plan->value_columns.push_back(index);
      last = std::max(last, index);
    }
    if (plan->value_is_rest) last = std::max<size_t>(last, 1);
  }
  plan->min_columns = last + 1;
  plan->exact_columns = columns.size();
  if (columns.size() == 1) plan->take_one_column();
  return {};
}

void RowPlan::take_one_column() {
  if (!value_is_rest || key_column != 0) return;
  value_is_rest = false;
  min_columns = exact_columns = 1;
}

std::string format_of_file(std::string_view path) {
  for (std::string_view packed : {".gz", ".zst"})
    if (path.ends_with(packed)) path.remove_suffix(packed.size());
  static constexpr std::pair<std::string_view, std::string_view> known[] = {
      {".csv", "csv"},         {".jsonl", "jsonl"}, {".ndjson", "jsonl"}, {".json", "jsonl"},
      {".parquet", "parquet"}, {".arrow", "arrow"}, {".feather", "arrow"}};
  for (const auto& [ending, format] : known)
    if (path.ends_with(ending)) return std::string(format);
  return "tsv";
}

ExitStatus parse_delimiter(const std::string& text, char* delimiter) {
  if (text == "\\t") {
    *delimiter = '\t';
  } else if (text.size() == 1 && text != "\n" && text != "\r" && text != "\"") {
    *delimiter = text[0];
  } else {
    return ExitStatus::usage(
        "--delimiter must be one byte that is no quote and no line end, or \\t");
  }
  return {};
}

}  // namespace stride::cli
