// What tests do less of under the sanitizers, which take up to twenty times as long.
//
//   constexpr uint64_t rows = smaller_under_tsan(300'000, 70'000);  // still more than a chunk
//
// The smaller size goes through the same code: it stays above what switches to another way.
#pragma once

namespace stride::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_thread_sanitizer = true;
#else
inline constexpr bool under_thread_sanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_address_sanitizer = true;
#else
inline constexpr bool under_address_sanitizer = false;
#endif
inline constexpr bool under_sanitizer = under_thread_sanitizer || under_address_sanitizer;

template <class T>
constexpr T smaller_under_tsan(T size, T smaller) {
  return under_thread_sanitizer ? smaller : size;
}
template <class T>
constexpr T smaller_under_sanitizers(T size, T smaller) {
  return under_sanitizer ? smaller : size;
}

}  // namespace stride::test
