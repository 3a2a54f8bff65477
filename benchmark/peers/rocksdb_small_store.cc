#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/optimistic_transaction_db.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/write_batch.h>

#include "benchmark/peers/small_store.h"

namespace stride::benchmark {
namespace {

enum class Tuning : uint8_t { defaults, leveled, universal };

class RocksdbSmallStore : public SmallStore {
 public:
  RocksdbSmallStore(const SmallStoreSettings& settings, Tuning tuning)
      : settings_(settings), tuning_(tuning) {
    writing_.sync = settings.durability == Durability::sync;
    writing_.disableWAL = settings.durability == Durability::none;
  }
  ~RocksdbSmallStore() override { (void)close(); }

  Status open() override {
    rocksdb::Options options;
    options.create_if_missing = true;
    if (tuning_ != Tuning::defaults) tune(&options);
    if (settings_.transactions) {
      rocksdb::OptimisticTransactionDB* db = nullptr;
      STRIDE_TRY(check(rocksdb::OptimisticTransactionDB::Open(options, settings_.directory, &db)));
      transactions_ = db;
      db_.reset(db);
      return {};
    }
    rocksdb::DB* db = nullptr;
    STRIDE_TRY(check(rocksdb::DB::Open(options, settings_.directory, &db)));
    db_.reset(db);
    return {};
  }
  Status put(Bytes key, Bytes value) override {
    return check(db_->Put(writing_, slice(key), slice(value)));
  }
  Status put_all(std::span<const SmallRecord> records) override {
    rocksdb::WriteBatch batch;
    for (const SmallRecord& record : records)
      STRIDE_TRY(check(batch.Put(slice(record.key), slice(record.value))));
    return check(db_->Write(writing_, &batch));
  }
  Status erase(Bytes key) override { return check(db_->Delete(writing_, slice(key))); }
  Status get(Bytes key, std::string* value) override {
    rocksdb::Status s = db_->Get({}, slice(key), value);
    if (!s.IsNotFound()) return check(s);
    value->clear();
    return {};
  }
  Status scan(Bytes from, uint64_t count, const RowVisitor& visit) override {
    std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}));
    for (it->Seek(slice(from)); count > 0 && it->Valid(); --count) {
      visit(bytes(it->key()), bytes(it->value()));
      if (count > 1) it->Next();
    }
    return check(it->status());
  }
  Status transact(std::span<const Bytes> keys, size_t written, const ValueChange& change,
                  bool* conflict) override {
    const std::unique_ptr<rocksdb::Transaction> transaction(
        transactions_->BeginTransaction(writing_));
    std::vector<std::string> values(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      rocksdb::Status s = transaction->GetForUpdate({}, slice(keys[i]), &values[i]);
      if (!s.IsNotFound()) STRIDE_TRY(check(s));
    }
    change(values);
    for (size_t i = 0; i < written; ++i)
      STRIDE_TRY(check(transaction->Put(slice(keys[i]), values[i])));
    rocksdb::Status s = transaction->Commit();
    *conflict = s.IsBusy() || s.IsTryAgain();
    return *conflict ? Status() : check(s);
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
  static Bytes bytes(const rocksdb::Slice& slice) {
    return {reinterpret_cast<const std::byte*>(slice.data()), slice.size()};
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
    if (tuning_ == Tuning::universal)
      options->compaction_style = rocksdb::kCompactionStyleUniversal;
    options->IncreaseParallelism(static_cast<int>(settings_.threads));
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    options->table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  }

  SmallStoreSettings settings_;
  const Tuning tuning_;
  rocksdb::WriteOptions writing_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::OptimisticTransactionDB* transactions_ = nullptr;  // db_, where there are any
};

template <Tuning tuning>
std::unique_ptr<SmallStore> make_rocksdb_store(const SmallStoreSettings& settings) {
  return std::make_unique<RocksdbSmallStore>(settings, tuning);
}

}  // namespace

std::vector<SmallStoreConfiguration> rocksdb_small_stores() {
  return {{"rocksdb", "defaults", "default options", make_rocksdb_store<Tuning::defaults>},
          {"rocksdb", "tuned",
           "recycled logs, pipelined and concurrent writes, filters of 10 bits a key, no "
           "compression, leveled",
           make_rocksdb_store<Tuning::leveled>},
          {"rocksdb", "universal", "the same with universal compaction",
           make_rocksdb_store<Tuning::universal>}};
}

}  // namespace stride::benchmark
