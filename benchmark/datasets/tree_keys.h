// The keys of the tree workload, and queries for them.
//
//   Result<KeyKind> kind = parse_key_kind("u64");
//   Result<TreeKeys> keys = TreeKeys::make(*kind, 1'000'000, seed, &parallel);
//   Result<OwnedColumn> queries = keys->draw_queries({.queries = 1000, .hit_rate = 0.5},
//   &parallel);
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "benchmark/datasets/key_columns.h"
#include "benchmark/datasets/sorted_column.h"
#include "storage/status.h"

namespace stride::benchmark {

struct KeyKind {
  std::string name;    // "u64", "fixed:16", "words", "urls_web_specs"
  uint32_t width = 0;  // bytes of a random key; 0: the keys are the lines of a file
  std::string path;    // of that file
};

// "u32", "u64", "fixed:BYTES", "words", or the path of a file.
Result<KeyKind> parse_key_kind(const std::string& text);

// Puts numbers of `bits` bits in a random-looking order: distinct numbers stay distinct, so that
// any count of distinct random keys is made without remembering those that were made before.
class Scramble {
 public:
  Scramble(unsigned bits, uint64_t seed);

  // Every step can be undone: additions and odd factors modulo a power of two, and the upper half
  // of the bits laid over the lower one.
  uint64_t operator()(uint64_t number) const {
    for (uint64_t key : keys_) {
      number = (number + key) * 0x9E3779B97F4A7C15ull & mask_;
      number ^= number >> shift_;
    }
    return number;
  }

 private:
  uint64_t mask_;
  unsigned shift_;
  uint64_t keys_[4];
};

// Distinct random keys, each of which can be made from its number alone.
class RandomKeys {
 public:
  RandomKeys(uint32_t width, uint64_t seed);

  // How many there are; 0: 2^64.
  uint64_t count() const { return count_; }
  // Writes the `width` bytes of key number i < count().
  void write(uint64_t i, std::byte* to) const;

 private:
  uint32_t width_;
  uint32_t head_;  // bytes that alone tell all keys apart
  uint64_t count_;
  Scramble scramble_;
};

struct QueryOptions {
  uint64_t queries = 1;
  double hit_rate = 1;  // chance that a query's key is there
  bool sorted = false;
  uint64_t seed = 1;
};

// Immutable. Equal arguments give equal keys and queries, with any number of threads.
class TreeKeys {
 public:
  // The first `keys` distinct lines of a file, or all where there are fewer or `keys` is 0; empty
  // lines are left out. Otherwise that many random keys. invalid_argument: no keys, or not so many
  // of that width. For files what read_text_file() returns, too.
  static Result<TreeKeys> make(const KeyKind& kind, uint64_t keys, uint64_t seed,
                               Parallel* parallel);
  // Distinct keys in random order, at least one.
  static TreeKeys of(OwnedColumn shuffled, Parallel* parallel) {
    return TreeKeys(std::move(shuffled), std::nullopt, parallel);
  }

  uint64_t size() const { return shuffled_.rows; }
  KeyColumn shuffled() const { return shuffled_.view(); }  // random order
  const SortedColumn& sorted() const { return *sorted_; }

  // Hits are drawn uniformly. Misses are further random keys, or keys of which the last bytes are
  // changed. invalid_argument: misses are asked for, and no key of the width is absent.
  Result<OwnedColumn> draw_queries(const QueryOptions& options, Parallel* parallel) const;

 private:
  TreeKeys(OwnedColumn shuffled, std::optional<RandomKeys> random, Parallel* parallel);

  Result<OwnedColumn> draw_random(const QueryOptions& options, Parallel* parallel) const;
  OwnedColumn draw_lines(const QueryOptions& options, Parallel* parallel) const;
  std::string change(Bytes key, uint64_t random) const;

  OwnedColumn shuffled_;
  std::optional<SortedColumn> sorted_;
  std::optional<RandomKeys> random_;  // none: the keys are lines
};

// Takes the first half of the bytes of each query, rounded up: prefixes that keys begin with.
OwnedColumn halves(const KeyColumn& queries, bool sorted, Parallel* parallel);

}  // namespace stride::benchmark
