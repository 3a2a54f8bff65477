// What a database has done since it was opened, and the state that it is in, as numbers, and as the
// text that Prometheus reads.
//
//   Metrics metrics = database->metrics();
//   if (metrics.state.debt_bytes > (10ull << 30)) warn("merges do not keep up");
//   respond("text/plain; version=0.0.4", prometheus_text(metrics));  // of an application's
//   endpoint
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/options.h"
#include "storage/export.h"
#include "storage/number.h"

namespace stride {

struct TableStatistics {
  std::string name;
  uint32_t key_width = 0;
  uint32_t address_bits = 0;  // of a prefix table; 0: an ordinary one
  bool share_equal_values = false;
  NumberType numbers = NumberType::none;
  Overflow overflow = Overflow::error;
  uint64_t runs = 0;
  uint64_t segments = 0;
  uint64_t rows = 0;           // stored entries, tombstones and superseded ones included
  uint64_t erased_rows = 0;    // not of these: ranges have erased them, and they are still in files
  uint64_t memtable_rows = 0;  // of these: in the log and in memory, and in no segment yet
  uint64_t stored_values = 0;  // of the rows; fewer where they share equal ones
  uint64_t saved_bytes = 0;    // of bytes_on_disk, by sharing them
  uint64_t filter_bytes = 0;   // of bytes_on_disk: what spares searches of newer runs
  uint64_t bytes_on_disk = 0;
  uint64_t reclaimable_bytes = 0;  // of these: about what the erased rows take
  uint64_t resident_bytes = 0;
  uint64_t device_bytes = 0;  // of the memory of a device
};

// How long calls took, in seconds, from a histogram whose buckets are at most a sixteenth of their
// value wide, as those of HdrHistogram (Tene, hdrhistogram.org): each percentile is the upper end
// of its bucket, so up to 6.25 % above the exact one and never below. What takes longer than 68 s
// counts as 68 s.
struct LatencyMetrics {
  uint64_t count = 0;  // of the calls that were measured
  double sum_s = 0;    // of these
  double p50_s = 0, p90_s = 0, p99_s = 0, p999_s = 0;
  double max_s = 0;
};

// Calls of the public interface since the database was opened, also those of StrideDB's own helpers
// (group_by(), DedupTable, schemas). Calls on threads that have ended count on. What other threads
// do meanwhile is counted up to about now.
struct OperationMetrics {
  // Of single keys (Snapshot::get): calls, keys that were there, and bytes of their values.
  uint64_t gets = 0;
  uint64_t get_found = 0;
  uint64_t get_bytes = 0;
  // Of columns of keys (Snapshot::get, find and their forms for devices): calls, keys, keys that
  // were there, and bytes of the value columns that get() has copied. What stays on a device counts
  // as calls and keys alone.
  uint64_t batch_gets = 0;
  uint64_t batch_keys = 0;
  uint64_t batch_found = 0;
  uint64_t batch_bytes = 0;
  // Keys and addresses of batches that a device has searched, wholly or in part, also for commits
  // that look up what is there. The host has searched all others.
  uint64_t device_keys = 0;
  uint64_t lower_bounds = 0;  // keys; upper bounds and previous entries count, too
  // Scans (Snapshot::scan, iterate and inside) that were begun, and the rows and bytes of keys and
  // values that they have handed out. An Iterator takes rows in batches ahead of its reader.
  uint64_t scans = 0;
  uint64_t scan_rows = 0;
  uint64_t scan_bytes = 0;
  // Longest prefixes (Snapshot::match): addresses, and those that a prefix covers.
  uint64_t match_addresses = 0;
  uint64_t match_found = 0;
  // Commits that have changed something: small ones, through the log, and large ones, which make a
  // run, or change tables. Rows are what was staged: a range counts as one.
  uint64_t small_commits = 0;
  uint64_t large_commits = 0;
  uint64_t failed_commits = 0;
  uint64_t committed_rows = 0;   // of commits that have not failed
  uint64_t committed_bytes = 0;  // of their keys and values
  // Of one in 128 single gets of each thread; of all commits that have not failed.
  LatencyMetrics get_latency;
  LatencyMetrics commit_latency;
};

// What the database has done by itself since it was opened. Failures are those that were not the
// database's own end.
struct WorkMetrics {
  uint64_t log_bytes = 0;  // of frames of the write-ahead log
  uint64_t log_syncs = 0;
  uint64_t bulk_bytes = 0;  // of the runs that large commits have made
  uint64_t flushes = 0;     // of memtables
  uint64_t failed_flushes = 0;
  uint64_t flush_memory_bytes = 0;  // of these memtables
  uint64_t flush_bytes = 0;         // of the runs that they have become
  double flush_s = 0;
  uint64_t compactions = 0;
  uint64_t failed_compactions = 0;
  uint64_t compaction_read_bytes = 0;
  uint64_t compaction_bytes = 0;  // written
  double compaction_s = 0;        // of all threads together
  // Commits that had to wait because flushes or merges did not keep up, a millisecond or longer.
  uint64_t stalls = 0;
  double stall_s = 0;
  uint64_t device_copies = 0;     // segments that were copied to a device
  uint64_t device_evictions = 0;  // and that have left it for want of room, or because it failed
  uint64_t events = 0;            // told to listener and log
  uint64_t dropped_events = 0;    // that a slow listener has missed
};

struct StateMetrics {
  std::vector<TableStatistics> tables;
  uint64_t runs = 0;  // of all tables, as all that follows
  uint64_t segments = 0;
  uint64_t rows = 0;            // stored entries, as TableStatistics::rows
  uint64_t memtable_rows = 0;   // of these
  uint64_t segment_bytes = 0;   // of files
  uint64_t log_bytes = 0;       // of the files of the write-ahead log
  uint64_t size_bytes = 0;      // Database::size_bytes()
  uint64_t memtable_bytes = 0;  // of memory, those that are sealed too
  uint64_t sealed_memtables = 0;
  // What the threads of the database have before them: memtables that are sealed, and the runs that
  // the merges which are due would read.
  uint64_t debt_bytes = 0;
  uint64_t resident_bytes = 0;   // segments in memory besides the page cache
  uint64_t device_segments = 0;  // that lie on a device
  uint64_t device_bytes = 0;
  // Bytes written to log and segments for each byte of the rows committed since the database was
  // opened; 0: none was.
  double write_amplification = 0;
  // Bytes of all segments for each byte of the tables' oldest runs, erased rows left out: about how
  // many times larger than its live content the database is. 0: there are no segments.
  double space_amplification = 0;
  bool poisoned = false;  // nothing more is written through this handle
  bool read_only = false;
};

struct Metrics {
  OperationMetrics operations;
  WorkMetrics work;
  StateMetrics state;
};

enum class MetricsPart : uint8_t {
  all,
  state,  // Metrics::state alone: of a database that this process has just opened, say
};

// Prometheus' text format, version 0.0.4: families with HELP and TYPE, whose names begin with
// `stride_`, in seconds and bytes. Counters end with `_total`, latencies are summaries, and what is
// told of each table has the label `table`, escaped; a byte of a name that is no UTF-8 is
// shown as \xff.
STRIDE_API std::string prometheus_text(const Metrics& metrics, MetricsPart part = MetricsPart::all);

}  // namespace stride
