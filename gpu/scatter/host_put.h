// Puts sources into the cells of their targets: one after the other, in runs of one target, and in
// parts whose targets nearly ascend.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "gpu/host/task_pool.h"
#include "gpu/scatter/host_operations.h"
#include "gpu/scatter/host_plan.h"
#include "gpu/scatter/scatter_partition.h"
#include "gpu/scatter_add.h"

namespace stride {

template <class Index>
ScatterReport count_left_out(const Index* targets, uint64_t begin, uint64_t end, uint64_t limit) {
  ScatterReport report;
  for (uint64_t i = begin; i < end; ++i) report.out_of_range += targets[i] >= limit;
  if (report.out_of_range == 0) return report;
  report.first_out_of_range = begin;
  while (targets[report.first_out_of_range] < limit) ++report.first_out_of_range;
  return report;
}

inline ScatterReport count_out_of_range(const RunRanges& run, const Indexes& targets,
                                        uint64_t limit) {
  SharedReport report;
  run(targets.size, reduce_grain, [&](uint64_t begin, uint64_t end) {
    with_indexes(targets, [&](const auto* r) { report.add(count_left_out(r, begin, end, limit)); });
  });
  return report.get();
}

// Long runs of one target, as sorted ones are, are put as one: else each source would wait for the
// one before it to come back from memory. leave(first, last): of a target that is not is_cell(t).
template <class Op, class Source, class Index, class Cells, class IsCell, class Leave>
void put_runs(const Op& op, const Source& source, const Index* targets, uint64_t begin,
              uint64_t end, Cells& cells, const IsCell& is_cell, const Leave& leave) {
  auto value = [&](uint64_t i) { return op.value(source(i)); };
  for (uint64_t i = begin; i < end;) {
    const uint64_t first = i;
    const Index t = targets[i];
    auto sum = value(i++);
    for (; i + 4 <= end && targets[i] == t && targets[i + 1] == t && targets[i + 2] == t &&
           targets[i + 3] == t;
         i += 4)
      sum = Op::join(
          sum, Op::join(Op::join(value(i), value(i + 1)), Op::join(value(i + 2), value(i + 3))));
    for (; i < end && targets[i] == t; ++i) sum = Op::join(sum, value(i));
    if (is_cell(t))
      op.put(cells, t, sum);
    else
      leave(first, i);
  }
}

// Whether the targets of a block of sources are runs, most of them long.
template <class Index>
bool is_runs(const Index* targets, uint64_t first, uint64_t last) {
  // Runs are shorter where fewer neighbours are alike.
  constexpr uint32_t alike_in_runs = block_sources - block_sources / 32;
  uint32_t alike = 0;
  for (uint64_t i = first + 1; i < last; ++i) alike += targets[i] == targets[i - 1];
  return alike >= alike_in_runs;
}

// A look at all blocks would take as long as a third of the additions.
inline constexpr uint32_t blocks_a_look = 8;

// Sources [begin, end), in order.
template <class Op, class Source, class Index, class Cells>
ScatterReport put_sources(const Op& op, const Source& source, const Index* targets, uint64_t begin,
                          uint64_t end, uint64_t limit, Cells& cells) {
  // In a core's own cache the processor sees far enough ahead itself.
  constexpr uint64_t near_bytes = 1 << 20, prefetch_distance = 64;
  const bool is_far = limit * Op::cell_bytes > near_bytes;
  ScatterReport left;
  [[maybe_unused]] uint32_t block = 0;
  bool has_runs = false;
  for (uint64_t first = begin; first < end; first += block_sources) {
    const uint64_t last = std::min(end, first + block_sources);
    if constexpr (Op::has_slow_chains) {
      if (block++ % blocks_a_look == 0) has_runs = is_runs(targets, first, last);
      if (has_runs) {
        put_runs(
            op, source, targets, first, last, cells, [=](Index t) { return t < limit; },
            [&](uint64_t from, uint64_t to) {
              left.first_out_of_range = std::min(left.first_out_of_range, from);
              left.out_of_range += to - from;
            });
        continue;
      }
    }
    if constexpr (Op::takes_blocks) {
      Index largest = 0;
      for (uint64_t i = first; i < last; ++i) largest = std::max(largest, targets[i]);
      if (largest < limit) {
        if (is_far)
          for (uint64_t i = first; i < last; ++i) op.prefetch(cells, targets[i]);
        op.put_block(
            cells, last - first, [&](uint64_t k) { return source(first + k); },
            [&](uint64_t k) { return targets[first + k]; });
        continue;
      }
    }
    auto put_one = [&](uint64_t i) {
      if (targets[i] < limit) {
        op.put(cells, targets[i], op.value(source(i)));
      } else if (left.out_of_range++ == 0) {
        left.first_out_of_range = i;
      }
    };
    uint64_t i = first;
    if (is_far)
      for (const uint64_t ahead = end - std::min(end - first, prefetch_distance);
           i < std::min(last, ahead); ++i) {
        op.prefetch(cells, targets[i + prefetch_distance]);
        put_one(i);
      }
    for (; i < last; ++i) put_one(i);
  }
  return left;
}

template <class Op, class Cells>
void put_pieces(const Op& op, std::span<const ScatterPiece<typename Op::Number>> pieces,
                Cells& cells) {
  using Number = typename Op::Number;
  auto put = [&](uint64_t n, const uint16_t* places, const auto& source) {
    if constexpr (Op::takes_blocks) {
      for (uint64_t first = 0; first < n; first += block_sources)
        op.put_block(
            cells, std::min(block_sources, n - first),
            [&](uint64_t k) { return source(first + k); },
            [&](uint64_t k) { return places[first + k]; });
    } else {
      for (uint64_t i = 0; i < n; ++i) op.put(cells, places[i], source(i));
    }
  };
  for (const auto& piece : pieces) {
    if (piece.values)
      put(piece.size, piece.places, Plain<Number>{piece.values});
    else
      put(piece.size, piece.places, Ones<Number>());
  }
}

// cells_of(w): the cells of part w of the sources.
template <class Op, class Source, class Index, class CellsOf>
ScatterReport put_parts(TaskPool& pool, const Op& op, const Source& source, const Index* targets,
                        uint64_t n, uint64_t limit, uint64_t parts, const CellsOf& cells_of) {
  SharedReport report;
  pool.run_each(parts, [&](uint64_t w, uint64_t) {
    auto&& cells = cells_of(w);
    report.add(put_sources(op, source, targets, n * w / parts, n * (w + 1) / parts, limit, cells));
  });
  return report.get();
}

// A part of the sources, up to `end`, whose targets are above those of the part before it and not
// above `last`: all of them where targets ascend, most of them where they nearly do.
template <class Index>
struct AscendingPart {
  uint64_t end;
  Index last;
};

// At most `count` parts. The last has all targets that are left.
template <class Index>
std::vector<AscendingPart<Index>> cut_ascending(const Index* targets, uint64_t n, uint64_t limit,
                                                uint64_t count) {
  constexpr uint64_t apart = 64, all = std::numeric_limits<Index>::max();
  const AscendingPart<Index> rest = {n, static_cast<Index>(std::min(limit - 1, all))};
  std::vector<AscendingPart<Index>> parts;
  for (uint64_t k = 1; k < count; ++k) {
    const uint64_t at = n * k / count;
    if (at < apart || at + apart > n) continue;
    // The middle one of three, for one alone may be anywhere.
    const Index a = targets[at - 1], b = targets[at - apart], c = targets[at + apart - 1];
    const Index last = std::max(std::min(a, b), std::min(std::max(a, b), c));
    const uint64_t end = std::upper_bound(targets + at, targets + n, last) - targets;
    if (last >= rest.last || end == n) break;
    if (parts.empty() || (last > parts.back().last && end > parts.back().end))
      parts.push_back({end, last});
  }
  parts.push_back(rest);
  return parts;
}

// The thread that has one part of the sources: alone it puts what goes to the part's targets.
template <class Op, class Source, class Index, class T>
class AscendingPut {
 public:
  AscendingPut(const Op& op, const Source& source, const Index* targets, T* into)
      : op_(op), source_(source), targets_(targets), into_(into) {}

  // Sources [begin, end) are the part's, and so are targets from `first` to `last`.
  void run(uint64_t begin, uint64_t end, Index first, Index last) {
    constexpr uint64_t chunk = block_sources * blocks_a_look;
    first_ = first;
    span_ = last - first;
    // This keeps lists short where only the sample ascended.
    const uint64_t most = (end - begin) / 32 + 64;
    for (uint64_t at = begin; at < end; at += chunk) {
      if (elsewhere_.size() > most) return leave(at, end);
      put_chunk(at, std::min(end, at + chunk));
    }
  }
  // Stretches of sources whose targets are not the part's.
  const std::vector<std::pair<uint64_t, uint64_t>>& elsewhere() const { return elsewhere_; }

 private:
  bool is_here(Index t) const { return static_cast<Index>(t - first_) <= span_; }
  void leave(uint64_t begin, uint64_t end) {
    if (!elsewhere_.empty() && elsewhere_.back().second == begin)
      elsewhere_.back().second = end;
    else
      elsewhere_.push_back({begin, end});
  }
  void put_one(uint64_t i) {
    if (is_here(targets_[i]))
      op_.put(into_, targets_[i], op_.value(source_(i)));
    else
      leave(i, i + 1);
  }
  void put_chunk(uint64_t begin, uint64_t end) {
    if constexpr (Op::has_slow_chains)
      if (is_runs(targets_, begin, std::min(end, begin + block_sources)))
        return put_runs(
            op_, source_, targets_, begin, end, into_, [&](Index t) { return is_here(t); },
            [&](uint64_t from, uint64_t to) { leave(from, to); });
    // Where targets lie close together, the processor sees far enough ahead itself.
    constexpr uint64_t close_bytes = 64;
    const Index span = targets_[end - 1] - targets_[begin];
    if (span <= (end - begin) * (close_bytes / sizeof(T)))
      put_near<false>(begin, end);
    else
      put_near<true>(begin, end);
  }
  // As fast as a loop that looks at no target: what it uses lies in registers.
  template <bool prefetch>
  void put_near(uint64_t begin, uint64_t end) {
    constexpr uint64_t group = 4, distance = 64;
    const Op op = op_;
    const Source source = source_;
    const Index* const targets = targets_;
    T* const into = into_;
    const Index first = first_, span = span_;
    uint64_t i = begin;
    for (; i + group <= end; i += group) {
      Index t[group];
      bool others = false;
      for (uint64_t k = 0; k < group; ++k) {
        t[k] = targets[i + k];
        others |= static_cast<Index>(t[k] - first) > span;
      }
      if (others) [[unlikely]] {
        for (uint64_t k = 0; k < group; ++k) put_one(i + k);
        continue;
      }
      if constexpr (prefetch)
        for (uint64_t k = 0; k < group; ++k)
          op.prefetch(into, targets[std::min(i + k + distance, end - 1)]);
      for (uint64_t k = 0; k < group; ++k) op.put(into, t[k], op.value(source(i + k)));
    }
    for (; i < end; ++i) put_one(i);
  }

  const Op op_;
  const Source source_;
  const Index* const targets_;
  T* const into_;
  Index first_ = 0, span_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> elsewhere_;
};

// Puts sources whose targets nearly ascend. What is not its part's is put when all are done.
template <class Op, class Source, class Index, class T>
ScatterReport put_ascending(TaskPool& pool, const Op& op, const Source& source,
                            const Index* targets, uint64_t n, T* into, uint64_t limit) {
  const auto parts = cut_ascending(targets, n, limit, 4 * pool.threads());
  std::vector<AscendingPut<Op, Source, Index, T>> puts(parts.size(), {op, source, targets, into});
  pool.run_each(parts.size(), [&](uint64_t k, uint64_t) {
    const bool is_first = k == 0;
    puts[k].run(is_first ? 0 : parts[k - 1].end, parts[k].end, is_first ? 0 : parts[k - 1].last + 1,
                parts[k].last);
  });
  SharedReport report;
  for (const auto& put : puts)
    for (auto [begin, end] : put.elsewhere())
      report.add(put_sources(op, source, targets, begin, end, limit, into));
  return report.get();
}

}  // namespace stride
