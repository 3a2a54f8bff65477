#include <lmdb.h>

#include <cerrno>

#include "benchmark/peers/small_store.h"

namespace stride::benchmark {
namespace {

class LmdbSmallStore : public SmallStore {
 public:
  explicit LmdbSmallStore(const SmallStoreSettings& settings) : settings_(settings) {}
  ~LmdbSmallStore() override { (void)close(); }

  Status open() override {
    const unsigned flags = MDB_NOTLS | (settings_.durability == Durability::sync ? 0 : MDB_NOSYNC);
    const size_t map_bytes = ((size_t{1} << 30) + 8 * settings_.max_bytes) & ~size_t{0xFFFF};
    STRIDE_TRY(check(mdb_env_create(&environment_), "mdb_env_create"));
    STRIDE_TRY(check(mdb_env_set_mapsize(environment_, map_bytes), "mdb_env_set_mapsize"));
    STRIDE_TRY(check(mdb_env_set_maxreaders(environment_, settings_.threads + 16), "maxreaders"));
    STRIDE_TRY(check(mdb_env_open(environment_, settings_.directory.c_str(), flags, 0644),
                     "mdb_env_open"));
    return in_transaction(0, [&](MDB_txn* t) { return mdb_dbi_open(t, nullptr, 0, &database_); });
  }
  Status put(Bytes key, Bytes value) override {
    MDB_val k = to_val(key), v = to_val(value);
    return in_transaction(0, [&](MDB_txn* t) { return mdb_put(t, database_, &k, &v, 0); });
  }
  Status put_all(std::span<const SmallRecord> records) override {
    return in_transaction(0, [&](MDB_txn* t) {
      int code = MDB_SUCCESS;
      for (size_t i = 0; i < records.size() && code == MDB_SUCCESS; ++i) {
        MDB_val k = to_val(records[i].key), v = to_val(records[i].value);
        code = mdb_put(t, database_, &k, &v, 0);
      }
      return code;
    });
  }
  Status erase(Bytes key) override {
    MDB_val k = to_val(key);
    return in_transaction(0, [&](MDB_txn* t) {
      int code = mdb_del(t, database_, &k, nullptr);
      return code == MDB_NOTFOUND ? MDB_SUCCESS : code;
    });
  }
  Status get(Bytes key, std::string* value) override {
    MDB_val k = to_val(key), v{};
    value->clear();
    return in_transaction(MDB_RDONLY, [&](MDB_txn* t) {
      int code = mdb_get(t, database_, &k, &v);
      if (code == MDB_SUCCESS) value->assign(static_cast<const char*>(v.mv_data), v.mv_size);
      return code == MDB_NOTFOUND ? MDB_SUCCESS : code;
    });
  }
  Status scan(Bytes from, uint64_t count, const RowVisitor& visit) override {
    return in_transaction(MDB_RDONLY, [&](MDB_txn* t) {
      MDB_cursor* cursor = nullptr;
      if (int code = mdb_cursor_open(t, database_, &cursor); code != MDB_SUCCESS) return code;
      MDB_val k = to_val(from), v{};
      const MDB_cursor_op seek = from.empty() ? MDB_FIRST : MDB_SET_RANGE;
      int code = count > 0 ? mdb_cursor_get(cursor, &k, &v, seek) : MDB_NOTFOUND;
      while (code == MDB_SUCCESS) {
        visit(to_bytes(k), to_bytes(v));
        code = --count > 0 ? mdb_cursor_get(cursor, &k, &v, MDB_NEXT) : MDB_NOTFOUND;
      }
      mdb_cursor_close(cursor);
      return code == MDB_NOTFOUND ? MDB_SUCCESS : code;
    });
  }
  // One at a time: there are no conflicts.
  Status transact(std::span<const Bytes> keys, size_t written, const ValueChange& change,
                  bool* conflict) override {
    *conflict = false;
    std::vector<std::string> values(keys.size());
    return in_transaction(0, [&](MDB_txn* t) {
      for (size_t i = 0; i < keys.size(); ++i) {
        MDB_val k = to_val(keys[i]), v{};
        const int code = mdb_get(t, database_, &k, &v);
        if (code == MDB_SUCCESS) values[i].assign(static_cast<const char*>(v.mv_data), v.mv_size);
        if (code != MDB_SUCCESS && code != MDB_NOTFOUND) return code;
      }
      change(values);
      int code = MDB_SUCCESS;
      for (size_t i = 0; i < written && code == MDB_SUCCESS; ++i) {
        MDB_val k = to_val(keys[i]), v = to_val(as_bytes(values[i]));
        code = mdb_put(t, database_, &k, &v, 0);
      }
      return code;
    });
  }
  Status close() override {
    if (!environment_) return {};
    Status s = check(mdb_env_sync(environment_, 1), "mdb_env_sync");
    mdb_env_close(environment_);
    environment_ = nullptr;
    return s;
  }

 private:
  static MDB_val to_val(Bytes bytes) {
    return {bytes.size(), const_cast<std::byte*>(bytes.data())};
  }
  static Bytes to_bytes(const MDB_val& val) {
    return {static_cast<const std::byte*>(val.mv_data), val.mv_size};
  }
  static Status check(int code, const char* what) {
    if (code == MDB_SUCCESS) return {};
    const bool full = code == MDB_MAP_FULL || code == ENOSPC;
    return Status(full ? StatusCode::no_space : StatusCode::io_error,
                  std::string("LMDB: ") + what + ": " + mdb_strerror(code));
  }
  template <class Work>
  Status in_transaction(unsigned flags, const Work& work) {
    MDB_txn* transaction = nullptr;
    STRIDE_TRY(check(mdb_txn_begin(environment_, nullptr, flags, &transaction), "mdb_txn_begin"));
    if (int code = work(transaction); code != MDB_SUCCESS) {
      mdb_txn_abort(transaction);
      return check(code, "transaction");
    }
    return check(mdb_txn_commit(transaction), "mdb_txn_commit");
  }

  SmallStoreSettings settings_;
  MDB_env* environment_ = nullptr;
  MDB_dbi database_ = 0;
};

std::unique_ptr<SmallStore> make_lmdb_store(const SmallStoreSettings& settings) {
  return std::make_unique<LmdbSmallStore>(settings);
}

}  // namespace

std::vector<SmallStoreConfiguration> lmdb_small_stores() {
  return {
      {"lmdb", "defaults", "a transaction for each call; MDB_NOSYNC below sync", make_lmdb_store}};
}

}  // namespace stride::benchmark
