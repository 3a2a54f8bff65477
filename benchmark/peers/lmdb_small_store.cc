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
  Status get(Bytes key, std::string* value) override {
    MDB_val k = to_val(key), v{};
    value->clear();
    return in_transaction(MDB_RDONLY, [&](MDB_txn* t) {
      int code = mdb_get(t, database_, &k, &v);
      if (code == MDB_SUCCESS) value->assign(static_cast<const char*>(v.mv_data), v.mv_size);
      return code == MDB_NOTFOUND ? MDB_SUCCESS : code;
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
