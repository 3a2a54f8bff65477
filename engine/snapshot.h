// The database as it was at one moment, for as long as the snapshot lives. The moment also fixes
// the time by which rows have ended (TableOptions::expiry_column).
//
//   Snapshot s = database->snapshot();
//   Result<std::optional<Bytes>> one = s.get(table, "key");       // a view, no copy
//   GetResult many;                                               // reuse it: it keeps its memory
//   Status status = s.get(table, keys, &many);                    // one contiguous value column
//   if (many.found[7]) use(many.values[7]);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/cursor.h"
#include "engine/lookup_result.h"
#include "engine/row_columns.h"
#include "engine/scan.h"
#include "engine/table.h"
#include "gpu/location.h"
#include "storage/column.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

enum class KeyBound : uint8_t;
class OperationCounters;
class SnapshotState;
struct SnapshotVersion;
struct Version;

// Thread-safe and cheap to copy. Readers never wait for writers. Every call returns not_found for
// a table that is not in the snapshot and corruption where it met damaged bytes. Keys longer than
// a table can hold are just not found.
class STRIDE_API Snapshot {
 public:
  // The table that had the name then, also where it has another one now or is dropped. not_found.
  Result<Table> open_table(const std::string& name) const;
  Result<std::optional<Bytes>> get(const Table& table, Bytes key) const;
  Result<std::optional<Bytes>> get(const Table& table, std::string_view key) const {
    return get(table, as_bytes(key));
  }
  Status find(const Table& table, const KeyColumn& queries, FindResult* result) const;
  Status get(const Table& table, const KeyColumn& queries, GetResult* result) const;
  // Queries and results in the memory of the device that the database uses (Options::backend), for
  // callers that go on there. Both start work on a stream (a cudaStream_t) and return: a call that
  // comes after on that stream sees the results. Queries and results must live until then, the
  // snapshot need not. With a null stream they return when the work is done. unavailable: there is
  // no device, the table (for get_device with all its values: ValuePlacement::device) does not fit
  // there, or ranges have erased rows of it in place, or rows of it have ended, and it was not
  // compacted since.
  //
  // out: queries.size locations; those of one snapshot mean the same in all its calls, and
  // FindResult::columns has the columns that their indexes count.
  Status find_device(const Table& table, const KeyColumn& queries, Location* out,
                     void* stream) const;
  Status get_device(const Table& table, const KeyColumn& queries, const DeviceValues& out,
                    void* stream) const;
  // Makes keys in the device's memory of a table's key columns there, for the two calls above on
  // the same stream: columns[i] has the cells of key column i. keys: columns[0].size times the
  // table's key_width() bytes. invalid_argument: cells of another width, or that may be null,
  // or keys that have no width.
  Status make_keys_device(const Table& table, std::span<const CellColumn> columns, std::byte* keys,
                          void* stream) const;
  // The entry next to each query: the first one that is not below it, the first one above it, or
  // the last one that is not above it (what RocksDB's SeekForPrev finds).
  Status lower_bound(const Table& table, const KeyColumn& queries, LowerBoundResult* result) const;
  Status upper_bound(const Table& table, const KeyColumn& queries, LowerBoundResult* result) const;
  Status previous(const Table& table, const KeyColumn& queries, LowerBoundResult* result) const;
  // For prefix tables (engine/prefixes.h); invalid_argument for other tables and for addresses of
  // another width than the table's, in host memory.
  //
  // The longest prefix of each address. The first call after a database was opened, or for a
  // snapshot that is older than another call, builds what is searched: about as much work as to
  // read all keys of the table. Commits then keep it up to date.
  Status match(const Table& table, const KeyColumn& addresses, MatchResult* result) const;
  Result<std::optional<PrefixEntry>> match(const Table& table, Bytes address) const;
  // As find_device(), where the longest prefix of each address lies; MatchResult::keys and
  // ::columns have the columns that the locations' indexes count. Addresses are a column of the
  // table's width. unavailable, too: addresses are byte strings or have more than 128 bits.
  Status match_device(const Table& table, const KeyColumn& addresses, Location* out,
                      void* stream) const;
  // As get_device(), the rows of `count` locations that a call of this snapshot has left in the
  // device's memory, or that an earlier call on the same stream leaves there.
  Status rows_device(const Table& table, const Location* locations, uint64_t count,
                     const GatheredRows& out, void* stream) const;
  // All prefixes of an address, the shortest first.
  Result<std::vector<PrefixEntry>> match_all(const Table& table, Bytes address) const;
  // A prefix, if it is there, and all prefixes inside it, in the order of keys.
  Result<Scan> inside(const Table& table, Bytes prefix_key) const;

  Result<Scan> scan(const Table& table, const ScanOptions& options = {}) const;
  Result<Iterator> iterate(const Table& table, const ScanOptions& options = {}) const;
  // Goes both ways from any key (engine/cursor.h).
  Result<Cursor> cursor(const Table& table, const CursorOptions& options = {}) const;
  // Keys in the table.
  Result<uint64_t> count(const Table& table) const;
  // Keys from `from` on and below `to`; nullopt: no bound. Takes two searches where one run alone
  // has rows there and no tombstones; else each row of newer runs and of the memtable is looked at.
  Result<uint64_t> count(const Table& table, std::optional<Bytes> from,
                         std::optional<Bytes> to) const;
  // The same for many ranges: counts[i] becomes how many keys there are from from[i] on and below
  // to[i]. invalid_argument: not all three are of one size.
  Status count(const Table& table, const KeyColumn& from, const KeyColumn& to,
               std::span<uint64_t> counts) const;

 private:
  friend class Database;
  friend struct SnapshotVersion;
  Snapshot(std::shared_ptr<const Version> version, uint32_t commit, int64_t now) noexcept;
  // Calls read(table's version), and reports a lack of memory in it or on the way.
  template <class Read>
  auto read_table(const Table& table, const Read& read) const;
  template <class Read>
  auto read_prefixes(const Table& table, const Read& read) const;

  // Calls read(sources), for so many searches.
  template <class Read>
  Status read_sorted(const Table& table, uint64_t searches, const Read& read) const;
  Status find_bounds(const Table& table, const KeyColumn& queries, KeyBound bound,
                     LowerBoundResult* result) const;

  std::shared_ptr<const Version> pin() const;

  const std::shared_ptr<const Version>& version() const;
  OperationCounters& counters() const;

  // The version where it has all rows or, as all calls say then, there was no memory for the state;
  // else null, and the state holds it.
  std::shared_ptr<const Version> version_;
  std::shared_ptr<const SnapshotState> state_;
  bool lacks_memory_ = false;
};

}  // namespace stride
