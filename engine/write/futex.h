// Sleeping on a word of memory, and waking who sleeps there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace stride {

// Sleeps while the word has this value, for so long at most; it may wake for no reason.
void futex_wait(std::atomic<uint32_t>& word, uint32_t value,
                std::chrono::nanoseconds at_most) noexcept;
// Wakes one thread.
void futex_wake(std::atomic<uint32_t>& word) noexcept;
// The same for those alone that sleep with one of the bits, of any number.
void futex_wait_bits(std::atomic<uint32_t>& word, uint32_t value, uint32_t bits) noexcept;
void futex_wake_bits(std::atomic<uint32_t>& word, uint32_t bits) noexcept;

// Tells the processor that this thread looks at a word again and again.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace stride
