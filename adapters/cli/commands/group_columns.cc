#include "adapters/cli/commands/group_columns.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <span>

#include "adapters/cli/commands/column_groups.h"
#include "adapters/cli/commands/output_arguments.h"
#include "adapters/cli/commands/row_arguments.h"
#include "adapters/cli/commands/row_filter.h"
#include "adapters/cli/commands/table_cells.h"
#include "adapters/cli/input/json_text.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/output/value_text.h"
#include "adapters/cli/text/cell_text.h"
#include "storage/quoted.h"

namespace stride::cli {
namespace {

using Cells = std::vector<std::optional<Bytes>>;

// Rows of cells, as `scan` prints them.
class CellRowWriter {
 public:
  CellRowWriter(Format format, std::vector<Field> fields)
      : format_(format), fields_(std::move(fields)) {}

  void write_header(TextBuffer* out) const {
    std::vector<std::string> names;
    for (const Field& field : fields_) names.push_back(field.name);
    append_names(names, between(), format_ == Format::csv, out);
    out->append('\n');
  }
  void write(const Cells& cells, TextBuffer* out) {
    if (format_ == Format::jsonl) out->append('{');
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i != 0) out->append(between());
      if (format_ == Format::jsonl) {
        write_member(fields_[i], cells[i], out);
      } else if (cells[i]) {
        write_field(fields_[i], *cells[i], out);
      }
    }
    out->append(format_ == Format::jsonl ? std::string_view("}\n") : std::string_view("\n"));
  }

 private:
  char between() const { return format_ == Format::tsv ? '\t' : ','; }
  void write_field(const Field& field, Bytes cell, TextBuffer* out) {
    if (format_ == Format::tsv) return append_cell(field, cell, out);
    text_.clear();
    append_cell(field, cell, &text_);
    // What is empty and no null is told apart by its quotes.
    if (field.nullable && text_.size() == 0) return out->append("\"\"");
    append_csv_field(text_.text(), ',', out);
  }
  void write_member(const Field& field, const std::optional<Bytes>& cell, TextBuffer* out) {
    const bool is_text = field.type == FieldType::string || field.type == FieldType::bytes;
    if (cell && is_text && !is_utf8(as_text(*cell)))
      return append_json_member(field.name, as_text(*cell), out);
    append_json_name(field.name, out);
    if (!cell) return out->append("null");
    append_json_cell(field, *cell, out);
  }

  Format format_;
  std::vector<Field> fields_;
  TextBuffer text_;
};

ExitStatus find_by(const std::vector<std::string>& names, TableCells* cells,
                   std::vector<NamedColumn>* by) {
  for (const std::string& name : names) {
    if (std::count(names.begin(), names.end(), name) > 1)
      return ExitStatus::usage("--by names column " + in_quotes(name) + " twice: name it once");
    STRIDE_CLI_TRY(cells->find("--by", name, &by->emplace_back()));
    by->back().field.name = name;
  }
  return {};
}

ExitStatus find_aggregates(const std::string& option, AggregateKind kind,
                           const std::vector<std::string>& names, TableCells* cells,
                           std::vector<Aggregate>* aggregates) {
  for (const std::string& name : names) {
    Aggregate& aggregate = aggregates->emplace_back();
    aggregate.kind = kind;
    STRIDE_CLI_TRY(cells->find(option, name, &aggregate.column));
    Field& field = aggregate.column.field;
    field.name = name;
    if (kind == AggregateKind::sum && (field.type > FieldType::f64 || field.is_vector()))
      return ExitStatus::usage(option + ": column " + in_quotes(name) + " is of type " +
                               type_text(field) +
                               ", which has no sum: name a column of numbers or booleans");
  }
  return {};
}

// The columns that are printed, with names that differ.
std::vector<Field> printed_fields(const std::vector<NamedColumn>& by, bool count,
                                  const std::vector<Aggregate>& aggregates) {
  std::vector<Field> fields;
  for (const NamedColumn& column : by) fields.push_back(column.field);
  auto add = [&](Field field, std::string name) {
    auto is_taken = [&](const Field& other) { return other.name == name; };
    while (std::any_of(fields.begin(), fields.end(), is_taken)) name += "_";
    field.name = std::move(name);
    fields.push_back(std::move(field));
  };
  if (count) {
    Field number;
    number.type = FieldType::u64;
    add(number, "count");
  }
  for (const Aggregate& aggregate : aggregates) {
    const char* kind = aggregate.kind == AggregateKind::sum   ? "sum_"
                       : aggregate.kind == AggregateKind::min ? "min_"
                                                              : "max_";
    add(ColumnGroups::result_of(aggregate), kind + aggregate.column.field.name);
  }
  return fields;
}

ExitStatus sum_too_large(const std::string& column, const std::vector<NamedColumn>& by,
                         const Cells& cells) {
  TextBuffer group;
  for (size_t i = 0; i < by.size(); ++i) {
    if (i != 0) group.append(',');
    if (cells[i]) append_cell(by[i].field, *cells[i], &group);
  }
  return ExitStatus::usage(
      "the sum of column " + in_quotes(column) +
      (by.empty() ? "" : " in group " + in_quotes(group.text())) +
      " does not fit into 64 bits: make groups smaller with more columns of --by, or with --where");
}

ExitStatus read_groups(const Snapshot& snapshot, const Table& table, const ScanOptions& range,
                       const RowFilter& filter, TableCells* cells, ColumnGroups* groups) {
  auto scan = snapshot.scan(table, range);
  if (!scan.ok()) return scan.status();
  ScanBatch batch;
  while (scan->next(&batch)) {
    if (interrupted()) return ExitStatus::interrupted();
    for (uint64_t i = 0; i < batch.keys.size; ++i) {
      STRIDE_CLI_TRY(cells->read(batch.keys[i], batch.values[i]));
      if (filter.holds(*cells)) groups->add(*cells);
    }
  }
  return scan->status();
}

ExitStatus print_groups(Context* context, const Table& table,
                        const GroupColumnsArguments& arguments, const std::vector<NamedColumn>& by,
                        const std::vector<Aggregate>& made, bool count,
                        const OutputArguments& output, ColumnGroups* groups) {
  const Format format = output_format(*context, output);
  CellRowWriter writer(format, printed_fields(by, count, made));
  TextBuffer text;
  if (wants_header(output, format, table)) writer.write_header(&text);
  const std::vector<size_t> order =
      arguments.top ? groups->highest(*arguments.top) : groups->sorted();
  Cells row;
  size_t too_large = 0;
  // Nothing is printed where a sum is none.
  for (size_t group : order)
    if (!groups->cells_of(group, &row, &too_large))
      return sum_too_large(made[too_large].column.field.name, by, row);
  for (size_t group : order) {
    groups->cells_of(group, &row, &too_large);
    const uint64_t rows = groups->count_of(group);
    if (count)
      row.insert(row.begin() + static_cast<ptrdiff_t>(by.size()),
                 std::as_bytes(std::span(&rows, 1)));
    writer.write(row, &text);
    constexpr size_t bytes_at_once = 1 << 18;
    if (text.size() < bytes_at_once) continue;
    if (interrupted()) return ExitStatus::interrupted();
    STRIDE_CLI_TRY(context->out.write(text.text()));
    text.clear();
  }
  STRIDE_CLI_TRY(context->out.write(text.text()));
  return context->out.flush();
}

}  // namespace

std::string GroupColumnsArguments::given() const {
  return !by.empty()       ? "--by"
         : !sum_of.empty() ? "--sum-of"
         : !min_of.empty() ? "--min-of"
         : !max_of.empty() ? "--max-of"
         : !where.empty()  ? "--where"
         : top             ? "--top"
         : header          ? "--header"
         : no_header       ? "--no-header"
                           : "";
}

void add_group_columns(CLI::App* command, GroupColumnsArguments* a) {
  add_names(command, "--by", &a->by,
            "Of a table with columns: rows with equal cells of these columns are a group, "
            "with commas between. Every group is kept in memory",
            "COLUMNS");
  add_names(command, "--sum-of", &a->sum_of,
            "With --by: the sum of a column's cells, integers exactly (64 bits), floats in "
            "doubles",
            "COLUMN");
  add_names(command, "--min-of", &a->min_of, "With --by: the smallest cell of a column", "COLUMN");
  add_names(command, "--max-of", &a->max_of, "With --by: the largest cell of a column", "COLUMN");
  add_where(command, &a->where);
  add_count(command, "--top", &a->top,
            "With --by: so many groups, those with the highest count, or with the largest sum of "
            "the first --sum-of, the highest first");
  CLI::Option* header =
      command->add_flag("--header", a->header, "With --by: the first line names the columns");
  command->add_flag("--no-header", a->no_header, "With --by: it does not, as csv else has it")
      ->excludes(header);
}

ExitStatus print_groups_of_columns(Context* context, const Snapshot& snapshot, const Table& table,
                                   const KeyForm& form, const ScanOptions& range,
                                   const GroupColumnsArguments& arguments, bool count,
                                   const OutputArguments& output) {
  TableCells cells(table, form);
  STRIDE_CLI_TRY(cells.check_columns(arguments.given()));
  std::vector<NamedColumn> by;
  STRIDE_CLI_TRY(find_by(arguments.by, &cells, &by));
  std::vector<Aggregate> made;
  STRIDE_CLI_TRY(find_aggregates("--sum-of", AggregateKind::sum, arguments.sum_of, &cells, &made));
  STRIDE_CLI_TRY(find_aggregates("--min-of", AggregateKind::min, arguments.min_of, &cells, &made));
  STRIDE_CLI_TRY(find_aggregates("--max-of", AggregateKind::max, arguments.max_of, &cells, &made));
  RowFilter filter;
  STRIDE_CLI_TRY(RowFilter::make(arguments.where, &cells, &filter));
  count = count || made.empty();
  ColumnGroups groups(by, made);
  ScanOptions narrowed = range;
  filter.narrow(table, &narrowed);
  STRIDE_CLI_TRY(read_groups(snapshot, table, narrowed, filter, &cells, &groups));

  return print_groups(context, table, arguments, by, made, count, output, &groups);
}

}  // namespace stride::cli
