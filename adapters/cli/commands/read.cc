// stride scan, count and tables.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "adapters/cli/commands/output_arguments.h"
#include "adapters/cli/commands/row_arguments.h"
#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/context.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/output/column_file.h"
#include "adapters/cli/output/json_output.h"
#include "adapters/cli/output/record_writer.h"
#include "adapters/cli/subcommands.h"
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
};

struct TableArguments {
  std::string database, table;
  bool all = false;
};

void add_scan(CLI::App* command, ScanArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  add_bounds(command, &a->bounds);
  command->add_flag("--reverse", a->reverse, "Descending");
  command->add_flag("--keys-only", a->keys_only, "Without values: a key a line (tsv)");
  add_count(command, "--limit", &a->limit, "At most so many records");
  add_output_options(command, &a->output, "key, value", /*raw=*/true, /*columnar=*/true);
  add_key_type(command, &a->key_type);
  command->footer(
      "Examples:\n"
      "  stride scan db words --prefix inter --limit 10\n"
      "  stride scan db users --from 1000 --to 2000 --format jsonl\n"
      "  stride scan db routes --prefix 10.0.0.0/8\n"
      "  stride scan db users --reverse --limit 1\n"
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

ExitStatus write_columns(Context* context, Scan* scan, uint64_t limit, ColumnFile* file) {
  for (ScanBatch batch; limit != 0 && scan->next(&batch);) {
    if (interrupted()) return ExitStatus::interrupted();
    const uint64_t n = std::min(limit, batch.keys.size);
    for (uint64_t i = 0; i < n; ++i) STRIDE_CLI_TRY(file->add(batch.keys[i], batch.values[i]));
    limit -= n;
  }
  STRIDE_CLI_TRY(scan->status());
  STRIDE_CLI_TRY(file->finish());
  return context->out.flush();
}

ExitStatus run_scan(Context* context, const ScanArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::read, 1, &database));
  Table table;
  KeyForm form;
  STRIDE_CLI_TRY(open_table(*database, arguments.table, arguments.key_type, &table, &form));
  ScanOptions options;
  options.reverse = arguments.reverse;
  STRIDE_CLI_TRY(parse_bounds(arguments.bounds, form, &options));
  const Format format = output_format(*context, arguments.output);
  if (arguments.keys_only && format != Format::tsv)
    return ExitStatus::usage("--keys-only is for the format tsv");
  auto scan = database->snapshot().scan(table, options);
  if (!scan.ok()) return scan.status();
  std::vector<size_t> columns;
  STRIDE_CLI_TRY(find_columns(table, arguments.output.columns, &columns));
  KeyText keys = key_text(table, form);
  if (is_columnar(format)) {
    std::unique_ptr<ColumnFile> file;
    STRIDE_CLI_TRY(
        ColumnFile::make(format, form, keys.names(), table, columns, &context->out, &file));
    return write_columns(context, &*scan, arguments.limit.value_or(~uint64_t{0}), file.get());
  }
  RecordWriter writer(format, key_text(table, form), ValueText(table, columns));
  uint64_t left = arguments.limit.value_or(~uint64_t{0});
  TextBuffer text;
  if (!arguments.keys_only && wants_header(arguments.output, format, table)) {
    writer.write_header(&text);
    STRIDE_CLI_TRY(context->out.write(text.text()));
  }
  ScanBatch batch;
  while (left != 0 && scan->next(&batch)) {
    if (interrupted()) return ExitStatus::interrupted();
    uint64_t n = std::min(left, batch.keys.size);
    text.clear();
    for (uint64_t i = 0; i < n; ++i) {
      if (arguments.keys_only) {
        keys.append_fields(batch.keys[i], '\t', /*quoted=*/false, &text);
        text.append('\n');
      } else {
        writer.write(batch.keys[i], batch.values[i], true, &text);
      }
    }
    STRIDE_CLI_TRY(context->out.write(text.text()));
    STRIDE_CLI_TRY(writer.status());
    left -= n;
  }
  STRIDE_CLI_TRY(context->out.flush());
  return scan->status();
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
      continue;
    }
    lines += table.name + "\t" + name_of(form) + "\t" + std::to_string(table.key_width) + "\t" +
             std::to_string(table.rows) + "\t" + std::to_string(table.bytes_on_disk);
    if (table.numbers != NumberType::none)
      lines += "\t" + numbers_text(table.numbers, table.overflow);
    if (!opened.schema().empty()) lines += "\t" + printable(opened.schema().to_string());
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
