// The one seam through which all file work passes.
//
//   FileSystem& fs = FileSystem::posix();
//   Result<std::unique_ptr<File>> file = fs.open("db/000001.seg", OpenMode::create);
//   Status s = (*file)->write_at(0, bytes);
//   if (s.ok()) s = (*file)->sync();
//
// Tests put a MemoryFileSystem (storage/memory_file_system.h) in its place, which can drop, tear
// and reorder unsynced writes, fail the n-th call and fill the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/column.h"
#include "storage/status.h"

namespace stride {

enum class OpenMode : uint8_t {
  read,           // must exist; read-only
  create,         // must not exist; read and write
  create_direct,  // as create; aligned writes bypass the page cache where the file system can
  write,          // must exist; read and write
};

// Bytes [offset, offset + bytes) of a file.
struct FileRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// A read-only view of a whole file. Stays valid after the File is closed or the file removed.
// Thread-safe. What lies beyond the end of a range that is asked about is left out.
class Mapping {
 public:
  virtual ~Mapping() = default;
  Bytes bytes() const { return bytes_; }

  // Reading bytes() waits for the disk where they are not in memory yet. What follows is for those
  // who know what they are going to read; the defaults are those of a file that is always there.

  // False where reading the byte at `offset` would wait. True where the system does not say: for
  // files that this user may not write, and in some sandboxes. Costs a system call.
  virtual bool in_memory(uint64_t) const { return true; }
  // The same of all of a range; false where the system does not say.
  virtual bool all_in_memory(FileRange) const { return true; }
  // Asks for the range to be read in the background. A hint: nothing is certain, nothing waits.
  virtual void will_need(FileRange) const {}
  // Brings the ranges into memory, many reads in flight at once, and returns when they are there;
  // they stay as long as the system has room. Best in ascending order. io_error and corruption
  // (the file ends early) where they cannot be read: touching them would end the process.
  // resource_exhausted: not all was brought, and all may be read nevertheless.
  virtual Status fetch(std::span<const FileRange>) const { return {}; }
  // Between these two calls, which may nest and overlap, what is missing is read a page at a time
  // when it is touched, without its neighbours: for reads that are not in order.
  virtual void begin_random() const {}
  virtual void end_random() const {}

 protected:
  Bytes bytes_;
};

// One open file; closes when destroyed. Writes may be made from several threads at once, to
// disjoint ranges.
class File {
 public:
  // Direct writes need the pointer, offset and size to be multiples of this; others are buffered.
  static constexpr uint64_t direct_alignment = 4096;

  virtual ~File() = default;
  virtual const std::string& path() const = 0;
  // Reads exactly `out.size()` bytes; corruption where the file ends before that.
  virtual Status read_at(uint64_t offset, std::span<std::byte> out) = 0;
  // Writes all of `data`, growing the file where needed. no_space: nothing certain was written.
  virtual Status write_at(uint64_t offset, Bytes data) = 0;
  // Reserves disk space for [0, bytes) and sets the size. no_space says so before any write.
  virtual Status allocate(uint64_t bytes) = 0;
  virtual Status truncate(uint64_t bytes) = 0;
  // Returns once all data and the size are on stable storage. After a failure the state of unsynced
  // writes is unknown for good: it must not be retried.
  virtual Status sync() = 0;
  virtual Result<uint64_t> size() = 0;
  virtual Result<std::shared_ptr<const Mapping>> map() = 0;
  // Whether path() still names this file: its directory may have been moved.
  virtual bool is_in_place() const { return true; }
};

// Held while a database is open for writing; released when destroyed.
class FileLock {
 public:
  virtual ~FileLock() = default;
  // For an opening that fails: removes the lock's file where lock() has made it. The lock keeps
  // nobody out any more.
  virtual void remove_if_created() = 0;
  // Whether the path still names the file that is locked: its directory may have been moved.
  virtual bool is_in_place() const { return true; }
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // invalid_argument: it is no regular file or, unless mode is read, a symbolic link.
  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  virtual Result<bool> exists(const std::string& path) = 0;
  // Names (not paths) of a directory's entries, sorted. not_found where it is absent.
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;
  // And its parents; fine if there. Answers which of them it made, parents first.
  virtual Result<std::vector<std::string>> create_directory(const std::string& path) = 0;
  virtual Status remove(const std::string& path) = 0;
  virtual Status remove_directory(const std::string& path) = 0;  // an empty one
  // Atomic; replaces `to`.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // Gives a file another name: both are the same bytes from then on. already_exists where `to` is
  // there. unavailable: there can be no such name (`to` is of another file system, or this one has
  // no hard links); a copy has to do.
  virtual Status link(const std::string& from, const std::string& to) = 0;
  // Makes creations, removals and renames in the directory durable. resource_exhausted: it could
  // not be opened, and nothing was tried.
  virtual Status sync_directory(const std::string& directory) = 0;
  // locked: names the process that holds it, where that is known. Excludes other handles of the
  // same process too. Makes the file where it is not there; otherwise as open().
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path) = 0;
  // Whether a process, this one or another, holds the lock of the file. Changes nothing. not_found;
  // invalid_argument: it is no regular file, or a symbolic link.
  virtual Result<bool> is_locked(const std::string& path) = 0;

  static FileSystem& posix();
};

}  // namespace stride
