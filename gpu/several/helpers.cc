#include "gpu/several/helpers.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <thread>
#include <utility>

#include "storage/spin_pause.h"
#include "storage/work_watch.h"

namespace stride {

namespace {

// To wake a thread that sleeps takes as long as a small piece of work: those that wait look again
// and again for so long before they sleep.
constexpr std::chrono::microseconds spin_time{150};

// Whether there are processors that have nothing better to do.
bool may_spin(uint64_t threads) {
  static const uint64_t processors = std::thread::hardware_concurrency();
  return 2 * threads <= processors;
}

// Returns whether it is, at last.
template <class Condition>
bool spin_until(const Condition& is_so) {
  const auto end = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (is_so()) return true;
      spin_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return is_so();
}

}  // namespace

// One thread, with at most one call at a time.
class Helpers::Helper {
 public:
  explicit Helper(const std::atomic<uint64_t>& all) : all_(all), thread_([this] { serve(); }) {}
  ~Helper() {
    ends_ = true;
    wake();
    thread_.join();
  }

  // Precondition: the call before it was waited for. call: lives until wait() returns.
  void start(const std::function<void(uint64_t)>& call, uint64_t number) {
    number_ = number;
    watch_ = WorkWatch::current();
    call_ = &call;
    wake();
  }
  void wait() {
    wait_until([this] { return call_ == nullptr; });
  }

 private:
  // What others change is changed before they look for sleepers, and a sleeper looks at it again.
  void wake() {
    if (sleepers_ == 0) return;
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  template <class Condition>
  void wait_until(const Condition& is_so) {
    if (may_spin(all_) && spin_until(is_so)) return;
    std::unique_lock lock(mutex_);
    ++sleepers_;
    changed_.wait(lock, is_so);
    --sleepers_;
  }
  void serve() {
    for (;;) {
      wait_until([this] { return call_ != nullptr || ends_; });
      if (call_ == nullptr) return;
      {
        const WorkWatch::Scope watched(watch_);
        (*call_.load())(number_);
      }
      call_ = nullptr;
      wake();
    }
  }

  const std::atomic<uint64_t>& all_;  // helpers
  std::mutex mutex_;                  // of sleepers
  std::condition_variable changed_;
  std::atomic<uint64_t> sleepers_{0};
  std::atomic<const std::function<void(uint64_t)>*> call_{nullptr};  // null: nothing to do
  uint64_t number_ = 0;
  WorkWatch* watch_ = nullptr;
  std::atomic<bool> ends_{false};
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
  return std::make_unique<Helper>(helpers_);
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
