// stride put, delete and drop.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/cli/commands/row_arguments.h"
#include "adapters/cli/commands/schema_argument.h"
#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/context.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/output/json_output.h"
#include "adapters/cli/subcommands.h"
#include "adapters/cli/text/cell_text.h"
#include "adapters/cli/text/key_columns.h"
#include "adapters/cli/text/number_text.h"
#include "adapters/cli/text/scan_bounds.h"

namespace stride::cli {
namespace {

struct PutArguments {
  std::string database, table, key_type;
  std::vector<std::string> keys_and_values;
};

struct DeleteArguments {
  std::string database, table, key_type;
  std::vector<std::string> keys;
  BoundArguments bounds;
};

struct DropArguments {
  std::string database;
  std::vector<std::string> tables;
};

// A table whose rows may change, and how its keys are written.
struct EditedTable {
  std::unique_ptr<Database> database;
  Table table;
  KeyForm form;
};

ExitStatus refuse_notes(const std::string& table) {
  if (table != notes_table) return {};
  return ExitStatus::usage(
      "'.stride' is where these commands remember key types: they alone change it");
}

ExitStatus open_edited(const Context& context, const std::string& path, const std::string& table,
                       const std::string& key_type, EditedTable* edited) {
  STRIDE_CLI_TRY(refuse_notes(table));
  STRIDE_CLI_TRY(open_database(context, path, Access::write, 1, &edited->database));
  return open_table(*edited->database, table, key_type, &edited->table, &edited->form);
}

// usage: a text that is no key, or that came before.
ExitStatus add_key(const KeyForm& form, const std::string& text, std::set<std::string>* keys,
                   std::string* key) {
  STRIDE_CLI_TRY(encode_argument("key ", form, text, key));
  if (keys->insert(*key).second) return {};
  return ExitStatus::usage("key '" + text + "' is given twice");
}

// The row of the columns' texts; empty ones are null where that may be.
ExitStatus row_of(const Schema& schema, const std::string* texts, std::string* value) {
  RowWriter row(schema);
  for (size_t i = 0; i < schema.values().size(); ++i) {
    const Field& field = schema.values()[i];
    if (texts[i].empty() && field.nullable) continue;
    if (!parse_cell(field, texts[i], i, &row))
      return ExitStatus::usage("column " + in_quotes(field.name) + ": " +
                               why_no_cell(field, texts[i]) + ": give another value");
  }
  *value = as_text(row.bytes());
  return {};
}

// texts: of all columns.
ExitStatus value_of(const Table& table, const std::string* texts, std::string* value) {
  if (table.schema().has_values()) return row_of(table.schema(), texts, value);
  const std::string& text = *texts;
  *value = text;
  if (table.numbers() == NumberType::none) return {};
  std::byte number[max_number_bytes];
  if (!parse_number(table.numbers(), text, number))
    return ExitStatus::usage("VALUE: " + why_no_number(table.numbers(), text) + ": table '" +
                             table.name() + "' has numbers, of type " +
                             std::string(to_string(table.numbers())) + ": give one");
  value->assign(reinterpret_cast<const char*>(number), width_of(table.numbers()));
  return {};
}

// Bytes that are written as hex, or as they are, may be no key of the table's columns.
ExitStatus check_key_columns(const Table& table, const std::string& key, const std::string& text) {
  TextBuffer ignored;
  if (table.schema().key().empty() ||
      append_key_parts(table.schema(), as_bytes(key), ',', false, &ignored))
    return {};
  return ExitStatus::usage("key " + in_quotes(text) + " has bytes that are no key of type " +
                           name_of(*form_of_schema(table)) + ", as all of table " +
                           in_quotes(table.name()) + " are: leave --key-type out");
}

ExitStatus report(Context* context, const char* member, const char* verb, uint64_t count,
                  const char* what) {
  context->done = all_done;
  if (context->json) return context->out.write(text_of(nlohmann::json{{member, count}}) + "\n");
  context->note(std::string(verb) + " " + std::to_string(count) + " " + what +
                (count == 1 ? "" : "s"));
  return {};
}

void add_put(CLI::App* command, PutArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  command
      ->add_option("KEY_VALUES", a->keys_and_values,
                   "Keys, each with its value, or with a value for each column of the table")
      ->required();
  add_key_type(command, &a->key_type);
  command->footer(
      "All rows are put, and are on the disk, or none. What comes behind -- is no option.\n\n"
      "Examples:\n"
      "  stride put db users 17 Ada 1.5\n"
      "  stride put db hits /index.html 0\n"
      "  stride put db temperatures -- -40 cold");
}

ExitStatus run_put(Context* context, const PutArguments& arguments) {
  const std::vector<std::string>& texts = arguments.keys_and_values;
  EditedTable edited;
  STRIDE_CLI_TRY(
      open_edited(*context, arguments.database, arguments.table, arguments.key_type, &edited));
  const Schema& schema = edited.table.schema();
  const size_t fields = 1 + std::max<size_t>(1, schema.values().size());
  if (const size_t last = texts.size() % fields; last != 0)
    return ExitStatus::usage("key '" + texts[texts.size() - last] + "' has " +
                             (!schema.has_values()
                                  ? "no value: give KEY VALUE pairs"
                                  : std::to_string(last - 1) + (last == 2 ? " value" : " values") +
                                        ", and the table has the columns " + columns_text(schema) +
                                        ": give a value for each of them"));
  WriteTransaction write = edited.database->begin();
  std::set<std::string> keys;
  std::string key, value;
  for (size_t i = 0; i < texts.size(); i += fields) {
    STRIDE_CLI_TRY(add_key(edited.form, texts[i], &keys, &key));
    STRIDE_CLI_TRY(check_key_columns(edited.table, key, texts[i]));
    STRIDE_CLI_TRY(value_of(edited.table, &texts[i + 1], &value));
    STRIDE_CLI_TRY(write.put(edited.table, key, value));
  }
  STRIDE_CLI_TRY(end_restoring(*edited.database, edited.table, &write));
  STRIDE_CLI_TRY(write.commit(Durability::sync));
  return report(context, "put", "put", keys.size(), "row");
}

void add_delete(CLI::App* command, DeleteArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  command->add_option("KEY", a->keys, "Keys to delete");
  add_bounds(command, &a->bounds);
  add_key_type(command, &a->key_type);
  command->footer(
      "Says how many keys were there; those that were not are no error.\n\n"
      "Examples:\n"
      "  stride delete db users 17 42\n"
      "  stride delete db words --prefix inter\n"
      "  stride delete db users --from 1000 --to 2000");
}

ExitStatus delete_keys(const EditedTable& edited, const std::vector<std::string>& texts,
                       WriteTransaction* write, uint64_t* there) {
  const Snapshot snapshot = edited.database->snapshot();
  std::set<std::string> keys;
  std::string key;
  for (const std::string& text : texts) {
    STRIDE_CLI_TRY(add_key(edited.form, text, &keys, &key));
    auto found = snapshot.get(edited.table, key);
    if (!found.ok()) return found.status();
    *there += found->has_value();
    STRIDE_CLI_TRY(write->erase(edited.table, key));
  }
  return {};
}

// The first key behind all that start with the prefix; nothing where there is none.
std::optional<std::string> behind_prefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xFF') prefix.pop_back();
  if (prefix.empty()) return std::nullopt;
  ++prefix.back();
  return prefix;
}

ExitStatus delete_range(const EditedTable& edited, const BoundArguments& bounds,
                        WriteTransaction* write, uint64_t* there) {
  ScanOptions range;
  STRIDE_CLI_TRY(parse_bounds(bounds, edited.form, &range));
  auto scan = edited.database->snapshot().scan(edited.table, range);
  if (!scan.ok()) return scan.status();
  for (ScanBatch batch; scan->next(&batch); *there += batch.keys.size)
    if (interrupted()) return ExitStatus::interrupted();
  STRIDE_CLI_TRY(scan->status());
  if (range.prefix) {
    std::optional<std::string> behind = behind_prefix(*range.prefix);
    range.from = range.from ? std::max(*range.from, *range.prefix) : *range.prefix;
    if (behind) range.to = range.to ? std::min(*range.to, *behind) : *behind;
  }
  auto bytes = [](const std::optional<std::string>& key) {
    return key ? std::optional<Bytes>(as_bytes(*key)) : std::nullopt;
  };
  return write->erase_range(edited.table, bytes(range.from), bytes(range.to));
}

ExitStatus run_delete(Context* context, const DeleteArguments& arguments) {
  const BoundArguments& bounds = arguments.bounds;
  const bool of_range = bounds.from || bounds.to || bounds.prefix;
  if (arguments.keys.empty() != of_range)
    return ExitStatus::usage(
        "give keys, or a range with --from, --to or --prefix; stride drop deletes a table");
  EditedTable edited;
  STRIDE_CLI_TRY(
      open_edited(*context, arguments.database, arguments.table, arguments.key_type, &edited));
  WriteTransaction write = edited.database->begin();
  uint64_t there = 0;
  STRIDE_CLI_TRY(of_range ? delete_range(edited, bounds, &write, &there)
                          : delete_keys(edited, arguments.keys, &write, &there));
  STRIDE_CLI_TRY(end_restoring(*edited.database, edited.table, &write));
  if (there > 0) STRIDE_CLI_TRY(write.commit(Durability::sync));
  return report(context, "deleted", "deleted", there, "key");
}

void add_drop(CLI::App* command, DropArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->tables, "Names of tables")->required();
  command->footer("Tables and all their rows are gone then.\n\nExample:\n  stride drop db users");
}

ExitStatus run_drop(Context* context, const DropArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::write, 1, &database));
  Table table;
  for (const std::string& name : arguments.tables) {
    STRIDE_CLI_TRY(refuse_notes(name));
    const ExitStatus found = find_table(*database, name, &table);
    if (found.code() != ExitCode::damaged) STRIDE_CLI_TRY(found);  // it may go all the same
  }
  const std::set<std::string> names(arguments.tables.begin(), arguments.tables.end());
  for (const std::string& name : names) {
    STRIDE_CLI_TRY(database->drop_table(name));
    context->done = "a table is dropped, but what is remembered of its rows' types may stay";
    if (const ExitStatus kept = forget_notes(database.get(), name); !kept.ok())
      return ExitStatus(kept.code(), "table '" + name +
                                         "' is dropped, but what is remembered of its rows' types "
                                         "stays: " +
                                         kept.message());
  }
  return report(context, "dropped", "dropped", names.size(), "table");
}

const bool put_registered =
    Subcommands::add(112, "put", "Put rows into a table", &add_put, &run_put);
const bool delete_registered =
    Subcommands::add(114, "delete", "Delete keys, or a range of them", &add_delete, &run_delete);
const bool drop_registered =
    Subcommands::add(250, "drop", "Delete tables with all their rows", &add_drop, &run_drop);

}  // namespace
}  // namespace stride::cli
