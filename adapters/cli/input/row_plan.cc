#include "adapters/cli/input/row_plan.h"

#include <algorithm>
#include <numeric>
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
    return ExitStatus::usage("column " + in_quotes(wanted) + " is in " + where +
                             " more than once: give its number, " + std::to_string(*index + 1) +
                             " or " + std::to_string(again - columns.begin() + 1));
  }
  bool number = !wanted.empty() && wanted.size() <= 9 &&
                wanted.find_first_not_of("0123456789") == std::string::npos;
  size_t n = number ? std::stoul(wanted) : 0;
  if (n == 0) {
    return ExitStatus::usage(
        "no column " + in_quotes(wanted) +
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

ExitStatus find_key_columns(const RowOptions& options, const std::vector<std::string>& columns,
                            std::vector<size_t>* found) {
  const size_t parts = options.key_form.parts();
  found->resize(parts);
  std::iota(found->begin(), found->end(), size_t{0});
  const auto column_of = [&](const std::string& name) {
    return static_cast<size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  };
  const std::vector<std::string>& of_table = options.key_names;
  if (options.key.empty() && !columns.empty() && of_table.size() == parts &&
      std::all_of(of_table.begin(), of_table.end(),
                  [&](const std::string& name) { return column_of(name) < columns.size(); })) {
    std::transform(of_table.begin(), of_table.end(), found->begin(), column_of);
    return {};
  }
  if (options.key.empty()) {
    if (columns.empty() || parts <= columns.size()) return {};
    return ExitStatus::usage("keys of type " + name_of(options.key_form) + " have " +
                             std::to_string(parts) + " columns, and the file has " +
                             std::to_string(columns.size()));
  }
  const std::vector<std::string> names = key_parts(options);
  if (names.size() != parts)
    return ExitStatus::usage("--key names " + std::to_string(names.size()) +
                             " columns, and keys of type " + name_of(options.key_form) + " have " +
                             std::to_string(parts) + ": give as many");
  for (size_t i = 0; i < parts; ++i) {
    STRIDE_CLI_TRY(find_column(options, names[i], columns, &(*found)[i]));
    const auto here = found->begin() + static_cast<ptrdiff_t>(i);
    if (std::find(found->begin(), here, *here) != here)
      return ExitStatus::usage("--key names a column twice");
  }
  return {};
}

// A column without a name, as the index of a data frame has none, is called by its place.
std::vector<std::string> named_columns(std::vector<std::string> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) continue;
    std::string name = "column_" + std::to_string(i + 1);
    while (std::find(names.begin(), names.end(), name) != names.end()) name += "_";
    names[i] = name;
  }
  return names;
}

// The column of each of the schema's fields, by name where the file has names and else by place.
ExitStatus find_schema_columns(const RowPlan& plan, std::vector<size_t>* found) {
  const std::vector<Field>& fields = plan.options.schema->values();
  const std::vector<std::string>& columns = plan.columns;
  if (columns.empty()) {
    for (size_t i = 0; found->size() < fields.size(); ++i)
      if (!plan.is_key(i)) found->push_back(i);
    return {};
  }
  std::vector<bool> taken(columns.size());
  for (size_t i : plan.key_columns) taken[i] = true;
  for (const Field& field : fields) {
    size_t index = 0;
    STRIDE_CLI_TRY(find_column(plan.options, field.name, columns, &index));
    if (columns[index] != field.name)
      return ExitStatus::usage("no column " + in_quotes(field.name) +
                               ", which the table has: the file's are " + names_text(columns) +
                               ": name them in the table's order with --value");
    if (taken[index])
      return ExitStatus::usage("column " + in_quotes(field.name) +
                               " would be key and value: name the key's with --key");
    taken[index] = true;
    found->push_back(index);
  }
  const auto left = std::find(taken.begin(), taken.end(), false);
  if (left == taken.end()) return {};
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name);
  return ExitStatus::usage("column " +
                           in_quotes(columns[static_cast<size_t>(left - taken.begin())]) +
                           " is none of the table's, which are " + names_text(names) +
                           ": name those that are to be loaded with --value");
}

}  // namespace

std::vector<std::string> key_parts(const RowOptions& options) {
  const bool in_quotes = options.key.starts_with('"');
  if (options.key_form.parts() == 1 && !in_quotes) return {options.key};
  return split_names(options.key);
}

bool RowPlan::is_key(size_t column) const {
  return std::find(key_columns.begin(), key_columns.end(), column) != key_columns.end();
}

std::vector<std::string> RowPlan::key_names() const {
  if (options.format == Format::jsonl) {
    if (!options.key.empty()) return key_parts(options);
    const bool of_table = options.key_names.size() == options.key_form.parts();
    return of_table ? options.key_names : std::vector<std::string>{"key"};
  }
  std::vector<std::string> names;
  for (size_t i : key_columns)
    if (i < columns.size()) names.push_back(columns[i]);
  return names;
}

std::vector<size_t> RowPlan::chosen_columns() const {
  if (!value_is_rest) return value_columns;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < columns.size(); ++i)
    if (!is_key(i)) chosen.push_back(i);
  return chosen;
}

std::vector<std::string> values_in_order(const RowOptions& options) {
  if (!options.schema) return options.values;
  std::vector<std::string> names;
  for (const Field& field : options.schema->values()) names.push_back(field.name);
  const bool same = std::set<std::string>(names.begin(), names.end()) ==
                    std::set<std::string>(options.values.begin(), options.values.end());
  return same ? names : options.values;
}

void RowPlan::set_schema(std::shared_ptr<const Schema> schema) {
  value_columns = chosen_columns();
  value_is_rest = false;
  options.schema = std::move(schema);
}

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

ExitStatus RowPlan::make(const RowOptions& options, const std::vector<std::string>& header,
                         RowPlan* plan) {
  const std::vector<std::string> columns = named_columns(header);
  plan->options = options;
  plan->crlf = options.line_ends == LineEnds::crlf;
  std::set<std::string> names(options.values.begin(), options.values.end());
  if (names.size() != options.values.size())
    return ExitStatus::usage("--value names a column twice");
  if (options.format == Format::jsonl && plan->key_names().size() != options.key_form.parts())
    return ExitStatus::usage("keys of type " + name_of(options.key_form) + " have " +
                             std::to_string(options.key_form.parts()) +
                             " fields: name as many with --key, with commas between");
  if (options.format == Format::jsonl || options.format == Format::raw || options.whole_rows) {
    if (options.schema && !options.values.empty() &&
        options.values.size() != options.schema->values().size())
      return ExitStatus::usage(
          "--value names " + std::to_string(options.values.size()) + " fields, and the table has " +
          std::to_string(options.schema->values().size()) + ": " + options.schema->to_string());
    return {};
  }
  STRIDE_CLI_TRY(find_key_columns(options, columns, &plan->key_columns));
  size_t last = *std::max_element(plan->key_columns.begin(), plan->key_columns.end());
  plan->columns = columns;
  const bool by_schema = options.values_wanted && options.schema && options.values.empty();
  if (by_schema) {
    STRIDE_CLI_TRY(find_schema_columns(*plan, &plan->value_columns));
    for (size_t i : plan->value_columns) last = std::max(last, i);
    if (columns.empty()) {
      plan->min_columns = plan->exact_columns = last + 1;
      return {};
    }
  } else if (options.values_wanted) {
    plan->value_is_rest = options.values.empty();
    for (const std::string& name : values_in_order(options)) {
      size_t index = 0;
      STRIDE_CLI_TRY(find_column(options, name, columns, &index));
      if (std::find(plan->value_columns.begin(), plan->value_columns.end(), index) !=
          plan->value_columns.end())
        return ExitStatus::usage("--value names a column twice");
      plan->value_columns.push_back(index);
      last = std::max(last, index);
    }
    if (options.schema && options.values.size() != options.schema->values().size())
      return ExitStatus::usage("--value names " + std::to_string(options.values.size()) +
                               " columns, and the table has " +
                               std::to_string(options.schema->values().size()) + ": " +
                               options.schema->to_string());
    if (plan->value_is_rest) last = std::max(last, plan->key_columns.size());
  }
  plan->min_columns = last + 1;
  plan->exact_columns = columns.size();
  if (columns.size() == 1) plan->take_one_column();
  return {};
}

void RowPlan::take_one_column() {
  if (!value_is_rest || key_columns != std::vector<size_t>{0}) return;
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
