#include "engine/backup/checkpoint.h"

#include <atomic>
#include <utility>

#include "engine/backup/new_database.h"
#include "storage/copy_files.h"
#include "storage/log_format.h"
#include "storage/manifest_format.h"

namespace stride {
namespace {

class Checkpoint {
 public:
  Checkpoint(const FrozenDatabase& frozen, const std::string& directory)
      : frozen_(frozen), directory_(directory), made_(*frozen.fs, directory) {}

  Status run(CopyCounters* counters, CopyReport* report) {
    auto segments = frozen_segments(frozen_);
    if (!segments.ok()) return segments.status();
    STRIDE_TRY(made_.begin());
    counters->total_files = segments->size();
    STRIDE_TRY(link_or_copy(*segments, counters));
    auto state =
        write_frozen_logs(frozen_, [&](uint64_t number) { return made_.add(log_name(number)); });
    if (!state.ok()) return state.status();
    STRIDE_TRY(write_manifest(*state));
    STRIDE_TRY(made_.finish());
    report->files = segments->size() + state->logs.size() + 1;
    report->bytes = segment_bytes_;
    report->copied_bytes = copied_bytes_;
    report->copied_files = segments->size() - linked_;
    report->linked_files = linked_;
    return {};
  }

 private:
  Status link_or_copy(const std::vector<FrozenSegment>& segments, CopyCounters* counters) {
    std::vector<const FrozenSegment*> copied;
    bool can_link = true;
    for (const FrozenSegment& segment : segments) {
      STRIDE_TRY(WorkWatch::check());
      segment_bytes_ += segment.segment->record().bytes;
      bool is_linked = false;
      if (can_link && !frozen_.unsynced.contains(segment.path)) {
        Status s = frozen_.fs->link(segment.path, made_.add(segment_name(segment.id)));
        is_linked = s.ok();
        can_link = s.code() != StatusCode::unavailable;
        // A file that the writer has removed is copied from memory.
        if (!s.ok() && can_link && s.code() != StatusCode::not_found) return s;
      }
      if (is_linked) {
        ++linked_;
        counters->files.fetch_add(1);
      } else {
        copied_bytes_ += segment.segment->record().bytes;
        copied.push_back(&segment);
      }
    }
    counters->total_bytes = copied_bytes_;
    return copy_files(copied.size(), &counters->files,
                      [&](uint64_t i) { return copy(*copied[i]); });
  }
  Status copy(const FrozenSegment& segment) {
    auto source = open_frozen(frozen_, segment);
    if (!source.ok()) return source.status();
    auto sums = read_segment_sums(*source, segment.id);
    if (!sums.ok()) return sums.status();
    return copy_segment(*source, *sums, *frozen_.fs, made_.add(segment_name(segment.id)));
  }
  // Draws an identity: what is written to a checkpoint is no later state of the database.
  Status write_manifest(const ManifestState& state) {
    auto bytes = encode_manifest(1, draw_identity(), state);
    if (!bytes.ok()) return bytes.status();
    auto file = frozen_.fs->open(made_.add(manifest_name(1)), OpenMode::create);
    if (!file.ok()) return file.status();
    STRIDE_TRY((*file)->write_at(0, *bytes));
    return (*file)->sync();
  }

  const FrozenDatabase& frozen_;
  const std::string directory_;
  NewDatabase made_;
  uint64_t segment_bytes_ = 0, copied_bytes_ = 0, linked_ = 0;
};

}  // namespace

Status make_checkpoint(const FrozenDatabase& frozen, const std::string& directory,
                       CopyCounters* counters, CopyReport* report) {
  return Checkpoint(frozen, directory).run(counters, report);
}

}  // namespace stride
