#include "gpu/scatter/host_methods.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "gpu/scatter/scatter_arith.h"
#include "gpu/scatter/scatter_partition.h"
#include "storage/no_throw.h"
#include "storage/status.h"

namespace stride {

namespace {

// Calls body with a pointer to the column's type: const uint32_t* or const uint64_t*.
template <class Body>
auto with_indexes(const Indexes& indexes, const Body& body) {
  if (indexes.width == 4) return body(static_cast<const uint32_t*>(indexes.data));
  return body(static_cast<const uint64_t*>(indexes.data));
}

template <class T>
struct Plain {
  static constexpr bool is_ones = false;
  const T* data;
  T operator()(uint64_t i) const { return data[i]; }
};
template <class T>
struct Ones {
  static constexpr bool is_ones = true;
  T operator()(uint64_t) const { return 1; }
};
template <class From>
struct Widened {
  static constexpr bool is_ones = false;
  const From* data;
  float operator()(uint64_t i) const { return to_float(data[i]); }
};

// Calls body with what reads source i as a number of T's type, and T.
template <class T, class Body>
auto with_sources_of(const Numbers& sources, void* into, const Body& body) {
  T* t = static_cast<T*>(into);
  if (!sources.data) return body(Ones<T>(), t);
  return body(Plain<T>{static_cast<const T*>(sources.data)}, t);
}
template <class Body>
auto with_numbers(const Numbers& sources, const MutableNumbers& into, const Body& body) {
  switch (into.type) {
    case NumberType::i32:
      return with_sources_of<int32_t>(sources, into.data, body);
    case NumberType::i64:
      return with_sources_of<int64_t>(sources, into.data, body);
    case NumberType::f64:
      return with_sources_of<double>(sources, into.data, body);
    default:
      break;
  }
  float* t = static_cast<float*>(into.data);
  if (sources.data && sources.type == NumberType::f16)
    return body(Widened<Half>{static_cast<const Half*>(sources.data)}, t);
  if (sources.data && sources.type == NumberType::bf16)
    return body(Widened<BrainHalf>{static_cast<const BrainHalf*>(sources.data)}, t);
  return with_sources_of<float>(sources, into.data, body);
}

// What is done with sources and the cells of their targets: put(cells, t, value(source)), or where
// it takes blocks, of up to block_sources, put_block(cells, count, source, target). `join` puts two
// values of one target together. A cell that is `neutral` is as if no source had come.
constexpr uint64_t block_sources = 512;

template <class T>
struct Add {
  using Number = T;
  static constexpr bool takes_blocks = false;
  static constexpr uint64_t cell_bytes = sizeof(T);
  // An addition that waits for the one before it, through memory, is slow.
  static constexpr bool has_slow_chains = std::is_floating_point_v<T>;
  static T neutral() { return 0; }
  static T value(T x) { return x; }
  static T join(T a, T b) { return wrapping_sum(a, b); }
  static void put(T* cells, uint64_t t, T x) { cells[t] = wrapping_sum(cells[t], x); }
  static void prefetch(const T* cells, uint64_t t) { __builtin_prefetch(cells + t, 1); }
};

template <class T>
struct Extreme {
  using Number = T;
  static constexpr bool takes_blocks = false;
  static constexpr uint64_t cell_bytes = sizeof(T);
  static constexpr bool has_slow_chains = false;
  bool is_min;
  T neutral() const {
    using Limits = std::numeric_limits<T>;
    // A NaN comes behind, or before, all numbers.
    if constexpr (std::is_floating_point_v<T>)
      return is_min ? Limits::quiet_NaN() : -Limits::quiet_NaN();
    else
      return is_min ? Limits::max() : Limits::min();
  }
  static T value(T x) { return x; }
  void put(T* cells, uint64_t t, T x) const {
    auto mine = total_order(x), there = total_order(cells[t]);
    if (x == x && (is_min ? mine < there : mine > there)) cells[t] = x;
  }
  static void prefetch(const T* cells, uint64_t t) { __builtin_prefetch(cells + t, 1); }
};

// Sums of cut numbers.
class CutSums {
 public:
  CutSums() = default;
  // cells: of as many numbers, in any state.
  explicit CutSums(std::span<int64_t> cells) : high_(cells) {
    std::memset(high_.data(), 0, high_.size_bytes());
  }
  bool empty() const { return high_.empty(); }
  bool has_low() const { return !low_.empty(); }
  int64_t* high() { return high_.data(); }
  int64_t* low() {
    if (low_.empty()) {
      low_.resize(high_.size());
      std::memset(low_.data(), 0, low_.size() * sizeof(int64_t));
    }
    return low_.data();
  }
  // The sum, which is 0 afterwards.
  CutNumber take(uint64_t t) {
    CutNumber sum = {high_[t], 0};
    high_[t] = 0;
    if (!low_.empty()) std::swap(sum.low, low_[t]);
    return sum;
  }

 private:
  std::span<int64_t> high_;
  BulkVector<int64_t> low_;  // empty until there is a low part: many columns have none
};

// Makes reproducible sums. What is not finite counts as 0.
template <class T>
struct Cut {
  using Number = T;
  static constexpr bool takes_blocks = true;
  static constexpr uint64_t cell_bytes = sizeof(int64_t);
  static constexpr bool has_slow_chains = true;
  SumScale scale;
  bool all_finite;
  bool is_short;  // parts are smaller than 2^51
  CutNumber value(T x) const {
    if (!all_finite && !is_finite(x)) return {0, 0};
    return cut_number(scale, x);
  }
  static CutNumber join(CutNumber a, CutNumber b) { return {a.high + b.high, a.low + b.low}; }
  static void put(CutSums& sums, uint64_t t, CutNumber x) {
    sums.high()[t] += x.high;
    if (x.low != 0) sums.low()[t] += x.low;
  }
  static void prefetch(CutSums& sums, uint64_t t) { __builtin_prefetch(sums.high() + t, 1); }
  // As cut_number(), several at once: a sum with 1.5 * 2^52 is rounded to a whole number, which its
  // last bits are.
  template <class Source, class Target>
  void put_block(CutSums& sums, uint64_t count, const Source& source, const Target& target) const {
    if (!all_finite || !is_short) {
      for (uint64_t k = 0; k < count; ++k) put(sums, target(k), value(source(k)));
      return;
    }
    constexpr double middle = 0x1.8p52;
    const double high_up = scale.high_up, low_up = scale.low_up;
    int64_t high[block_sources], low[block_sources], any_low = 0;
    for (uint64_t k = 0; k < count; ++k) {
      const double scaled = static_cast<double>(source(k)) * high_up, rounded = scaled + middle;
      const double rest = (scaled - (rounded - middle)) * low_up;
      high[k] = std::bit_cast<int64_t>(rounded) - std::bit_cast<int64_t>(middle);
      low[k] = std::bit_cast<int64_t>(rest + middle) - std::bit_cast<int64_t>(middle);
      any_low |= low[k];
    }
    int64_t* cells = sums.high();
    for (uint64_t k = 0; k < count; ++k) cells[target(k)] += high[k];
    if (any_low == 0) return;
    cells = sums.low();
    for (uint64_t k = 0; k < count; ++k) cells[target(k)] += low[k];
  }
  void fold(T* into, CutNumber sum) const {
    if (sum.high != 0 || sum.low != 0 || !all_finite) *into = folded(scale, *into, sum);
  }
  // The first `count` sums, which are 0 afterwards.
  void fold_all(T* into, CutSums& sums, uint64_t count) const {
    if (sums.has_low() || !all_finite) {
      for (uint64_t t = 0; t < count; ++t) fold(into + t, sums.take(t));
      return;
    }
    // Branch-free, because which cells are not zero can't be predicted.
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    int64_t* high = sums.high();
    for (uint64_t t = 0; t < count; ++t) {
      const auto after = static_cast<T>(static_cast<double>(into[t]) +
                                        static_cast<double>(high[t]) * scale.high_down);
      const Bits mask = Bits{0} - Bits{high[t] != 0};
      if (after != after) {
        fold(into + t, {high[t], 0});
      } else {
        into[t] = std::bit_cast<T>((std::bit_cast<Bits>(into[t]) & ~mask) |
                                   (std::bit_cast<Bits>(after) & mask));
      }
    }
    std::memset(high, 0, count * sizeof *high);
  }
};

// What ranges of rows are reduced to, on a pool's threads or a backend's.
using RunRanges = std::function<void(uint64_t n, uint64_t grain,
                                     const std::function<void(uint64_t, uint64_t)>& body)>;
constexpr uint64_t reduce_grain = 1 << 16;

template <class Index>
ScatterReport count_left_out(const Index* targets, uint64_t begin, uint64_t end, uint64_t limit) {
  ScatterReport report;
  for (uint64_t i = begin; i < end; ++i) report.out_of_range += targets[i] >= limit;
  if (report.out_of_range == 0) return report;
  report.first_out_of_range = begin;
  while (targets[report.first_out_of_range] < limit) ++report.first_out_of_range;
  return report;
}

ScatterReport count_out_of_range(const RunRanges& run, const Indexes& targets, uint64_t limit) {
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
constexpr uint32_t blocks_a_look = 8;

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

// How threads share the work.
struct Plan {
  enum Kind : uint8_t {
    copies,     // each has a copy of T, the first T itself, and a part of the sources
    sorted,     // targets nearly ascend: each has the targets of its part of the sources
    partition,  // scatter_partition.h
  };
  Kind kind = copies;
  uint64_t copies_count = 1;
};

template <class Index>
bool is_sorted(TaskPool& pool, const Index* targets, uint64_t n) {
  std::atomic<bool> sorted{true};
  pool.run(n - 1, reduce_grain, [&](uint64_t begin, uint64_t end) {
    for (uint64_t first = begin; first < end && sorted; first += 4096) {
      uint32_t falls = 0;
      for (uint64_t i = first; i < std::min(end, first + 4096); ++i)
        falls += targets[i] > targets[i + 1];
      if (falls > 0) sorted = false;
    }
  });
  return sorted;
}

// Some targets, from all places.
struct TargetSample {
  uint64_t falls = 0;     // how many are below the one before
  double hottest = 0;     // the share of the most frequent one
  double repeated = 0;    // the share of those that were met more than once
  double wide_bytes = 0;  // of the pieces of T that it met
};

// Targets nearly ascend where no more of a sample are below the one before.
constexpr uint64_t few_falls = 16;

// Cells of so many bytes are as good as in a core's own cache.
constexpr uint64_t cached_bytes = 8 << 20;

template <class Index>
TargetSample sample_of(const Index* targets, uint64_t n, uint64_t cell_bytes) {
  constexpr uint64_t size = 1024, piece_bytes = 1 << 18;
  std::vector<uint64_t> sample(size);
  for (uint64_t k = 0; k < size; ++k)
    sample[k] = targets[n / size * k + k % std::min(n / size, size)];
  TargetSample found;
  for (uint64_t k = 1; k < size; ++k) found.falls += sample[k] < sample[k - 1];
  std::sort(sample.begin(), sample.end());
  uint64_t run = 0, longest = 0, repeated = 0, pieces = 1;
  for (uint64_t k = 0; k < size; ++k) {
    run = k > 0 && sample[k] == sample[k - 1] ? run + 1 : 1;
    longest = std::max(longest, run);
    repeated += run == 2 ? 2 : run > 2 ? 1 : 0;
    pieces += k > 0 &&
              sample[k] / (piece_bytes / cell_bytes) != sample[k - 1] / (piece_bytes / cell_bytes);
  }
  found.hottest = static_cast<double>(longest) / size;
  found.repeated = static_cast<double>(repeated) / size;
  found.wide_bytes = static_cast<double>(pieces * piece_bytes);
  return found;
}

// has_cells: sums need cells of their own beside T.
template <class Index>
Plan plan_of(TaskPool& pool, const Index* targets, uint64_t n, uint64_t limit, uint64_t cell_bytes,
             bool has_cells, ScatterMethod method) {
  constexpr uint64_t least_of_a_thread = 1 << 16;
  const uint64_t threads = std::min<uint64_t>(pool.threads(), n / least_of_a_thread + 1);
  switch (method) {
    case ScatterMethod::direct:
      return {};
    case ScatterMethod::copies:
      return {.copies_count = std::min<uint64_t>(pool.threads(), n)};
    case ScatterMethod::partition:
      return {.kind = Plan::partition};
    default:
      break;
  }
  // Cells of all targets would be cleared and looked at.
  const bool few_sources = has_cells && n < limit / 4;
  if (n < 2 * least_of_a_thread) return {.kind = few_sources ? Plan::partition : Plan::copies};
  const TargetSample sample = sample_of(targets, n, cell_bytes);
  // Sums with cells need that all ascend.
  const uint64_t most_falls = has_cells ? 0 : few_falls;
  if (sample.falls <= most_falls && limit >= 64 * threads && sample.hottest < 0.5)
    return {.kind = Plan::sorted};
  // A copy is cleared and added up, in order, which takes far less than as many sources.
  const uint64_t copies = std::min(threads, 1 + 2 * n / limit);
  const bool is_narrow =
      sample.hottest > 0.25 || sample.repeated > 0.25 || sample.wide_bytes <= cached_bytes;
  if (limit * cell_bytes <= cached_bytes || (is_narrow && !few_sources)) {
    // Bringing sources together takes a thread three times as long as adding them in the cache.
    if (copies == threads || threads <= 3) return {.copies_count = copies};
  }
  return {.kind = Plan::partition};
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

constexpr uint64_t targets_grain = 1 << 14;

template <class Op, class Source, class Index, class T>
ScatterReport put_all(TaskPool& pool, const Op& op, const Source& source, const Index* targets,
                      uint64_t n, T* into, uint64_t limit, ScatterMethod method) {
  const Plan plan = plan_of(pool, targets, n, limit, sizeof(T), false, method);
  if (plan.kind == Plan::sorted) return put_ascending(pool, op, source, targets, n, into, limit);
  if (plan.kind == Plan::partition) {
    const auto shape = ScatterPartition::of(n, limit, sizeof(T), sizeof(T), pool.threads());
    return take_by_ranges<T>(pool, shape, source, targets, n, limit, [&](const RangeTurn<T>& turn) {
      T* cells = into + (turn.range << shape.range_log);
      put_pieces(op, turn.pieces, cells);
    });
  }
  std::vector<BulkVector<T>> own(plan.copies_count - 1);
  ScatterReport report =
      put_parts(pool, op, source, targets, n, limit, plan.copies_count, [&](uint64_t w) {
        if (w == 0) return into;
        own[w - 1] = BulkVector<T>(limit);
        std::fill(own[w - 1].begin(), own[w - 1].end(), op.neutral());
        return own[w - 1].data();
      });
  if (!own.empty())
    pool.run(limit, targets_grain, [&](uint64_t begin, uint64_t end) {
      for (const auto& copy : own)
        for (uint64_t t = begin; t < end; ++t) op.put(into, t, copy[t]);
    });
  return report;
}

template <class T>
auto magnitude_bits(T x) {
  if constexpr (sizeof(T) == 4) {
    return static_cast<int32_t>(bits_of_float(x) & 0x7FFFFFFF);
  } else {
    return static_cast<int64_t>(bits_of_double(static_cast<double>(x)) << 1 >> 1);
  }
}

// read(i): source i. Absolute values are compared as the integers that their bits are.
template <class Read>
NumbersSummary summarize(const RunRanges& run, uint64_t n, const Read& read) {
  using T = std::conditional_t<sizeof(read(0)) == 4, float, double>;
  const auto infinite = magnitude_bits(std::numeric_limits<T>::infinity());
  NumbersSummary summary;
  std::mutex mutex;
  run(n, reduce_grain, [&](uint64_t begin, uint64_t end) {
    auto largest = magnitude_bits(T(0)), above = largest;
    for (uint64_t i = begin; i < end; ++i) {
      const auto bits = magnitude_bits(static_cast<T>(read(i)));
      above = std::max(above, bits);
      largest = std::max(largest, bits < infinite ? bits : 0);
    }
    T x;
    std::memcpy(&x, &largest, sizeof x);
    std::lock_guard lock(mutex);
    summary.all_finite &= above < infinite;
    summary.largest = std::max(summary.largest, static_cast<double>(x));
  });
  return summary;
}

RunRanges ranges_of(TaskPool& pool) {
  return
      [&pool](uint64_t n, uint64_t grain, const TaskPool::Body& body) { pool.run(n, grain, body); };
}
RunRanges ranges_of(ExecutionContext& host) {
  return [&host](uint64_t n, uint64_t grain, const TaskPool::Body& body) {
    host.parallel_for(n, grain, body);
  };
}

template <class Source, class T, class Index>
ScatterReport add_by_ranges(TaskPool& pool, const Cut<T>& op, const Source& source,
                            const Index* targets, uint64_t n, T* into, uint64_t limit) {
  const auto shape = ScatterPartition::of(n, limit, op.cell_bytes, sizeof(T), pool.threads());
  const uint64_t range_targets = uint64_t{1} << shape.range_log;
  // A thread's, for one range after the other, or where there are more turns of a range, its own.
  const bool is_whole = shape.blocks == 1;
  std::vector<CutSums> sums(is_whole ? pool.threads() : shape.ranges);
  BulkVector<int64_t> memory(sums.size() * range_targets);
  return take_by_ranges<T>(pool, shape, source, targets, n, limit, [&](const RangeTurn<T>& turn) {
    const uint64_t at = is_whole ? turn.worker : turn.range;
    CutSums& cells = sums[at];
    if (cells.empty()) cells = CutSums({memory.data() + at * range_targets, range_targets});
    put_pieces(op, turn.pieces, cells);
    if (!turn.is_last) return;
    T* to = into + turn.range * range_targets;
    uint64_t count = 0;
    for (const auto& piece : turn.pieces) count += piece.size;
    if (is_whole && op.all_finite && count < range_targets / 4) {
      for (const auto& piece : turn.pieces)
        for (uint64_t k = 0; k < piece.size; ++k)
          op.fold(to + piece.places[k], cells.take(piece.places[k]));
      return;
    }
    op.fold_all(to, cells, std::min(range_targets, limit - turn.range * range_targets));
  });
}

// Adds sources [begin, end), whose targets ascend and have no others.
template <class Source, class T, class Index>
void add_ascending(const Cut<T>& op, const Source& source, const Index* targets, uint64_t begin,
                   uint64_t end, T* into) {
  constexpr uint64_t most_targets = 4096;
  int64_t memory[most_targets];
  CutSums sums(memory);
  for (uint64_t last = begin; begin < end; begin = last) {
    last = std::min(end, begin + most_targets / 2);
    while (last < end && targets[last] == targets[last - 1]) ++last;
    const Index base = targets[begin];
    const uint64_t span = targets[last - 1] - base + 1;
    // Where runs end cannot be foretold: where they are short, cells are cheaper.
    if (span <= most_targets && last - begin < 16 * span) {
      for (uint64_t first = begin; first < last; first += block_sources)
        op.put_block(
            sums, std::min(block_sources, last - first),
            [&](uint64_t k) { return source(first + k); },
            [&](uint64_t k) { return targets[first + k] - base; });
      op.fold_all(into + base, sums, span);
      continue;
    }
    for (uint64_t i = begin; i < last;) {
      const Index t = targets[i];
      CutNumber sum = {0, 0};
      for (; i < last && targets[i] == t; ++i) sum = op.join(sum, op.value(source(i)));
      op.fold(into + t, sum);
    }
  }
}

template <class Source, class T, class Index>
ScatterReport add_reproducibly(TaskPool& pool, const Source& source, const Index* targets,
                               uint64_t n, T* into, uint64_t limit, ScatterMethod method) {
  const NumbersSummary summary = summarize(ranges_of(pool), n, source);
  const Cut<T> op = {SumScale::of(n, summary.largest), summary.all_finite, n >= 1 << 11};
  if (!op.all_finite)
    for (uint64_t i = 0; i < n; ++i)
      if (targets[i] < limit && !is_finite(source(i))) into[targets[i]] += source(i);
  const Plan plan = plan_of(pool, targets, n, limit, op.cell_bytes, true, method);
  // Each target is looked at where some sources were not finite. A target is rounded once.
  if (plan.kind == Plan::sorted && op.all_finite && is_sorted(pool, targets, n)) {
    const uint64_t inside = std::lower_bound(targets, targets + n, limit) - targets;
    const auto parts = cut_ascending(targets, inside, limit, 4 * pool.threads());
    pool.run_each(parts.size(), [&](uint64_t k, uint64_t) {
      add_ascending(op, source, targets, k == 0 ? 0 : parts[k - 1].end, parts[k].end, into);
    });
    if (inside == n) return {};
    return {n - inside, inside};
  }
  if (plan.kind != Plan::copies) return add_by_ranges(pool, op, source, targets, n, into, limit);
  std::vector<CutSums> sums(plan.copies_count);
  BulkVector<int64_t> memory(limit * sums.size());
  auto sums_of = [&](uint64_t w) -> CutSums& {
    return sums[w] = CutSums({memory.data() + w * limit, limit});
  };
  ScatterReport report = put_parts(pool, op, source, targets, n, limit, plan.copies_count, sums_of);
  pool.run(limit, targets_grain, [&](uint64_t begin, uint64_t end) {
    for (uint64_t t = begin; t < end; ++t) {
      CutNumber sum = {0, 0};
      for (CutSums& part : sums) sum = op.join(sum, part.take(t));
      op.fold(into + t, sum);
    }
  });
  return report;
}

}  // namespace

Status scatter_host(TaskPool& pool, const Numbers& sources, const Indexes& targets,
                    const MutableNumbers& into, const ScatterOptions& options,
                    ScatterReport* report) {
  if (options.method == ScatterMethod::hot)
    return Status::invalid("ScatterMethod::hot, which the host does not know")
        .with_remedy("use another method, or a device");
  if (options.out_of_range == OutOfRange::error) {
    *report = count_out_of_range(ranges_of(pool), targets, into.size);
    if (report->out_of_range > 0)
      return out_of_range_error(*report, target_at(targets, report->first_out_of_range), into.size);
  }
  *report = with_indexes(targets, [&](const auto* r) {
    return with_numbers(sources, into, [&]<class Source>(const Source& source, auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      auto put = [&](const auto& op) {
        return put_all(pool, op, source, r, sources.size, t, into.size, options.method);
      };
      if (options.operation != ScatterOperation::add)
        return put(Extreme<T>{options.operation == ScatterOperation::min});
      if constexpr (std::is_floating_point_v<T>) {
        if (options.mode == ScatterMode::reproducible)
          return add_reproducibly(pool, source, r, sources.size, t, into.size, options.method);
      }
      return put(Add<T>());
    });
  });
  return {};
}

NumbersSummary summarize_host(ExecutionContext& host, const Numbers& sources) {
  if (!sources.data) return {1, true};
  NumberType into = sources.type == NumberType::f64 ? NumberType::f64 : NumberType::f32;
  return with_numbers(sources, {into, nullptr, 0}, [&](const auto& source, auto*) {
    return summarize(ranges_of(host), sources.size, source);
  });
}

ScatterReport count_out_of_range_host(ExecutionContext& host, const Indexes& targets,
                                      uint64_t limit) {
  return count_out_of_range(ranges_of(host), targets, limit);
}

uint64_t target_at(const Indexes& targets, uint64_t i) {
  return with_indexes(targets, [&](const auto* r) { return uint64_t{r[i]}; });
}

namespace {

class HostRoute final : public ScatterRoute {
 public:
  HostRoute(TaskPool& pool, const Indexes& targets, uint64_t target_count)
      : ScatterRoute(targets.size, target_count),
        pool_(pool),
        width_(targets.width),
        targets_((targets.size * targets.width + 7) / 8) {
    report_ = count_out_of_range(ranges_of(pool), targets, target_count);
    if (targets.size > 0) std::memcpy(targets_.data(), targets.data, targets.size * targets.width);
  }

  uint64_t memory_bytes() const override { return targets_.size() * 8; }

 private:
  Status apply_checked(const Numbers& sources, const MutableNumbers& into, ScatterMode mode,
                       void* stream) const override {
    if (stream)
      return Status(StatusCode::unavailable, "the host backend has no device")
          .with_remedy("give no stream");
    return no_throw([&] {
      ScatterReport report;
      return scatter_host(pool_, sources, {targets_.data(), this->sources(), width_}, into,
                          {.mode = mode}, &report);
    });
  }

  TaskPool& pool_;
  uint32_t width_;
  std::vector<uint64_t> targets_;
};

}  // namespace

Result<std::unique_ptr<ScatterRoute>> make_route_host(TaskPool& pool, const Indexes& targets,
                                                      uint64_t target_count,
                                                      OutOfRange out_of_range) {
  auto route = std::make_unique<HostRoute>(pool, targets, target_count);
  const ScatterReport& report = route->report();
  if (report.out_of_range > 0 && out_of_range == OutOfRange::error)
    return out_of_range_error(report, target_at(targets, report.first_out_of_range), target_count);
  return std::unique_ptr<ScatterRoute>(std::move(route));
}

}  // namespace stride
