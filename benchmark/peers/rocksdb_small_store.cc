#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include "benchmark/peers/small_store.h"

namespace stride::benchmark {
namespace {

class RocksdbSmallStore : public SmallStore {
 public:
  RocksdbSmallStore(const SmallStoreSettings& settings, bool tuned)
      : settings_(settings), tuned_(tuned) {
    writing_.sync = settings.durability == Durability::sync;
    writing_.disableWAL = settings.durability == Durability::none;
  }
  ~RocksdbSmallStore() override { (void)close(); }

  Status open() override {
    rocksdb::Options options;
    options.create_if_missing = true;
    if (tuned_) tune(&options);
    rocksdb::DB* db = nullptr;
    STRIDE_TRY(check(rocksdb::DB::Open(options, settings_.directory, &db)));
    db_.reset(db);
    return {};
  }
  Status put(Bytes key, Bytes value) override {
    return check(db_->Put(writing_, slice(key), slice(value)));
  }
  Status get(Bytes key, std::string* value) override {
    rocksdb::Status s = db_->Get({}, slice(key), value);
    if (!s.IsNotFound()) return check(s);
    value->clear();
    return {};
  }
  Status close() override {
    if (!db_) return {};
    rocksdb::Status s = db_->Close();
    db_.reset();
    return check(s);
  }

 private:
  static rocksdb::Slice slice(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static Status check(const rocksdb::Status& s) {
    if (s.ok()) return {};
    return Status(s.IsNoSpace() ? StatusCode::no_space : StatusCode::io_error,
                  "RocksDB: " + s.ToString());
  }
  void tune(rocksdb::Options* options) const {
    options->recycle_log_file_num = 4;
    options->enable_pipelined_write = true;
    options->allow_concurrent_memtable_write = true;
    options->compression = rocksdb::kNoCompression;
    options->IncreaseParallelism(static_cast<int>(settings_.threads));
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    options->table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  }

  SmallStoreSettings settings_;
  const bool tuned_;
  rocksdb::WriteOptions writing_;
  std::unique_ptr<rocksdb::DB> db_;
};

template <bool tuned>
std::unique_ptr<SmallStore> make_rocksdb_store(const SmallStoreSettings& settings) {
  return std::make_unique<RocksdbSmallStore>(settings, tuned);
}

}  // namespace

std::vector<SmallStoreConfiguration> rocksdb_small_stores() {
  return {{"rocksdb", "defaults", "default options", make_rocksdb_store<false>},
          {"rocksdb", "tuned",
           "recycled logs, pipelined writes, filters of 10 bits a key, no compression",
           make_rocksdb_store<true>}};
}

}  // namespace stride::benchmark
