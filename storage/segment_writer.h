// Writes one segment: the caller fills sections in memory, in any order and from any threads, and
// what is final goes to the disk meanwhile.
//
//   auto writer = SegmentWriter::create(fs, "db/000007.seg", 7, {.max_bytes = bound});
//   std::span<std::byte> keys = (*writer)->add_section(SectionType::key_data, 8 * rows);
//   ... fill keys[0, 4 MiB) ...
//   (*writer)->complete(keys.first(4 << 20));     // checksummed and written in the background
//   ...
//   Result<std::shared_ptr<Segment>> segment = (*writer)->finish(summary, WaitFor::sync);
//
// The image is built in (huge-page) memory and written past the page cache by a few threads, 2 MiB
// at a time. After finish() the image stays as the segment's resident memory where `keep_resident`,
// else the file is mapped. A resident image of 2 MiB and more can be written after finish() too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "storage/file.h"
#include "storage/io_threads.h"
#include "storage/segment.h"
#include "storage/segment_format.h"

namespace stride {

struct SegmentWriterOptions {
  uint64_t max_bytes = 0;  // bound on the sum of all sections; address space only until used
  bool keep_resident = true;
  std::shared_ptr<IoThreads> io = nullptr;  // null: threads of its own
};

// What has happened to the file when finish() returns.
enum class WaitFor : uint8_t {
  sync,   // it is on stable storage (and not yet its directory entry)
  write,  // it is written
  space,  // its space is reserved; Segment::finish_write() waits for the rest
};

// What the header tells about the whole. first_key and last_key are copied.
struct SegmentSummary {
  uint64_t rows = 0;
  uint64_t tombstones = 0;
  uint32_t key_width = 0;    // where fixed_keys
  uint32_t value_width = 0;  // where fixed_values
  bool fixed_keys = true;
  bool fixed_values = true;
  uint32_t key_delta_width = 0;  // PackedOffsets::delta_width, where variable
  uint32_t value_delta_width = 0;
  // Where rows share values: the rows of the value column, and what its sections would have if each
  // row had its own. 0: each has.
  uint64_t distinct_values = 0;
  uint64_t unshared_bytes = 0;
  Bytes first_key{}, last_key{};
};

class SegmentWriter {
 public:
  static Result<std::unique_ptr<SegmentWriter>> create(FileSystem& fs, const std::string& path,
                                                       uint64_t id, SegmentWriterOptions options);
  // A segment that stays in memory and has no file: finish() writes nothing.
  static Result<std::unique_ptr<SegmentWriter>> create_in_memory(uint64_t max_bytes);
  // Stops the background writes and removes the file, unless finish() succeeded.
  ~SegmentWriter();

  // Zero-filled and 64-byte aligned; valid until finish(). Each type at most once. Not thread-safe.
  std::span<std::byte> add_section(SectionType type, uint64_t bytes);
  // These bytes of a section are final. Thread-safe; ranges may come in any order and must not
  // overlap. What was not completed by finish() is taken as final then.
  void complete(std::span<const std::byte> range);
  // Writes what is left, the tables and the footer. Once.
  Result<std::shared_ptr<Segment>> finish(const SegmentSummary& summary, WaitFor wait);

 private:
  struct State;
  explicit SegmentWriter(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // the segment has it too, while it is being written
};

}  // namespace stride
