// Copies files, and checks what it copies on the way: what is written is what was checked.
//
//   Result<FileSource> from = FileSource::open(fs, "db/000007.seg");
//   Result<SegmentSums> sums = read_segment_sums(*from, 7);
//   Status s = copy_segment(*from, *sums, fs, "copy/000007.seg");   // synced, all blocks checked
//
// The calling thread's WorkWatch sees the bytes that are written, and stops a copy between pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/file.h"
#include "storage/status.h"

namespace stride {

// The bytes of a file: of an open one, or of one that is mapped and may have lost its name.
class FileSource {
 public:
  static Result<FileSource> open(FileSystem& fs, const std::string& path);
  // mapping: must outlive this.
  FileSource(std::string path, const Mapping& mapping)
      : path_(std::move(path)), mapping_(&mapping), bytes_(mapping.bytes().size()) {}

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  Status read_at(uint64_t offset, std::span<std::byte> out) const;

 private:
  FileSource(std::unique_ptr<File> file, uint64_t bytes)
      : path_(file->path()), file_(std::move(file)), bytes_(bytes) {}

  std::string path_;
  std::unique_ptr<File> file_;  // null: mapping_ is not
  const Mapping* mapping_ = nullptr;
  uint64_t bytes_;
};

// What tells the content of a segment's file from any other.
struct SegmentSums {
  uint64_t bytes = 0;            // of the file
  uint64_t checksum = 0;         // of its footer, which has the sum of what follows
  std::vector<uint64_t> blocks;  // the checksums of the blocks before the tables
  uint64_t tables_offset = 0;
  uint64_t tables_checksum = 0;
};

// Reads the footer and the tables, and checks them. corruption, unsupported_version.
Result<SegmentSums> read_segment_sums(const FileSource& from, uint64_t id);

// Makes the file `to` and syncs it; where that fails, removes it. already_exists: it is there.
// corruption, with the offset, where a block does not match its checksum.
Status copy_segment(const FileSource& from, const SegmentSums& sums, FileSystem& fs,
                    const std::string& to);
// The same, as a segment of another id, so that another database can have it: the id stands in the
// header and the footer, and the copy's checksums are of what it has there. Every block is checked
// against the checksums that `from` has.
Status copy_segment_as(uint64_t id, const FileSource& from, const SegmentSums& sums, FileSystem& fs,
                       const std::string& to);

// The checksum of the checksums of a file's blocks of 64 KiB, for files that have none of their
// own.
Result<uint64_t> file_checksum(const FileSource& from);
// As copy_segment(). corruption: the file has another checksum.
Status copy_file(const FileSource& from, uint64_t checksum, FileSystem& fs, const std::string& to);

}  // namespace stride
