// Sleeping on a word of memory, and waking who sleeps there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace stride {

// Sleeps while the word has this value; it may wake for no reason.
void futex_wait(std::atomic<uint32_t>& word, uint32_t value) noexcept;
// The same, for so long at most.
void futex_wait(std::atomic<uint32_t>& word, uint32_t value,
                std::chrono::nanoseconds at_most) noexcept;
// Wakes one thread. The word itself is not read and may be gone: then a thread that waits at the
// same place for something else wakes without need.
void futex_wake(std::atomic<uint32_t>* word) noexcept;

// Tells the processor that this thread looks at a word again and again.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace stride
