// The rows of a batch by the region of a host's table that they go to, and work on blocks of rows.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "gpu/bulk_vector.h"
#include "gpu/host/task_pool.h"
#include "gpu/set/vector_layout.h"
#include "gpu/set/vector_set_plan.h"
#include "storage/column.h"
#include "storage/prefetch.h"

namespace stride {

// Zeroed by all threads.
template <class T>
BulkVector<T> zeroed(TaskPool& pool, uint64_t n) {
  BulkVector<T> memory(n);
  pool.run(n, (4 << 20) / sizeof(T), [&](uint64_t begin, uint64_t end) {
    std::memset(static_cast<void*>(memory.data() + begin), 0, (end - begin) * sizeof(T));
  });
  return memory;
}

// Rows of a piece, and which go to which region.
class RegionRows {
 public:
  // Rows that a cache holds together with what is noted of each.
  static constexpr uint64_t rows_of_thread = 1 << 16;
  static uint64_t max_rows(const TaskPool& pool) {
    return rows_of_thread * std::min(pool.threads(), 16u);
  }

  // hash_of(row) for rows [0, n).
  template <class HashOf>
  void hash(TaskPool& pool, uint64_t n, const HashOf& hash_of) {
    hashes_.resize(n);
    pool.run(n, grain, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) hashes_[i] = hash_of(i);
    });
  }
  uint64_t hash(uint64_t row) const { return hashes_[row]; }

  // Calls run(row_at, count) for the rows of each region, on several threads: row_at(k) is the k-th
  // of them.
  template <class Run>
  void each_region(TaskPool& pool, const SlotLayout& layout, const Run& run) {
    uint64_t n = hashes_.size();
    if (pool.threads() == 1 || layout.region_bits == 0 || n < min_rows_shared)
      return run([](uint64_t k) { return k; }, n);
    sort_by_region(pool, layout);
    pool.run_each(uint64_t{1} << layout.region_bits, [&](uint64_t region, uint64_t) {
      const uint32_t* rows = order_.data() + begins_[region];
      run([rows](uint64_t k) { return uint64_t{rows[k]}; }, begins_[region + 1] - begins_[region]);
    });
  }

 private:
  static constexpr uint64_t grain = 4096, min_rows_shared = 8192;

  void sort_by_region(TaskPool& pool, const SlotLayout& layout) {
    uint64_t n = hashes_.size(), regions = uint64_t{1} << layout.region_bits;
    uint64_t pieces = std::min<uint64_t>(pool.threads(), n / grain + 1);
    auto edge = [&](uint64_t piece) { return n * piece / pieces; };
    std::vector<uint64_t> next(pieces * regions);
    pool.run_each(pieces, [&](uint64_t piece, uint64_t) {
      for (uint64_t i = edge(piece); i < edge(piece + 1); ++i)
        ++next[piece * regions + layout.region(hashes_[i])];
    });
    begins_.resize(regions + 1);
    uint64_t sum = 0;
    for (uint64_t region = 0; region < regions; ++region) {
      begins_[region] = sum;
      for (uint64_t piece = 0; piece < pieces; ++piece)
        sum += std::exchange(next[piece * regions + region], sum);
    }
    begins_[regions] = sum;
    order_.resize(n);
    pool.run_each(pieces, [&](uint64_t piece, uint64_t) {
      for (uint64_t i = edge(piece); i < edge(piece + 1); ++i)
        order_[next[piece * regions + layout.region(hashes_[i])]++] = static_cast<uint32_t>(i);
    });
  }

  BulkVector<uint64_t> hashes_;
  BulkVector<uint32_t> order_;
  std::vector<uint64_t> begins_;
};

// Calls ask(row) for a block of rows, so that their cache misses overlap, then look(row), then
// resolve(row) for each.
template <class RowAt, class Ask, class Look, class Resolve>
void in_blocks(const RowAt& row_at, uint64_t count, const Ask& ask, const Look& look,
               const Resolve& resolve) {
  constexpr uint64_t block = 32;
  for (uint64_t at = 0; at < count; at += block) {
    uint64_t end = std::min(count, at + block);
    for (uint64_t k = at; k < end; ++k) ask(row_at(k));
    for (uint64_t k = at; k < end; ++k) look(row_at(k));
    for (uint64_t k = at; k < end; ++k) resolve(row_at(k));
  }
}

// Runs what must be done now. Where memory for the other threads runs out this one does it all;
// body(begin, end) throws nothing, and may be called again for what it has done.
template <class Body>
void run_surely(TaskPool& pool, uint64_t n, uint64_t grain, const Body& body) {
  try {
    pool.run(n, grain, std::cref(body));
  } catch (const std::bad_alloc&) {
    body(0, n);
  }
}

// A bit for each flag.
inline void pack_flags(TaskPool& pool, std::span<const uint8_t> flags, uint64_t* bits) {
  run_surely(pool, bitmap_words(flags.size()), 256, [&](uint64_t begin, uint64_t end) {
    for (uint64_t w = begin; w < end; ++w) {
      uint64_t word = 0, from = w * 64, n = std::min<uint64_t>(64, flags.size() - from);
      for (uint64_t i = 0; i < n; ++i) word |= uint64_t{flags[from + i]} << i;
      bits[w] = word;
    }
  });
}

}  // namespace stride
