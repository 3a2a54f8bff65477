#include "benchmark/peers/lmdb_peer.h"

#include <lmdb.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "benchmark/harness/parallel.h"
#include "benchmark/harness/sorted_rows.h"
#include "benchmark/harness/value_refs.h"
#include "storage/prefetch.h"

namespace stride::benchmark {
namespace {

struct LmdbOptions {
  bool append = false;          // sorted bulk load; defaults otherwise
  bool sorted_lookups = false;  // queries in key order, through one cursor a core
};

// Fewer lookups than this are not worth another core.
constexpr uint64_t min_lookups = 128;

Status from_lmdb(int code, const char* what) {
  if (code == MDB_SUCCESS) return {};
  std::string message = std::string("LMDB: ") + what + ": " + mdb_strerror(code);
  return Status(
      code == MDB_MAP_FULL || code == ENOSPC ? StatusCode::no_space : StatusCode::io_error,
      std::move(message));
}
#define TRY_LMDB(call, what) STRIDE_TRY(from_lmdb((call), (what)))

Bytes to_bytes(const MDB_val& v) { return found_value(v.mv_data, v.mv_size); }

// A read transaction and a cursor, for one thread at a time.
struct Reader {
  MDB_txn* transaction = nullptr;
  MDB_cursor* cursor = nullptr;
};

class LmdbPeer : public EngineUnderTest {
 public:
  LmdbPeer(const EngineSettings& settings, LmdbOptions options)
      : settings_(settings),
        options_(options),
        integer_keys_(options.append && settings.key_width == sizeof(size_t)),
        parallel_(settings.threads) {}
  ~LmdbPeer() override { (void)close(); }

  Status open() override;
  Status write(const Records& records) override;
  Status read(ReadCheck& check) override { return read_all(check); }
  Status read(FullCheck& check) override { return read_all(check); }
  Status lookup(const KeyColumn& queries, LookupResult* result) override;
  Status close() override;

 private:
  unsigned environment_flags() const;
  Status put_flow(const Flow& flow);
  Status append_all(const Records& records);
  Status append_rows(MDB_txn* transaction, const Records& records,
                     const ResultBuffer<SortedRow>& rows, uint64_t n);
  Status refresh_readers();
  void drop_readers();
  Status find(const KeyColumn& queries);
  Status find_sorted(const KeyColumn& queries);
  template <class Check>
  Status read_all(Check& check);

  EngineSettings settings_;
  LmdbOptions options_;
  bool integer_keys_;  // native 64-bit numbers, which LMDB compares without a call to memcmp
  Parallel parallel_;
  MDB_env* environment_ = nullptr;
  MDB_dbi database_ = 0;
  std::vector<Reader> readers_;  // one for each part of a batch
  ResultBuffer<SortedRow> sorted_;
  ResultBuffer<Bytes> found_;
};

// The key as LMDB gets it; `number` is where an integer key is kept.
MDB_val key_of(Bytes key, bool integer, uint64_t* number) {
  if (integer) {
    *number = key_prefix(key);
    return {sizeof(*number), number};
  }
  return {key.size(), const_cast<std::byte*>(key.data())};
}

MDB_val value_of(Bytes value) { return {value.size(), const_cast<std::byte*>(value.data())}; }

unsigned LmdbPeer::environment_flags() const {
  unsigned flags = MDB_NOTLS;  // readers belong to parts of a batch, not to threads
  if (options_.append) flags |= MDB_WRITEMAP | MDB_NOSYNC | MDB_NOMETASYNC;
  if (settings_.durability != Durability::sync) flags |= MDB_NOSYNC;
  return flags;
}

Status LmdbPeer::open() {
  TRY_LMDB(mdb_env_create(&environment_), "mdb_env_create");
  // Room for pages that are half empty and for the copies that a transaction makes.
  size_t map_bytes = (size_t{1} << 30) + 4 * (settings_.bytes + 64 * settings_.records);
  TRY_LMDB(mdb_env_set_mapsize(environment_, map_bytes & ~size_t{0xFFFF}), "mdb_env_set_mapsize");
  TRY_LMDB(mdb_env_set_maxreaders(environment_, parallel_.max_parts() + 16), "maxreaders");
  TRY_LMDB(mdb_env_open(environment_, settings_.directory.c_str(), environment_flags(), 0644),
           "mdb_env_open");
  MDB_txn* transaction = nullptr;
  TRY_LMDB(mdb_txn_begin(environment_, nullptr, 0, &transaction), "mdb_txn_begin");
  int code = mdb_dbi_open(transaction, nullptr, integer_keys_ ? MDB_INTEGERKEY : 0, &database_);
  if (code != MDB_SUCCESS) {
    mdb_txn_abort(transaction);
    return from_lmdb(code, "mdb_dbi_open");
  }
  return from_lmdb(mdb_txn_commit(transaction), "mdb_txn_commit");
}

Status LmdbPeer::close() {
  drop_readers();
  if (environment_ != nullptr) {
    if (settings_.durability != Durability::sync) mdb_env_sync(environment_, 1);
    mdb_env_close(environment_);
  }
  environment_ = nullptr;
  return {};
}

Status LmdbPeer::write(const Records& records) {
  drop_readers();
  if (!options_.append) {
    return write_flows(records, [this](const Flow& flow) { return put_flow(flow); });
  }
  STRIDE_TRY(append_all(records));
  if (settings_.durability != Durability::sync) return {};
  return from_lmdb(mdb_env_sync(environment_, 1), "mdb_env_sync");
}

Status LmdbPeer::put_flow(const Flow& flow) {
  MDB_txn* transaction = nullptr;
  TRY_LMDB(mdb_txn_begin(environment_, nullptr, 0, &transaction), "mdb_txn_begin");
  for (uint64_t i = 0; i < flow.keys.size; ++i) {
    MDB_val key = key_of(flow.keys[i], false, nullptr);
    MDB_val value = value_of(flow.values[i]);
    if (int code = mdb_put(transaction, database_, &key, &value, 0); code != MDB_SUCCESS) {
      mdb_txn_abort(transaction);
      return from_lmdb(code, "mdb_put");
    }
  }
  return from_lmdb(mdb_txn_commit(transaction), "mdb_txn_commit");
}

Status LmdbPeer::append_all(const Records& records) {
  ResultBuffer<SortedRow> rows;
  sort_rows(records, &parallel_, &rows);
  uint64_t n = keep_last_of_equal(records, &rows);
  MDB_txn* transaction = nullptr;
  TRY_LMDB(mdb_txn_begin(environment_, nullptr, 0, &transaction), "mdb_txn_begin");
  if (Status status = append_rows(transaction, records, rows, n); !status.ok()) {
    mdb_txn_abort(transaction);
    return status;
  }
  return from_lmdb(mdb_txn_commit(transaction), "mdb_txn_commit");
}

Status LmdbPeer::append_rows(MDB_txn* transaction, const Records& records,
                             const ResultBuffer<SortedRow>& rows, uint64_t n) {
  MDB_cursor* cursor = nullptr;
  TRY_LMDB(mdb_cursor_open(transaction, database_, &cursor), "mdb_cursor_open");
  int code = MDB_SUCCESS;
  constexpr uint64_t ahead = 16;  // values are read in key order, which is none in memory
  for (uint64_t i = 0; i < n && code == MDB_SUCCESS; ++i) {
    if (i + ahead < n) prefetch(records.value(rows[i + ahead].row).data());
    uint64_t number = rows[i].prefix;
    MDB_val key = integer_keys_ ? MDB_val{sizeof(number), &number}
                                : key_of(records.key(rows[i].row), false, nullptr);
    MDB_val value = value_of(records.value(rows[i].row));
    code = mdb_cursor_put(cursor, &key, &value, MDB_APPEND);
  }
  mdb_cursor_close(cursor);
  return from_lmdb(code, "mdb_cursor_put");
}

template <class Check>
Status LmdbPeer::read_all(Check& check) {
  STRIDE_TRY(refresh_readers());
  MDB_cursor* cursor = readers_[0].cursor;
  Check local = check;
  MDB_val key, value;
  int code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
  for (; code == MDB_SUCCESS; code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
    if (integer_keys_) {
      uint64_t number;
      std::memcpy(&number, key.mv_data, sizeof(number));
      local.record(number, to_bytes(value));
    } else {
      local.record(Bytes{static_cast<const std::byte*>(key.mv_data), key.mv_size}, to_bytes(value));
    }
  }
  check = local;
  return code == MDB_NOTFOUND ? Status() : from_lmdb(code, "mdb_cursor_get");
}

// Read transactions are kept open between batches, as there is no write between them.
Status LmdbPeer::refresh_readers() {
  if (!readers_.empty()) return {};
  readers_.resize(parallel_.max_parts());
  for (Reader& reader : readers_) {
    TRY_LMDB(mdb_txn_begin(environment_, nullptr, MDB_RDONLY, &reader.transaction),
             "mdb_txn_begin");
    TRY_LMDB(mdb_cursor_open(reader.transaction, database_, &reader.cursor), "mdb_cursor_open");
  }
  return {};
}

void LmdbPeer::drop_readers() {
  for (Reader& reader : readers_) {
    if (reader.cursor != nullptr) mdb_cursor_close(reader.cursor);
    if (reader.transaction != nullptr) mdb_txn_abort(reader.transaction);
  }
  readers_.clear();
}

Status LmdbPeer::lookup(const KeyColumn& queries, LookupResult* result) {
  STRIDE_TRY(refresh_readers());
  found_.reset(queries.size);
  STRIDE_TRY(options_.sorted_lookups && queries.size > 1 ? find_sorted(queries) : find(queries));
  gather_values(found_, &parallel_, result);
  return {};
}

Status LmdbPeer::find(const KeyColumn& queries) {
  std::atomic<int> failure{MDB_SUCCESS};
  parallel_.for_parts(queries.size, min_lookups, [&](unsigned part, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      uint64_t number;
      MDB_val key = key_of(queries[i], integer_keys_, &number), value;
      int code = mdb_get(readers_[part].transaction, database_, &key, &value);
      found_[i] = code == MDB_SUCCESS ? to_bytes(value) : not_found_value;
      if (code != MDB_SUCCESS && code != MDB_NOTFOUND) failure = code;
    }
  });
  return from_lmdb(failure, "mdb_get");
}

Status LmdbPeer::find_sorted(const KeyColumn& queries) {
  sort_rows(queries, &parallel_, &sorted_);
  std::atomic<int> failure{MDB_SUCCESS};
  parallel_.for_parts(queries.size, min_lookups, [&](unsigned part, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      uint32_t row = sorted_[i].row;
      uint64_t number = sorted_[i].prefix;
      MDB_val key =
          integer_keys_ ? MDB_val{sizeof(number), &number} : key_of(queries[row], false, nullptr);
      MDB_val value;
      // MDB_SET first looks into the page that the cursor is on.
      int code = mdb_cursor_get(readers_[part].cursor, &key, &value, MDB_SET);
      found_[row] = code == MDB_SUCCESS ? to_bytes(value) : not_found_value;
      if (code != MDB_SUCCESS && code != MDB_NOTFOUND) failure = code;
    }
  });
  return from_lmdb(failure, "mdb_cursor_get");
}

EngineConfiguration configuration(const char* name, const char* description, LmdbOptions options) {
  EngineConfiguration c{.engine = "lmdb", .configuration = name, .description = description};
  c.make = [options](const EngineSettings& settings) {
    return std::make_unique<LmdbPeer>(settings, options);
  };
  return c;
}

}  // namespace

std::vector<EngineConfiguration> lmdb_configurations() {
  return {
      configuration("defaults", "a transaction for each flow, one after the other", {}),
      configuration("append", "sorted append into a writable map, integer keys, one sync",
                    {.append = true}),
      configuration("append_merged", "append, and lookups in key order through cursors",
                    {.append = true, .sorted_lookups = true}),
  };
}

}  // namespace stride::benchmark
