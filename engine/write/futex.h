// Sleeping on a word of memory, and waking who sleeps there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "storage/spin_pause.h"

namespace stride {

// Sleeps while the word has this value, for so long at most; it may wake for no reason.
void futex_wait(std::atomic<uint32_t>& word, uint32_t value,
                std::chrono::nanoseconds at_most) noexcept;
// Wakes one thread.
void futex_wake(std::atomic<uint32_t>& word) noexcept;
// The same for those alone that sleep with one of the bits, of any number.
void futex_wait_bits(std::atomic<uint32_t>& word, uint32_t value, uint32_t bits) noexcept;
void futex_wake_bits(std::atomic<uint32_t>& word, uint32_t bits) noexcept;

}  // namespace stride
