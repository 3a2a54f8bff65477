// The lease of a reader in another process: a file READER-<16 hex digits> in the database's
// directory, which the reader keeps locked and which says how far it has read the manifest. As long
// as it is held the writer removes no file that the edits up to there name.
//
//   auto lease = ReaderLease::take(fs, "db");     // before the manifest is read
//   ... read the manifest, open what it names ...
//   if (lease.ok()) (*lease)->move_to(position);  // what earlier edits named may go
//
// A reader that dies loses its lease, since the system drops its lock: the writer removes the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "storage/file.h"
#include "storage/manifest.h"
#include "storage/process.h"
#include "storage/status.h"

namespace stride {

// Thread-safe but for move_to().
class ReaderLease {
 public:
  // Keeps all files that are there. Fails where the reader may not write into the directory, say.
  static Result<std::shared_ptr<ReaderLease>> take(FileSystem& fs, const std::string& directory);
  ~ReaderLease();  // gives it back, and removes the file
  ReaderLease(const ReaderLease&) = delete;
  ReaderLease& operator=(const ReaderLease&) = delete;

  // From now on the reader needs what edits behind the position name, and those up to it together.
  // Where that cannot be written, more is kept.
  void move_to(ManifestPosition position) noexcept;
  ManifestPosition position() const { return position_; }

 private:
  ReaderLease(std::unique_ptr<FileLock> lock, std::unique_ptr<File> file, uint64_t offset)
      : lock_(std::move(lock)), file_(std::move(file)), offset_(offset) {}
  Status write(ManifestPosition position);

  const ProcessMark made_in_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<File> file_;
  const uint64_t offset_;  // of the position in the file, behind what the lock has written
  ManifestPosition position_;
};

// "READER-0123456789abcdef".
std::string lease_name(uint64_t number);
bool is_lease_name(std::string_view name);
// The line of a lease's file that says how far its reader has come.
std::string encode_lease(ManifestPosition position);
// What the content of a lease's file says. Nothing: no reader has written it, or not yet.
std::optional<ManifestPosition> decode_lease(std::string_view text);

}  // namespace stride
