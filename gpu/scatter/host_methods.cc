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

#include "gpu/scatter/host_operations.h"
#include "gpu/scatter/host_plan.h"
#include "gpu/scatter/host_put.h"
#include "gpu/scatter/scatter_arith.h"
#include "gpu/scatter/scatter_partition.h"
#include "storage/no_throw.h"
#include "storage/status.h"

namespace stride {

namespace {

constexpr uint64_t targets_grain = 1 << 14;

template <class Op, class Source, class Index, class T>
ScatterReport put_all(TaskPool& pool, const Op& op, const Source& source, const Index* targets,
                      uint64_t n, T* into, uint64_t limit, ScatterMethod method) {
  const ScatterShares plan = plan_of(pool, targets, n, limit, sizeof(T), false, method);
  if (plan.kind == ScatterShares::sorted)
    return put_ascending(pool, op, source, targets, n, into, limit);
  if (plan.kind == ScatterShares::partition) {
    const auto shape = ScatterPartition::of(n, limit, sizeof(T), sizeof(T), pool.threads());
    return take_by_ranges<T>(pool, shape, source, targets, n, limit, [&](const RangeTurn<T>& turn) {
      T* cells = into + (turn.range << shape.range_log);
      put_pieces(op, turn.pieces, cells);
    });
  }
  std::vector<BulkVector<T>> own(plan.copies - 1);
  ScatterReport report =
      put_parts(pool, op, source, targets, n, limit, plan.copies, [&](uint64_t w) {
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
ScatterReport add_by_ranges(TaskPool& pool, const Quantized<T>& op, const Source& source,
                            const Index* targets, uint64_t n, T* into, uint64_t limit) {
  const auto shape = ScatterPartition::of(n, limit, op.cell_bytes, sizeof(T), pool.threads());
  const uint64_t range_targets = uint64_t{1} << shape.range_log;
  // A thread's, for one range after the other, or where there are more turns of a range, its own.
  const bool is_whole = shape.blocks == 1;
  std::vector<QuantizedSums> sums(is_whole ? pool.threads() : shape.ranges);
  BulkVector<int64_t> memory(sums.size() * range_targets);
  return take_by_ranges<T>(pool, shape, source, targets, n, limit, [&](const RangeTurn<T>& turn) {
    const uint64_t at = is_whole ? turn.worker : turn.range;
    QuantizedSums& cells = sums[at];
    if (cells.empty()) cells = QuantizedSums({memory.data() + at * range_targets, range_targets});
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
void add_ascending(const Quantized<T>& op, const Source& source, const Index* targets,
                   uint64_t begin, uint64_t end, T* into) {
  constexpr uint64_t most_targets = 4096;
  int64_t memory[most_targets];
  QuantizedSums sums(memory);
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
      QuantizedNumber sum = {0, 0};
      for (; i < last && targets[i] == t; ++i) sum = op.join(sum, op.value(source(i)));
      op.fold(into + t, sum);
    }
  }
}

template <class Source, class T, class Index>
ScatterReport add_reproducibly(TaskPool& pool, const Source& source, const Index* targets,
                               uint64_t n, T* into, uint64_t limit, ScatterMethod method) {
  const NumbersSummary summary = summarize(ranges_of(pool), n, source);
  const Quantized<T> op = {SumScale::of(n, summary.largest), summary.all_finite, n >= 1 << 11};
  if (!op.all_finite)
    for (uint64_t i = 0; i < n; ++i)
      if (targets[i] < limit && !is_finite(source(i))) into[targets[i]] += source(i);
  const ScatterShares plan = plan_of(pool, targets, n, limit, op.cell_bytes, true, method);
  // Each target is looked at where some sources were not finite. A target is rounded once.
  if (plan.kind == ScatterShares::sorted && op.all_finite && is_sorted(pool, targets, n)) {
    const uint64_t inside = std::lower_bound(targets, targets + n, limit) - targets;
    const auto parts = cut_ascending(targets, inside, limit, 4 * pool.threads());
    pool.run_each(parts.size(), [&](uint64_t k, uint64_t) {
      add_ascending(op, source, targets, k == 0 ? 0 : parts[k - 1].end, parts[k].end, into);
    });
    if (inside == n) return {};
    return {n - inside, inside};
  }
  if (plan.kind != ScatterShares::privatized)
    return add_by_ranges(pool, op, source, targets, n, into, limit);
  std::vector<QuantizedSums> sums(plan.copies);
  BulkVector<int64_t> memory(limit * sums.size());
  auto sums_of = [&](uint64_t w) -> QuantizedSums& {
    return sums[w] = QuantizedSums({memory.data() + w * limit, limit});
  };
  ScatterReport report = put_parts(pool, op, source, targets, n, limit, plan.copies, sums_of);
  pool.run(limit, targets_grain, [&](uint64_t begin, uint64_t end) {
    for (uint64_t t = begin; t < end; ++t) {
      QuantizedNumber sum = {0, 0};
      for (QuantizedSums& part : sums) sum = op.join(sum, part.take(t));
      op.fold(into + t, sum);
    }
  });
  return report;
}

}  // namespace

Status scatter_host(TaskPool& pool, const Numbers& sources, const Indexes& targets,
                    const MutableNumbers& into, const ScatterOptions& options,
                    ScatterReport* report) {
  if (options.method == ScatterMethod::heavy_hitters)
    return Status::invalid("ScatterMethod::heavy_hitters, which the host does not know")
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

class HostPreparedScatter final : public PreparedScatter {
 public:
  HostPreparedScatter(TaskPool& pool, const Indexes& targets, uint64_t target_count)
      : PreparedScatter(targets.size, target_count),
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

Result<std::unique_ptr<PreparedScatter>> prepare_scatter_host(TaskPool& pool,
                                                              const Indexes& targets,
                                                              uint64_t target_count,
                                                              OutOfRange out_of_range) {
  auto prepared = std::make_unique<HostPreparedScatter>(pool, targets, target_count);
  const ScatterReport& report = prepared->report();
  if (report.out_of_range > 0 && out_of_range == OutOfRange::error)
    return out_of_range_error(report, target_at(targets, report.first_out_of_range), target_count);
  return std::unique_ptr<PreparedScatter>(std::move(prepared));
}

}  // namespace stride
