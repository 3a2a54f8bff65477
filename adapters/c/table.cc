// Tables.
#include "adapters/c/error.h"
#include "adapters/c/objects.h"

using namespace stride;
using namespace stride::c;

static_assert(sizeof(stride_table_info) == 104 && sizeof(stride_table_options) == 56);
// A Table says what its options are in the engine's numbers.
static_assert(static_cast<int>(NumberType::none) == STRIDE_NUMBERS_NONE &&
              static_cast<int>(NumberType::i32) == STRIDE_NUMBERS_I32 &&
              static_cast<int>(NumberType::i64) == STRIDE_NUMBERS_I64 &&
              static_cast<int>(NumberType::f32) == STRIDE_NUMBERS_F32 &&
              static_cast<int>(NumberType::f64) == STRIDE_NUMBERS_F64);
static_assert(static_cast<int>(Overflow::error) == STRIDE_OVERFLOW_ERROR &&
              static_cast<int>(Overflow::wrap) == STRIDE_OVERFLOW_WRAP);

namespace {

// Before tables had numbers.
constexpr size_t min_table_bytes = offsetof(stride_table_options, numbers);

Status read_options(const stride_table_options* given, TableOptions* options) {
  if (!given) return {};
  stride_table_options o{};
  STRIDE_TRY(read_struct(given, "stride_table_options", min_table_bytes, sizeof o, &o));
  STRIDE_TRY(check_choice(o.numbers, STRIDE_NUMBERS_F64, "numbers"));
  STRIDE_TRY(check_choice(o.overflow, STRIDE_OVERFLOW_WRAP, "overflow"));
  if (o.reserved) return Status::invalid("reserved of stride_table_options is not 0");
  *options = {.key_width = o.key_width,
              .address_bits = o.address_bits,
              .share_equal_values = o.share_equal_values != 0,
              .numbers = static_cast<NumberType>(o.numbers),
              .overflow = static_cast<Overflow>(o.overflow)};
  if (o.expiry_column) options->expiry_column = o.expiry_column;
  options->time_to_live = o.time_to_live;
  if (!o.schema) return {};
  Result<Schema> schema = Schema::parse(o.schema);
  if (schema.ok()) options->schema = std::move(*schema);
  return schema.status();
}

// One that cannot be read is a matter of its table, and the list is good for the others.
Status read_schemas(const Database& database, TablesObject* list) {
  for (const TableStatistics& t : list->tables) {
    TablesObject::SchemaText schema;
    Result<Table> table = database.open_table(t.name);
    const StatusCode code = table.status().code();
    if (table.ok()) {
      if (!table->schema().empty()) schema.text = table->schema().to_string();
      schema.expiry_column = table->expiry_column();
      schema.time_to_live = table->time_to_live();
    } else if (code == StatusCode::corruption || code == StatusCode::io_error) {
      schema.status = table.status();
    } else if (code != StatusCode::not_found) {  // dropped meanwhile
      return table.status();
    }
    list->schemas.push_back(std::move(schema));
  }
  return {};
}

// Calls open(object, name, options), which returns a Result<Table>, with what the handle stands
// for.
template <class Object, class Open>
int open_table(typename Object::Handle* handle, const char* name,
               const stride_table_options* options, stride_table** table, const Open& open) {
  if (table) *table = nullptr;
  return run([&]() -> Status {
    Use<Object> object;
    STRIDE_TRY(object.begin(handle));
    STRIDE_TRY(check_pointer(name, "name"));
    STRIDE_TRY(check_pointer(table, "table"));
    TableOptions o;
    STRIDE_TRY(read_options(options, &o));
    Result<Table> opened = open(*object.get(), std::string(name), o);
    if (!opened.ok()) return opened.status();
    return make_handle(std::make_unique<TableObject>(TableObject{*opened}), table);
  });
}

stride_table_options with_key_width(uint32_t key_width) {
  return {sizeof(stride_table_options), key_width, 0, 0, 0, 0, 0, nullptr, nullptr, 0};
}

}  // namespace

int stride_table_options_init(stride_table_options* options, size_t size) {
  return run([&] {
    STRIDE_TRY(check_pointer(options, "options"));
    stride_table_options o{};
    return write_struct(&o, "stride_table_options", sizeof o, min_table_bytes, size, options);
  });
}

int stride_table_create_with(stride_database* database, const char* name,
                             const stride_table_options* options, stride_table** table) {
  return open_table<DatabaseObject>(
      database, name, options, table,
      [](DatabaseObject& db, const std::string& of_name, const TableOptions& o) {
        return db.database->create_table(of_name, o);
      });
}

int stride_table_create_in(stride_transaction* transaction, const char* name,
                           const stride_table_options* options, stride_table** table) {
  return open_table<TransactionObject>(
      transaction, name, options, table,
      [](TransactionObject& t, const std::string& of_name, const TableOptions& o) {
        WriteTransaction* writing;
        if (Status s = t.get(&writing); !s.ok()) return Result<Table>(std::move(s));
        return writing->create_table(of_name, o);
      });
}

int stride_table_create(stride_database* database, const char* name, uint32_t key_width,
                        stride_table** table) {
  stride_table_options options = with_key_width(key_width);
  return stride_table_create_with(database, name, &options, table);
}

int stride_table_open(stride_database* database, const char* name, stride_table** table) {
  return open_table<DatabaseObject>(
      database, name, nullptr, table,
      [](DatabaseObject& db, const std::string& of_name, const TableOptions&) {
        return db.database->open_table(of_name);
      });
}

int stride_table_open_or_create_with(stride_database* database, const char* name,
                                     const stride_table_options* options, stride_table** table) {
  return open_table<DatabaseObject>(
      database, name, options, table,
      [](DatabaseObject& db, const std::string& of_name, const TableOptions& o) {
        return db.database->open_or_create_table(of_name, o);
      });
}

int stride_table_open_or_create(stride_database* database, const char* name, uint32_t key_width,
                                stride_table** table) {
  stride_table_options options = with_key_width(key_width);
  return stride_table_open_or_create_with(database, name, &options, table);
}

int stride_table_release(stride_table* table) {
  return run([&] { return release_handle<TableObject>(table); });
}

int stride_table_key_width(stride_table* table, uint32_t* key_width) {
  return run([&] {
    Use<TableObject> t;
    STRIDE_TRY(t.begin(table));
    STRIDE_TRY(check_pointer(key_width, "key_width"));
    *key_width = t->table.key_width();
    return Status();
  });
}

int stride_table_address_bits(stride_table* table, uint32_t* address_bits) {
  return run([&] {
    Use<TableObject> t;
    STRIDE_TRY(t.begin(table));
    STRIDE_TRY(check_pointer(address_bits, "address_bits"));
    *address_bits = t->table.address_bits();
    return Status();
  });
}

int stride_table_numbers(stride_table* table, int* numbers, int* overflow) {
  return run([&] {
    Use<TableObject> t;
    STRIDE_TRY(t.begin(table));
    if (numbers) *numbers = static_cast<int>(t->table.numbers());
    if (overflow) *overflow = static_cast<int>(t->table.overflow());
    return Status();
  });
}

int stride_table_drop(stride_database* database, const char* name) {
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(name, "name"));
    return db->database->drop_table(name);
  });
}

int stride_table_rename(stride_database* database, const char* name, const char* new_name) {
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(name, "name"));
    STRIDE_TRY(check_pointer(new_name, "new_name"));
    return db->database->rename_table(name, new_name);
  });
}

int stride_table_rename_in(stride_transaction* transaction, stride_table* table,
                           const char* new_name) {
  return change_table(transaction, table, [&](WriteTransaction& t, const Table& renamed) {
    STRIDE_TRY(check_pointer(new_name, "new_name"));
    return t.rename_table(renamed, new_name);
  });
}

int stride_table_list(stride_database* database, stride_tables** tables) {
  if (tables) *tables = nullptr;
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(tables, "tables"));
    auto list = std::make_unique<TablesObject>();
    list->tables = db->database->tables();
    STRIDE_TRY(read_schemas(*db->database, list.get()));
    return make_handle(std::move(list), tables);
  });
}

int stride_tables_size(stride_tables* tables, uint64_t* size) {
  return run([&] {
    Use<TablesObject> list;
    STRIDE_TRY(list.begin(tables));
    STRIDE_TRY(check_pointer(size, "size"));
    *size = list->tables.size();
    return Status();
  });
}

int stride_tables_get(stride_tables* tables, uint64_t i, stride_table_info* info) {
  return run([&] {
    Use<TablesObject> list;
    STRIDE_TRY(list.begin(tables));
    STRIDE_TRY(check_pointer(info, "info"));
    if (i >= list->tables.size())
      return Status::invalid("there is no table " + std::to_string(i) + " in a list of " +
                             std::to_string(list->tables.size()));
    const TableStatistics& t = list->tables[i];
    const TablesObject::SchemaText& schema = list->schemas[i];
    if (info->size > offsetof(stride_table_info, schema)) STRIDE_TRY(schema.status);
    stride_table_info out{sizeof out,
                          t.name.c_str(),
                          t.key_width,
                          t.address_bits,
                          t.runs,
                          t.rows,
                          t.bytes_on_disk,
                          t.memtable_rows,
                          t.filter_bytes,
                          static_cast<int>(t.numbers),
                          static_cast<int>(t.overflow),
                          t.share_equal_values,
                          0,
                          schema.text.empty() ? nullptr : schema.text.c_str(),
                          schema.expiry_column.empty() ? nullptr : schema.expiry_column.c_str(),
                          schema.time_to_live};
    // What it was before it had more members.
    constexpr size_t min_bytes = offsetof(stride_table_info, memtable_rows);
    return write_struct(&out, "stride_table_info", sizeof out, min_bytes, info->size, info);
  });
}

int stride_tables_release(stride_tables* tables) {
  return run([&] { return release_handle<TablesObject>(tables); });
}
