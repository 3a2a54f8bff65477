// stride scan, count and tables.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "adapters/cli/commands/output_arguments.h"
#include "adapters/cli/commands/row_arguments.h"
#include "adapters/cli/commands/row_filter.h"
#include "adapters/cli/commands/table_cells.h"
#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/commands/top_rows.h"
#include "adapters/cli/context.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/output/column_file.h"
#include "adapters/cli/output/json_output.h"
#include "adapters/cli/output/record_writer.h"
#include "adapters/cli/subcommands.h"
#include "adapters/cli/text/number_text.h"
#include "adapters/cli/text/scan_bounds.h"

namespace stride::cli {
namespace {

struct ScanArguments {
  std::string database, table;
  std::string key_type;
  OutputArguments output;
  BoundArguments bounds;
  bool reverse = false;
  bool keys_only = false;
  std::optional<uint64_t> limit;
  std::vector<std::string> where;
  std::optional<uint64_t> top;
  std::string of;  // the column of top
};

struct TableArguments {
  std::string database, table;
  bool all = false;
};

void add_scan(CLI::App* command, ScanArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  add_bounds(command, &a->bounds);
  command->add_flag("--reverse", a->reverse, "Descending; with --top the smallest cells");
  command->add_flag("--keys-only", a->keys_only, "Without values: a key a line (tsv)");
  add_where(command, &a->where);
  add_count(command, "--limit", &a->limit, "At most so many records, of those that --where leaves");
  add_count(command, "--top", &a->top,
            "So many rows with the largest cells of the column --of, the largest first. Rows "
            "without such a cell are left out");
  command->add_option("--of", a->of, "The column of --top")->type_name("COLUMN");
  add_output_options(command, &a->output, "key, value", /*raw=*/true, /*columnar=*/true);
  add_key_type(command, &a->key_type);
  command->footer(
      "Examples:\n"
      "  stride scan db words --prefix inter --limit 10\n"
      "  stride scan db users --from 1000 --to 2000 --format jsonl\n"
      "  stride scan db routes --prefix 10.0.0.0/8\n"
      "  stride scan db users --reverse --limit 1\n"
      "  stride scan db users --where country=nz --where 'score>=1.5' --columns name,score\n"
      "  stride scan db users --top 10 --of score\n"
      "  stride scan db users --format parquet > users.parquet");
}

void add_count_keys(CLI::App* command, TableArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  command->footer("Example:\n  stride count db users");
}

void add_tables(CLI::App* command, TableArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_flag("--all", a->all, "With '.stride', in which these commands remember key types");
  command->footer(
      "Columns: table, key type, bytes of a key (0: any), stored entries, bytes on disk; of tables "
      "of\nnumbers their type, of tables with columns these.\n\n"
      "Example:\n  stride tables db");
}

// Prints what a scan hands out, or the rows of it that are asked for.
class ScanPrinter {
 public:
  ScanPrinter(Context* context, const ScanArguments& arguments, const Table& table,
              const KeyForm& form)
      : context_(*context),
        arguments_(arguments),
        table_(table),
        form_(form),
        format_(output_format(*context, arguments.output)),
        keys_(key_text(table, form)),
        cells_(table, form) {}

  // usage: what is wrong with the arguments.
  ExitStatus prepare() {
    if (arguments_.keys_only && format_ != Format::tsv)
      return ExitStatus::usage("--keys-only is for the format tsv");
    std::vector<size_t> columns;
    STRIDE_CLI_TRY(find_columns(table_, arguments_.output.columns, &columns));
    writer_.emplace(format_, key_text(table_, form_), ValueText(table_, columns));
    STRIDE_CLI_TRY(RowFilter::make(arguments_.where, &cells_, &filter_));
    STRIDE_CLI_TRY(prepare_top());
    if (!is_columnar(format_)) return {};
    return ColumnFile::make(format_, form_, keys_.names(), table_, columns, &context_.out, &file_);
  }

  const RowFilter& filter() const { return filter_; }

  ExitStatus print(Scan* scan) {
    if (!arguments_.keys_only && wants_header(arguments_.output, format_, table_)) {
      writer_->write_header(&text_);
      STRIDE_CLI_TRY(pass());
    }
    uint64_t left = arguments_.limit.value_or(~uint64_t{0});
    ScanBatch batch;
    while (left != 0 && scan->next(&batch)) {
      if (interrupted()) return ExitStatus::interrupted();
      STRIDE_CLI_TRY(write_batch(batch, &left));
      STRIDE_CLI_TRY(pass());
    }
    if (top_ && scan->status().ok()) STRIDE_CLI_TRY(write_top());
    if (file_ && scan->status().ok()) STRIDE_CLI_TRY(file_->finish());
    STRIDE_CLI_TRY(context_.out.flush());
    return scan->status();
  }

 private:
  ExitStatus prepare_top() {
    if (!arguments_.top && arguments_.of.empty()) return {};
    if (!arguments_.top)
      return ExitStatus::usage("--of names the column of --top: say with --top N how many rows");
    if (arguments_.of.empty())
      return ExitStatus::usage(
          "--top takes the rows with the largest cells of a column: name it "
          "with --of COLUMN");
    if (arguments_.limit)
      return ExitStatus::usage("--top says how many rows there are: leave --limit out");
    NamedColumn column;
    STRIDE_CLI_TRY(cells_.find("--of", arguments_.of, &column));
    top_.emplace(*arguments_.top, column, arguments_.reverse);
    return {};
  }
  ExitStatus pass() {
    STRIDE_CLI_TRY(context_.out.write(text_.text()));
    text_.clear();
    return writer_->status();
  }
  ExitStatus write_batch(const ScanBatch& batch, uint64_t* left) {
    const bool reads = top_ || !filter_.empty();
    for (uint64_t i = 0; i < batch.keys.size && *left != 0; ++i) {
      const Bytes key = batch.keys[i], value = batch.values[i];
      if (reads) {
        STRIDE_CLI_TRY(cells_.read(key, value));
        if (!filter_.holds(cells_)) continue;
      }
      --*left;
      if (top_) {
        top_->add(cells_, key, value);
      } else {
        STRIDE_CLI_TRY(write(key, value));
      }
    }
    return {};
  }
  ExitStatus write_top() {
    constexpr size_t bytes_at_once = 1 << 18;
    for (const TopRows::Row& row : top_->sorted()) {
      STRIDE_CLI_TRY(write(as_bytes(row.key), as_bytes(row.value)));
      if (text_.size() < bytes_at_once) continue;
      if (interrupted()) return ExitStatus::interrupted();
      STRIDE_CLI_TRY(pass());
    }
    return pass();
  }
  ExitStatus write(Bytes key, Bytes value) {
    if (file_) return file_->add(key, value);
    if (arguments_.keys_only) {
      keys_.append_fields(key, '\t', /*quoted=*/false, &text_);
      text_.append('\n');
    } else {
      writer_->write(key, value, true, &text_);
    }
    return {};
  }

  Context& context_;
  const ScanArguments& arguments_;
  const Table& table_;
  const KeyForm& form_;
  Format format_;
  KeyText keys_;
  TableCells cells_;
  RowFilter filter_;
  std::optional<RecordWriter> writer_;
  std::optional<TopRows> top_;
  std::unique_ptr<ColumnFile> file_;  // of a format in columns
  TextBuffer text_;
};

ExitStatus run_scan(Context* context, const ScanArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::read, 1, &database));
  Table table;
  KeyForm form;
  STRIDE_CLI_TRY(open_table(*database, arguments.table, arguments.key_type, &table, &form));
  ScanOptions options;
  options.reverse = arguments.reverse && !arguments.top;
  STRIDE_CLI_TRY(parse_bounds(arguments.bounds, form, &options));
  ScanPrinter printer(context, arguments, table, form);
  STRIDE_CLI_TRY(printer.prepare());
  printer.filter().narrow(table, &options);
  auto scan = database->snapshot().scan(table, options);
  if (!scan.ok()) return scan.status();
  return printer.print(&*scan);
}

ExitStatus run_count(Context* context, const TableArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::read, 0, &database));
  Table table;
  STRIDE_CLI_TRY(find_table(*database, arguments.table, &table));
  auto count = database->snapshot().count(table);
  if (!count.ok()) return count.status();
  if (!context->json) return context->out.write(std::to_string(*count) + "\n");
  nlohmann::json result = {{"table", arguments.table}, {"count", *count}};
  return context->out.write(text_of(result) + "\n");
}

ExitStatus run_tables(Context* context, const TableArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::read, 1, &database));
  std::string lines;
  nlohmann::json list = nlohmann::json::array();
  ExitStatus damaged;
  for (const TableStatistics& table : database->tables()) {
    if (table.name == notes_table && !arguments.all) continue;
    Table opened;
    KeyForm form;
    const ExitStatus found = open_table(*database, table.name, "", &opened, &form);
    if (found.code() != ExitCode::damaged) STRIDE_CLI_TRY(found);
    if (!found.ok()) damaged = found;  // told once the others are listed
    if (context->json) {
      list.push_back({{"table", table.name},
                      {"key_type", name_of(form)},
                      {"key_width", table.key_width},
                      {"rows", table.rows},
                      {"bytes_on_disk", table.bytes_on_disk}});
      add_address_bits(table.address_bits, &list.back());
      add_numbers(table.numbers, table.overflow, &list.back());
      if (!opened.schema().empty()) list.back()["schema"] = opened.schema().to_string();
      add_expiry(opened, &list.back());
      continue;
    }
    lines += table.name + "\t" + name_of(form) + "\t" + std::to_string(table.key_width) + "\t" +
             std::to_string(table.rows) + "\t" + std::to_string(table.bytes_on_disk);
    if (table.numbers != NumberType::none)
      lines += "\t" + numbers_text(table.numbers, table.overflow);
    if (!opened.schema().empty()) lines += "\t" + printable(opened.schema().to_string());
    if (!opened.expiry_column().empty())
      lines += "\texpires=" + printable(opened.expiry_column()) +
               (opened.time_to_live() ? ",ttl=" + time_text(opened.time_to_live()) : "");
    lines += "\n";
  }
  STRIDE_CLI_TRY(context->out.write(context->json ? text_of(list) + "\n" : lines));
  if (!damaged.ok()) STRIDE_CLI_TRY(context->out.flush());
  return damaged;
}

const bool scan_registered =
    Subcommands::add(210, "scan", "Print records in the order of their keys", &add_scan, &run_scan);
const bool count_registered = Subcommands::add<TableArguments>(
    230, "count", "Print how many keys a table has", &add_count_keys, &run_count);
const bool tables_registered =
    Subcommands::add(240, "tables", "List the tables", &add_tables, &run_tables);

}  // namespace
}  // namespace stride::cli
