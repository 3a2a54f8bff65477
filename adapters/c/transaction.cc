// Write transactions.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"

using namespace stride;
using namespace stride::c;

namespace {

Status read_bound(const stride_bytes* given, const char* what, std::optional<Bytes>* bound) {
  if (!given) return {};
  Bytes bytes;
  STRIDE_TRY(read_bytes(given->data, given->size, what, &bytes));
  *bound = bytes;
  return {};
}

template <class T>
Status add(WriteTransaction& t, const Table& table, const Column& keys, const void* deltas) {
  return t.accumulate(table, keys, std::span<const T>(static_cast<const T*>(deltas), keys.size));
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
  return change_table(transaction, table, [&](auto& t, const Table& of) {
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
  return change_table(transaction, table, [&](auto& t, const Table& of) {
    Bytes k, v;
    STRIDE_TRY(read_bytes(key, key_bytes, "key", &k));
    STRIDE_TRY(read_bytes(value, value_bytes, "value", &v));
    return t.put(of, k, v);
  });
}

int stride_put_if_absent(stride_transaction* transaction, stride_table* table,
                         const stride_column* keys, const stride_column* values,
                         uint64_t* was_new) {
  return change_table(transaction, table, [&](WriteTransaction& t, const Table& of) {
    Column k, v;
    STRIDE_TRY(read_keys(keys, of, &k));
    STRIDE_TRY(read_column(values, "values", &v));
    std::span<uint64_t> bits;
    if (was_new) bits = {was_new, (k.size + 63) / 64};
    return t.put_if_absent(of, k, v, bits);
  });
}

int stride_accumulate(stride_transaction* transaction, stride_table* table,
                      const stride_column* keys, int numbers, const void* deltas) {
  return change_table(transaction, table, [&](WriteTransaction& t, const Table& of) {
    Column k;
    STRIDE_TRY(read_keys(keys, of, &k));
    if (k.size) STRIDE_TRY(check_pointer(deltas, "deltas"));
    switch (numbers) {
      case STRIDE_NUMBERS_I32:
        return add<int32_t>(t, of, k, deltas);
      case STRIDE_NUMBERS_I64:
        return add<int64_t>(t, of, k, deltas);
      case STRIDE_NUMBERS_F32:
        return add<float>(t, of, k, deltas);
      case STRIDE_NUMBERS_F64:
        return add<double>(t, of, k, deltas);
    }
    return Status::invalid("numbers " + std::to_string(numbers) +
                           ": 1 to 4 are possible (STRIDE_NUMBERS_)");
  });
}

int stride_accumulate_one(stride_transaction* transaction, stride_table* table, const void* key,
                          uint64_t key_bytes, int64_t delta) {
  return change_table(transaction, table, [&](WriteTransaction& t, const Table& of) {
    Bytes k;
    STRIDE_TRY(read_bytes(key, key_bytes, "key", &k));
    return t.accumulate(of, {reinterpret_cast<const char*>(k.data()), k.size()}, delta);
  });
}

int stride_erase(stride_transaction* transaction, stride_table* table, const stride_column* keys) {
  return change_table(transaction, table, [&](auto& t, const Table& of) {
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
  return change_table(transaction, table, [&](auto& t, const Table& of) {
    std::optional<Bytes> first, end;
    STRIDE_TRY(read_bound(from, "the data of from", &first));
    STRIDE_TRY(read_bound(to, "the data of to", &end));
    return t.erase_range(of, first, end);
  });
}

int stride_adopt(stride_transaction* transaction, stride_table* table, const char* const* databases,
                 uint64_t count) {
  return change_table(transaction, table, [&](WriteTransaction& t, const Table& of) {
    if (count > 0) STRIDE_TRY(check_pointer(databases, "databases"));
    std::vector<std::string> paths;
    for (uint64_t i = 0; i < count; ++i) {
      STRIDE_TRY(check_pointer(databases[i], "a path of databases"));
      paths.emplace_back(databases[i]);
    }
    return t.adopt(of, paths);
  });
}

int stride_abort(stride_transaction* transaction) {
  return run([&] { return release_handle<TransactionObject>(transaction); });
}
