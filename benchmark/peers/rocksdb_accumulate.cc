#include "benchmark/peers/rocksdb_accumulate.h"

#include <rocksdb/db.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace stride::benchmark {
namespace {

constexpr uint64_t batch_deltas = 1000;

Status from_rocksdb(const rocksdb::Status& s) {
  if (s.ok()) return {};
  return Status(s.IsNoSpace() ? StatusCode::no_space : StatusCode::io_error,
                "RocksDB: " + s.ToString());
}

rocksdb::Slice to_slice(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
rocksdb::Slice to_slice(const int64_t& number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}
template <class Number>
bool read_number(const rocksdb::Slice& from, Number* number) {
  if (from.size() != sizeof *number) return false;
  std::memcpy(number, from.data(), sizeof *number);
  return true;
}

class AddNumbers : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing, const rocksdb::Slice& value,
             std::string* sum, rocksdb::Logger*) const override {
    int64_t number = 0, delta = 0;
    if (existing && !read_number(*existing, &number)) return false;
    if (!read_number(value, &delta)) return false;
    number = wrapping_sum(number, delta);
    sum->assign(reinterpret_cast<const char*>(&number), sizeof number);
    return true;
  }
  const char* Name() const override { return "add_int64"; }
};

class RocksdbAccumulate : public AccumulateEngine {
 public:
  RocksdbAccumulate(const AccumulateSettings& settings, bool tuned)
      : settings_(settings), tuned_(tuned) {}
  ~RocksdbAccumulate() override { (void)close(); }

  Status open() override;
  Status load(const KeyColumn& keys, std::span<const int64_t> numbers) override {
    return write(keys, numbers, [](rocksdb::WriteBatch* batch, Bytes key, const int64_t& number) {
      return batch->Put(to_slice(key), to_slice(number));
    });
  }
  Status accumulate(const KeyColumn& keys, std::span<const int64_t> deltas) override {
    return write(keys, deltas, [](rocksdb::WriteBatch* batch, Bytes key, const int64_t& delta) {
      return batch->Merge(to_slice(key), to_slice(delta));
    });
  }
  Status read(BulkVector<uint64_t>* keys, BulkVector<int64_t>* numbers) override;
  Status close() override;

 private:
  // All rows, on all threads.
  template <class Add>
  Status write(const KeyColumn& keys, std::span<const int64_t> numbers, const Add& add);

  AccumulateSettings settings_;
  bool tuned_;
  std::unique_ptr<rocksdb::DB> db_;
};

Status RocksdbAccumulate::open() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.merge_operator = std::make_shared<AddNumbers>();
  if (tuned_) {
    options.compression = rocksdb::kNoCompression;
    options.write_buffer_size = size_t{4} << 30;
    options.IncreaseParallelism(static_cast<int>(settings_.threads));
  }
  rocksdb::DB* db = nullptr;
  STRIDE_TRY(from_rocksdb(rocksdb::DB::Open(options, settings_.directory, &db)));
  db_.reset(db);
  return {};
}

Status RocksdbAccumulate::close() {
  if (db_ == nullptr) return {};
  rocksdb::Status status = db_->Close();
  db_.reset();
  return from_rocksdb(status);
}

template <class Add>
Status RocksdbAccumulate::write(const KeyColumn& keys, std::span<const int64_t> numbers,
                                const Add& add) {
  rocksdb::WriteOptions writing;
  writing.disableWAL = settings_.durability == Durability::none;
  auto write_rows = [&](uint64_t begin, uint64_t end) -> Status {
    rocksdb::WriteBatch batch;
    for (uint64_t i = begin; i < end; ++i) {
      STRIDE_TRY(from_rocksdb(add(&batch, keys[i], numbers[i])));
      if ((i + 1 - begin) % batch_deltas != 0 && i + 1 != end) continue;
      STRIDE_TRY(from_rocksdb(db_->Write(writing, &batch)));
      batch.Clear();
    }
    return {};
  };
  std::vector<Status> results(settings_.threads);
  std::vector<std::thread> writers;
  for (unsigned t = 0; t < settings_.threads; ++t) {
    writers.emplace_back([&, t] {
      results[t] =
          write_rows(keys.size * t / settings_.threads, keys.size * (t + 1) / settings_.threads);
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (Status& result : results) STRIDE_TRY(std::move(result));
  if (writing.disableWAL) return {};
  return from_rocksdb(db_->FlushWAL(settings_.durability == Durability::sync));
}

Status RocksdbAccumulate::read(BulkVector<uint64_t>* keys, BulkVector<int64_t>* numbers) {
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    uint64_t key = 0;
    int64_t number = 0;
    if (!read_number(it->key(), &key) || !read_number(it->value(), &number))
      return Status(StatusCode::corruption, "RocksDB: a row that is not 8 bytes to 8 bytes");
    keys->push_back(key);
    numbers->push_back(number);
  }
  return from_rocksdb(it->status());
}

template <bool tuned>
std::unique_ptr<AccumulateEngine> make(const AccumulateSettings& settings) {
  return std::make_unique<RocksdbAccumulate>(settings, tuned);
}

}  // namespace

std::vector<AccumulateConfiguration> rocksdb_accumulate_configurations() {
  return {
      {"rocksdb", "merge", "its merge operator, batches of 1,000, synced WAL", true, make<false>},
      {"rocksdb", "merge_tuned", "the same, all in one memtable, no compression", true, make<true>},
  };
}

}  // namespace stride::benchmark
