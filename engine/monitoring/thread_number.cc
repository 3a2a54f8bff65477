#include "engine/monitoring/thread_number.h"

#include <atomic>
#include <bit>
#include <cstdint>

namespace stride::thread_numbers {
namespace {

static_assert(max_own_numbers == 64);
std::atomic<uint64_t> taken{0};  // a bit for each number
std::atomic<size_t> shared{0};   // counts the threads that found none

// Without a lock: a child that is forked meanwhile would have a copy of it that nobody unlocks.
size_t take_own() noexcept {
  uint64_t before = taken.load(std::memory_order_relaxed);
  while (~before != 0) {
    const auto number = static_cast<size_t>(std::countr_one(before));
    if (taken.compare_exchange_weak(before, before | uint64_t{1} << number,
                                    std::memory_order_acq_rel))
      return number;
  }
  return max_own_numbers + shared.fetch_add(1, std::memory_order_relaxed) % max_own_numbers;
}

// Gives the number of a thread that ends to others. What the thread still does then shares one.
class GivenBack {
 public:
  explicit GivenBack(size_t number) noexcept : number_(number) {}
  ~GivenBack() {
    of_this_thread = max_own_numbers + 1;
    if (number_ < max_own_numbers)
      taken.fetch_and(~(uint64_t{1} << number_), std::memory_order_acq_rel);
  }

 private:
  const size_t number_;
};

}  // namespace

constinit thread_local size_t of_this_thread = 0;

size_t take() noexcept {
  thread_local const GivenBack given_back((of_this_thread = 1 + take_own()) - 1);
  return of_this_thread - 1;
}

}  // namespace stride::thread_numbers
