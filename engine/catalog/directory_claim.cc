#include "engine/catalog/directory_claim.h"

#include <utility>

#include "storage/current_file.h"
#include "storage/no_throw.h"

namespace stride {

DirectoryClaim::~DirectoryClaim() {
  if (lock_) lock_->remove_if_created();
  lock_.reset();
  remove_directories();
}

// Those in which another process has made something meanwhile stay.
void DirectoryClaim::remove_directories() {
  while (!made_.empty()) {
    Status removed = no_throw([&] { return fs_.remove_directory(made_.back()); });
    if (!removed.ok()) return made_.clear();
    made_.pop_back();
  }
}

Status DirectoryClaim::try_acquire(bool create) {
  remove_directories();
  if (create) {
    Result<std::vector<std::string>> made = fs_.create_directory(directory_);
    if (!made.ok()) return made.status();
    made_ = std::move(*made);
  }
  Status current = read_current(fs_, directory_).status();
  if (current.code() == StatusCode::invalid_argument ||
      (current.code() == StatusCode::not_found && !create))
    return current;
  auto lock = fs_.lock(directory_ + "/LOCK");
  if (lock.ok()) lock_ = std::move(*lock);
  return lock.status();
}

// Another opening may fail, and take back the directory that both have found.
Status DirectoryClaim::acquire(bool create) {
  constexpr int max_attempts = 100;
  Status s = try_acquire(create);
  for (int i = 1; create && s.code() == StatusCode::not_found && i < max_attempts; ++i)
    s = try_acquire(create);
  return s;
}

std::unique_ptr<FileLock> DirectoryClaim::keep() {
  made_.clear();
  return std::move(lock_);
}

}  // namespace stride
