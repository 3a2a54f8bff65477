#include "engine/catalog/claimed_files.h"

#include <utility>

namespace stride {

void ClaimedFiles::claim(std::unique_ptr<FileLock> lock) {
  std::lock_guard guard(mutex_);
  lock_ = std::move(lock);
}

void ClaimedFiles::release() {
  std::lock_guard guard(mutex_);
  is_released_ = is_released_ || lock_ != nullptr;
  lock_.reset();
}

Status ClaimedFiles::check(const std::string& path, bool changes) {
  if (!path.starts_with(inside_)) return {};
  std::lock_guard guard(mutex_);
  if (is_released_ && changes)
    return Status(StatusCode::closed, "the database is closed").with_file(path);
  if (!lock_ || lock_->is_in_place()) return {};
  return Status(StatusCode::io_error,
                "the directory was moved or replaced, or the file LOCK in it, while the database "
                "was open")
      .with_file(path)
      .with_remedy("close the database, and open it where its files are now");
}

Result<std::unique_ptr<File>> ClaimedFiles::open(const std::string& path, OpenMode mode) {
  STRIDE_TRY(check(path, mode != OpenMode::read));
  return below_.open(path, mode);
}

Status ClaimedFiles::remove(const std::string& path) {
  STRIDE_TRY(check(path, true));
  return below_.remove(path);
}

Status ClaimedFiles::rename(const std::string& from, const std::string& to) {
  STRIDE_TRY(check(from, true));
  STRIDE_TRY(check(to, true));
  return below_.rename(from, to);
}

Status ClaimedFiles::link(const std::string& from, const std::string& to) {
  STRIDE_TRY(check(from, true));
  STRIDE_TRY(check(to, true));
  return below_.link(from, to);
}

}  // namespace stride
