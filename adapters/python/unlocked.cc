#include "adapters/python/unlocked.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace stride::python {
namespace {

// Threads that have seen no end yet and wait for the lock, or are about to.
std::atomic<int> coming_back = 0;
std::atomic<bool> is_ending = false;
std::atomic<std::thread::id> ending_thread;

}  // namespace

bool is_left_behind() { return is_ending && ending_thread.load() != std::this_thread::get_id(); }

Unlocked::~Unlocked() {
  ++coming_back;
  if (is_left_behind()) {
    --coming_back;
    for (;;) pause();
  }
  PyEval_RestoreThread(state_);
  --coming_back;
}

void leave_others_behind() {
  ending_thread = std::this_thread::get_id();
  is_ending = true;
  const Unlocked unlocked;
  const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (coming_back > 0 && std::chrono::steady_clock::now() < enough)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace stride::python
