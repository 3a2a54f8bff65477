#include "benchmark/workloads/tree/workload.h"

#include <algorithm>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/machine.h"
#include "benchmark/peers/hash_index.h"
#include "benchmark/workloads/tree/answers.h"
#include "benchmark/workloads/tree/case.h"

namespace stride::benchmark {
namespace {

class TreeWorkload {
 public:
  TreeWorkload(const TreeWorkloadOptions& options, Backend* backend, const Progress& progress)
      : options_(options), backend_(backend), progress_(progress), parallel_(options.threads) {}

  // All configurations over one kind and number of keys.
  Status run(const KeyKind& kind, uint64_t size, std::vector<ResultRow>* rows);

 private:
  Result<TreeData> make_data(const KeyKind& kind, uint64_t size);
  ResultRow prototype(const KeyKind& kind, const TreeData& data) const;
  Status run_lower_bound(const TreeData& data, ResultRow row, std::vector<ResultRow>* rows);
  Status run_hash(const TreeData& data, ResultRow row, std::vector<ResultRow>* rows);

  const TreeWorkloadOptions& options_;
  Backend* backend_;
  const Progress& progress_;
  Parallel parallel_;
};

void append(std::vector<ResultRow>& from, std::vector<ResultRow>* to) {
  std::move(from.begin(), from.end(), std::back_inserter(*to));
}

Status TreeWorkload::run(const KeyKind& kind, uint64_t size, std::vector<ResultRow>* rows) {
  Result<TreeData> data = make_data(kind, size);
  if (!data.ok()) return data.status();
  ResultRow row = prototype(kind, *data);
  for (const TreeConfiguration& configuration : options_.configurations) {
    row.engine = "stride";
    row.configuration = configuration.name;
    row.backend = backend_->name();
    TimedPhases phases(options_.timing, row, data->name, &progress_);
    TreeCase tree(options_, *data, backend_, &parallel_);
    STRIDE_TRY(explain(data->name + ", " + row.engine_name(), tree.run(&phases, configuration)));
    append(phases.rows(), rows);
  }
  row.configuration = "plain";
  row.backend = "host (" + std::to_string(parallel_.threads()) +
                (parallel_.threads() == 1 ? " thread)" : " threads)");
  STRIDE_TRY(run_lower_bound(*data, row, rows));
  if (data->keys.size() <= options_.max_hashed) STRIDE_TRY(run_hash(*data, row, rows));
  return {};
}

Result<TreeData> TreeWorkload::make_data(const KeyKind& kind, uint64_t size) {
  progress_.show("making keys and queries: " + kind.name);
  Result<TreeKeys> keys = TreeKeys::make(kind, size, options_.seed, &parallel_);
  if (!keys.ok()) return keys.status();
  QueryOptions drawn{.queries = options_.queries,
                     .hit_rate = options_.hit_rate,
                     .sorted = options_.sorted_queries,
                     .seed = options_.seed};
  Result<OwnedColumn> queries = keys->draw_queries(drawn, &parallel_);
  if (!queries.ok()) return queries.status();
  OwnedColumn prefixes;
  if (options_.operations.prefix) prefixes = halves(queries->view(), drawn.sorted, &parallel_);
  std::string name = kind.name + " " + batch_name(keys->size());
  return TreeData{name, std::move(*keys), std::move(*queries), std::move(prefixes)};
}

ResultRow TreeWorkload::prototype(const KeyKind& kind, const TreeData& data) const {
  ResultRow row;
  row.workload = "tree";
  row.machine = this_machine().to_string();
  row.raw_bytes = data.keys.shuffled().bytes();
  auto keys = static_cast<double>(data.keys.size());
  row.numbers = {{"keys", keys},
                 {"key_bytes", static_cast<double>(row.raw_bytes) / keys},
                 {"queries", static_cast<double>(options_.queries)},
                 {"hit_rate", options_.hit_rate},
                 {"seed", static_cast<double>(options_.seed)},
                 {"threads", options_.threads}};
  row.texts = {{"key_kind", kind.name},
               {"order", options_.sorted_queries ? "sorted" : "shuffled"},
               {"where", name_of(options_.where, *backend_)}};
  return row;
}

Status TreeWorkload::run_lower_bound(const TreeData& data, ResultRow row,
                                     std::vector<ResultRow>* rows) {
  row.engine = "std::lower_bound";
  row.texts["where"] = "host";
  TimedPhases phases(options_.timing, row, data.name, &progress_);
  const SortedColumn& sorted = data.keys.sorted();
  KeyColumn queries = data.queries.view();
  BulkVector<uint32_t> ranks(queries.size);
  auto find = [&] {
    sorted.find_ranks(queries, &parallel_, ranks);
    return Status();
  };
  auto lower_bound = [&] {
    sorted.lower_bound(queries, &parallel_, ranks);
    return Status();
  };
  if (options_.operations.find) {
    STRIDE_TRY(phases.measure("find", queries.size, timed(find)));
    STRIDE_TRY(check_find_ranks(sorted, queries, ranks, &parallel_));
  }
  if (options_.operations.lower_bound) {
    STRIDE_TRY(phases.measure("lower_bound", queries.size, timed(lower_bound)));
    STRIDE_TRY(check_lower_bound(sorted, queries, ranks, &parallel_));
  }
  append(phases.rows(), rows);
  return {};
}

Status TreeWorkload::run_hash(const TreeData& data, ResultRow row, std::vector<ResultRow>* rows) {
  if (!options_.operations.find) return {};
  row.engine = "std::unordered_map";
  row.texts["where"] = "host";
  progress_.show(data.name + " " + row.engine + " build");
  TimedPhases phases(options_.timing, row, data.name, &progress_);
  const SortedColumn& sorted = data.keys.sorted();
  HashIndex index(sorted.view());
  KeyColumn queries = data.queries.view();
  BulkVector<uint32_t> ranks(queries.size);
  auto find = [&] {
    index.find_ranks(queries, &parallel_, ranks);
    return Status();
  };
  STRIDE_TRY(phases.measure("find", queries.size, timed(find)));
  STRIDE_TRY(check_find_ranks(sorted, queries, ranks, &parallel_));
  append(phases.rows(), rows);
  return {};
}

}  // namespace

Status run_tree(const TreeWorkloadOptions& options, Backend* backend, const Progress& progress,
                std::vector<ResultRow>* rows) {
  TreeWorkload workload(options, backend, progress);
  for (const KeyKind& kind : options.kinds) {
    for (uint64_t size : options.sizes) STRIDE_TRY(workload.run(kind, size, rows));
  }
  return {};
}

}  // namespace stride::benchmark
