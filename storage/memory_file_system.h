// A file system in memory: for databases that need not last, and for tests of those that must.
//
//   MemoryFileSystem fs;
//   ... write a database through it ...
//   fs.fail_call(3, StatusCode::io_error);              // the third call from now
//   std::unique_ptr<MemoryFileSystem> after = fs.crash(seed, CrashPolicy::random);
//   ... recover from what a power loss would have left ...
//
// It tells what is on stable storage from what is not: a file's writes and size are, after sync()
// of the file; a creation, removal or renaming is, after sync_directory() of its directory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/file.h"

namespace stride {

// What a power loss leaves of that which was not synced.
enum class CrashPolicy : uint8_t {
  lose_unsynced,  // nothing
  keep_unsynced,  // everything
  // Each file keeps nothing, everything, a prefix of the writes, or any of them out of order; the
  // last or each of them may be torn: a prefix, or any of its 512-byte sectors. Any of the
  // directory entries are kept.
  random,
};

struct MemoryFileSystemOptions {
  // Keeps what crash() needs: a second copy of each file. A database that need not last has no use
  // for it; crash() then keeps everything.
  bool crashable = true;
};

// Thread-safe. Its files, locks and mappings may outlive it.
class MemoryFileSystem final : public FileSystem {
 public:
  explicit MemoryFileSystem(MemoryFileSystemOptions options = {});
  ~MemoryFileSystem() override;

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<bool> exists(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Result<std::vector<std::string>> create_directory(const std::string& path) override;
  Status remove(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status link(const std::string& from, const std::string& to) override;
  Status sync_directory(const std::string& directory) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override;
  Result<bool> is_locked(const std::string& path) override;

  // What a machine finds that lost its power now. All of it is on stable storage, and no file is
  // locked; this file system goes on untouched. The same seed gives the same outcome.
  std::unique_ptr<MemoryFileSystem> crash(uint64_t seed, CrashPolicy policy) const;

  // The n-th changing call from now fails (1: the next one): create, write, allocate, truncate,
  // sync, remove, rename, link, sync_directory, create_directory, remove_directory. A failed write
  // has written half of its bytes; a failed sync has synced some writes and lost the others for
  // good, as Linux does. `forever`: so do all later ones. Replaces an earlier order; n = 0 cancels
  // it.
  void fail_call(uint64_t n, StatusCode code, bool forever = false);
  // As fail_call, counting only sync and sync_directory.
  void fail_sync(uint64_t n, StatusCode code, bool forever = false);
  // no_space once all files together would be larger.
  void set_capacity(uint64_t bytes);
  uint64_t used_bytes() const;
  // Changing calls so far, failed ones too; how many of them were syncs.
  uint64_t calls() const;
  uint64_t sync_calls() const;

 private:
  struct State;
  friend class MemoryFile;
  std::shared_ptr<State> state_;
};

}  // namespace stride
