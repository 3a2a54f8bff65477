// Asks for the cache line at p, which need not be valid memory.
//
//   prefetch(row_ahead);   // some hundred cycles before it is read
#pragma once

namespace stride {

// Not __builtin_prefetch() where the instruction can be named: g++ 12 counts that as having no
// effect, and so drops calls of functions and lambdas that do nothing else.
inline void prefetch(const void* p) {
#if defined(__x86_64__) && !defined(__CUDACC__)
  asm volatile("prefetcht0 (%0)" : : "r"(p));
#elif defined(__aarch64__) && !defined(__CUDACC__)
  asm volatile("prfm pldl1keep, [%0]" : : "r"(p));
#else
  __builtin_prefetch(p);
#endif
}

}  // namespace stride
