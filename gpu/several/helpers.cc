#include "gpu/several/helpers.h"

#include <condition_variable>
#include <thread>
#include <utility>

#include "storage/work_watch.h"

namespace stride {

// One thread, with at most one call at a time.
class Helpers::Helper {
 public:
  Helper() : thread_([this] { serve(); }) {}
  ~Helper() {
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Precondition: the call before it was waited for. call: lives until wait() returns.
  void start(const std::function<void(uint64_t)>& call, uint64_t number) {
    {
      std::lock_guard lock(mutex_);
      call_ = &call;
      number_ = number;
      watch_ = WorkWatch::current();
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return call_ == nullptr; });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return call_ != nullptr || ends_; });
      if (call_ == nullptr) return;
      lock.unlock();
      {
        const WorkWatch::Scope watched(watch_);
        (*call_)(number_);
      }
      lock.lock();
      call_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  const std::function<void(uint64_t)>* call_ = nullptr;  // null: there is nothing to do
  uint64_t number_ = 0;
  WorkWatch* watch_ = nullptr;
  bool ends_ = false;
  std::thread thread_;  // goes first
};

Helpers::Helpers() = default;
Helpers::~Helpers() = default;

std::unique_ptr<Helpers::Helper> Helpers::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Helper> helper = std::move(idle_.back());
      idle_.pop_back();
      return helper;
    }
    idle_.reserve(helpers_ + 1);  // there is room for all when they come back
    ++helpers_;
  }
  return std::make_unique<Helper>();
}

void Helpers::run_each(uint64_t n, const std::function<void(uint64_t)>& work) {
  if (n == 0) return;
  std::vector<std::unique_ptr<Helper>> helpers;
  helpers.reserve(n - 1);
  for (uint64_t i = 1; i < n; ++i) helpers.push_back(take());
  for (uint64_t i = 1; i < n; ++i) helpers[i - 1]->start(work, i);
  work(0);
  for (const auto& helper : helpers) helper->wait();
  std::lock_guard lock(mutex_);
  for (auto& helper : helpers) idle_.push_back(std::move(helper));
}

}  // namespace stride
