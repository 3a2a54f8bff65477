#include "gpu/scatter_host.h"

#include <algorithm>
#include <vector>

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

template <class Index>
ScatterReport count_out_of_range(const Index* targets, uint64_t n, uint64_t limit) {
  ScatterReport report;
  for (uint64_t i = 0; i < n; ++i)
    if (targets[i] >= limit) {
      report.first_out_of_range = std::min(report.first_out_of_range, i);
      ++report.out_of_range;
    }
  return report;
}

template <class Source, class T, class Index>
void add_reproducibly(const Source& source, const Index* targets, uint64_t n, T* into,
                      uint64_t limit) {
  double largest = 0;
  bool all_finite = true;
  for (uint64_t i = 0; i < n; ++i) {
    double x = std::abs(static_cast<double>(source(i)));
    if (!is_finite(x))
      all_finite = false;
    else
      largest = std::max(largest, x);
  }
  const SumScale scale = SumScale::of(n, largest);
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
  for (uint64_t t = 0; t < limit; ++t) {
    if (sums[t].high != 0 || sums[t].low != 0)
      into[t] = static_cast<T>(static_cast<double>(into[t]) + joined(scale, sums[t]));
    if (!all_finite && is_nan(into[t])) into[t] = std::numeric_limits<T>::quiet_NaN();
  }
}

}  // namespace

Status scatter_host(TaskPool&, const Numbers& sources, const Indexes& targets,
                    const MutableNumbers& into, const ScatterOptions& options,
                    ScatterReport* report) {
  return with_indexes(targets, [&](const auto* r) -> Status {
    const uint64_t n = sources.size;
    *report = count_out_of_range(r, n, into.size);
    if (report->out_of_range > 0 && options.out_of_range == OutOfRange::error)
      return out_of_range_error(*report, r[report->first_out_of_range], into.size);
    with_numbers(sources, into, [&](const auto& source, auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      if constexpr (std::is_floating_point_v<T>) {
        if (options.operation == ScatterOperation::add && options.mode == ScatterMode::reproducible)
          return add_reproducibly(source, r, n, t, into.size);
      }
      for (uint64_t i = 0; i < n; ++i)
        if (r[i] < into.size) combine(options.operation, t + r[i], source(i));
    });
    return {};
  });
}

namespace {

class HostRoute final : public ScatterRoute {
 public:
  HostRoute(TaskPool& pool, const Indexes& targets, uint64_t target_count)
      : ScatterRoute(targets.size, target_count), pool_(pool), targets_(targets.size) {
    with_indexes(targets, [&](const auto* r) {
      report_ = count_out_of_range(r, targets.size, target_count);
      std::copy(r, r + targets.size, targets_.begin());
    });
  }

  uint64_t memory_bytes() const override { return targets_.size() * sizeof(uint64_t); }

 private:
  Status apply_checked(const Numbers& sources, const MutableNumbers& into, ScatterMode mode,
                       void*) const override {
    ScatterReport report;
    return scatter_host(pool_, sources, Indexes::of(targets_), into, {.mode = mode}, &report);
  }

  TaskPool& pool_;
  std::vector<uint64_t> targets_;
};

}  // namespace

Result<std::unique_ptr<ScatterRoute>> make_route_host(TaskPool& pool, const Indexes& targets,
                                                      uint64_t target_count,
                                                      OutOfRange out_of_range) {
  auto route = std::make_unique<HostRoute>(pool, targets, target_count);
  const ScatterReport& report = route->report();
  if (report.out_of_range > 0 && out_of_range == OutOfRange::error)
    return with_indexes(targets, [&](const auto* r) {
      return out_of_range_error(report, r[report.first_out_of_range], target_count);
    });
  return std::unique_ptr<ScatterRoute>(std::move(route));
}

}  // namespace stride
