#include "engine/catalog/obsolete_files.h"

#include <algorithm>
#include <utility>

#include "engine/catalog/reader_lease.h"
#include "storage/current_file.h"
#include "storage/no_throw.h"

namespace stride {
namespace {

constexpr uint64_t max_lease_bytes = 4096;
// A directory of so many names is read in less time than an edit takes.
constexpr uint64_t few_names = 1024;
constexpr uint64_t names_per_file = 64;  // that are read for each file that is given up
constexpr uint64_t due_bytes = 16 << 20;

// What has the name of a lease and is none, or none that this user may read, is left alone.
bool is_no_lease(const Status& s) {
  return s.code() == StatusCode::invalid_argument || s.code() == StatusCode::not_found ||
         s.code() == StatusCode::permission_denied;
}

}  // namespace

// Nobody else takes the lock of a lease: once it is free and the reader has written its file, the
// reader is gone. What somebody locks that says nothing may be of a reader that begins.
Status ObsoleteFiles::look_at_lease(const std::string& path, ManifestPosition* least) {
  auto held = fs_->is_locked(path);
  if (!held.ok()) return is_no_lease(held.status()) ? Status() : held.status();
  auto text = read_file(*fs_, path, max_lease_bytes);
  if (is_no_lease(text.status())) return {};
  std::optional<ManifestPosition> position;
  if (text.ok()) position = decode_lease(*text);
  if (*held)
    *least = std::min(*least, position.value_or(ManifestPosition()));
  else if (position)
    Status ignored = fs_->remove(path);
  return {};
}

Status ObsoleteFiles::look_at_leases(ManifestPosition now, ManifestPosition* least) {
  *least = now;
  auto names = fs_->list(directory_);
  if (!names.ok()) return names.status();
  names_.store(names->size(), relaxed);
  for (const std::string& name : *names)
    if (is_lease_name(name)) STRIDE_TRY(look_at_lease(directory_ + "/" + name, least));
  return {};
}

// Where it cannot be told which leases there are, all files are kept for a while.
void ObsoleteFiles::look(ManifestPosition now) noexcept {
  std::lock_guard lock(mutex_);
  looked_ = now;
  expected_files_.store(0, relaxed);
  expected_bytes_.store(0, relaxed);
  waiting_count_.store(waiting_.size(), relaxed);
  ManifestPosition least;
  if (!no_throw([&] { return look_at_leases(now, &least); }).ok()) return;
  passed_ = std::max(passed_, least);
  std::erase_if(waiting_, [&](const Waiting& file) {
    if (file.since > passed_) return false;
    Status ignored = no_throw([&] { return fs_->remove(file.path); });
    return true;
  });
  waiting_count_.store(waiting_.size(), relaxed);
}

void ObsoleteFiles::expect(uint64_t files, uint64_t bytes) noexcept {
  expected_files_.fetch_add(files, relaxed);
  expected_bytes_.fetch_add(bytes, relaxed);
}

bool ObsoleteFiles::is_look_due() const noexcept {
  const uint64_t files = expected_files_.load(relaxed), names = names_.load(relaxed);
  return files > 0 && (names < few_names || files >= names / names_per_file ||
                       expected_bytes_.load(relaxed) >= due_bytes);
}

void ObsoleteFiles::remove(std::string path, ManifestPosition since) noexcept {
  Status ignored = no_throw([&] {
    std::lock_guard lock(mutex_);
    if (since <= passed_) return fs_->remove(path);
    waiting_.push_back({std::move(path), since});
    if (since <= looked_) waiting_count_.fetch_add(1, relaxed);
    return Status();
  });
}

}  // namespace stride
