// What a thread does between two looks at a word that another one changes.
#pragma once

namespace stride {

// Tells the processor that this thread looks at a word again and again.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace stride
