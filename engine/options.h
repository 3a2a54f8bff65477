// What an application may set. The defaults are meant to be good: no option needs tuning.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/tree_options.h"
#include "storage/number.h"
#include "storage/prefix_key.h"
#include "storage/schema.h"

namespace stride {

class Backend;
class EventListener;
class FileSystem;
class Logger;

// What a commit has survived once it returned.
enum class Durability : uint8_t {
  sync,   // power loss
  flush,  // the end of this process, however it comes
  none,   // Database::close()
};

// What executes batches.
enum class BackendKind : uint8_t {
  automatic,  // a CUDA device where there is one and a batch is large enough, else the host
  host,
  cuda,  // opening fails with `unavailable` where there is no device
};

// Where the values of segments that are resident on a device are kept besides the files.
enum class ValuePlacement : uint8_t {
  host,    // in host memory alone: the host gathers them
  device,  // on the device too, as far as its memory allows
};

struct Options {
  bool create_if_missing = true;
  bool error_if_exists = false;
  // Another process may write meanwhile: what it commits is seen after Database::refresh().
  bool read_only = false;
  Durability durability = Durability::sync;  // of commits that do not name one
  unsigned threads = 0;                      // for batches; 0: one for each core
  // Memtables and recently written segments stay in memory up to this many bytes in all; what is
  // older is read through the page cache. A batch that is larger becomes several segments, of an
  // eighth of it each (16 MiB at least), so that no more is in memory at once than that and the
  // batch itself. 0: half of the machine's memory, or of what a control group leaves of it.
  uint64_t memory_limit_bytes = 0;
  // Small commits go to a log and stay in memory, up to this many bytes in all, and a quarter of
  // memory_limit_bytes (1 MiB at least); half of them, or
  // half of what segments have where that is less (4 MiB at least), become a segment at a time.
  // Commits of more than an eighth of it, or of 4 MiB, make a segment at once, as do all where it
  // is 0.
  uint64_t memtable_bytes = 128 << 20;
  // The ranges of a commit that cover more stored keys of a table erase them in place, whatever
  // their number: with a note in the manifest for each segment that they cut. Of fewer, each key
  // gets a tombstone, as a small change like others.
  uint64_t max_range_tombstones = 4096;
  // Threads of the database make the segments, and merge them where there are many. False: the
  // commit that fills a memtable makes the segment, and only compact() merges.
  bool background_work = true;
  TreeOptions tree{};  // of segments written from now on
  BackendKind backend = BackendKind::automatic;
  // Limits the device's memory: resident segments and what batches need on their way, together; of
  // several devices that of each.
  // invalid_argument at open where that is less than 256 MiB. 0: nine tenths of what is free.
  uint64_t gpu_memory_limit_bytes = 0;
  // The numbers of the devices that are used where `backend` says so. Several of them each have a
  // copy of what is resident, and share batches (docs/gpus.md); where one fails the others go on.
  // Empty: the first device of the machine and all others of its model. invalid_argument at open: a
  // number that comes twice, or that no device has.
  std::vector<int> devices{};
  ValuePlacement value_placement = ValuePlacement::host;
  // Null: a backend of its own, as the options above say. Else this one, which may serve several
  // databases; `threads`, `backend`, `devices` and `gpu_memory_limit_bytes` are not looked at then.
  // What makes one (gpu/backend.h) is not installed: it is for programs in StrideDB's source tree,
  // and so are file systems (storage/file.h).
  std::shared_ptr<Backend> shared_backend = nullptr;
  FileSystem* file_system = nullptr;  // null: FileSystem::posix(). Must outlive the database.
  // Who is told what the database does by itself (engine/event_listener.h). Null: nobody.
  std::shared_ptr<EventListener> event_listener = nullptr;
  // Where the same is written (engine/logger.h). Null: to the file LOG in the database's directory,
  // of 1 MiB at most, beside which there is LOG.old, the one before; but not with log_file false,
  // of a handle that is read_only, or where file_system is set.
  std::shared_ptr<Logger> logger = nullptr;
  bool log_file = true;
  // The time by which rows have ended (TableOptions::expiry_column), in microseconds since
  // 1970-01-01 UTC; called from any thread, and throws nothing. What goes back is taken for the
  // latest time that it has told. Null: the system's clock.
  std::function<int64_t()> clock = nullptr;
};

// What becomes of a sum of integers that does not fit (WriteTransaction::accumulate).
enum class Overflow : uint8_t {
  error,  // the commit fails, and nothing of it is there
  wrap,   // two's complement
};

struct TableOptions {
  uint32_t key_width = 0;  // every key has this many bytes (1 to 65,535); 0: any length
  // A prefix table (engine/prefixes.h): keys are prefixes of addresses of so many bits (1 to
  // 65,535), or, with byte_strings, of strings. key_width is 0 then; it follows from this.
  uint32_t address_bits = 0;
  // A segment of the table keeps one of equal values (the same bytes), and for each row the number
  // of its value, of 1, 2 or 4 bytes: smaller where values repeat within a commit or, once it is
  // compacted, within the table. Segments that this would not make smaller are written as ever.
  // Commits and compactions look for equal values, and scans copy values instead of handing out the
  // stored ones. Values stay in host memory, whatever ValuePlacement says. It cannot be changed
  // later, and older versions refuse a database with such a table (unsupported_version).
  bool share_equal_values = false;
  // A table of numbers: every value is one of this type, of 4 or 8 bytes, little-endian, and
  // WriteTransaction::accumulate adds to it. i32, i64, f32 or f64; none: values are any bytes. It
  // cannot be changed later, and older versions refuse a database with such a table
  // (unsupported_version).
  NumberType numbers = NumberType::none;
  Overflow overflow = Overflow::error;  // of i32 and i64
  // The columns of the table: values are rows of them (storage/row_format.h, engine/row_columns.h).
  // It is kept in the table `.stride` of the same database, cannot be changed later, and tables of
  // numbers have none. Empty: values are bytes.
  Schema schema{};
  // The value column of the schema that says when a row ends: a timestamp, one element. From then
  // on a snapshot that is taken finds no such row, nor anything older of its key, and it leaves the
  // files when they are compacted. A row whose cell is null does not end. Empty: no row does. It
  // cannot be changed later, prefix tables have none, and older versions refuse a database with
  // such a table (unsupported_version).
  std::string expiry_column{};
  // Rows that are put with a null there end so long after that, in microseconds; the cell is set.
  // Needs an expiry_column that is nullable. 0: they do not end.
  int64_t time_to_live = 0;
};

}  // namespace stride
