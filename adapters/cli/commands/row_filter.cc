#include "adapters/cli/commands/row_filter.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "adapters/cli/text/cell_text.h"
#include "storage/key_format.h"
#include "storage/quoted.h"

namespace stride::cli {
namespace {

// Those of two characters first, so that they are found before their beginnings.
constexpr std::string_view comparisons[] = {"!=", "<=", ">=", "=", "<", ">"};

std::string_view comparison_at(std::string_view text) {
  for (std::string_view comparison : comparisons)
    if (text.starts_with(comparison)) return comparison;
  return {};
}

struct ConditionText {
  std::string_view column, comparison, value;
};

std::string_view without_blanks_before(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text;
}

// Blanks behind a comparison are of the value, unless there are some before it, too.
ConditionText split_behind(std::string_view text, size_t name_bytes) {
  const std::string_view behind = text.substr(name_bytes);
  const std::string_view rest = without_blanks_before(behind);
  const std::string_view comparison = comparison_at(rest);
  std::string_view value = rest.substr(comparison.size());
  if (rest.size() < behind.size()) value = without_blanks_before(value);
  return {text.substr(0, name_bytes), comparison, value};
}

// Names may have such characters themselves: the longest one that is a column's counts.
ConditionText split_condition(std::string_view text, const std::vector<std::string>& names) {
  ConditionText best;
  for (const std::string& name : names) {
    if (!text.starts_with(name)) continue;
    const ConditionText found = split_behind(text, name.size());
    if (found.comparison.empty()) continue;
    if (best.comparison.empty() || name.size() > best.column.size()) best = found;
  }
  if (!best.comparison.empty()) return best;
  size_t end = std::min(text.find_first_of("=!<>"), text.size());
  while (end > 0 && text[end - 1] == ' ') --end;
  return split_behind(text, end);
}

bool is_text_field(const Field& field) {
  return field.type == FieldType::string || field.type == FieldType::bytes;
}

}  // namespace

bool RowFilter::Condition::holds(const TableCells& cells) const {
  // "not equal" is all but equal; a null has no place in the order.
  if (cells.is_null(column)) return is_empty ? equal : less && more;
  if (!has_value) return less && more;
  const int c = compare(cells[column], as_bytes(value));
  return c < 0 ? less : c > 0 ? more : equal;
}

ExitStatus RowFilter::parse(const std::string& text, TableCells* cells, Condition* condition) {
  STRIDE_CLI_TRY(cells->check_columns("--where"));
  const ConditionText parts = split_condition(text, cells->names());
  const std::string before = "--where " + in_quotes(text);
  if (parts.comparison.empty())
    return ExitStatus::usage(before +
                             " compares nothing: give COLUMN=VALUE, or !=, <, <=, > or "
                             ">= in the place of =");
  STRIDE_CLI_TRY(cells->find(before, std::string(parts.column), &condition->column));
  const Field& field = condition->column.field;
  const bool negated = parts.comparison == "!=";
  condition->less = negated || parts.comparison.front() == '<';
  condition->more = negated || parts.comparison.front() == '>';
  condition->equal = !negated && parts.comparison.back() == '=';
  condition->compare = comparison_of(field);
  condition->is_empty = parts.value.empty();
  const bool compares_nulls = negated || parts.comparison == "=";
  if (parts.value.empty() && field.nullable && (!is_text_field(field) || field.count != 0)) {
    condition->has_value = false;
    if (compares_nulls) return {};
    return ExitStatus::usage(before + ": nothing is less or more than a missing cell: give a " +
                             "value, or ask for = or != alone");
  }
  Field one = field;
  one.name = "cell";
  one.nullable = false;
  auto schema = Schema::make({one});
  if (!schema.ok()) return schema.status();
  RowWriter row(*schema);
  if (!parse_cell(field, parts.value, 0, &row))
    return ExitStatus::usage(before + ": " + why_no_cell(field, parts.value) + ": column " +
                             in_quotes(field.name) + " is of type " + type_text(field));
  RowReader reader(*schema);
  if (!reader.read(row.bytes())) return ExitStatus::usage(before + ": the value is too long");
  condition->value = as_text(reader[0]);
  return {};
}

ExitStatus RowFilter::make(const std::vector<std::string>& conditions, TableCells* cells,
                           RowFilter* filter) {
  filter->conditions_.clear();
  for (const std::string& text : conditions)
    STRIDE_CLI_TRY(parse(text, cells, &filter->conditions_.emplace_back()));
  return {};
}

// Keys whose first column has the cell begin with `beginning`, and all with a smaller one are
// smaller.
void RowFilter::narrow(const Condition& condition, const Schema& schema, ScanOptions* range) {
  const Field& field = schema.key()[0];
  const bool alone = schema.key().size() == 1;  // then it is the key
  std::string beginning;
  append_key_cell(field, as_bytes(condition.value), alone, &beginning);
  if (condition.less && !condition.more && (alone || !condition.equal)) {
    range->to = beginning;
    range->to_inclusive = condition.equal;
  }
  if (condition.more && !condition.less) {
    range->from = beginning;
    range->from_inclusive = !alone || condition.equal;
  }
  if (condition.less || condition.more) return;
  if (alone) {
    range->from = range->to = beginning;
    range->from_inclusive = range->to_inclusive = true;
  } else {
    range->prefix = beginning;
  }
}

void RowFilter::narrow(const Table& table, ScanOptions* range) const {
  const Schema& schema = table.schema();
  if (schema.key().empty() || range->from || range->to || range->prefix) return;
  const FieldType type = schema.key()[0].type;
  // Floats that compare as equal have several keys.
  if (type == FieldType::f32 || type == FieldType::f64) return;
  for (const Condition& condition : conditions_) {
    const bool of_first = condition.column.of_key && condition.column.column == 0;
    // The first such one is enough: the filter looks at all of them.
    if (of_first && condition.has_value && !(condition.less && condition.more))
      return narrow(condition, schema, range);
  }
}

void add_where(CLI::App* command, std::vector<std::string>* conditions) {
  command
      ->add_option("--where", *conditions,
                   "Only rows whose cell compares so: COLUMN=VALUE, or !=, <, <=, > or >= in the "
                   "place of =. Numbers and dates compare as such; a missing cell equals the empty "
                   "VALUE. Given several times, all must hold")
      ->allow_extra_args(false)
      ->type_name("CONDITION");
}

}  // namespace stride::cli
