#include "benchmark/datasets/sorted_column.h"

#include <algorithm>
#include <functional>
#include <ranges>

namespace stride::benchmark {
namespace {

constexpr uint64_t min_queries_per_part = 256;  // fewer are not worth another core

// Searches for row i of the queries: among integers, or by comparing bytes.
template <class Number>
struct NumberSearch {
  const BulkVector<Number>& sorted;
  const KeyColumn& queries;

  Number query(uint64_t i) const {
    return load_big_endian<Number>(queries.data + i * sizeof(Number));
  }
  uint64_t lower_bound(uint64_t i) const {
    return static_cast<uint64_t>(std::lower_bound(sorted.begin(), sorted.end(), query(i)) -
                                 sorted.begin());
  }
  bool equals(uint64_t rank, uint64_t i) const { return sorted[rank] == query(i); }
};

struct ByteSearch {
  const SortedColumn& sorted;
  const KeyColumn& queries;

  uint64_t lower_bound(uint64_t i) const { return sorted.lower_bound(queries[i]); }
  bool equals(uint64_t rank, uint64_t i) const {
    return compare(sorted.view()[rank], queries[i]) == 0;
  }
};

// The first rank in [first, keys.size) whose key `is_before` does not hold for.
template <class IsBefore>
uint64_t partition_point(const KeyColumn& keys, uint64_t first, const IsBefore& is_before) {
  auto ranks = std::views::iota(static_cast<uint32_t>(first), static_cast<uint32_t>(keys.size));
  auto found =
      std::ranges::partition_point(ranks, is_before, [&](uint32_t rank) { return keys[rank]; });
  return first + static_cast<uint64_t>(found - ranks.begin());
}

}  // namespace

SortedColumn::SortedColumn(const KeyColumn& keys, Parallel* parallel) {
  if (keys.is_fixed() && keys.width == 4) {
    numbers4_ = sorted_numbers<uint32_t>(keys, parallel);
    column_ = column_of(numbers4_, parallel);
  } else if (keys.is_fixed() && keys.width == 8) {
    numbers8_ = sorted_numbers<uint64_t>(keys, parallel);
    column_ = column_of(numbers8_, parallel);
  } else {
    column_ = sorted_copy(keys, parallel);
  }
}

uint64_t SortedColumn::lower_bound(Bytes key) const {
  return partition_point(view(), 0, [&](Bytes other) { return compare(other, key) < 0; });
}

bool SortedColumn::contains(Bytes key) const {
  uint64_t rank = lower_bound(key);
  return rank < size() && compare(view()[rank], key) == 0;
}

RankInterval SortedColumn::prefix_interval(Bytes prefix) const {
  uint64_t first = lower_bound(prefix);
  uint64_t last = partition_point(
      view(), first, [&](Bytes key) { return as_text(key).starts_with(as_text(prefix)); });
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(last)};
}

// Calls run(search) with the search that suits the queries.
template <class Run>
void SortedColumn::with_search(const KeyColumn& queries, const Run& run) const {
  if (queries.is_fixed() && queries.width == 4 && !numbers4_.empty()) {
    run(NumberSearch<uint32_t>{numbers4_, queries});
  } else if (queries.is_fixed() && queries.width == 8 && !numbers8_.empty()) {
    run(NumberSearch<uint64_t>{numbers8_, queries});
  } else {
    run(ByteSearch{*this, queries});
  }
}

void SortedColumn::lower_bound(const KeyColumn& queries, Parallel* parallel,
                               std::span<uint32_t> out) const {
  with_search(queries, [&](const auto& search) {
    auto body = [&](unsigned, uint64_t begin, uint64_t end) {
      for (; begin < end; ++begin) out[begin] = static_cast<uint32_t>(search.lower_bound(begin));
    };
    parallel->for_parts(queries.size, min_queries_per_part, body);
  });
}

void SortedColumn::find_ranks(const KeyColumn& queries, Parallel* parallel,
                              std::span<uint32_t> out) const {
  with_search(queries, [&](const auto& search) {
    auto body = [&](unsigned, uint64_t begin, uint64_t end) {
      for (; begin < end; ++begin) {
        uint64_t rank = search.lower_bound(begin);
        bool found = rank < size() && search.equals(rank, begin);
        out[begin] = found ? static_cast<uint32_t>(rank) : Location::absent;
      }
    };
    parallel->for_parts(queries.size, min_queries_per_part, body);
  });
}

}  // namespace stride::benchmark
