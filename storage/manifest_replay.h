// Adds up the edits of a manifest, each in the time that it takes by itself.
//
//   ManifestReplay replay;
//   for (const VersionEdit& edit : edits) STRIDE_TRY(replay.apply(edit));
//   ManifestState state = replay.state();
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

class ManifestReplay {
 public:
  ManifestReplay() = default;
  explicit ManifestReplay(const ManifestState& start);

  // Whole or not at all. corruption where it does not fit (unknown table, ...).
  Status apply(const VersionEdit& edit);
  const TableRecord* find_table(uint32_t id) const;  // null: it is not there
  uint64_t next_id() const { return next_id_; }
  uint64_t synced_logs() const { return synced_logs_; }
  ManifestState state() const;

 private:
  struct ReplayedTable {
    TableRecord record;
    std::unordered_set<uint64_t> segments;
  };
  struct ReplayedSegment {
    SegmentRecord record;
    uint64_t order;  // among all that were ever added
  };
  class Check;

  void create_table(const TableRecord& table);
  void drop_table(uint32_t id);
  void rename_tables(const std::vector<RenamedTable>& renamed);
  void add_segment(const SegmentRecord& segment);
  void remove_segment(uint64_t id);

  std::map<uint32_t, ReplayedTable> tables_;
  std::unordered_map<std::string, uint32_t> ids_by_name_;  // of tables
  std::unordered_map<uint64_t, ReplayedSegment> segments_;
  std::map<uint64_t, LogRecord> logs_;  // by number
  uint64_t synced_logs_ = 0;
  uint64_t next_id_ = 1;
  uint64_t ever_added_ = 0;
};

}  // namespace stride
