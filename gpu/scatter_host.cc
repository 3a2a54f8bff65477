#include "gpu/scatter_host.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "gpu/guarded.h"
#include "gpu/scatter_arith.h"

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
  const T* data;
  T operator()(uint64_t i) const { return data[i]; }
};
template <class T>
struct Ones {
  T operator()(uint64_t) const { return 1; }
};
template <class From>
struct Widened {
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

template <class T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_same_v<T, int32_t>)
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  else if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

template <class T>
bool is_nan(T x) {
  return x != x;
}

template <class T>
void combine(ScatterOperation operation, T* to, T x) {
  if (operation == ScatterOperation::add) {
    *to = wrapping_sum(*to, x);
  } else if (!is_nan(x)) {
    bool smaller = total_order(x) < total_order(*to);
    if (smaller == (operation == ScatterOperation::min) && total_order(x) != total_order(*to))
      *to = x;
  }
}

// What ranges of rows are reduced to, on a pool's threads or a backend's.
using RunRanges = std::function<void(uint64_t n, uint64_t grain,
                                     const std::function<void(uint64_t, uint64_t)>& body)>;
constexpr uint64_t reduce_grain = 1 << 16;

ScatterReport count_out_of_range(const RunRanges& run, const Indexes& targets, uint64_t limit) {
  ScatterReport report;
  std::mutex mutex;
  run(targets.size, reduce_grain, [&](uint64_t begin, uint64_t end) {
    ScatterReport part;
    with_indexes(targets, [&](const auto* r) {
      for (uint64_t i = begin; i < end; ++i) part.out_of_range += r[i] >= limit;
      if (part.out_of_range == 0) return;
      part.first_out_of_range = begin;
      while (r[part.first_out_of_range] < limit) ++part.first_out_of_range;
    });
    if (part.out_of_range == 0) return;
    std::lock_guard lock(mutex);
    report.out_of_range += part.out_of_range;
    report.first_out_of_range = std::min(report.first_out_of_range, part.first_out_of_range);
  });
  return report;
}

// read(i): source i.
template <class Read>
NumbersSummary summarize(const RunRanges& run, uint64_t n, const Read& read) {
  NumbersSummary summary;
  std::mutex mutex;
  run(n, reduce_grain, [&](uint64_t begin, uint64_t end) {
    NumbersSummary part;
    for (uint64_t i = begin; i < end; ++i) {
      double x = std::abs(static_cast<double>(read(i)));
      bool finite = is_finite(x);
      part.all_finite &= finite;
      part.largest = finite && x > part.largest ? x : part.largest;
    }
    std::lock_guard lock(mutex);
    summary.all_finite &= part.all_finite;
    summary.largest = std::max(summary.largest, part.largest);
  });
  return summary;
}

RunRanges ranges_of(TaskPool& pool) {
  return
      [&pool](uint64_t n, uint64_t grain, const TaskPool::Body& body) { pool.run(n, grain, body); };
}
RunRanges ranges_of(Backend& host) {
  return [&host](uint64_t n, uint64_t grain, const TaskPool::Body& body) {
    host.parallel_for(n, grain, body);
  };
}

template <class Source, class T, class Index>
void add_reproducibly(TaskPool& pool, const Source& source, const Index* targets, uint64_t n,
                      T* into, uint64_t limit) {
  const NumbersSummary summary = summarize(ranges_of(pool), n, source);
  const SumScale scale = SumScale::of(n, summary.largest);
  std::vector<CutNumber> sums(limit);
  for (uint64_t i = 0; i < n; ++i) {
    if (targets[i] >= limit) continue;
    double x = static_cast<double>(source(i));
    if (!is_finite(x)) {
      into[targets[i]] += source(i);
      continue;
    }
    CutNumber cut = cut_number(scale, x);
    sums[targets[i]].high += cut.high;
    sums[targets[i]].low += cut.low;
  }
  for (uint64_t t = 0; t < limit; ++t)
    if (sums[t].high != 0 || sums[t].low != 0 || !summary.all_finite)
      into[t] = folded(scale, into[t], sums[t]);
}

}  // namespace

Status scatter_host(TaskPool& pool, const Numbers& sources, const Indexes& targets,
                    const MutableNumbers& into, const ScatterOptions& options,
                    ScatterReport* report) {
  *report = count_out_of_range(ranges_of(pool), targets, into.size);
  if (report->out_of_range > 0 && options.out_of_range == OutOfRange::error)
    return out_of_range_error(*report, target_at(targets, report->first_out_of_range), into.size);
  with_indexes(targets, [&](const auto* r) {
    const uint64_t n = sources.size;
    with_numbers(sources, into, [&](const auto& source, auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      if constexpr (std::is_floating_point_v<T>) {
        if (options.operation == ScatterOperation::add && options.mode == ScatterMode::reproducible)
          return add_reproducibly(pool, source, r, n, t, into.size);
      }
      for (uint64_t i = 0; i < n; ++i)
        if (r[i] < into.size) combine(options.operation, t + r[i], source(i));
    });
  });
  return {};
}

NumbersSummary summarize_host(Backend& host, const Numbers& sources) {
  if (!sources.data) return {1, true};
  NumbersSummary summary;
  float* float_sources = nullptr;
  double* double_sources = nullptr;
  auto look = [&](const auto& source, auto*) {
    summary = summarize(ranges_of(host), sources.size, source);
  };
  if (sources.type == NumberType::f64)
    with_sources_of<double>(sources, double_sources, look);
  else
    with_numbers(sources, {NumberType::f32, float_sources, 0}, look);
  return summary;
}

ScatterReport count_out_of_range_host(Backend& host, const Indexes& targets, uint64_t limit) {
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
    return guarded([&] {
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
