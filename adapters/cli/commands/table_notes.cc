#include "adapters/cli/commands/table_notes.h"

#include <nlohmann/json.hpp>

#include "adapters/cli/input/json_fields.h"
#include "adapters/cli/text/similar_names.h"

namespace stride::cli {
namespace {

using nlohmann::json;

ExitStatus read_record(const Database& database, const std::string& key,
                       std::optional<json>* record) {
  record->reset();
  auto table = database.open_table(std::string(notes_table));
  if (!table.ok()) {
    if (table.status().code() == StatusCode::not_found) return {};
    return table.status();
  }
  Snapshot snapshot = database.snapshot();
  auto value = snapshot.get(*table, key);
  if (!value.ok()) return value.status();
  if (!value->has_value()) return {};
  json parsed = json::parse(as_text(**value), nullptr, /*allow_exceptions=*/false);
  if (parsed.is_object()) *record = std::move(parsed);
  return {};
}

ExitStatus write_record(WriteTransaction* transaction, const std::string& key, const json& record) {
  auto table = transaction->open_or_create_table(std::string(notes_table));
  if (!table.ok()) return table.status();
  if (record.is_null()) return transaction->erase(*table, key);
  return transaction->put(*table, key, record.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string width_text(uint32_t width) {
  return width ? std::to_string(width) + (width == 1 ? " byte" : " bytes") : "any length";
}

}  // namespace

std::optional<KeyForm> form_of_schema(const Table& table) {
  const std::vector<Field>& key = table.schema().key();
  if (key.empty()) return std::nullopt;
  if (key.size() == 1 && key[0].count == 0) {
    if (key[0].type == FieldType::u64) return KeyType::u64;
    if (key[0].type == FieldType::i64) return KeyType::i64;
    if (key[0].type == FieldType::bytes) return KeyType::bytes;
  }
  KeyForm form = KeyType::columns;
  form.columns = std::make_shared<const Schema>(table.schema());
  return form;
}

ExitStatus read_notes(const Database& database, const Table& table,
                      std::optional<TableNotes>* notes) {
  notes->reset();
  std::optional<json> record;
  STRIDE_CLI_TRY(read_record(database, "table:" + table.name(), &record));
  if (!record) return {};
  std::string key_type;
  TableNotes read;
  if (!read_field(*record, "key_type", &key_type) || !read_field(*record, "key", &read.key) ||
      !read_field(*record, "values", &read.values))
    return {};
  const auto form = key_form_named(key_type);
  if (!form || (form->type == KeyType::prefix) != (table.address_bits() != 0)) return {};
  if (width_of(*form) && width_of(*form) != table.key_width()) return {};
  // The schema is the table's own. Of bytes the notes say how they are written.
  const std::optional<KeyForm> of_schema = form_of_schema(table);
  const bool plain =
      form->type == KeyType::bytes || form->type == KeyType::hex || form->type == KeyType::ip;
  if (of_schema && name_of(*of_schema) != name_of(*form) &&
      !(of_schema->type == KeyType::bytes && plain))
    return {};
  read.key_type = key_type;
  *notes = std::move(read);
  return {};
}

ExitStatus read_position(const Database& database, const Table& table,
                         std::optional<LoadPosition>* position) {
  position->reset();
  std::optional<json> record;
  STRIDE_CLI_TRY(read_record(database, "load:" + table.name(), &record));
  if (!record || record->value("table", json(table.id())) != json(table.id())) return {};
  LoadPosition read;
  if (read_field(*record, "job", &read.job) && read_field(*record, "file", &read.file) &&
      read_field(*record, "offset", &read.offset) && read_field(*record, "line", &read.line) &&
      read_field(*record, "rows", &read.rows) && read_field(*record, "rejected", &read.rejected)) {
    read.refuses_duplicates = record->value("refuses_duplicates", json()) == json(true);
    read.is_last = record->value("is_last", json()) == json(true);
    // Versions before this one did not write it.
    if (!read_field(*record, "rejects_bytes", &read.rejects_bytes)) read.rejects_bytes = UINT64_MAX;
    *position = std::move(read);
  }
  return {};
}

ExitStatus write_notes(WriteTransaction* transaction, const std::string& table,
                       const TableNotes& notes) {
  json record = {{"key_type", notes.key_type}};
  if (!notes.key.empty()) record["key"] = notes.key;
  if (!notes.values.empty()) record["values"] = notes.values;
  return write_record(transaction, "table:" + table, record);
}

ExitStatus write_position(WriteTransaction* transaction, const Table& table,
                          const LoadPosition* position) {
  json record;
  if (position) {
    record = {{"table", table.id()},
              {"job", position->job},
              {"is_last", position->is_last},
              {"file", position->file},
              {"offset", position->offset},
              {"line", position->line},
              {"rows", position->rows},
              {"rejected", position->rejected},
              {"rejects_bytes", position->rejects_bytes},
              {"refuses_duplicates", position->refuses_duplicates}};
  }
  return write_record(transaction, "load:" + table.name(), record);
}

ExitStatus read_restoring(const Database& database, const Table& table, bool* restoring) {
  std::optional<json> record;
  STRIDE_CLI_TRY(read_record(database, "restore:" + table.name(), &record));
  // Another table of that name, made since, is none.
  *restoring = record && record->value("id", 0u) == table.id();
  return {};
}

ExitStatus write_restoring(WriteTransaction* transaction, const Table& table, bool restoring) {
  json record;
  if (restoring) record = {{"id", table.id()}};
  return write_record(transaction, "restore:" + table.name(), record);
}

ExitStatus end_restoring(const Database& database, const Table& table,
                         WriteTransaction* transaction) {
  bool restoring = false;
  STRIDE_CLI_TRY(read_restoring(database, table, &restoring));
  return restoring ? write_restoring(transaction, table, false) : ExitStatus();
}

ExitStatus forget_notes(Database* database, const std::string& table) {
  auto notes = database->open_table(std::string(notes_table));
  if (notes.status().code() == StatusCode::not_found) return {};
  if (!notes.ok()) return notes.status();
  WriteTransaction write = database->begin();
  for (const char* kind : {"table:", "load:", "restore:"})
    STRIDE_CLI_TRY(write.erase(*notes, kind + table));
  return write.commit(Durability::sync);
}

ExitStatus find_table(const Database& database, const std::string& name, Table* table) {
  auto opened = database.open_table(name);
  if (opened.ok()) {
    *table = *opened;
    return {};
  }
  if (opened.status().code() != StatusCode::not_found) return opened.status();
  const std::string& path = opened.status().file();
  std::vector<std::string> names;
  for (const TableStatistics& there : database.tables())
    if (there.name != notes_table) names.push_back(there.name);
  const std::string message = "no table " + in_quotes(name) + " in database " + path;
  if (names.empty())
    return ExitStatus(ExitCode::not_found,
                      message + ", which has none: stride load " + path + " TABLE FILE makes one");
  return ExitStatus(ExitCode::not_found, message + ", which has " + names_text(names) + ": " +
                                             did_you_mean(name, names, "name one of these"));
}

ExitStatus open_table(const Database& database, const std::string& name, const std::string& asked,
                      Table* table, KeyForm* key_form) {
  STRIDE_CLI_TRY(find_table(database, name, table));
  std::optional<TableNotes> notes;
  STRIDE_CLI_TRY(read_notes(database, *table, &notes));
  uint32_t width = table->key_width();
  *key_form = !asked.empty()           ? *key_form_named(asked)
              : table->address_bits()  ? KeyType::prefix
              : notes                  ? *key_form_named(notes->key_type)
              : form_of_schema(*table) ? *form_of_schema(*table)
              : table->key_width()     ? KeyType::hex
                                       : KeyType::bytes;
  if (key_form->type == KeyType::prefix && table->address_bits() == 0)
    return ExitStatus::usage("table '" + name +
                             "' is no prefix table: leave --key-type prefix out");
  if (key_form->type == KeyType::prefix) key_form->address_bits = table->address_bits();
  if (width_of(*key_form) && width && width != width_of(*key_form)) {
    return ExitStatus::usage("keys of table '" + name + "' have " + width_text(width) +
                             ", and those of --key-type " + name_of(*key_form) + " have " +
                             width_text(width_of(*key_form)) +
                             ": leave --key-type out, or give the table's");
  }
  return {};
}

}  // namespace stride::cli
