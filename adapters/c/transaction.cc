// Write transactions.
#include <thread>
#include <utility>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"

using namespace stride;
using namespace stride::c;

namespace {

// Calls change(transaction, table) with what the handles stand for.
template <class Change>
int change_table(stride_transaction* transaction, stride_table* table, const Change& change) {
  return run([&]() -> Status {
    Use<TransactionObject> t;
    STRIDE_TRY(t.begin(transaction));
    Use<TableObject> of;
    STRIDE_TRY(of.begin(table));
    std::thread::id self = std::this_thread::get_id();
    if (std::exchange(t->changed_by, self) != self) t->transaction.hand_over();
    return change(t->transaction, of->table);
  });
}

// Without rows there is no width that could be wrong.
Status read_keys(const stride_column* given, const Table& table, Column* keys) {
  STRIDE_TRY(read_column(given, "keys", keys));
  if (keys->size == 0) *keys = Column::fixed(nullptr, table.key_width(), 0);
  return {};
}

Status read_bound(const stride_bytes* given, const char* what, std::optional<Bytes>* bound) {
  if (!given) return {};
  Bytes bytes;
  STRIDE_TRY(read_bytes(given->data, given->size, what, &bytes));
  *bound = bytes;
  return {};
}

}  // namespace

int stride_begin(stride_database* database, stride_transaction** transaction) {
  if (transaction) *transaction = nullptr;
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(transaction, "transaction"));
    return make_handle(std::make_unique<TransactionObject>(db->database->begin()), transaction);
  });
}

int stride_put(stride_transaction* transaction, stride_table* table, const stride_column* keys,
               const stride_column* values) {
  return change_table(transaction, table, [&](WriteTransaction& t, const Table& of) {
    Column k, v;
    STRIDE_TRY(read_keys(keys, of, &k));
    STRIDE_TRY(read_column(values, "values", &v));
    return t.put(of, k, v);
  });
}

int stride_put_view(stride_transaction* transaction, stride_table* table, const stride_column* keys,
                    const stride_column* values) {
  return change_table(transaction, table, [&](WriteTransaction& t, const Table& of) {
    Column k, v;
    STRIDE_TRY(read_keys(keys, of, &k));
    STRIDE_TRY(read_column(values, "values", &v));
    return t.put_view(of, k, v);
  });
}

int stride_put_one(stride_transaction* transaction, stride_table* table, const void* key,
                   uint64_t key_bytes, const void* value, uint64_t value_bytes) {
  return change_table(transaction, table, [&](WriteTransaction& t, const Table& of) {
    Bytes k, v;
    STRIDE_TRY(read_bytes(key, key_bytes, "key", &k));
    STRIDE_TRY(read_bytes(value, value_bytes, "value", &v));
    return t.put(of, k, v);
  });
}

int stride_erase(stride_transaction* transaction, stride_table* table, const stride_column* keys) {
  return change_table(transaction, table, [&](WriteTransaction& t, const Table& of) {
    Column k;
    STRIDE_TRY(read_keys(keys, of, &k));
    return t.erase(of, k);
  });
}

int stride_erase_ranges(stride_transaction* transaction, stride_table* table,
                        const stride_column* from, const stride_column* to) {
  return change_table(transaction, table, [&](WriteTransaction& t, const Table& of) {
    Column first, end;
    STRIDE_TRY(read_column(from, "from", &first));
    STRIDE_TRY(read_column(to, "to", &end));
    return t.erase_ranges(of, first, end);
  });
}

int stride_erase_range(stride_transaction* transaction, stride_table* table,
                       const stride_bytes* from, const stride_bytes* to) {
  return change_table(transaction, table, [&](WriteTransaction& t, const Table& of) {
    std::optional<Bytes> first, end;
    STRIDE_TRY(read_bound(from, "the data of from", &first));
    STRIDE_TRY(read_bound(to, "the data of to", &end));
    return t.erase_range(of, first, end);
  });
}

int stride_commit(stride_transaction* transaction, int durability) {
  return run([&]() -> Status {
    if (durability < STRIDE_DURABILITY_DEFAULT || durability > STRIDE_DURABILITY_NONE)
      return Status::invalid("durability " + std::to_string(durability) +
                             ": -1 to 2 are possible (STRIDE_DURABILITY_)");
    std::unique_ptr<TransactionObject> object;
    STRIDE_TRY(consume_object(transaction, &object));
    if (durability == STRIDE_DURABILITY_DEFAULT) return object->transaction.commit();
    return object->transaction.commit(static_cast<Durability>(durability));
  });
}

int stride_abort(stride_transaction* transaction) {
  return run([&] { return release_handle<TransactionObject>(transaction); });
}
