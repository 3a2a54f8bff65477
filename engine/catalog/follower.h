// What a read-only handle has read of a database that another process may be writing, and how it
// reads on.
//
//   auto step = follower.read_on(current);
//   if (step.ok()) published.set(step->version, [&] { step->publish(); });
//
// What it makes of the files is a prefix of the commits: the manifest is read, then the logs, and
// the manifest is looked at again. If it has not changed, every edit is known that any of the
// frames came after; and a writer hands frames to the system before the edits that came after them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/catalog/database_context.h"
#include "engine/catalog/followed_tables.h"
#include "engine/catalog/recovery.h"
#include "engine/catalog/version.h"
#include "storage/log_follower.h"
#include "storage/manifest_follower.h"
#include "storage/status.h"

namespace stride {

// One thread at a time.
class Follower {
 public:
  // Goes on where the recovery of a read-only handle has ended.
  Follower(const DatabaseContext& context, RecoveredDatabase* recovered);

  // What is new, which nobody sees before publish().
  struct Step {
    std::shared_ptr<const Version> version;  // the one before, where the manifest is the same
    struct Rows {
      std::shared_ptr<Memtable> memtable;
      uint32_t commit = 0;
    };
    std::vector<Rows> rows;
    void publish() const noexcept;
  };
  // Reads what has come. before: the version that the last step made. corruption, as when the
  // database is opened; unavailable: the files change faster than they can be read. Where it fails
  // nothing is published, and it can be tried again.
  Result<Step> read_on(const std::shared_ptr<const Version>& before);

  ManifestPosition position() const { return manifest_->position(); }
  uint32_t identity() const { return manifest_->identity(); }
  uint64_t next_id() const { return manifest_->replay().next_id(); }
  bool has_unsynced_edits() const { return !manifest_->unsynced().empty(); }
  // Files of segments that the writer may not have synced yet.
  std::unordered_set<std::string> unsynced_files() const;
  std::vector<LogRecord> logs() const;
  // Of the frames that were read from logs that are not sealed.
  uint64_t unsealed_log_bytes() const;

 private:
  struct Log {
    LogRecord record;
    std::shared_ptr<Memtable> rows;
    std::shared_ptr<LogFollower> file;  // null: not opened yet
    uint64_t offset = 0;                // where it goes on, until it is opened
    size_t new_frames = 0;              // of the file's, that count
    uint64_t rest_seen_at = 0;          // the offset where something followed the frames
    bool rest_is_fine = false;          // and it is no damage
  };

  // Makes the version and the list of logs that the manifest names, and reads these.
  Status read_files(const std::shared_ptr<const Version>& before, MissingSegment missing);
  std::vector<Log> logs_of(const std::vector<LogRecord>& records) const;
  Status read_logs();
  Status read_log(Log* log);
  Status open_log(Log* log) const;
  Status look_at_rest(Log* log) const;
  // Where what counts of a log ends: the position, and the offset in the file.
  static uint64_t end_of(const Log& log);
  static uint64_t offset_behind(const Log& log);
  Result<Step> insert(const std::shared_ptr<const Version>& before);
  Status insert_frames(const Log& log, const Version& version, Step* step) const;
  void put_logs_into(Version* version, const Step& step) const;

  const DatabaseContext& context_;
  std::unique_ptr<ManifestFollower> manifest_;
  std::vector<Log> logs_;
  ManifestPosition version_position_;  // of the version that the last step made
  uint64_t database_;                  // ManifestFollower::database() of that

  // Of the step that is being made.
  std::shared_ptr<Version> next_;  // null: the manifest says the same as before
  std::vector<Log> next_logs_;
};

}  // namespace stride
