// Reads the manifest of a database that another process may be writing, edit by edit as they come.
//
//   auto changed = follower.read_on(is_whole);
//   if (changed.ok() && *changed) use(follower.replay().state());
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/file.h"
#include "storage/manifest.h"
#include "storage/manifest_replay.h"
#include "storage/status.h"

namespace stride {

// One thread at a time.
class ManifestFollower {
 public:
  // Goes on behind `position`, where the edits say what `replay` does. unsynced: of them, those
  // after the last that was synced.
  ManifestFollower(FileSystem& fs, std::string directory, ManifestPosition position,
                   ManifestReplay replay, std::vector<VersionEdit> unsynced);

  // Whether the files that an edit names are whole, before which the edits say what `before` does:
  // of an edit that was not synced the writer may not have written all of them yet. corruption or
  // not_found where they are not; whatever else makes read_on() fail.
  using IsWhole = std::function<Status(const VersionEdit&, const ManifestReplay& before)>;
  // Applies the edits that have come, up to the first whose files are not whole. True where there
  // were any. Reads nothing twice, unless the manifest was rewritten. corruption, as
  // Manifest::recover(): nothing is applied of what is damaged, and it can be tried again.
  Result<bool> read_on(const IsWhole& is_whole);
  // Whether there is nothing that the last read_on() has not met.
  Result<bool> is_current();

  const ManifestReplay& replay() const { return replay_; }
  ManifestPosition position() const { return position_; }
  uint32_t identity() const { return identity_; }
  // Another number for each database that it has met at the path.
  uint64_t database() const { return database_; }
  void set_identity(uint32_t identity) { identity_ = identity; }
  // Edits that were applied, after the last that was synced.
  const std::vector<VersionEdit>& unsynced() const { return unsynced_; }

 private:
  Status open_file();
  Status begin_anew(const IsWhole& is_whole);
  Status read_edits(uint64_t size, const IsWhole& is_whole, bool* changed);
  // Applies edits that were not synced. end: of the last one.
  Status apply_unsynced(std::vector<UnsyncedEdit> edits, uint64_t end, const IsWhole& is_whole,
                        bool* changed);
  Status look_at_rest(Bytes rest);

  FileSystem& fs_;
  const std::string directory_;
  ManifestPosition position_;
  ManifestReplay replay_;
  std::vector<VersionEdit> unsynced_;
  uint32_t identity_ = 0;
  uint64_t database_ = 0;
  std::unique_ptr<File> file_;  // of position_.number; null: not opened yet
  uint64_t size_seen_ = 0;      // of the file, by the last read_on()
  // The checksum of what followed the last whole edit, and whether that was found to be no damage.
  uint64_t rest_ = 0;
  bool rest_is_fine_ = false;
};

}  // namespace stride
