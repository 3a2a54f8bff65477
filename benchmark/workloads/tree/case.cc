#include "benchmark/workloads/tree/case.h"

#include <algorithm>

#include "benchmark/harness/arguments.h"
#include "benchmark/workloads/tree/answers.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t max_case_batch = 10'000'000;
constexpr uint64_t max_checked_keys = 1'000'000;

// What a row takes on its way through the bus.
double bytes_per_row(const KeyColumn& column) {
  uint64_t offsets = column.is_fixed() ? 0 : (column.size + 1) * sizeof(uint64_t);
  return static_cast<double>(column.bytes() + offsets) / static_cast<double>(column.size);
}

std::string list_of(const std::vector<uint32_t>& strides) {
  std::string list;
  for (uint32_t stride : strides) list += (list.empty() ? "" : ",") + std::to_string(stride);
  return list;
}

}  // namespace

Status TreeCase::run(TimedPhases* phases, const TreeConfiguration& configuration) {
  STRIDE_TRY(build(phases, configuration.options));
  STRIDE_TRY(place_queries());
  STRIDE_TRY(search(phases));
  if (options_.latency) STRIDE_TRY(find_batches(phases));
  return describe(&phases->rows());
}

Status TreeCase::place_queries() {
  STRIDE_TRY(queries_.place(placement_, data_.queries.view()));
  STRIDE_TRY(ranks_.reserve(placement_, options_.queries));
  if (!options_.operations.prefix) return {};
  STRIDE_TRY(prefixes_.place(placement_, data_.prefixes.view()));
  return intervals_.reserve(placement_, options_.queries);
}

// Leaves the index of the sorted column, timed or not, for the searches.
Status TreeCase::build(TimedPhases* phases, const TreeOptions& tree) {
  if (options_.operations.build) {
    STRIDE_TRY(keys_.place(placement_, data_.keys.shuffled()));
    STRIDE_TRY(phases->measure("build", data_.keys.size(), [&](double* seconds) {
      return build(keys_.view(), KeyOrder::any, tree, seconds);
    }));
    STRIDE_TRY(check_index());
    index_.reset();
    keys_ = {};
  }
  STRIDE_TRY(keys_.place(placement_, data_.keys.sorted().view()));
  auto build_sorted = [&](double* seconds) {
    return build(keys_.view(), KeyOrder::ascending, tree, seconds);
  };
  if (options_.operations.build_sorted) {
    STRIDE_TRY(phases->measure("build_sorted", data_.keys.size(), build_sorted));
  } else {
    double untimed;
    STRIDE_TRY(build_sorted(&untimed));
  }
  return check_index();
}

Status TreeCase::build(const KeyColumn& keys, KeyOrder order, const TreeOptions& tree,
                       double* seconds) {
  index_.reset();  // there need not be room for two
  Stopwatch watch;
  Result<Index> built = placement_.backend->tree_index().build_index(keys, order, tree);
  *seconds = watch.seconds();
  if (!built.ok()) return built.status();
  index_ = std::move(*built);
  return {};
}

// Keys from all over the column are found at their ranks.
Status TreeCase::check_index() {
  KeyColumn keys = data_.keys.sorted().view();
  IndexView view = index_->view();
  if (view.keys.size != keys.size) {
    return Status(StatusCode::corruption, "wrong answer: the index of " +
                                              std::to_string(keys.size) + " keys has " +
                                              std::to_string(view.keys.size));
  }
  uint64_t checked = std::min(keys.size, max_checked_keys);
  OwnedColumn some = make_column(keys.is_fixed() ? keys.width : 0, checked, parallel_,
                                 [&](uint64_t i) { return keys[i * (keys.size / checked)]; });
  BulkVector<uint32_t> ranks(checked);
  STRIDE_TRY(placement_.backend->tree_index().find_ranks(view, some.view(), ranks));
  return check_find_ranks(data_.keys.sorted(), some.view(), ranks, parallel_);
}

Status TreeCase::search(TimedPhases* phases) {
  Backend& backend = *placement_.backend;
  IndexView index = index_->view();
  KeyColumn queries = queries_.view();
  if (options_.operations.find) {
    STRIDE_TRY(phases->measure(
        "find", queries.size,
        timed([&] { return backend.tree_index().find_ranks(index, queries, ranks_.all()); })));
    STRIDE_TRY(check_found(queries.size));
  }
  if (options_.operations.lower_bound) {
    STRIDE_TRY(phases->measure(
        "lower_bound", queries.size,
        timed([&] { return backend.tree_index().lower_bound(index, queries, ranks_.all()); })));
    std::span<const uint32_t> ranks;
    STRIDE_TRY(ranks_.fetch(queries.size, &ranks));
    STRIDE_TRY(check_lower_bound(data_.keys.sorted(), data_.queries.view(), ranks, parallel_));
  }
  if (options_.operations.prefix) {
    STRIDE_TRY(phases->measure("prefix_interval", queries.size, timed([&] {
                                 return backend.tree_index().prefix_interval(
                                     index, prefixes_.view(), intervals_.all());
                               })));
    std::span<const RankInterval> ranks;
    STRIDE_TRY(intervals_.fetch(queries.size, &ranks));
    STRIDE_TRY(check_prefix_interval(data_.keys.sorted(), data_.prefixes.view(), ranks, parallel_));
  }
  return {};
}

// Checks the answers to the first queries.
Status TreeCase::check_found(uint64_t queries) {
  std::span<const uint32_t> ranks;
  STRIDE_TRY(ranks_.fetch(queries, &ranks));
  return check_find_ranks(data_.keys.sorted(), data_.queries.view().slice(0, queries), ranks,
                          parallel_);
}

// Each call takes the queries after those of the call before, so that no call finds what it needs
// in a cache because the last one read the same.
Status TreeCase::find_batches(TimedPhases* phases) {
  IndexView index = index_->view();
  KeyColumn queries = queries_.view();
  uint64_t most = std::min(queries.size, max_case_batch);
  for (uint64_t batch = 1; batch <= most; batch *= 10) {
    uint64_t at = 0, answered = 0;
    auto find = [&](double* seconds) -> Status {
      if (at + batch > queries.size) at = 0;
      KeyColumn next = queries.slice(at, batch);
      Stopwatch watch;
      Status status =
          placement_.backend->tree_index().find_ranks(index, next, ranks_.all().subspan(at, batch));
      *seconds = watch.seconds();
      at += batch;
      answered = std::max(answered, at);
      return status;
    };
    STRIDE_TRY(phases->measure("find_batch_" + batch_name(batch), batch, find));
    phases->rows().back().numbers["batch"] = static_cast<double>(batch);
    STRIDE_TRY(check_found(answered));
  }
  return {};
}

// Frees the index and adds to the rows what was built and what the machine allows.
Status TreeCase::describe(std::vector<ResultRow>* rows) {
  std::vector<std::byte> image;
  STRIDE_TRY(index_->copy_image(&image));
  TreeStatistics tree = tree_statistics({image.data(), image.size()});
  uint64_t bytes = index_->memory_bytes();
  index_.reset();
  keys_ = {};
  BackendLimits limits;
  STRIDE_TRY(placement_.backend->measure_limits(bytes, &limits));
  auto keys = static_cast<double>(data_.keys.size());
  for (ResultRow& row : *rows) {
    row.texts["strides_built"] = list_of(tree.strides);
    row.numbers["leaf_capacity_built"] = tree.leaf_capacity;
    row.numbers["table_bytes"] = static_cast<double>(bytes);
    row.numbers["bytes_per_key"] = static_cast<double>(bytes) / keys;
    row.numbers["image_bytes_per_key"] = static_cast<double>(tree.image_bytes) / keys;
    row.numbers["gathers_per_second"] = limits.gathers_per_second;
    row.numbers["copy_bytes_per_second"] = limits.copy_bytes_per_second;
    row.numbers["bus_in_bytes_per_second"] = limits.bus_in_bytes_per_second;
    row.numbers["bus_out_bytes_per_second"] = limits.bus_out_bytes_per_second;
    double allowed = limit(row.phase, limits);
    if (allowed <= 0) continue;
    row.numbers["limit_per_second"] = allowed;
    row.numbers["limit_percent"] = 100 * row.records_per_second() / allowed;
  }
  return {};
}

// A build reads every key once; a search reads a memory sector at random for each query, or gets
// queries and gives answers through the bus.
double TreeCase::limit(const std::string& phase, const BackendLimits& limits) const {
  bool through_bus = placement_.backend->has_device() && placement_.where != Where::backend;
  if (phase.starts_with("build")) {
    double bytes = through_bus ? limits.bus_in_bytes_per_second : limits.copy_bytes_per_second;
    return bytes / bytes_per_row(data_.keys.shuffled());
  }
  if (!through_bus) return limits.gathers_per_second;
  bool prefixes = phase == "prefix_interval";
  const OwnedColumn& queries = prefixes ? data_.prefixes : data_.queries;
  double answer_bytes = prefixes ? sizeof(RankInterval) : sizeof(uint32_t);
  return std::min(limits.bus_in_bytes_per_second / bytes_per_row(queries.view()),
                  limits.bus_out_bytes_per_second / answer_bytes);
}

}  // namespace stride::benchmark
