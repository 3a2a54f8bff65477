// Transactions that read.
#include "adapters/c/error.h"
#include "adapters/c/objects.h"
#include "adapters/c/stridedb_transactions.h"

using namespace stride;
using namespace stride::c;

int stride_begin_reading(stride_database* database, stride_transaction** transaction) {
  if (transaction) *transaction = nullptr;
  return run([&]() -> Status {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(transaction, "transaction"));
    return make_handle(std::make_unique<TransactionObject>(db->database->transaction()),
                       transaction);
  });
}

int stride_transaction_get_one(stride_transaction* transaction, stride_table* table,
                               const void* key, uint64_t key_bytes, stride_bytes* value) {
  return run([&] {
    return read_in(transaction, table, [&](Transaction& t, const Table& of) -> Status {
      STRIDE_TRY(check_pointer(value, "value"));
      Bytes k;
      STRIDE_TRY(read_bytes(key, key_bytes, "key", &k));
      auto found = t.get(of, k);
      if (!found.ok()) return found.status();
      *value = *found ? present(**found) : stride_bytes{nullptr, 0};
      return {};
    });
  });
}

int stride_transaction_get(stride_transaction* transaction, stride_table* table,
                           const stride_column* keys, stride_values* values) {
  return run([&] {
    Use<ValuesObject> out;
    STRIDE_TRY(out.begin(values));
    out->begin_result();
    return read_in(transaction, table, [&](Transaction& t, const Table& of) {
      Column queries;
      STRIDE_TRY(read_queries(keys, "keys", &queries));
      STRIDE_TRY(t.get(of, queries, &out->result));
      out->table = of;
      out->complete = true;
      return Status();
    });
  });
}

int stride_transaction_count(stride_transaction* transaction, stride_table* table, uint64_t* keys) {
  return run([&] {
    return read_in(transaction, table, [&](Transaction& t, const Table& of) {
      STRIDE_TRY(check_pointer(keys, "keys"));
      Result<uint64_t> count = t.count(of);
      if (count.ok()) *keys = *count;
      return count.status();
    });
  });
}

int stride_transaction_scan(stride_transaction* transaction, stride_table* table,
                            const stride_scan_options* options, stride_scan** scan) {
  if (scan) *scan = nullptr;
  return run([&] {
    return read_in(transaction, table, [&](Transaction& t, const Table& of) -> Status {
      STRIDE_TRY(check_pointer(scan, "scan"));
      ScanOptions o;
      STRIDE_TRY(read_range(options, &o));
      Result<Scan> opened = t.scan(of, o);
      if (!opened.ok()) return opened.status();
      return make_handle(std::make_unique<ScanObject>(std::move(*opened)), scan);
    });
  });
}
