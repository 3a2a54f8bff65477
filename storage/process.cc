#include "storage/process.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace stride {
namespace {

std::atomic<uint64_t> fork_count{0};

// Never destroyed: handlers run until the process ends.
struct Descriptors {
  std::mutex mutex;
  std::vector<int> closed_in_children;
};
Descriptors& descriptors() {
  static auto* instance = new Descriptors;
  return *instance;
}

void before_fork() { descriptors().mutex.lock(); }
void after_fork_in_parent() { descriptors().mutex.unlock(); }
void after_fork_in_child() {
  fork_count.fetch_add(1, std::memory_order_relaxed);
  for (int descriptor : descriptors().closed_in_children) ::close(descriptor);
  descriptors().closed_in_children.clear();
  descriptors().mutex.unlock();
}

[[maybe_unused]] const int registered =
    (descriptors(), ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child));

}  // namespace

uint64_t ProcessMark::forks() { return fork_count.load(std::memory_order_relaxed); }

Status left_in_parent(const std::string& path) {
  return Status(StatusCode::closed,
                "the database was opened before this process was forked off, by its parent")
      .with_file(path)
      .with_remedy("open it here after fork(), read-only while the parent has it open for writing");
}

void close_in_children(int descriptor) {
  std::lock_guard lock(descriptors().mutex);
  descriptors().closed_in_children.push_back(descriptor);
}

void stop_closing_in_children(int descriptor) noexcept {
  std::lock_guard lock(descriptors().mutex);
  std::erase(descriptors().closed_in_children, descriptor);
}

}  // namespace stride
