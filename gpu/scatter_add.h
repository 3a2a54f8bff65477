// T[R[i]] += S[i] for columns of any size: sources S, their targets R, and the sums T.
//
//   ScatterReport report;
//   Status s = backend->scatter().apply(Numbers::of(weights), Indexes::of(targets),
//                               MutableNumbers::of(sums), {.mode = ScatterMode::reproducible},
//                               &report);
//   // report.out_of_range sources had no target, and changed nothing.
//
// The same with min and max. Integers are exact and wrap (two's complement). Floats are added
// either
//   fast          in whatever order threads come: each sum may differ in its last bits from run to
//                 run; or
//   reproducible  with the same bits on every run, from every backend and for every number of
//                 threads. Each source is cut to a multiple of a quantum that depends on the
//                 largest finite |S[i]| and the number of sources n alone, multiples are added as
//                 integers, exactly and in any order, and T becomes T + sum, in doubles. A cut is
//                 off by at most max |S| * 2^-b, where b is 2 * (62 - ceil(log2(n + 1))), 64 for a
//                 billion sources (max |S| counts as 2^-900 where it is less). After J. Demmel, H.
//                 D. Nguyen: Parallel reproducible summation (2015), with integers for bins.
//
// Fast sums of f32 on a device take subnormal numbers for 0. Infinities and NaN give what IEEE 754
// says of a sum; a NaN that reproducible mode returns is the quiet one without payload. Min and max
// are exact, ignore sources that are NaN, and order as IEEE 754's totalOrder does: -0 before +0, a
// positive NaN in T behind all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "storage/number.h"
#include "storage/status.h"

namespace stride {

template <class T>
constexpr NumberType number_type_of() {
  if constexpr (std::is_same_v<T, int32_t>)
    return NumberType::i32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return NumberType::i64;
  else if constexpr (std::is_same_v<T, float>)
    return NumberType::f32;
  else {
    static_assert(std::is_same_v<T, double>, "a column of int32_t, int64_t, float or double");
    return NumberType::f64;
  }
}

// Views, in host memory or that of the backend's device, aligned to the width of an entry.
struct Numbers {
  NumberType type = NumberType::none;
  const void* data = nullptr;  // null: every number is 1, which counts
  uint64_t size = 0;

  template <class T>
  static Numbers of(std::span<const T> s) {
    return {number_type_of<T>(), s.data(), s.size()};
  }
  static Numbers ones(NumberType type, uint64_t size) { return {type, nullptr, size}; }
};

struct MutableNumbers {
  NumberType type = NumberType::none;
  void* data = nullptr;
  uint64_t size = 0;

  template <class T>
  static MutableNumbers of(std::span<T> s) {
    return {number_type_of<T>(), s.data(), s.size()};
  }
};

struct Indexes {
  const void* data = nullptr;
  uint64_t size = 0;
  uint32_t width = 4;  // bytes: 4 or 8, unsigned

  static Indexes of(std::span<const uint32_t> s) { return {s.data(), s.size(), 4}; }
  static Indexes of(std::span<const uint64_t> s) { return {s.data(), s.size(), 8}; }
};

enum class ScatterOperation : uint8_t { add, min, max };
enum class ScatterMode : uint8_t { fast, reproducible };

// What becomes of a source whose target is not below T's size.
enum class OutOfRange : uint8_t {
  count,  // it is left out, and reported
  error,  // invalid_argument, and T is as it was
};

// How it is done. All give the same sums, but for the last bits of fast floats. On a device min
// and max know automatic and direct alone.
enum class ScatterMethod : uint8_t {
  automatic,  // by sizes and a sample of the targets
  direct,     // every source, or run of sources of one target, goes to T in memory
  // Threads or blocks have copies of T, which are added up: for few targets. On a device a copy has
  // to fit into the shared memory of a block.
  privatized,
  // The heavy hitters, targets that a sample meets often, have such copies, the others none. Needs
  // a device, 16,384 sources and less than 2^32 - 1 targets.
  heavy_hitters,
  // Sources are first brought together by ranges of targets: for T beyond the caches. On the host
  // even fast sums then have the bits of a plain loop, whatever the number of threads. It takes 2
  // bytes and a number of T's type for each of max(2^22, 2 * targets) sources at most. On a device
  // R has 32 bits, and T less than 2^32 - 1 numbers.
  partition,
};

struct ScatterOptions {
  ScatterOperation operation = ScatterOperation::add;
  ScatterMode mode = ScatterMode::fast;
  OutOfRange out_of_range = OutOfRange::count;
  // For experiments. invalid_argument, and T is as it was: one that the backend does not know, or
  // not for such columns. resource_exhausted: one that the device has no memory for.
  ScatterMethod method = ScatterMethod::automatic;
  // The work is started on this cudaStream_t of a device. All columns are in the device's memory
  // until it is done, there is no report, and OutOfRange::error cannot be asked for. Null: the call
  // returns when all is done.
  void* stream = nullptr;
};

struct ScatterReport {
  uint64_t out_of_range = 0;                 // sources without a target
  uint64_t first_out_of_range = UINT64_MAX;  // the smallest i of these
};

// Targets R that are used again and again with other S. What is prepared is kept where the backend
// works. Applying it is one call at a time for each object. Must not outlive its backend.
class PreparedScatter {
 public:
  virtual ~PreparedScatter() = default;
  uint64_t sources() const { return sources_; }
  uint64_t targets() const { return targets_; }
  // Reports on the targets that it was made of: those out of range change nothing.
  const ScatterReport& report() const { return report_; }
  virtual uint64_t memory_bytes() const = 0;

  // T[R[i]] += S[i]. On a device the order of additions is its own, the same on every run,
  // where there are a million sources or more, 50,000 targets or more but no more than sources, and
  // S has 32 bits (sums of floats may else differ in their last bits); with
  // ScatterMode::reproducible the bits are those of Scatter::apply(). invalid_argument: S
  // has not sources() entries, T not targets(), or their types do not go together. stream: null,
  // and the call returns when all is done; or a cudaStream_t on which the work is started, with S
  // and T in the device's memory until it is done.
  Status apply(const Numbers& sources, const MutableNumbers& into,
               ScatterMode mode = ScatterMode::fast, void* stream = nullptr) const;

 protected:
  PreparedScatter(uint64_t sources, uint64_t targets) : sources_(sources), targets_(targets) {}

  ScatterReport report_;

 private:
  // As apply(); the arguments were checked, and there is at least one source.
  virtual Status apply_checked(const Numbers& sources, const MutableNumbers& into, ScatterMode mode,
                               void* stream) const = 0;

  uint64_t sources_;
  uint64_t targets_;
};

// Whether these go together: types, sizes, operation and mode. What Scatter::apply() and
// PreparedScatter::apply() check first. target_count: T's size.
Status check_scatter(const Numbers& sources, uint64_t indexes, const MutableNumbers& into,
                     const ScatterOptions& options);
// Whether it is a column of targets: what Scatter::apply() and prepare() check.
Status check_targets(const Indexes& targets);

}  // namespace stride
