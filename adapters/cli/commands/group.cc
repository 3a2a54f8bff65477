// stride group: sums, counts and extremes of the values of a table's rows.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <string>

#include "adapters/cli/commands/group_columns.h"
#include "adapters/cli/commands/row_arguments.h"
#include "adapters/cli/commands/schema_argument.h"
#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/context.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/output/record_writer.h"
#include "adapters/cli/subcommands.h"
#include "adapters/cli/text/number_text.h"
#include "adapters/cli/text/scan_bounds.h"
#include "engine/group_by.h"

namespace stride::cli {
namespace {

struct GroupArguments {
  std::string database, table;
  std::string type;
  uint32_t prefix_bytes = 0;
  bool count = false, sum = false, min = false, max = false;
  BoundArguments bounds;
  std::string format = "tsv";
  std::string key_type;
  unsigned threads = 0;
  GroupColumnsArguments columns;
};

// As short as it can be read back from. JSON has no NaN and no infinities.
template <class T>
void append_value(T value, bool json, TextBuffer* out) {
  if constexpr (std::is_floating_point_v<T>) {
    if (json && !std::isfinite(value)) return out->append("null");
    value = std::isnan(value) ? std::abs(value) : value;
  }
  constexpr size_t most = 32;
  char* to = out->room(most);
  out->grow(static_cast<size_t>(std::to_chars(to, to + most, value).ptr - to));
}

class GroupWriter {
 public:
  // keys: how they are written, if they are.
  GroupWriter(const GroupResult& groups, const GroupArguments& arguments, NumberType type,
              Format format, const KeyForm* keys)
      : groups_(groups), arguments_(arguments), type_(type), format_(format), keys_(keys) {}

  void write(uint64_t g, TextBuffer* out) {
    first_ = true;
    if (format_ == Format::jsonl) out->append('{');
    if (keys_) write_key(groups_.keys()[g], out);
    if (arguments_.count) write_value("count", groups_.counts()[g], out);
    if (arguments_.sum && !groups_.integer_sums().empty())
      write_value("sum", groups_.integer_sums()[g], out);
    if (arguments_.sum && !groups_.float_sums().empty())
      write_value("sum", groups_.float_sums()[g], out);
    if (arguments_.min) write_extreme("min", groups_.mins(), g, out);
    if (arguments_.max) write_extreme("max", groups_.maxes(), g, out);
    out->append(format_ == Format::jsonl ? std::string_view("}\n") : std::string_view("\n"));
  }

 private:
  void begin_field(TextBuffer* out) {
    if (!first_) out->append(format_ == Format::tsv ? '\t' : ',');
    first_ = false;
  }
  void write_key(Bytes key, TextBuffer* out) {
    begin_field(out);
    if (format_ == Format::tsv) return decode_key(*keys_, key, out);
    text_.clear();
    decode_key(*keys_, key, &text_);
    if (format_ == Format::csv) return append_csv_field(text_.text(), ',', out);
    if (!is_number(keys_->type) || key.size() != sizeof(uint64_t))
      return append_json_member("key", text_.text(), out);
    out->append("\"key\":");
    out->append(text_.text());
  }
  template <class T>
  void write_value(std::string_view name, T value, TextBuffer* out) {
    begin_field(out);
    bool json = format_ == Format::jsonl;
    if (json) {
      out->append('"');
      out->append(name);
      out->append("\":");
    }
    append_value(value, json, out);
  }
  void write_extreme(std::string_view name, std::span<const std::byte> column, uint64_t g,
                     TextBuffer* out) {
    auto write = [&](auto value) {
      std::memcpy(&value, column.data() + g * sizeof value, sizeof value);
      write_value(name, value, out);
    };
    switch (type_) {
      case NumberType::i32:
        return write(int32_t{});
      case NumberType::i64:
        return write(int64_t{});
      case NumberType::f32:
        return write(float{});
      default:
        return write(double{});
    }
  }

  const GroupResult& groups_;
  const GroupArguments& arguments_;
  NumberType type_;
  Format format_;
  const KeyForm* keys_;
  TextBuffer text_;
  bool first_ = true;
};

// How a key's first bytes are written: as the key, where they are all of it.
KeyForm form_of_prefixes(const Table& table, const KeyForm& keys, uint32_t prefix_bytes) {
  if (keys.type == KeyType::bytes || keys.type == KeyType::hex) return keys.type;
  uint32_t whole = table.key_width();
  return whole > 0 && prefix_bytes >= whole ? keys : KeyForm(KeyType::hex);
}

void add_group_of_numbers(CLI::App* command, GroupArguments* a) {
  command
      ->add_option("--type", a->type,
                   "Of the values: i32, i64, f32 or f64, binary and little-endian. Default: as the "
                   "table of numbers has them")
      ->check(CLI::IsMember({"i32", "i64", "f32", "f64"}))
      ->type_name("TYPE");
  command
      ->add_option("--prefix-bytes", a->prefix_bytes,
                   "Rows whose keys begin with the same N bytes, as stored, are a group. Default: "
                   "all rows are one, and it is printed without a key")
      ->check(CLI::Range(0u, max_key_bytes))
      ->type_name("N");
  command->add_flag("--count", a->count, "How many rows");
  command->add_flag(
      "--sum", a->sum,
      "Integers exactly (64 bits), floats in doubles, with the same bits on each run");
  command->add_flag("--min", a->min, "The smallest value");
  command->add_flag("--max", a->max, "The largest value");
}

void add_group(CLI::App* command, GroupArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  add_group_of_numbers(command, a);
  add_group_columns(command, &a->columns);
  add_bounds(command, &a->bounds);
  command->add_option("--format", a->format, "tsv, csv, jsonl")
      ->check(CLI::IsMember({"tsv", "csv", "jsonl"}))
      ->capture_default_str()
      ->type_name("FORMAT");
  add_key_type(command, &a->key_type);
  command->add_option("--threads", a->threads, "0: one for each core")
      ->check(CLI::Range(0u, 4096u))
      ->capture_default_str()
      ->type_name("N");
  command->footer(
      "Of a table of numbers, prints a line for each group in the order of the keys: its first\n"
      "bytes, then count, sum, min and max, as far as they are asked for. Without any of these:\n"
      "count and sum.\n\n"
      "Of a table with columns, prints a line for each group of --by in the order of its cells:\n"
      "these, then --count, --sum-of, --min-of and --max-of. Without any of these: count. Groups\n"
      "are kept in memory. Missing cells do not count for sums and extremes.\n\n"
      "Examples:\n"
      "  stride group db weights --type f32 --prefix-bytes 4\n"
      "  stride group db weights --type i64 --min --max --from 1000 --to 2000 --json\n"
      "  stride group db users --by country,plan --count --sum-of score --where "
      "'since>=2024-01-01'\n"
      "  stride group db users --by city --top 10");
}

ExitStatus run_columns(Context* context, const Database& database, const Table& table,
                       const KeyForm& form, const GroupArguments& arguments) {
  const char* of_numbers = !arguments.type.empty()  ? "--type"
                           : arguments.prefix_bytes ? "--prefix-bytes"
                           : arguments.sum          ? "--sum"
                           : arguments.min          ? "--min"
                           : arguments.max          ? "--max"
                                                    : nullptr;
  if (of_numbers)
    return ExitStatus::usage(std::string(of_numbers) + " is for tables of numbers, and " +
                             arguments.columns.given() +
                             " for tables with columns: give --by COLUMNS with --sum-of, --min-of "
                             "or --max-of COLUMN");
  ScanOptions range;
  STRIDE_CLI_TRY(parse_bounds(arguments.bounds, form, &range));
  OutputArguments output;
  output.format = arguments.format;
  output.header = arguments.columns.header;
  output.no_header = arguments.columns.no_header;
  return print_groups_of_columns(context, database.snapshot(), table, form, range,
                                 arguments.columns, arguments.count, output);
}

ExitStatus run_group(Context* context, const GroupArguments& given) {
  GroupArguments arguments = given;
  if (!(given.count || given.sum || given.min || given.max)) arguments.count = arguments.sum = true;
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(
      open_database(*context, arguments.database, Access::read, arguments.threads, &database));
  Table table;
  KeyForm form;
  STRIDE_CLI_TRY(open_table(*database, arguments.table, arguments.key_type, &table, &form));
  if (!given.columns.given().empty()) return run_columns(context, *database, table, form, given);
  if (table.schema().has_values())
    return ExitStatus::usage("table '" + arguments.table + "' has columns (" +
                             columns_text(table.schema()) +
                             "), and group adds up tables of numbers: load the key and one of "
                             "them into another table, with --value COLUMN and --numbers TYPE, or "
                             "group its rows with --by COLUMN");
  const NumberType type =
      arguments.type.empty() ? table.numbers() : *number_type_named(arguments.type);
  if (type == NumberType::none)
    return ExitStatus::usage("table '" + arguments.table +
                             "' has values of any kind: say what they are with --type i32, i64, "
                             "f32 or f64");
  ScanOptions range;
  STRIDE_CLI_TRY(parse_bounds(arguments.bounds, form, &range));
  auto groups = group_by(database->snapshot(), table, range,
                         {.prefix_bytes = arguments.prefix_bytes,
                          .type = type,
                          .sum = arguments.sum,
                          .min = arguments.min,
                          .max = arguments.max});
  if (!groups.ok() && groups.status().code() == StatusCode::invalid_argument)
    return ExitStatus::usage(groups.status().message() +
                             ": give another --type, or more --prefix-bytes for smaller groups");
  if (!groups.ok()) return groups.status();
  std::string name = context->json ? "jsonl" : arguments.format;
  Format format = name == "csv" ? Format::csv : name == "jsonl" ? Format::jsonl : Format::tsv;
  KeyForm prefixes = form_of_prefixes(table, form, arguments.prefix_bytes);
  GroupWriter writer(*groups, arguments, type, format,
                     arguments.prefix_bytes ? &prefixes : nullptr);
  TextBuffer text;
  constexpr uint64_t groups_at_once = 4096;
  for (uint64_t g = 0; g < groups->size(); ++g) {
    writer.write(g, &text);
    if (g % groups_at_once != groups_at_once - 1 && g + 1 < groups->size()) continue;
    if (interrupted()) return ExitStatus::interrupted();
    STRIDE_CLI_TRY(context->out.write(text.text()));
    text.clear();
  }
  return context->out.flush();
}

const bool group_registered = Subcommands::add(
    220, "group", "Sums, counts and extremes, by the beginning of keys or by columns", &add_group,
    &run_group);

}  // namespace
}  // namespace stride::cli
