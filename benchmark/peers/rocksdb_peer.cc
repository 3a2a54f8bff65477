#include "benchmark/peers/rocksdb_peer.h"

#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "benchmark/harness/parallel.h"
#include "benchmark/harness/sorted_rows.h"
#include "benchmark/harness/value_refs.h"
#include "storage/prefetch.h"

namespace stride::benchmark {
namespace {

enum class Load { write_batches, ingest, cuckoo };

struct RocksdbOptions {
  Load load = Load::write_batches;
  bool sorted_lookups = false;
};

constexpr uint64_t batch_records = 1000;
constexpr uint64_t min_lookups = 64;  // fewer are not worth another core
constexpr uint64_t group = 32;        // what MultiGet itself works on at a time
constexpr uint64_t dense_gap = 24;    // records between two queries that an iterator steps over
constexpr size_t length_bytes = 2;    // before a padded value

Status from_rocksdb(const rocksdb::Status& s) {
  if (s.ok()) return {};
  return Status(s.IsNoSpace() ? StatusCode::no_space : StatusCode::io_error,
                "RocksDB: " + s.ToString());
}
#define TRY_ROCKSDB(call) STRIDE_TRY(from_rocksdb(call))

rocksdb::Slice to_slice(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
Bytes to_bytes(const rocksdb::Slice& s) { return found_value(s.data(), s.size()); }

// What one part of a batch works with.
struct Part {
  std::unique_ptr<rocksdb::Iterator> iterator;
  ValueArena values;
  rocksdb::Slice keys[group];
  rocksdb::PinnableSlice found[group];
  rocksdb::Status statuses[group];
};

class RocksdbPeer : public EngineUnderTest {
 public:
  RocksdbPeer(const EngineSettings& settings, RocksdbOptions how)
      : settings_(settings), how_(how), parallel_(settings.threads) {
    reading_.verify_checksums = how_.load == Load::write_batches;
  }
  ~RocksdbPeer() override { (void)close(); }

  Status open() override;
  Status write(const Records& records) override;
  Status read(ReadCheck& check) override { return read_all(check); }
  Status read(FullCheck& check) override { return read_all(check); }
  Status lookup(const KeyColumn& queries, LookupResult* result) override;
  Status close() override;

 private:
  rocksdb::Options options() const;
  rocksdb::Options ingest_options() const;
  rocksdb::Options cuckoo_options() const;
  Status write_flow(const Flow& flow);
  Status ingest(const Records& records);
  Status write_file(const std::string& path, const Records& records, const SortedRow* rows,
                    uint64_t n);
  Status find_one(Bytes key, Part* part, Bytes* value);
  Status find(const KeyColumn& queries, Part* part, uint64_t begin, uint64_t end);
  Status find_in_order(const KeyColumn& queries, Part* part, uint64_t begin, uint64_t end);
  Status multi_get(const KeyColumn& queries, Part* part, const uint64_t* rows, uint64_t n,
                   bool sorted);
  template <class Check>
  Status read_all(Check& check);
  // The value as it was given, without what the table format had to add.
  Bytes unpad(const rocksdb::Slice& stored) const;
  void pad(Bytes value, std::string* stored) const;

  EngineSettings settings_;
  RocksdbOptions how_;
  Parallel parallel_;
  rocksdb::ReadOptions reading_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<std::unique_ptr<Part>> parts_;
  ResultBuffer<SortedRow> sorted_;
  ResultBuffer<Bytes> found_;
};

rocksdb::Options RocksdbPeer::options() const {
  switch (how_.load) {
    case Load::ingest:
      return ingest_options();
    case Load::cuckoo:
      return cuckoo_options();
    default:
      break;
  }
  rocksdb::Options options;
  options.create_if_missing = true;
  return options;
}

rocksdb::Options RocksdbPeer::ingest_options() const {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.allow_mmap_reads = true;
  options.max_open_files = -1;
  options.disable_auto_compactions = true;
  options.advise_random_on_open =
      false;  // else the first read of a mapped file faults page by page
  options.IncreaseParallelism(static_cast<int>(settings_.threads));
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;       // blocks are used where the file is mapped
  table.block_restart_interval = 4;  // a few percent of size for as many of lookups
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.data_block_hash_table_util_ratio = 0.75;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::Options RocksdbPeer::cuckoo_options() const {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.allow_mmap_reads = true;
  options.max_open_files = -1;
  options.disable_auto_compactions = true;
  options.advise_random_on_open = false;
  // One memtable, an unsorted vector, becomes one table.
  options.memtable_factory.reset(new rocksdb::VectorRepFactory(settings_.records));
  options.allow_concurrent_memtable_write = false;
  options.write_buffer_size = size_t{8} << 30;
  rocksdb::CuckooTableOptions table;
  table.identity_as_first_hash = false;
  table.use_module_hash = false;
  options.table_factory.reset(rocksdb::NewCuckooTableFactory(table));
  return options;
}

Status RocksdbPeer::open() {
  rocksdb::DB* db = nullptr;
  TRY_ROCKSDB(rocksdb::DB::Open(options(), settings_.directory, &db));
  db_.reset(db);
  for (unsigned i = 0; i < parallel_.max_parts(); ++i) parts_.push_back(std::make_unique<Part>());
  return {};
}

Status RocksdbPeer::close() {
  parts_.clear();
  if (db_ == nullptr) return {};
  rocksdb::Status status = db_->Close();
  db_.reset();
  return from_rocksdb(status);
}

Status RocksdbPeer::write(const Records& records) {
  for (auto& part : parts_) part->iterator.reset();
  if (how_.load == Load::ingest) return ingest(records);
  STRIDE_TRY(write_flows(records, [this](const Flow& flow) { return write_flow(flow); }));
  if (how_.load == Load::cuckoo) return from_rocksdb(db_->Flush({}));
  return {};
}

Status RocksdbPeer::write_flow(const Flow& flow) {
  rocksdb::WriteOptions writing;
  writing.disableWAL = how_.load == Load::cuckoo || settings_.durability == Durability::none;
  rocksdb::WriteBatch batch;
  std::string padded;
  for (uint64_t i = 0; i < flow.keys.size; ++i) {
    rocksdb::Slice value = to_slice(flow.values[i]);
    if (how_.load == Load::cuckoo) {
      pad(flow.values[i], &padded);
      value = padded;
    }
    TRY_ROCKSDB(batch.Put(to_slice(flow.keys[i]), value));
    if ((i + 1) % batch_records == 0 || i + 1 == flow.keys.size) {
      TRY_ROCKSDB(db_->Write(writing, &batch));
      batch.Clear();
    }
  }
  if (writing.disableWAL) return {};
  return from_rocksdb(db_->FlushWAL(settings_.durability == Durability::sync));
}

Status RocksdbPeer::ingest(const Records& records) {
  ResultBuffer<SortedRow> rows;
  sort_rows(records, &parallel_, &rows);
  uint64_t n = keep_last_of_equal(records, &rows);
  if (n == 0) return {};
  std::vector<std::string> paths(parallel_.max_parts());
  std::vector<Status> results(paths.size());
  parallel_.for_parts(
      n, std::max<uint64_t>(100'000, n / parallel_.threads()),
      [&](unsigned part, uint64_t begin, uint64_t end) {
        paths[part] = settings_.directory + "/load-" + std::to_string(part) + ".sst";
        results[part] = write_file(paths[part], records, rows.data() + begin, end - begin);
      });
  for (Status& result : results) STRIDE_TRY(std::move(result));
  std::erase(paths, std::string());
  rocksdb::IngestExternalFileOptions ingestion;
  ingestion.move_files = true;
  ingestion.failed_move_fall_back_to_copy = true;
  return from_rocksdb(db_->IngestExternalFile(paths, ingestion));
}

Status RocksdbPeer::write_file(const std::string& path, const Records& records,
                               const SortedRow* rows, uint64_t n) {
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options());
  TRY_ROCKSDB(writer.Open(path));
  constexpr uint64_t ahead = 16;  // values are read in key order, which is none in memory
  for (uint64_t i = 0; i < n; ++i) {
    if (i + ahead < n) prefetch(records.value(rows[i + ahead].row).data());
    TRY_ROCKSDB(
        writer.Put(to_slice(records.key(rows[i].row)), to_slice(records.value(rows[i].row))));
  }
  return from_rocksdb(writer.Finish());
}

template <class Check>
Status RocksdbPeer::read_all(Check& check) {
  Check local = check;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(reading_));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    local.record(to_bytes(it->key()), unpad(it->value()));
  }
  check = local;
  return from_rocksdb(it->status());
}

Status RocksdbPeer::lookup(const KeyColumn& queries, LookupResult* result) {
  found_.reset(queries.size);
  if (queries.size == 1) {
    STRIDE_TRY(find_one(queries[0], parts_[0].get(), &found_[0]));
    gather_few_values(found_, result);
    return {};
  }
  if (how_.sorted_lookups) sort_rows(queries, &parallel_, &sorted_);
  std::vector<Status> results(parallel_.max_parts());
  parallel_.for_parts(queries.size, min_lookups, [&](unsigned p, uint64_t begin, uint64_t end) {
    parts_[p]->values.clear();
    results[p] = how_.sorted_lookups ? find_in_order(queries, parts_[p].get(), begin, end)
                                     : find(queries, parts_[p].get(), begin, end);
  });
  for (Status& status : results) STRIDE_TRY(std::move(status));
  gather_values(found_, &parallel_, result);
  return {};
}

// *value is valid until the next call.
Status RocksdbPeer::find_one(Bytes key, Part* part, Bytes* value) {
  rocksdb::PinnableSlice& found = part->found[0];
  found.Reset();
  rocksdb::Status status = db_->Get(reading_, db_->DefaultColumnFamily(), to_slice(key), &found);
  if (!status.ok() && !status.IsNotFound()) return from_rocksdb(status);
  *value = status.ok() ? unpad(found) : not_found_value;
  return {};
}

Status RocksdbPeer::find(const KeyColumn& queries, Part* part, uint64_t begin, uint64_t end) {
  // MultiGet searches a block-based file for a whole group; other tables get key after key anyway.
  if (how_.load != Load::ingest) {
    for (uint64_t i = begin; i < end; ++i) {
      Bytes value;
      STRIDE_TRY(find_one(queries[i], part, &value));
      bool found = value.data() != nullptr;
      found_[i] = found ? part->values.copy(value.data(), value.size()) : not_found_value;
    }
    return {};
  }
  for (uint64_t i = begin; i < end; i += group) {
    uint64_t rows[group], n = std::min(group, end - i);
    std::iota(rows, rows + n, i);
    STRIDE_TRY(multi_get(queries, part, rows, n, false));
  }
  return {};
}

// Queries sorted_[begin, end).
Status RocksdbPeer::find_in_order(const KeyColumn& queries, Part* part, uint64_t begin,
                                  uint64_t end) {
  uint64_t gap = settings_.records / std::max<uint64_t>(1, queries.size);
  if (gap > dense_gap) {
    for (uint64_t i = begin; i < end; i += group) {
      uint64_t rows[group], n = std::min(group, end - i);
      for (uint64_t k = 0; k < n; ++k) rows[k] = sorted_[i + k].row;
      STRIDE_TRY(multi_get(queries, part, rows, n, true));
    }
    return {};
  }
  if (part->iterator == nullptr) part->iterator.reset(db_->NewIterator(reading_));
  rocksdb::Iterator& it = *part->iterator;
  if (begin < end) it.Seek(to_slice(queries[sorted_[begin].row]));
  for (uint64_t i = begin; i < end; ++i) {
    rocksdb::Slice key = to_slice(queries[sorted_[i].row]);
    uint64_t steps = 0;
    while (it.Valid() && it.key().compare(key) < 0) {
      if (++steps <= 4 * dense_gap) {
        it.Next();
      } else {
        it.Seek(key);
      }
    }
    bool found = it.Valid() && it.key() == key;
    found_[sorted_[i].row] =
        found ? part->values.copy(it.value().data(), it.value().size()) : not_found_value;
  }
  return from_rocksdb(it.status());
}

Status RocksdbPeer::multi_get(const KeyColumn& queries, Part* part, const uint64_t* rows,
                              uint64_t n, bool sorted) {
  for (uint64_t i = 0; i < n; ++i) part->keys[i] = to_slice(queries[rows[i]]);
  db_->MultiGet(reading_, db_->DefaultColumnFamily(), n, part->keys, part->found, part->statuses,
                sorted);
  for (uint64_t i = 0; i < n; ++i) {
    const rocksdb::Status& status = part->statuses[i];
    if (!status.ok() && !status.IsNotFound()) return from_rocksdb(status);
    Bytes value = status.ok() ? unpad(part->found[i]) : not_found_value;
    found_[rows[i]] = status.ok() ? part->values.copy(value.data(), value.size()) : value;
    part->found[i].Reset();
  }
  return {};
}

Bytes RocksdbPeer::unpad(const rocksdb::Slice& stored) const {
  if (how_.load != Load::cuckoo) return to_bytes(stored);
  uint16_t length;
  std::memcpy(&length, stored.data(), length_bytes);
  return found_value(stored.data() + length_bytes, length);
}

void RocksdbPeer::pad(Bytes value, std::string* stored) const {
  uint16_t length = static_cast<uint16_t>(value.size());
  stored->assign(reinterpret_cast<const char*>(&length), length_bytes);
  stored->append(as_text(value));
  stored->resize(length_bytes + settings_.longest_value);
}

EngineConfiguration configuration(const char* name, const char* description,
                                  RocksdbOptions options) {
  EngineConfiguration c{.engine = "rocksdb", .configuration = name, .description = description};
  c.numbers_only = options.load == Load::cuckoo;
  c.make = [options](const EngineSettings& settings) {
    return std::make_unique<RocksdbPeer>(settings, options);
  };
  return c;
}

}  // namespace

std::vector<EngineConfiguration> rocksdb_configurations() {
  return {
      configuration("defaults", "default options, batches of 1,000 records, synced WAL", {}),
      configuration("ingest", "sorted files ingested, mmap, bloom filter, hash index",
                    {.load = Load::ingest}),
      configuration("ingest_merged", "ingest, and lookups in key order",
                    {.load = Load::ingest, .sorted_lookups = true}),
      configuration("cuckoo", "mapped cuckoo hash tables", {.load = Load::cuckoo}),
  };
}

std::string rocksdb_build() { return STRIDE_ROCKSDB_BUILD; }

}  // namespace stride::benchmark
