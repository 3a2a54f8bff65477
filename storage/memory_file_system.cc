#include "storage/memory_file_system.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <utility>

#include "storage/memory_node.h"

namespace stride {

namespace {

std::string normal(const std::string& path) {
  size_t last = path.find_last_not_of('/');
  return last == std::string::npos ? "/" : path.substr(0, last + 1);
}

std::string parent_of(const std::string& path) {
  size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : normal(path.substr(0, slash));
}

// Counts down to a call that shall fail.
struct Fault {
  uint64_t left = 0;  // 0: none
  StatusCode code = StatusCode::ok;
  bool forever = false;

  bool strikes() {
    if (left == 0 || (left > 1 && left--)) return false;
    if (!forever) left = 0;
    return true;
  }
};

}  // namespace

struct MemoryFileSystem::State {
  // A change of the directory tree that is not on stable storage yet. A renaming is both.
  struct EntryChange {
    std::string removed;  // path; empty: none
    std::string added;
    std::shared_ptr<MemoryNode> node;
  };
  using Entries = std::map<std::string, std::shared_ptr<MemoryNode>>;

  MemoryFileSystemOptions options;
  mutable std::mutex mutex;
  Entries now, stable;  // by path
  std::set<std::string> directories{".", "/"};
  std::vector<EntryChange> unsynced;
  std::set<std::string> locks;
  Fault any_fault, sync_fault;
  uint64_t calls = 0, sync_calls = 0;
  uint64_t capacity = ~uint64_t{0};
  std::mt19937_64 random{1};  // what a failed sync loses

  static void apply(const EntryChange& change, Entries* entries) {
    if (!change.removed.empty()) entries->erase(change.removed);
    if (!change.added.empty()) (*entries)[change.added] = change.node;
  }
  void change(EntryChange entry_change) {
    apply(entry_change, &now);
    if (options.crashable) unsynced.push_back(std::move(entry_change));
  }
  // Counts a changing call, and fails it where that was ordered.
  Status enter(const char* what, const std::string& path, bool sync = false) {
    ++calls;
    sync_calls += sync;
    bool strikes = any_fault.strikes();
    StatusCode code = any_fault.code;
    if (sync && sync_fault.strikes()) {
      strikes = true;
      code = sync_fault.code;
    }
    if (!strikes) return {};
    return Status(code, std::string(what) + ": failure on order").with_file(path);
  }
  uint64_t used() const {
    uint64_t bytes = 0;
    std::set<const MemoryNode*> counted;  // a file may have several names
    for (const auto& [path, node] : now)
      if (counted.insert(node.get()).second) bytes += node->size();
    return bytes;
  }
  // How far a file of `size` bytes may grow.
  uint64_t room(uint64_t size) const {
    if (capacity == ~uint64_t{0}) return capacity;
    uint64_t all = used();
    // An open file that was removed is not among `all`.
    return all > capacity ? size : size + std::min(capacity - all, ~uint64_t{0} - size);
  }
};

class MemoryFile final : public File {
 public:
  using State = MemoryFileSystem::State;
  MemoryFile(std::shared_ptr<State> state, std::string path, std::shared_ptr<MemoryNode> node,
             bool writable)
      : state_(std::move(state)),
        path_(std::move(path)),
        node_(std::move(node)),
        writable_(writable) {}

  const std::string& path() const override { return path_; }

  Status read_at(uint64_t offset, std::span<std::byte> out) override {
    std::lock_guard lock(state_->mutex);
    Bytes bytes = node_->bytes();
    if (offset > bytes.size() || out.size() > bytes.size() - offset) {
      return Status::corruption(path_, bytes.size(), "the file ends early")
          .with_remedy("restore the file from a backup");
    }
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
    return {};
  }

  Status write_at(uint64_t offset, Bytes data) override {
    std::lock_guard lock(state_->mutex);
    if (!writable_) return Status::from_errno(EBADF, "write", path_);
    if (Status s = state_->enter("write", path_); !s.ok()) {
      node_->write(offset, data.first(data.size() / 2));
      return s;
    }
    uint64_t end = std::max(offset + data.size(), node_->size());
    uint64_t room = state_->room(node_->size());
    if (end > room) {
      node_->write(offset, data.first(room > offset ? room - offset : 0));
      return Status::from_errno(ENOSPC, "write", path_);
    }
    node_->write(offset, data);
    return {};
  }

  Status allocate(uint64_t bytes) override {
    std::lock_guard lock(state_->mutex);
    if (!writable_) return Status::from_errno(EBADF, "allocate", path_);
    STRIDE_TRY(state_->enter("allocate", path_));
    if (bytes > node_->size() && bytes > state_->room(node_->size())) {
      return Status::from_errno(ENOSPC, "allocate", path_);
    }
    node_->resize(bytes);
    return {};
  }

  Status truncate(uint64_t bytes) override {
    std::lock_guard lock(state_->mutex);
    if (!writable_) return Status::from_errno(EBADF, "truncate", path_);
    STRIDE_TRY(state_->enter("truncate", path_));
    node_->resize(bytes);
    return {};
  }

  Status sync() override {
    std::lock_guard lock(state_->mutex);
    if (Status s = state_->enter("sync", path_, true); !s.ok()) {
      node_->fail_sync(state_->random);
      return s;
    }
    node_->sync();
    return {};
  }

  Result<uint64_t> size() override {
    std::lock_guard lock(state_->mutex);
    return node_->size();
  }

  Result<std::shared_ptr<const Mapping>> map() override {
    std::lock_guard lock(state_->mutex);
    return node_->map();
  }

 private:
  std::shared_ptr<State> state_;
  std::string path_;
  std::shared_ptr<MemoryNode> node_;
  bool writable_;
};

namespace {

class MemoryLock final : public FileLock {
 public:
  MemoryLock(std::function<void()> release, std::function<void()> remove)
      : release_(std::move(release)), remove_(std::move(remove)) {}
  ~MemoryLock() override { release_(); }
  void remove_if_created() override { remove_(); }

 private:
  std::function<void()> release_, remove_;
};

}  // namespace

MemoryFileSystem::MemoryFileSystem(MemoryFileSystemOptions options)
    : state_(std::make_shared<State>()) {
  state_->options = options;
}

MemoryFileSystem::~MemoryFileSystem() = default;

Result<std::unique_ptr<File>> MemoryFileSystem::open(const std::string& given, OpenMode mode) {
  std::lock_guard lock(state_->mutex);
  std::string path = normal(given);
  bool creates = mode == OpenMode::create || mode == OpenMode::create_direct;
  if (creates) STRIDE_TRY(state_->enter("create", path));
  auto found = state_->now.find(path);
  bool is_directory = state_->directories.count(path) != 0;
  if (is_directory) return Status::from_errno(EISDIR, "open", path);
  if (!creates) {
    if (found == state_->now.end()) return Status::from_errno(ENOENT, "open", path);
    return std::unique_ptr<File>(
        new MemoryFile(state_, path, found->second, mode == OpenMode::write));
  }
  if (found != state_->now.end()) return Status::from_errno(EEXIST, "create", path);
  if (!state_->directories.count(parent_of(path))) {
    return Status::from_errno(ENOENT, "create", path);
  }
  auto node = std::make_shared<MemoryNode>(state_->options.crashable);
  state_->change({{}, path, node});
  return std::unique_ptr<File>(new MemoryFile(state_, path, std::move(node), true));
}

Result<bool> MemoryFileSystem::exists(const std::string& path) {
  std::lock_guard lock(state_->mutex);
  return state_->now.count(normal(path)) != 0 || state_->directories.count(normal(path)) != 0;
}

Result<std::vector<std::string>> MemoryFileSystem::list(const std::string& given) {
  std::lock_guard lock(state_->mutex);
  std::string directory = normal(given);
  if (state_->now.count(directory)) {
    return Status::from_errno(ENOTDIR, "open directory", directory);
  }
  if (!state_->directories.count(directory)) {
    return Status::from_errno(ENOENT, "open directory", directory);
  }
  std::vector<std::string> names;
  auto add = [&](const std::string& path) {
    bool inside = path != "." && path != "/" && parent_of(path) == directory;
    if (inside) names.push_back(path.substr(path.find_last_of('/') + 1));
  };
  for (const auto& [path, node] : state_->now) add(path);
  for (const std::string& path : state_->directories) add(path);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<std::string>> MemoryFileSystem::create_directory(const std::string& given) {
  std::lock_guard lock(state_->mutex);
  std::string path = normal(given);
  STRIDE_TRY(state_->enter("create directory", path));
  std::vector<std::string> created;
  for (; !state_->directories.count(path); path = parent_of(path)) {
    if (state_->now.count(path)) return Status::from_errno(ENOTDIR, "create directory", path);
    created.push_back(path);
  }
  std::reverse(created.begin(), created.end());
  state_->directories.insert(created.begin(), created.end());
  return created;
}

Status MemoryFileSystem::remove(const std::string& given) {
  std::lock_guard lock(state_->mutex);
  std::string path = normal(given);
  STRIDE_TRY(state_->enter("remove", path));
  if (!state_->now.count(path)) return Status::from_errno(ENOENT, "remove", path);
  state_->change({path, {}, nullptr});
  return {};
}

Status MemoryFileSystem::remove_directory(const std::string& given) {
  std::lock_guard lock(state_->mutex);
  std::string path = normal(given);
  STRIDE_TRY(state_->enter("remove", path));
  if (!state_->directories.count(path)) return Status::from_errno(ENOENT, "remove", path);
  auto inside = [&](const std::string& other) { return other != path && parent_of(other) == path; };
  bool empty = std::none_of(state_->now.begin(), state_->now.end(),
                            [&](const auto& entry) { return inside(entry.first); }) &&
               std::none_of(state_->directories.begin(), state_->directories.end(), inside);
  if (!empty) return Status::from_errno(ENOTEMPTY, "remove", path);
  state_->directories.erase(path);
  return {};
}

Status MemoryFileSystem::rename(const std::string& given_from, const std::string& given_to) {
  std::lock_guard lock(state_->mutex);
  std::string from = normal(given_from), to = normal(given_to);
  STRIDE_TRY(state_->enter("rename", from));
  auto found = state_->now.find(from);
  if (found == state_->now.end()) return Status::from_errno(ENOENT, "rename", from);
  if (state_->directories.count(to)) return Status::from_errno(EISDIR, "rename", to);
  state_->change({from, to, found->second});
  return {};
}

Status MemoryFileSystem::link(const std::string& given_from, const std::string& given_to) {
  std::lock_guard lock(state_->mutex);
  std::string from = normal(given_from), to = normal(given_to);
  STRIDE_TRY(state_->enter("link", from));
  auto found = state_->now.find(from);
  if (found == state_->now.end()) return Status::from_errno(ENOENT, "link", from);
  if (state_->now.count(to) || state_->directories.count(to))
    return Status::from_errno(EEXIST, "link", to);
  if (!state_->directories.count(parent_of(to))) return Status::from_errno(ENOENT, "link", to);
  state_->change({{}, to, found->second});
  return {};
}

Status MemoryFileSystem::sync_directory(const std::string& given) {
  std::lock_guard lock(state_->mutex);
  std::string directory = normal(given);
  STRIDE_TRY(state_->enter("sync directory", directory, true));
  if (!state_->directories.count(directory)) {
    return Status::from_errno(ENOENT, "sync directory", directory);
  }
  std::erase_if(state_->unsynced, [&](const State::EntryChange& change) {
    const std::string& path = change.added.empty() ? change.removed : change.added;
    if (parent_of(path) != directory) return false;
    State::apply(change, &state_->stable);
    return true;
  });
  return {};
}

Result<std::unique_ptr<FileLock>> MemoryFileSystem::lock(const std::string& given) {
  std::lock_guard guard(state_->mutex);
  std::string path = normal(given);
  if (!state_->directories.count(parent_of(path))) {
    return Status::from_errno(ENOENT, "open", path);
  }
  if (!state_->locks.insert(path).second) {
    return Status(StatusCode::locked, "locked by another handle of this process")
        .with_file(path)
        .with_remedy("close it there first, or open the database read-only");
  }
  bool created = !state_->now.count(path);
  if (created) {
    state_->change({{}, path, std::make_shared<MemoryNode>(state_->options.crashable)});
  }
  auto release = [state = state_, path] {
    std::lock_guard release_guard(state->mutex);
    state->locks.erase(path);
  };
  auto remove = [state = state_, path, created] {
    std::lock_guard remove_guard(state->mutex);
    if (created) state->change({path, {}, nullptr});
  };
  return std::unique_ptr<FileLock>(new MemoryLock(release, remove));
}

Result<bool> MemoryFileSystem::is_locked(const std::string& given) {
  std::lock_guard guard(state_->mutex);
  const std::string path = normal(given);
  if (state_->directories.count(path)) return Status::invalid("a directory").with_file(path);
  if (!state_->now.count(path)) return Status::from_errno(ENOENT, "open", path);
  return state_->locks.count(path) > 0;
}

std::unique_ptr<MemoryFileSystem> MemoryFileSystem::crash(uint64_t seed, CrashPolicy policy) const {
  std::lock_guard lock(state_->mutex);
  std::mt19937_64 random(seed);
  auto after = std::make_unique<MemoryFileSystem>(state_->options);
  State::Entries entries = state_->options.crashable ? state_->stable : state_->now;
  for (const State::EntryChange& change : state_->unsynced) {
    bool kept =
        policy == CrashPolicy::keep_unsynced || (policy == CrashPolicy::random && random() % 2);
    if (kept) State::apply(change, &entries);
  }
  // A file may have several names: by links, or after a renaming of which half was lost.
  std::map<const MemoryNode*, std::shared_ptr<MemoryNode>> left;
  for (auto& [path, node] : entries) {
    std::shared_ptr<MemoryNode>& one = left[node.get()];
    if (!one) one = node->crash(random, policy);
    node = one;
  }
  after->state_->directories = state_->directories;
  after->state_->now = entries;
  after->state_->stable = std::move(entries);
  return after;
}

void MemoryFileSystem::fail_call(uint64_t n, StatusCode code, bool forever) {
  std::lock_guard lock(state_->mutex);
  state_->any_fault = {n, code, forever};
}

void MemoryFileSystem::fail_sync(uint64_t n, StatusCode code, bool forever) {
  std::lock_guard lock(state_->mutex);
  state_->sync_fault = {n, code, forever};
}

void MemoryFileSystem::set_capacity(uint64_t bytes) {
  std::lock_guard lock(state_->mutex);
  state_->capacity = bytes;
}

uint64_t MemoryFileSystem::used_bytes() const {
  std::lock_guard lock(state_->mutex);
  return state_->used();
}

uint64_t MemoryFileSystem::calls() const {
  std::lock_guard lock(state_->mutex);
  return state_->calls;
}

uint64_t MemoryFileSystem::sync_calls() const {
  std::lock_guard lock(state_->mutex);
  return state_->sync_calls;
}

}  // namespace stride
