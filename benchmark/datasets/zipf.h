// Numbers that follow Zipf's law, as the YCSB workloads draw them: the method of J. Gray, P.
// Sundaresan, S. Englert, K. Baclawski, P. J. Weinberger, "Quickly Generating Billion-Record
// Synthetic Databases", SIGMOD 1994, and its uses in B. F. Cooper, A. Silberstein, E. Tam, R.
// Ramakrishnan, R. Sears, "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010.
//
//   ZipfRanks ranks(1000, 0.99);
//   uint64_t rank = ranks[random_bits];   // 0 most often
#pragma once

#include <cstdint>

#include "benchmark/harness/random_bits.h"

namespace stride::benchmark {

// 1 / 1^theta + 1 / 2^theta + ... + 1 / n^theta: the first 1000 terms one by one, the others by the
// formula of Euler and Maclaurin, which is as exact as a double. theta: 0 to 1 (left out).
double zeta(uint64_t n, double theta);

// Ranks below n, of which rank r comes with a probability near 1 / (r + 1)^theta / zeta(n, theta):
// exactly for ranks 0 and 1. Preconditions: n > 0, 0 <= theta < 1.
class ZipfRanks {
 public:
  ZipfRanks(uint64_t n, double theta);
  uint64_t operator[](uint64_t random_bits) const;
  // Makes it as if n had been so many from the start. Cheap where n grows by little.
  void grow(uint64_t n);
  uint64_t size() const { return n_; }

 private:
  void find_eta();

  uint64_t n_;
  double theta_, alpha_, zeta_of_2_, zeta_of_n_, eta_ = 0;
};

// Numbers below n of which some are much more popular than others, but scattered among all: as in
// YCSB a rank of 10 billion, hashed. Thread-safe.
class ScrambledZipf {
 public:
  ScrambledZipf(uint64_t n, double theta) : ranks_(10'000'000'000, theta), n_(n) {}
  uint64_t operator[](uint64_t random_bits) const {
    return below(scramble(ranks_[random_bits] + 1), n_);
  }

 private:
  ZipfRanks ranks_;
  uint64_t n_;
};

// Numbers below a count that grows, of which the latest are the most popular. For one thread.
class LatestZipf {
 public:
  LatestZipf(uint64_t n, double theta) : ranks_(n, theta) {}
  // `count` never falls.
  uint64_t draw(uint64_t random_bits, uint64_t count) {
    if (count > ranks_.size()) ranks_.grow(count);
    return ranks_.size() - 1 - ranks_[random_bits];
  }

 private:
  ZipfRanks ranks_;
};

}  // namespace stride::benchmark
