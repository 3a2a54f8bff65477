// Sources brought together by ranges of targets: what is done to a range then stays in a core's
// cache. They are taken in blocks. In a block each thread spreads stretches of sources over the
// ranges, and then each range is taken by one thread, stretch by stretch: every target gets its
// sources in their order, whatever the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "gpu/bulk_vector.h"
#include "gpu/host/task_pool.h"

namespace stride {

// Puts the reports of stretches of the sources together.
class SharedReport {
 public:
  void add(const ScatterReport& part) {
    if (part.out_of_range == 0) return;
    std::lock_guard lock(mutex_);
    report_.out_of_range += part.out_of_range;
    report_.first_out_of_range = std::min(report_.first_out_of_range, part.first_out_of_range);
  }
  const ScatterReport& get() const { return report_; }

 private:
  std::mutex mutex_;
  ScatterReport report_;
};

// The sources of a stretch that go to one range, in their order.
template <class T>
struct ScatterPiece {
  const uint16_t* places;  // their targets, from the range's first
  const T* values;         // null: all are 1
  uint64_t size;
};

// A range's turn. Each range has one in each block, and blocks come in order.
template <class T>
struct RangeTurn {
  uint64_t worker;  // no other thread uses this number at the same time
  uint64_t range;
  std::span<const ScatterPiece<T>> pieces;
  bool is_last;  // of this range
};

struct ScatterPartition {
  uint32_t range_log;  // targets of a range: 2^range_log, the last has fewer
  uint64_t ranges;
  uint64_t stretch;  // sources
  uint64_t block;    // sources, whole stretches
  uint64_t blocks;

  // limit: not 0. cell_bytes: what a target takes while sources are added. value_bytes: a source's.
  static ScatterPartition of(uint64_t n, uint64_t limit, uint64_t cell_bytes, uint64_t value_bytes,
                             uint64_t threads) {
    ScatterPartition p;
    p.range_log = cell_bytes <= 4 ? 16 : 15;
    while (p.range_log > 10 && limit >> p.range_log < 4 * threads) --p.range_log;
    p.ranges = ((limit - 1) >> p.range_log) + 1;
    // Is spread in a core's own cache, and has some sources for each range.
    p.stretch = std::max<uint64_t>((1 << 18) / value_bytes, std::bit_ceil(64 * p.ranges));
    // Each block reads and writes all of T.
    const uint64_t most = std::max<uint64_t>(1 << 22, 2 * limit);
    p.blocks = (n + most - 1) / most;
    const uint64_t stretches = ((n + p.blocks - 1) / p.blocks + p.stretch - 1) / p.stretch;
    p.block = stretches * p.stretch;
    p.blocks = (n + p.block - 1) / p.block;
    return p;
  }
};

// Spreads sources [begin, end) over the ranges. starts[r * step] becomes where those of range r
// begin; behind the last range are those out of range.
template <class T, class Source, class Index>
ScatterReport spread_stretch(const ScatterPartition& shape, const Source& source,
                             const Index* targets, uint64_t begin, uint64_t end, uint64_t limit,
                             uint16_t* places, T* values, uint32_t* counts, uint32_t* starts,
                             uint64_t step) {
  const uint64_t ranges = shape.ranges;
  const uint32_t range_log = shape.range_log;
  auto range_of = [=](Index t) -> uint64_t { return t < limit ? t >> range_log : ranges; };
  // Equal neighbours are counted apart, so that one need not wait for the other.
  std::fill_n(counts, 4 * (ranges + 1), 0);
  uint64_t i = begin;
  for (; i + 4 <= end; i += 4)
    for (uint64_t k = 0; k < 4; ++k) ++counts[4 * range_of(targets[i + k]) + k];
  for (; i < end; ++i) ++counts[4 * range_of(targets[i])];
  uint32_t at = 0;
  for (uint64_t r = 0; r <= ranges; ++r) {
    starts[r * step] = at;
    const uint32_t* c = counts + 4 * r;
    const uint32_t count = c[0] + c[1] + c[2] + c[3];
    counts[r] = at;
    at += count;
  }
  const auto left_out = static_cast<uint32_t>(end - begin) - counts[ranges];
  const auto mask = static_cast<Index>((1u << range_log) - 1);
  for (i = begin; i < end; ++i) {
    const Index t = targets[i];
    const uint32_t to = counts[range_of(t)]++;
    places[to] = static_cast<uint16_t>(t & mask);
    if constexpr (!Source::is_ones) values[to] = source(i);
  }
  if (left_out == 0) return {};
  i = begin;
  while (targets[i] < limit) ++i;
  return {left_out, i};
}

// source(i): source i, a T. limit: how many targets there are. take(turn) is called on all threads
// for each range and block. Needs 2 + sizeof(T) bytes (2 where all sources are 1) for each source
// of a block.
template <class T, class Source, class Index>
ScatterReport take_by_ranges(TaskPool& pool, const ScatterPartition& shape, const Source& source,
                             const Index* targets, uint64_t n, uint64_t limit,
                             const std::function<void(const RangeTurn<T>&)>& take) {
  const uint64_t block = std::min(n, shape.block), stretch = std::min(n, shape.stretch);
  const uint64_t step = (block + stretch - 1) / stretch;
  // The block comes first, and behind it what each thread spreads a stretch in: on the same huge
  // pages.
  const uint64_t size = block + pool.threads() * stretch;
  BulkVector<uint16_t> places(size);
  BulkVector<T> values(Source::is_ones ? 0 : size);
  BulkVector<uint32_t> starts((shape.ranges + 1) * step);
  BulkVector<uint32_t> counts(4 * (shape.ranges + 1) * pool.threads());
  std::vector<std::vector<ScatterPiece<T>>> pieces(pool.threads());
  SharedReport report;
  // Calls work(worker, k) for each k below `count`.
  auto share = [&](uint64_t count, const auto& work) {
    std::atomic<uint64_t> next{0};
    pool.run_each(std::min<uint64_t>(count, pool.threads()), [&](uint64_t worker, uint64_t) {
      for (uint64_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < count;) work(worker, k);
    });
  };
  for (uint64_t first = 0; first < n; first += block) {
    const uint64_t last = std::min(n, first + block);
    const uint64_t stretches = (last - first + stretch - 1) / stretch;
    share(stretches, [&](uint64_t worker, uint64_t k) {
      const uint64_t begin = first + k * stretch, end = std::min(last, begin + stretch);
      const uint64_t space = block + worker * stretch;
      report.add(spread_stretch(
          shape, source, targets, begin, end, limit, places.data() + space, values.data() + space,
          counts.data() + worker * 4 * (shape.ranges + 1), starts.data() + k, step));
      // One after the other: as many streams of writes to memory as there are ranges are slow.
      std::copy_n(places.data() + space, end - begin, places.data() + k * stretch);
      if (!Source::is_ones)
        std::copy_n(values.data() + space, end - begin, values.data() + k * stretch);
    });
    share(shape.ranges, [&](uint64_t worker, uint64_t range) {
      pieces[worker].clear();
      const uint32_t* begins = starts.data() + range * step;
      for (uint64_t k = 0; k < stretches; ++k) {
        const uint64_t begin = k * stretch + begins[k], count = begins[step + k] - begins[k];
        if (count == 0) continue;
        pieces[worker].push_back(
            {places.data() + begin, Source::is_ones ? nullptr : values.data() + begin, count});
      }
      take({worker, range, pieces[worker], last == n});
    });
  }
  return report.get();
}

}  // namespace stride
