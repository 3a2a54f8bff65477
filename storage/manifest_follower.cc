#include "storage/manifest_follower.h"

#include <utility>

#include "storage/checksum.h"
#include "storage/current_file.h"
#include "storage/manifest_format.h"

namespace stride {
namespace {

bool may_become_whole(const Status& s) {
  return s.code() == StatusCode::corruption || s.code() == StatusCode::not_found;
}

}  // namespace

ManifestFollower::ManifestFollower(FileSystem& fs, std::string directory, ManifestPosition position,
                                   ManifestReplay replay, std::vector<VersionEdit> unsynced)
    : fs_(fs),
      directory_(std::move(directory)),
      position_(position),
      replay_(std::move(replay)),
      unsynced_(std::move(unsynced)) {}

// not_found, too, where another database's file is there.
Status ManifestFollower::open_file() {
  auto file = fs_.open(directory_ + "/" + manifest_name(position_.number), OpenMode::read);
  if (!file.ok()) return file.status();
  ManifestHeader header;
  STRIDE_TRY((*file)->read_at(0, std::as_writable_bytes(std::span(&header, 1))));
  if (header.identity != identity_)
    return Status(StatusCode::not_found, "another database's file").with_file((*file)->path());
  file_ = std::move(*file);
  return {};
}

// The file that CURRENT names may be gone by the time that it is opened: then another one has taken
// its place. So has one where the directory was moved, and there is another database now: its files
// are not those that the edits of the file that is open name.
Result<bool> ManifestFollower::read_on(const IsWhole& is_whole) {
  auto number = read_current(fs_, directory_);
  if (!number.ok()) return number.status();
  bool goes_on = *number == position_.number;
  if (goes_on && file_ && !file_->is_in_place()) {
    goes_on = false;
    // Unless the database's own next manifest has come meanwhile.
    number = read_current(fs_, directory_);
    if (!number.ok()) return number.status();
    if (*number == position_.number) ++database_;
  }
  Status opened;
  if (goes_on && !file_) opened = open_file();
  if (goes_on && opened.ok()) {
    auto size = file_->size();
    if (!size.ok()) return size.status();
    bool changed = false;
    if (*size >= position_.offset) {
      STRIDE_TRY(read_edits(*size, is_whole, &changed));
      return changed;
    }
  } else if (!opened.ok() && opened.code() != StatusCode::not_found) {
    return opened;
  }
  STRIDE_TRY(begin_anew(is_whole));
  return true;
}

Result<bool> ManifestFollower::is_current() {
  auto number = read_current(fs_, directory_);
  if (!number.ok()) return number.status();
  if (*number != position_.number || !file_ || !file_->is_in_place()) return false;
  auto size = file_->size();
  if (!size.ok()) return size.status();
  return *size == size_seen_;
}

Status ManifestFollower::begin_anew(const IsWhole& is_whole) {
  auto recovered = Manifest::recover(fs_, directory_, /*read_only=*/true);
  if (!recovered.ok()) return recovered.status();
  std::vector<UnsyncedEdit>& unsynced = recovered->unsynced;
  const uint64_t synced_end = unsynced.empty() ? recovered->end.offset : unsynced.front().offset;
  replay_ = ManifestReplay(recovered->state);
  position_ = {recovered->end.number, synced_end};
  if (identity_ != recovered->identity) ++database_;
  identity_ = recovered->identity;
  unsynced_.clear();
  file_.reset();
  size_seen_ = rest_ = 0;
  bool changed = false;
  STRIDE_TRY(apply_unsynced(std::move(unsynced), recovered->end.offset, is_whole, &changed));
  Status opened = open_file();
  if (opened.code() == StatusCode::not_found) return {};  // is_current() will say so
  STRIDE_TRY(std::move(opened));
  size_seen_ = recovered->end.offset;
  return {};
}

Status ManifestFollower::read_edits(uint64_t size, const IsWhole& is_whole, bool* changed) {
  size_seen_ = size;
  if (size == position_.offset) return {};
  std::vector<std::byte> buffer(size - position_.offset);
  STRIDE_TRY(file_->read_at(position_.offset, buffer));
  const Bytes bytes = buffer;
  const uint64_t begin = position_.offset;
  std::vector<UnsyncedEdit> unsynced;
  uint64_t at = 0;
  while (std::optional<ManifestRecord> record = find_record(bytes.subspan(at))) {
    Result<VersionEdit> edit = decode_edit(*record, file_->path(), begin + at);
    if (!edit.ok()) return edit.status();
    unsynced.push_back({std::move(*edit), begin + at});
    at += record->record_bytes;
    if (record->header.kind != manifest_edit) continue;
    // It vouches for all edits before it.
    for (size_t i = 0; i < unsynced.size(); ++i) {
      if (Status s = replay_.apply(unsynced[i].edit); !s.ok())
        return std::move(s).with_file(file_->path()).with_offset(unsynced[i].offset);
      position_.offset = i + 1 < unsynced.size() ? unsynced[i + 1].offset : begin + at;
      *changed = true;
    }
    unsynced.clear();
    unsynced_.clear();
  }
  STRIDE_TRY(apply_unsynced(std::move(unsynced), begin + at, is_whole, changed));
  return look_at_rest(bytes.subspan(at));
}

Status ManifestFollower::apply_unsynced(std::vector<UnsyncedEdit> edits, uint64_t end,
                                        const IsWhole& is_whole, bool* changed) {
  for (size_t i = 0; i < edits.size(); ++i) {
    Status s = is_whole(edits[i].edit, replay_);
    if (s.ok()) s = replay_.apply(edits[i].edit);
    if (!s.ok()) return may_become_whole(s) ? Status() : s;
    position_.offset = i + 1 < edits.size() ? edits[i + 1].offset : end;
    unsynced_.push_back(std::move(edits[i].edit));
    *changed = true;
  }
  return {};
}

// A record that is being written, or the torn tail that a writer has left; but what was there the
// last time, too, may be damage.
Status ManifestFollower::look_at_rest(Bytes rest) {
  const uint64_t now = rest.empty() ? 0 : checksum(rest);
  if (now != rest_) {
    rest_ = now;
    rest_is_fine_ = false;
    return {};
  }
  if (rest.empty() || rest_is_fine_) return {};
  STRIDE_TRY(Manifest::recover(fs_, directory_, /*read_only=*/true).status());
  rest_is_fine_ = true;
  return {};
}

}  // namespace stride
