#include "engine/shared_database.h"

#include <atomic>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "engine/database_impl.h"
#include "engine/monitoring/event_queue.h"
#include "storage/process.h"

namespace stride {
namespace {

// By file system, and by the directory's path there.
using SharedKey = std::pair<FileSystem*, std::string>;

struct SharedDatabases {
  const ProcessMark made_in;
  std::mutex mutex;
  std::map<SharedKey, std::weak_ptr<SharedDatabase>> by_key;
};

// Those of this process: a forked child shares nothing with its parent, whose threads may have held
// the lock. Never destroyed, since handles may outlive all that is.
SharedDatabases& shared_databases() {
  static std::atomic<SharedDatabases*> current{nullptr};
  SharedDatabases* there = current.load(std::memory_order_acquire);
  while (!there || !there->made_in.is_here()) {
    auto made = std::make_unique<SharedDatabases>();
    if (current.compare_exchange_strong(there, made.get(), std::memory_order_acq_rel))
      return *made.release();
  }
  return *there;
}

// Another way to the same directory is the same key. Where that cannot be told, its lock tells.
SharedKey key_of(const std::string& path, FileSystem* file_system) {
  if (file_system == &FileSystem::posix()) file_system = nullptr;
  std::error_code failed;
  std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  if (!file_system) {
    auto canonical = std::filesystem::weakly_canonical(path, failed);
    if (!failed) normal = canonical;
  }
  std::string text = normal.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return {file_system, text};
}

// gone: null, or what is not the database of this key any more.
std::shared_ptr<SharedDatabase> shared_database(const SharedKey& key, const SharedDatabase* gone) {
  SharedDatabases& all = shared_databases();
  std::lock_guard guard(all.mutex);
  std::erase_if(all.by_key, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<SharedDatabase>& there = all.by_key[key];
  std::shared_ptr<SharedDatabase> found = there.lock();
  if (!found || found.get() == gone) there = found = make_shared_here<SharedDatabase>();
  return found;
}

}  // namespace

bool is_same_directory(const std::string& a, const std::string& b, FileSystem* file_system) {
  return key_of(a, file_system) == key_of(b, file_system);
}

Status SharedDatabase::open(const std::string& path, const Options& options,
                            std::shared_ptr<DatabaseImpl>* impl,
                            std::shared_ptr<SharedDatabase>* shared) {
  if (options.read_only) {
    auto opened = DatabaseImpl::open(path, options);
    if (opened.ok()) *impl = std::move(*opened);
    return opened.status();
  }
  const SharedKey key = key_of(path, options.file_system);
  std::shared_ptr<SharedDatabase> database = shared_database(key, nullptr);
  std::unique_lock<std::mutex> guard;
  STRIDE_TRY(database->lock(path, &guard));
  if (database->is_gone(path)) {
    guard.unlock();
    database = shared_database(key, database.get());
    STRIDE_TRY(database->lock(path, &guard));
  }
  STRIDE_TRY(database->open_here(path, options, impl));
  *shared = std::move(database);
  return {};
}

Status SharedDatabase::lock(const std::string& path, std::unique_lock<std::mutex>* guard) {
  *guard = std::unique_lock(mutex_, std::try_to_lock);
  if (guard->owns_lock()) return {};
  if (EventQueue::is_telling_here())
    return Status(StatusCode::locked, "another thread of this process opens or closes it now")
        .with_file(path)
        .with_remedy("open it outside of listeners and loggers, for which closing waits");
  guard->lock();
  return {};
}

bool SharedDatabase::is_gone(const std::string& path) {
  if (!impl_) return false;
  auto locked = impl_->context().fs->is_locked(path + "/LOCK");
  return !locked.ok() || !*locked;
}

Status SharedDatabase::open_here(const std::string& path, const Options& options,
                                 std::shared_ptr<DatabaseImpl>* impl) {
  if (!impl_) {
    auto opened = DatabaseImpl::open(path, options);
    if (!opened.ok()) return opened.status();
    impl_ = std::move(*opened);
  } else if (options.error_if_exists) {
    return Status(StatusCode::already_exists, "there is a database already").with_file(path);
  } else if (options.durability != impl_->context().options.durability) {
    return Status::invalid("this process has the database open with another durability of commits")
        .with_file(path)
        .with_remedy(
            "open it with the same durability, and name another one where something is put");
  }
  ++handles_;
  *impl = impl_;
  return {};
}

Status SharedDatabase::close() {
  std::lock_guard guard(mutex_);
  if (--handles_ > 0) return impl_->sync();
  const std::shared_ptr<DatabaseImpl> last = std::move(impl_);
  impl_ = nullptr;
  return last->close();
}

}  // namespace stride
