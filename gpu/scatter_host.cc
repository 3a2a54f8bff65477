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

// What is done with source(i) and a cell of its target. `join` puts two sources of one target
// together, and cells.
template <class Source, class T>
struct Add {
  using Cell = T;
  // An addition that waits for the one before it, through memory, is slow.
  static constexpr bool has_slow_chains = std::is_floating_point_v<T>;
  Source source;
  T value(uint64_t i) const { return source(i); }
  static T join(T a, T b) { return wrapping_sum(a, b); }
  static void put(T* cell, T x) { *cell = wrapping_sum(*cell, x); }
};

template <class Source, class T>
struct Extreme {
  using Cell = T;
  static constexpr bool has_slow_chains = false;
  Source source;
  bool is_min;
  T value(uint64_t i) const { return source(i); }
  void put(T* cell, T x) const {
    auto mine = total_order(x), there = total_order(*cell);
    if (x == x && (is_min ? mine < there : mine > there)) *cell = x;
  }
};

// Of reproducible sums. What is not finite counts as 0.
template <class Source, class T>
struct Cut {
  using Cell = CutNumber;
  static constexpr bool has_slow_chains = true;
  Source source;
  SumScale scale;
  CutNumber value(uint64_t i) const {
    const T x = source(i);
    return is_finite(x) ? cut_number(scale, x) : CutNumber();
  }
  static CutNumber join(CutNumber a, CutNumber b) { return {a.high + b.high, a.low + b.low}; }
  static void put(CutNumber* cell, CutNumber x) { *cell = join(*cell, x); }
};

// What ranges of rows are reduced to, on a pool's threads or a backend's.
using RunRanges = std::function<void(uint64_t n, uint64_t grain,
                                     const std::function<void(uint64_t, uint64_t)>& body)>;
constexpr uint64_t reduce_grain = 1 << 16;

// Of stretches of the sources, put together.
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
// one before it to come back from memory.
template <class Op, class Index>
void put_runs(const Op& op, const Index* targets, uint64_t begin, uint64_t end,
              typename Op::Cell* cells) {
  for (uint64_t i = begin; i < end;) {
    const Index t = targets[i];
    auto sum = op.value(i++);
    for (; i + 4 <= end && targets[i] == t && targets[i + 1] == t && targets[i + 2] == t &&
           targets[i + 3] == t;
         i += 4)
      sum = Op::join(sum, Op::join(Op::join(op.value(i), op.value(i + 1)),
                                   Op::join(op.value(i + 2), op.value(i + 3))));
    for (; i < end && targets[i] == t; ++i) sum = Op::join(sum, op.value(i));
    op.put(cells + t, sum);
  }
}

// Sources [begin, end), in order.
template <class Op, class Index>
ScatterReport put_sources(const Op& op, const Index* targets, uint64_t begin, uint64_t end,
                          uint64_t limit, typename Op::Cell* cells) {
  constexpr uint64_t block = 512;
  // Runs are shorter where fewer neighbours are alike.
  constexpr uint32_t alike_in_runs = block - block / 32;
  ScatterReport left;
  for (uint64_t first = begin; first < end; first += block) {
    const uint64_t last = std::min(end, first + block);
    Index largest = targets[first];
    [[maybe_unused]] uint32_t alike = 0;
    for (uint64_t i = first + 1; i < last; ++i) {
      largest = std::max(largest, targets[i]);
      if constexpr (Op::has_slow_chains) alike += targets[i] == targets[i - 1];
    }
    if (largest >= limit) {
      for (uint64_t i = first; i < last; ++i) {
        if (targets[i] < limit) {
          op.put(cells + targets[i], op.value(i));
        } else if (left.out_of_range++ == 0) {
          left.first_out_of_range = i;
        }
      }
      continue;
    }
    if constexpr (Op::has_slow_chains) {
      if (alike >= alike_in_runs) {
        put_runs(op, targets, first, last, cells);
        continue;
      }
    }
    for (uint64_t i = first; i < last; ++i) op.put(cells + targets[i], op.value(i));
  }
  return left;
}

// Those of all sources whose targets are in [first, last), in order.
template <class Op, class Index>
void put_range(const Op& op, const Index* targets, uint64_t n, uint64_t first, uint64_t last,
               typename Op::Cell* cells) {
  constexpr uint64_t block = 1024;
  uint64_t chosen[block + 1];
  for (uint64_t begin = 0; begin < n; begin += block) {
    const uint64_t end = std::min(n, begin + block);
    uint64_t count = 0;
    for (uint64_t i = begin; i < end; ++i) {
      chosen[count] = i;
      count += targets[i] - first < last - first;
    }
    for (uint64_t k = 0; k < count; ++k) {
      uint64_t i = chosen[k];
      op.put(cells + targets[i], op.value(i));
    }
  }
}

// How threads share the work.
struct Plan {
  // Each has a copy of T (the first has T itself) and a stretch of the sources.
  uint64_t copies = 1;
  // Each has a range of the targets, and looks at all sources.
  uint64_t ranges = 1;
};

Plan plan_of(const TaskPool& pool, uint64_t n, uint64_t limit, ScatterMethod method) {
  constexpr uint64_t least_of_a_thread = 1 << 15;
  // More targets than this are not in a core's own cache.
  constexpr uint64_t many_targets = 1 << 20;
  const uint64_t threads = std::min<uint64_t>(pool.threads(), n / least_of_a_thread + 1);
  switch (method) {
    case ScatterMethod::direct:
      return {};
    case ScatterMethod::copies:
      return {.copies = threads};
    case ScatterMethod::partition:
      return {.ranges = threads};
    default:
      break;
  }
  // A copy is cleared and added up, which takes about as long as half as many sources.
  const uint64_t copies = std::min(threads, 1 + n / 2 / limit);
  if (copies < threads && limit >= many_targets) return {.ranges = threads};
  return {.copies = copies};
}

template <class Op, class Index>
ScatterReport put_with_copies(TaskPool& pool, const Op& op, const Index* targets, uint64_t n,
                              uint64_t limit, typename Op::Cell* cells, uint64_t copies) {
  std::vector<BulkVector<typename Op::Cell>> own(copies - 1);
  SharedReport report;
  pool.run_each(copies, [&](uint64_t w, uint64_t) {
    typename Op::Cell* to = cells;
    if (w > 0) {
      own[w - 1] = BulkVector<typename Op::Cell>(limit);
      to = own[w - 1].data();
      std::memset(static_cast<void*>(to), 0, limit * sizeof *to);
    }
    report.add(put_sources(op, targets, n * w / copies, n * (w + 1) / copies, limit, to));
  });
  pool.run(limit, 1 << 14, [&](uint64_t begin, uint64_t end) {
    for (const auto& copy : own)
      for (uint64_t t = begin; t < end; ++t) op.put(cells + t, copy[t]);
  });
  return report.get();
}

template <class Op, class Index>
ScatterReport put_all(TaskPool& pool, const Op& op, const Index* targets, uint64_t n,
                      uint64_t limit, typename Op::Cell* cells, ScatterMethod method) {
  Plan plan = plan_of(pool, n, limit, method);
  if (plan.ranges > 1) {
    SharedReport report;
    pool.run_each(plan.ranges, [&](uint64_t w, uint64_t) {
      auto part = [&](uint64_t of) { return of * w / plan.ranges; };
      auto end = [&](uint64_t of) { return of * (w + 1) / plan.ranges; };
      put_range(op, targets, n, part(limit), end(limit), cells);
      report.add(count_left_out(targets, part(n), end(n), limit));
    });
    return report.get();
  }
  if constexpr (requires { Op::join(op.value(0), op.value(0)); }) {
    if (plan.copies > 1) return put_with_copies(pool, op, targets, n, limit, cells, plan.copies);
  }
  return put_sources(op, targets, 0, n, limit, cells);
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
ScatterReport add_reproducibly(TaskPool& pool, const Source& source, const Index* targets,
                               uint64_t n, T* into, uint64_t limit, ScatterMethod method) {
  const NumbersSummary summary = summarize(ranges_of(pool), n, source);
  const SumScale scale = SumScale::of(n, summary.largest);
  BulkVector<CutNumber> sums(limit);
  pool.run(limit, 1 << 14, [&](uint64_t begin, uint64_t end) {
    std::fill(sums.begin() + begin, sums.begin() + end, CutNumber());
  });
  ScatterReport report =
      put_all(pool, Cut<Source, T>{source, scale}, targets, n, limit, sums.data(), method);
  if (!summary.all_finite)
    for (uint64_t i = 0; i < n; ++i)
      if (targets[i] < limit && !is_finite(static_cast<double>(source(i))))
        into[targets[i]] += source(i);
  pool.run(limit, 1 << 14, [&](uint64_t begin, uint64_t end) {
    for (uint64_t t = begin; t < end; ++t)
      if (sums[t].high != 0 || sums[t].low != 0 || !summary.all_finite)
        into[t] = folded(scale, into[t], sums[t]);
  });
  return report;
}

}  // namespace

Status scatter_host(TaskPool& pool, const Numbers& sources, const Indexes& targets,
                    const MutableNumbers& into, const ScatterOptions& options,
                    ScatterReport* report) {
  if (options.out_of_range == OutOfRange::error) {
    *report = count_out_of_range(ranges_of(pool), targets, into.size);
    if (report->out_of_range > 0)
      return out_of_range_error(*report, target_at(targets, report->first_out_of_range), into.size);
  }
  *report = with_indexes(targets, [&](const auto* r) {
    return with_numbers(sources, into, [&]<class Source>(const Source& source, auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      auto put = [&](const auto& op) {
        return put_all(pool, op, r, sources.size, into.size, t, options.method);
      };
      if (options.operation != ScatterOperation::add)
        return put(Extreme<Source, T>{source, options.operation == ScatterOperation::min});
      if constexpr (std::is_floating_point_v<T>) {
        if (options.mode == ScatterMode::reproducible)
          return add_reproducibly(pool, source, r, sources.size, t, into.size, options.method);
      }
      return put(Add<Source, T>{source});
    });
  });
  return {};
}

NumbersSummary summarize_host(Backend& host, const Numbers& sources) {
  if (!sources.data) return {1, true};
  NumberType into = sources.type == NumberType::f64 ? NumberType::f64 : NumberType::f32;
  return with_numbers(sources, {into, nullptr, 0}, [&](const auto& source, auto*) {
    return summarize(ranges_of(host), sources.size, source);
  });
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
