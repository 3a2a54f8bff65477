// A small number for each thread, so that what threads write often can lie apart.
#pragma once

#include <cstddef>

namespace stride {

// So many threads at a time have a number that is theirs alone.
inline constexpr size_t max_own_numbers = 64;

namespace thread_numbers {
// Plus 1; 0: it has none yet.
extern constinit thread_local size_t of_this_thread;
size_t take() noexcept;
}  // namespace thread_numbers

// Below max_own_numbers: no other living thread has it; whoever has it next sees all that this
// thread has written. Others share max_own_numbers and above.
inline size_t thread_number() noexcept {
  const size_t number = thread_numbers::of_this_thread;
  return number != 0 ? number - 1 : thread_numbers::take();
}

}  // namespace stride
