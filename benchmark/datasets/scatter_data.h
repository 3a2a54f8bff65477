// Sources and their targets for scatter_add, and what their sums have to come to.
//
//   OwnedNumbers sources = make_sources(NumberType::f32, n, seed, &parallel);
//   OwnedIndexes targets = make_targets({n, 1'000'000, *parse_distribution("zipf:1.1")}, 4,
//   &parallel);
//   ScatterReference reference(sources.view(), targets.view(), 1'000'000, operation, &parallel);
//   Status s = reference.check(t, ScatterMode::fast, &parallel);  // of T that was all 0 before
#pragma once

#include <cstdint>
#include <string>

#include "benchmark/harness/parallel.h"
#include "gpu/backend.h"
#include "storage/status.h"

namespace stride::benchmark {

struct TargetDistribution {
  enum class Kind { uniform, sorted, zipf };
  std::string name = "uniform";
  Kind kind = Kind::uniform;
  double exponent = 0;  // of zipf
};

// "uniform", "sorted", "zipf:1.1".
Result<TargetDistribution> parse_distribution(const std::string& text);

struct TargetOptions {
  uint64_t sources = 0;
  uint64_t targets = 1;
  TargetDistribution distribution;
  uint64_t seed = 1;
};

struct OwnedIndexes {
  BulkVector<uint64_t> words;
  uint64_t size = 0;
  uint32_t width = 4;

  Indexes view() const { return {words.data(), size, width}; }
  uint64_t operator[](uint64_t i) const {
    return width == 4 ? reinterpret_cast<const uint32_t*>(words.data())[i] : words[i];
  }
};

struct OwnedNumbers {
  NumberType type = NumberType::none;
  BulkVector<uint64_t> words;
  uint64_t size = 0;

  Numbers view() const { return {type, words.data(), size}; }
};

// The same targets for both widths and any number of threads.
//   uniform  each target is as likely as any other
//   sorted   such targets in ascending order, made in that order: the i-th of n uniform numbers is
//            the sum of i of n + 1 exponentially distributed ones over the sum of all (L. Devroye:
//            Non-Uniform Random Variate Generation, 1986, V.3)
//   zipf:S   the k-th hottest target is as likely as 1 / k^S, S from 0 to 10, by
//   rejection-inversion
//            (W. Hoermann, G. Derflinger, 1996); hot targets lie anywhere in T
// Precondition: targets is 1 or more, and with a width of 4 at most 2^32.
OwnedIndexes make_targets(const TargetOptions& options, uint32_t width, Parallel* parallel);

// Integers of all bits, and floats from -1 to 1: multiples of 2^-23 (f32), 2^-52 (f64) and 2^-11
// (f16), bf16 being cut f32.
OwnedNumbers make_sources(NumberType type, uint64_t n, uint64_t seed, Parallel* parallel);

// What type T has for sources of this one.
inline NumberType sum_type_of(NumberType source) {
  return source == NumberType::f16 || source == NumberType::bf16 ? NumberType::f32 : source;
}

// The numbers of T after one scatter of all sources to zeros. Floats are added in two doubles, what
// is lost in the first one going to the second, so that what they are off by counts for nothing.
class ScatterReference {
 public:
  // Precondition: all targets are below target_count.
  ScatterReference(const Numbers& sources, const Indexes& targets, uint64_t target_count,
                   ScatterOperation operation, Parallel* parallel);

  // t: as many numbers of sum_type_of(sources). corruption names a target that is wrong. Integers,
  // and min and max, are to be exact. With u the unit roundoff of T's type, a float sum of c
  // sources may be off by
  //   fast          (c + 1) * u * the sum of their absolute values, which holds for any order of
  //                 additions (C.-P. Jeannerod, S. M. Rump: Improved error bounds for inner
  //                 products in floating-point arithmetic, 2013)
  //   reproducible  c * max |S| * 2^-b (gpu/scatter_add.h), and u + 2^-50 of the sum
  Status check(const void* t, ScatterMode mode, Parallel* parallel) const;

 private:
  struct FloatSum {
    double sum, lost;  // the sum is both
    double magnitude;  // of absolute values
    uint64_t count;

    void add(double x);
  };

  template <class T>
  Status check_exact(const T* t, Parallel* parallel) const;
  template <class T>
  Status check_sums(const T* t, ScatterMode mode, Parallel* parallel) const;

  NumberType type_;  // of T
  uint64_t sources_;
  bool exact_;
  double largest_ = 0;            // of absolute values
  BulkVector<uint64_t> results_;  // bits of what is exact
  BulkVector<FloatSum> sums_;
};

// A number that says whether two T have the same bits.
uint64_t hash_numbers(NumberType type, const void* t, uint64_t n, Parallel* parallel);

}  // namespace stride::benchmark
