// The manifest: the durable log of version edits, and with it the list of tables and segments.
//
//   Result<Recovered> r = Manifest::recover(fs, "db", /*read_only=*/false);
//   VersionEdit edit;
//   edit.added.push_back({.segment = 8, .table = 1, .run = 3, .rows = n, .bytes = b});
//   Status s = r->manifest->append(edit, /*sync=*/true);   // the commit point
//
// An edit is atomic: after any crash it is there whole or not at all.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/expiry.h"
#include "storage/file.h"
#include "storage/number.h"
#include "storage/row_intervals.h"
#include "storage/status.h"

namespace stride {

inline constexpr uint32_t database_format_version = 1;

struct TableRecord {
  uint32_t id = 0;
  std::string name;        // 1 to 255 bytes of UTF-8
  uint32_t key_width = 0;  // bytes of every key; 0: any
  // 0: keys are any bytes. Else they are prefixes (storage/prefix_key.h) of addresses of so many
  // bits, or byte_strings.
  uint32_t address_bits = 0;
  bool share_equal_values = false;
  NumberType numbers = NumberType::none;  // i32, i64, f32 or f64: every value is one such number
  bool sums_wrap = false;                 // of integers; else a sum that does not fit is an error
  std::optional<ExpiryCell> expiry{};     // nothing: its rows do not end
};

struct SegmentRecord {
  uint64_t segment = 0;  // file id
  uint32_t table = 0;
  uint64_t run = 0;  // higher is newer; segments of one run have disjoint key ranges
  uint64_t rows = 0;
  uint64_t tombstones = 0;
  uint64_t bytes = 0;     // of the file
  RowIntervals erased{};  // rows that count as not there; not of a table of prefixes
  ExpiryRange expiry{};   // of its rows but tombstones, where the table's end
};

// Rows of a segment that are erased, besides those that were before.
struct ErasedRows {
  uint64_t segment = 0;
  uint32_t table = 0;
  RowInterval rows;
};

struct RenamedTable {
  uint32_t id = 0;
  std::string name;  // from now on; 1 to 255 bytes of UTF-8
};

struct LogRecord {
  uint64_t number = 0;  // of the file
  uint64_t id = 0;      // LogHeader::id[0]: no other log has it
  // The run that the rows of a sealed log will be: they are older than all runs of larger numbers,
  // and newer than all others. 0: it is not sealed, and its rows are newer than all segments.
  uint64_t run = 0;
};

struct SealedLog {
  uint64_t number = 0;
  uint64_t run = 0;
};

// Applied in this order: removed, dropped, renamed, created, added, rows erased, logs removed,
// created, sealed and synced.
struct VersionEdit {
  std::vector<TableRecord> created;
  // Tables that are there, each once. All of them give up their names before one gets its new one.
  std::vector<RenamedTable> renamed;
  std::vector<uint32_t> dropped;  // tables; their segments go with them
  std::vector<SegmentRecord> added;
  std::vector<uint64_t> removed;        // segments
  std::vector<ErasedRows> erased;       // of each segment ascending, with rows between them
  std::vector<LogRecord> created_logs;  // write-ahead logs, ascending and above all that are there
  std::vector<uint64_t> removed_logs;   // segments have what they held
  std::vector<SealedLog> sealed_logs;   // ascending; no log before them stays unsealed
  // ManifestState::synced_logs from now on; nothing: as it was.
  std::optional<uint64_t> synced_logs;
  uint64_t next_id = 0;  // file, run and table ids below are used up; 0: as it was
};

struct ManifestState {
  std::vector<TableRecord> tables;      // ascending id
  std::vector<SegmentRecord> segments;  // ascending run
  std::vector<LogRecord> logs;          // ascending, with ascending runs; then those without one
  // What the logs have before this position (LogHeader::position) was on stable storage when the
  // edit that says so was written. It tells a log whose end is damaged from one whose end a power
  // loss has taken. 0: nothing is known, or there are no logs.
  uint64_t synced_logs = 0;
  uint64_t next_id = 1;  // above every id in use, whatever the edits said
  // Whole or not at all. corruption where it does not fit (unknown table, ...). Costs as much as
  // all of the state: ManifestReplay (storage/manifest_replay.h) is for many edits.
  Status apply(const VersionEdit& edit);
};

// How far the edits of a database have come: behind those in the file of this number that end at
// the offset or before it. Later edits have larger positions, also where the manifest is rewritten.
struct ManifestPosition {
  uint64_t number = 0;
  uint64_t offset = 0;
  friend auto operator<=>(const ManifestPosition&, const ManifestPosition&) = default;
};

// One writer at a time; not thread-safe.
class Manifest {
 public:
  struct Recovered;
  // Makes a new database's MANIFEST-<n> and CURRENT in an existing directory.
  static Result<Recovered> create(FileSystem& fs, const std::string& directory,
                                  uint32_t identity = 0);
  // Reads CURRENT and the manifest that it names. What a power loss can have torn, the tail that
  // was not synced, is dropped (and, unless read_only, cut off); damage before it is corruption.
  // unsupported_version where newer. A log that has grown far past its content is rewritten, and
  // files of interrupted creations and rewritings are removed (unless read_only).
  // not_found: no database here, or one whose creation was interrupted; create() makes one.
  // invalid_argument: the directory holds other files and no database.
  static Result<Recovered> recover(FileSystem& fs, const std::string& directory, bool read_only);
  ~Manifest();

  // With `sync` the files that this edit and all edits before it name must be on stable storage,
  // and so is the edit when this returns. Without, a power loss may take the edit or its files.
  // no_space and other failed writes leave the log as it was (the torn tail is cut off), and it can
  // be tried again. A failed sync cannot: it is io_error, and every later call poisoned.
  // invalid_argument: a table name of 0 or more than 255 bytes. May throw std::bad_alloc; the edit
  // is not in the log then, unless poisoned().
  Status append(const VersionEdit& edit, bool sync);
  // Whether the log may have grown far past what it says, so that rewrite_grown() is worth a call.
  bool may_have_grown() const;
  // Puts the state into a new log where the old one has grown far past it. state: what all edits
  // say together, which must be on stable storage with their files. Where that fails, on a full
  // disk, say, the old log goes on, unless poisoned(): a power loss may leave either of them in
  // charge.
  Status rewrite_grown(const ManifestState& state);
  // Drops the log from `offset` on, where an edit of Recovered::unsynced begins.
  Status cut(uint64_t offset);
  // Nobody knows what the log holds: nothing more is written to it, and the files that the last
  // edit names must stay.
  bool poisoned() const;
  uint64_t bytes() const;
  ManifestPosition position() const;  // behind the last edit
  uint32_t identity() const;          // Recovered::identity, or what rewrite_grown() has drawn
  const std::string& path() const;

 private:
  struct State;
  explicit Manifest(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A whole manifest file that says this. invalid_argument: as append().
Result<std::vector<std::byte>> encode_manifest(uint64_t number, uint32_t identity,
                                               const ManifestState& state);

// Tells databases apart, as well as 32 random bits do. 0: the system gives no random numbers.
uint32_t draw_identity();

struct UnsyncedEdit {
  VersionEdit edit;
  uint64_t offset;  // in the log
};

struct Manifest::Recovered {
  std::unique_ptr<Manifest> manifest;  // null where read_only
  ManifestState state;                 // without `unsynced`
  // The edits after the last synced one, in order. A power loss may have taken or torn files that
  // they name: the caller looks, applies what is whole, and cuts the log before the first that is
  // not.
  std::vector<UnsyncedEdit> unsynced;
  // Draws its own when a database is made, and keeps it. 0: not known, until the log of an older
  // version is rewritten.
  uint32_t identity = 0;
  ManifestPosition end{};  // behind the last whole edit, those of `unsynced` included
};

}  // namespace stride
