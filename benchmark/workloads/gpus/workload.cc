#include "benchmark/workloads/gpus/workload.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "benchmark/harness/machine.h"
#include "benchmark/workloads/gpus/data.h"
#include "benchmark/workloads/gpus/machine.h"
#include "benchmark/workloads/gpus/model.h"

namespace stride::benchmark {
namespace {

// Where queries and answers lie.
enum class Place { devices, first, pinned, host };
constexpr std::pair<Place, const char*> all_places[] = {{Place::devices, "devices"},
                                                        {Place::first, "first"},
                                                        {Place::pinned, "pinned"},
                                                        {Place::host, "host"}};

// Searches of a batch for a number each.
struct Search {
  const char* name;  // "find"
  const OwnedColumn* queries;
  const BulkVector<uint32_t>* expected;
  std::function<Status(size_t machine, const KeyColumn& queries, std::span<uint32_t> out)> call;
};

// A batch where it is measured, and its answers.
struct Batch {
  std::unique_ptr<BackendMemory> queries, answers;
  KeyColumn column;
  std::span<uint32_t> out;
};

class GpusRun {
 public:
  GpusRun(const GpusOptions& options, const Progress& progress)
      : options_(options),
        progress_(progress),
        parallel_(options.threads),
        host_(Backend::host(options.threads)) {}

  Status run(std::vector<ResultRow>* rows);

 private:
  struct Resident {
    std::shared_ptr<ResidentIndex> index;
    std::shared_ptr<ResidentMatches> matches;
  };

  Status make_machines();
  Status make_resident(GpusMachine& machine, Resident* resident);
  std::vector<Search> searches() const;
  Result<std::unique_ptr<BackendMemory>> allocate(Place place, GpusMachine& machine,
                                                  uint64_t bytes) const;
  Result<Batch> place(const Search& search, Place place, GpusMachine& machine) const;
  Status measure_search(const Search& search, Place place, const char* place_name);
  Status measure_get();
  // Values that go to the memory of the devices.
  Status measure_get_there(Place where, const char* place_name);
  Status measure_scatter(Place where, const char* place_name);
  Status measure_put(Place where, const char* place_name);
  // Builds the index of all keys, which ascend.
  Status measure_build(Place where, const char* place_name);
  Status get(size_t machine, const KeyColumn& queries);
  Status check_values(const KeyColumn& queries) const;
  Status check_value_places(const std::string& phase, uint64_t queries) const;
  // Times call(machine, seconds), as TimedCall says, on each machine in turn, round by round.
  Status measure_timed(const std::string& phase, uint64_t records,
                       const std::function<Status(size_t machine, double* seconds)>& call);
  // The same of call(machine) as a whole.
  template <class Call>
  Status measure(const std::string& phase, uint64_t records, const Call& call) {
    return measure_timed(phase, records, [&](size_t machine, double* seconds) {
      return timed([&] { return call(machine); })(seconds);
    });
  }
  ResultRow prototype(const GpusMachine& machine) const;

  const GpusOptions& options_;
  const Progress& progress_;
  Parallel parallel_;
  const std::shared_ptr<Backend> host_;
  std::unique_ptr<GpusData> data_;
  std::vector<std::unique_ptr<GpusMachine>> machines_;
  std::vector<Resident> resident_;  // of each machine; go first
  // What get() leaves.
  BulkVector<uint64_t> found_, ends_;
  BulkVector<std::byte> values_;
  std::vector<ResultRow> rows_;
};

Status GpusRun::run(std::vector<ResultRow>* rows) {
  progress_.show("making keys, queries and prefixes");
  auto data = GpusData::make(options_, *host_, &parallel_);
  if (!data.ok()) return data.status();
  data_ = std::move(*data);
  STRIDE_TRY(make_machines());
  for (const Search& search : searches())
    for (const auto& [where, name] : all_places) STRIDE_TRY(measure_search(search, where, name));
  STRIDE_TRY(measure_get());
  STRIDE_TRY(measure_get_there(Place::devices, "devices"));
  STRIDE_TRY(measure_get_there(Place::first, "first"));
  STRIDE_TRY(measure_scatter(Place::devices, "devices"));
  STRIDE_TRY(measure_scatter(Place::pinned, "pinned"));
  STRIDE_TRY(measure_put(Place::devices, "devices"));
  STRIDE_TRY(measure_put(Place::pinned, "pinned"));
  if (options_.cut.in_parts) {
    STRIDE_TRY(measure_build(Place::devices, "devices"));
    STRIDE_TRY(measure_build(Place::pinned, "pinned"));
  }
  for (const auto& machine : machines_) set_gpus_limits(options_, *machine, rows_);
  std::move(rows_.begin(), rows_.end(), std::back_inserter(*rows));
  return {};
}

Status GpusRun::make_machines() {
  for (uint64_t devices : options_.devices) {
    progress_.show("bringing up " + std::to_string(devices) + " devices");
    auto machine = GpusMachine::make(options_, devices, host_);
    if (!machine.ok()) return machine.status();
    machines_.push_back(std::move(*machine));
    STRIDE_TRY(machines_.back()->measure_limits(options_.one_gpu));
  }
  resident_.resize(machines_.size());
  return measure("make_resident", data_->keys->size(), [&](size_t machine) {
    return make_resident(*machines_[machine], &resident_[machine]);
  });
}

Status GpusRun::make_resident(GpusMachine& machine, Resident* resident) {
  *resident = {};
  const PackedColumn values = data_->packed_values();
  const IndexView index{data_->packed_keys(), {data_->tree.data(), data_->tree.size()}};
  auto trees = machine.backend().tree_index().make_resident(index, {.values = &values});
  if (!trees.ok()) return trees.status();
  resident->index = std::move(*trees);
  auto matches = machine.backend().longest_prefix().make_resident(
      {data_->matches.data(), data_->matches.size()});
  if (!matches.ok()) return matches.status();
  resident->matches = std::move(*matches);
  return {};
}

std::vector<Search> GpusRun::searches() const {
  auto trees = [this](size_t machine) -> TreeIndex& {
    return machines_[machine]->backend().tree_index();
  };
  std::vector<Search> all = {
      {"find", &data_->queries, &data_->found,
       [this, trees](size_t machine, const KeyColumn& queries, std::span<uint32_t> out) {
         return trees(machine).find_ranks(resident_[machine].index->view(), queries, out);
       }},
      {"lower_bound", &data_->queries, &data_->lower_bounds,
       [this, trees](size_t machine, const KeyColumn& queries, std::span<uint32_t> out) {
         return trees(machine).lower_bound(resident_[machine].index->view(), queries, out);
       }},
      {"match", &data_->addresses, &data_->matched,
       [this](size_t machine, const KeyColumn& queries, std::span<uint32_t> out) {
         const MatchView matches{data_->matches.data(), data_->matches.size(),
                                 resident_[machine].matches.get()};
         return machines_[machine]->backend().longest_prefix().longest_match(matches, queries, out);
       }}};
  if (options_.cut.in_parts) all.pop_back();  // prefixes are always copies
  return all;
}

Result<std::unique_ptr<BackendMemory>> GpusRun::allocate(Place place, GpusMachine& machine,
                                                         uint64_t bytes) const {
  switch (place) {
    case Place::devices:
      return machine.backend().allocate(bytes);
    case Place::first:
      return machine.first().allocate(bytes);
    case Place::pinned:
      return machine.backend().allocate_host(bytes);
    default:
      return host_->allocate(bytes);
  }
}

Result<Batch> GpusRun::place(const Search& search, Place place, GpusMachine& machine) const {
  Batch batch;
  batch.column = search.queries->view();
  auto queries = allocate(place, machine, batch.column.bytes());
  if (!queries.ok()) return queries.status();
  auto answers = allocate(place, machine, batch.column.size * sizeof(uint32_t));
  if (!answers.ok()) return answers.status();
  STRIDE_TRY(machine.backend().copy((*queries)->data(), batch.column.data, batch.column.bytes()));
  batch.queries = std::move(*queries);
  batch.answers = std::move(*answers);
  batch.column.data = batch.queries->data();
  batch.out = {reinterpret_cast<uint32_t*>(batch.answers->data()), batch.column.size};
  return batch;
}

Status GpusRun::measure_search(const Search& search, Place where, const char* place_name) {
  std::vector<Batch> batches;
  for (const auto& machine : machines_) {
    auto placed = place(search, where, *machine);
    if (!placed.ok()) return explain(machine->name(), placed.status());
    batches.push_back(std::move(*placed));
  }
  const std::string phase = std::string(search.name) + "_" + place_name;
  STRIDE_TRY(measure(phase, search.queries->rows, [&](size_t machine) {
    return search.call(machine, batches[machine].column, batches[machine].out);
  }));
  BulkVector<uint32_t> answers(search.queries->rows);
  for (size_t i = 0; i < machines_.size(); ++i) {
    STRIDE_TRY(machines_[i]->backend().copy(answers.data(), batches[i].out.data(),
                                            batches[i].out.size_bytes()));
    auto wrong = std::mismatch(answers.begin(), answers.end(), search.expected->begin()).first;
    if (wrong != answers.end())
      return Status(StatusCode::corruption, "wrong answer: " + phase + " of query " +
                                                std::to_string(wrong - answers.begin()) + ", " +
                                                machines_[i]->name());
  }
  return {};
}

// The values lie with the keys, and go to any host memory.
Status GpusRun::measure_get() {
  const KeyColumn queries =
      data_->queries.view().slice(0, std::min(options_.value_queries, options_.queries));
  found_.resize((queries.size + 63) / 64);
  ends_.resize(queries.size);
  values_.resize(queries.size * options_.value_bytes);
  STRIDE_TRY(
      measure("get_host", queries.size, [&](size_t machine) { return get(machine, queries); }));
  for (size_t i = 0; i < machines_.size(); ++i) {
    STRIDE_TRY(get(i, queries));
    STRIDE_TRY(explain(machines_[i]->name(), check_values(queries)));
  }
  return {};
}

Status GpusRun::measure_get_there(Place where, const char* place_name) {
  const uint64_t n = std::min(options_.value_queries, options_.queries);
  const uint32_t width = options_.value_bytes;
  struct Columns {
    std::unique_ptr<BackendMemory> queries, values;
  };
  std::vector<Columns> columns(machines_.size());
  const KeyColumn queries = data_->queries.view().slice(0, n);
  for (size_t i = 0; i < machines_.size(); ++i) {
    for (auto [memory, bytes] : {std::pair{&columns[i].queries, queries.bytes()},
                                 std::pair{&columns[i].values, n * width}}) {
      auto made = allocate(where, *machines_[i], bytes);
      if (!made.ok()) return explain(machines_[i]->name(), made.status());
      *memory = std::move(*made);
    }
    STRIDE_TRY(
        machines_[i]->backend().copy(columns[i].queries->data(), queries.data, queries.bytes()));
  }
  auto get = [&](size_t machine) {
    const IndexView index = resident_[machine].index->view();
    return machines_[machine]->backend().tree_index().get_on_device(
        {&index, 1}, KeyColumn::fixed(columns[machine].queries->data(), queries.width, n),
        {.values = columns[machine].values->data(), .width = width}, nullptr);
  };
  const std::string phase = std::string("get_") + place_name;
  STRIDE_TRY(measure(phase, n, get));
  values_.resize(n * width);
  for (size_t i = 0; i < machines_.size(); ++i) {
    STRIDE_TRY(
        machines_[i]->backend().copy(values_.data(), columns[i].values->data(), values_.size()));
    STRIDE_TRY(explain(machines_[i]->name(), check_value_places(phase, n)));
  }
  return {};
}

// Each value at the place of its query, and zeros where there is none.
Status GpusRun::check_value_places(const std::string& phase, uint64_t queries) const {
  const uint32_t width = options_.value_bytes;
  const std::vector<std::byte> none(width);
  for (uint64_t i = 0; i < queries; ++i) {
    const uint32_t rank = data_->found[i];
    const std::byte* expected =
        rank == Location::absent ? none.data() : data_->values.data() + uint64_t{rank} * width;
    if (std::memcmp(values_.data() + i * width, expected, width) != 0)
      return Status(StatusCode::corruption,
                    "wrong answer: " + phase + " of query " + std::to_string(i));
  }
  return {};
}

Status GpusRun::get(size_t machine, const KeyColumn& queries) {
  std::fill(found_.begin(), found_.end(), 0);
  const IndexView index = resident_[machine].index->view();
  auto values =
      machines_[machine]->backend().tree_index().find_values({&index, 1}, queries, found_, ends_);
  if (!values.ok()) return values.status();
  return (*values)->copy(values_.data());
}

Status GpusRun::check_values(const KeyColumn& queries) const {
  uint64_t end = 0;
  for (uint64_t i = 0; i < queries.size; ++i) {
    const uint32_t rank = data_->found[i];
    const bool is_there = rank != Location::absent;
    const std::byte* value = values_.data() + end;
    if (is_there) end += options_.value_bytes;
    const bool right =
        (found_[i / 64] >> (i % 64) & 1) == is_there && ends_[i] == end &&
        (!is_there ||
         std::memcmp(value, data_->values.data() + uint64_t{rank} * options_.value_bytes,
                     options_.value_bytes) == 0);
    if (!right)
      return Status(StatusCode::corruption, "wrong answer: get of query " + std::to_string(i));
  }
  return {};
}

// Adds a number to the sum of each target; the sums lie in the memory of the first device.
Status GpusRun::measure_scatter(Place where, const char* place_name) {
  const uint64_t sources = data_->targets.size();
  struct Columns {
    std::unique_ptr<BackendMemory> sources, targets, sums;
  };
  std::vector<Columns> columns(machines_.size());
  for (size_t i = 0; i < machines_.size(); ++i) {
    GpusMachine& machine = *machines_[i];
    for (auto* memory : {&columns[i].sources, &columns[i].targets}) {
      auto made = allocate(where, machine, sources * sizeof(uint32_t));
      if (!made.ok()) return explain(machine.name(), made.status());
      *memory = std::move(*made);
      // The targets serve as numbers as well.
      STRIDE_TRY(machine.backend().copy((*memory)->data(), data_->targets.data(),
                                        sources * sizeof(uint32_t)));
    }
    auto sums = allocate(Place::first, machine, data_->sums.size() * sizeof(int32_t));
    if (!sums.ok()) return explain(machine.name(), sums.status());
    columns[i].sums = std::move(*sums);
  }
  auto add = [&](size_t machine) {
    const Columns& here = columns[machine];
    return machines_[machine]->backend().scatter().apply(
        {NumberType::i32, here.sources->data(), sources},
        {here.targets->data(), sources, sizeof(uint32_t)},
        {NumberType::i32, here.sums->data(), data_->sums.size()});
  };
  const std::string phase = std::string("scatter_") + place_name;
  STRIDE_TRY(measure(phase, sources, add));
  std::vector<int32_t> sums(data_->sums.size());
  for (size_t i = 0; i < machines_.size(); ++i) {
    std::fill(sums.begin(), sums.end(), 0);
    const uint64_t bytes = sums.size() * sizeof(int32_t);
    STRIDE_TRY(machines_[i]->backend().copy(columns[i].sums->data(), sums.data(), bytes));
    STRIDE_TRY(add(i));
    STRIDE_TRY(machines_[i]->backend().copy(sums.data(), columns[i].sums->data(), bytes));
    if (sums != data_->sums)
      return Status(StatusCode::corruption, "wrong sums: " + phase + ", " + machines_[i]->name());
  }
  return {};
}

Status GpusRun::measure_put(Place where, const char* place_name) {
  const uint64_t n = options_.set_vectors, bit_words = (n + 63) / 64;
  struct Columns {
    std::unique_ptr<VectorSet> set;
    std::unique_ptr<BackendMemory> vectors, results;  // ids, and bits behind them
    std::span<uint64_t> ids(uint64_t rows) const {
      return {reinterpret_cast<uint64_t*>(results->data()), rows};
    }
  };
  std::vector<Columns> columns(machines_.size());
  for (size_t i = 0; i < machines_.size(); ++i) {
    GpusMachine& machine = *machines_[i];
    auto set = machine.backend().sets().make_vector_set(
        {.words = set_words, .form = VectorForm::slots, .capacity = n});
    if (!set.ok()) return explain(machine.name(), set.status());
    columns[i].set = std::move(*set);
    for (auto [memory, bytes] : {std::pair{&columns[i].vectors, n * set_words * 4},
                                 std::pair{&columns[i].results, (n + bit_words) * 8}}) {
      auto made = allocate(where, machine, bytes);
      if (!made.ok()) return explain(machine.name(), made.status());
      *memory = std::move(*made);
    }
    STRIDE_TRY(machine.backend().copy(columns[i].vectors->data(), data_->vectors.data(),
                                      n * set_words * 4));
  }
  auto put = [&](size_t machine, double* seconds) -> Status {
    const Columns& here = columns[machine];
    STRIDE_TRY(here.set->clear());
    const std::span<uint64_t> results = here.ids(n + bit_words);
    return timed([&] {
      return here.set->find_or_put(KeyColumn::fixed(here.vectors->data(), set_words * 4, n),
                                   results.first(n), results.subspan(n));
    })(seconds);
  };
  const std::string phase = std::string("put_") + place_name;
  STRIDE_TRY(measure_timed(phase, n, put));
  BulkVector<uint64_t> results(n + bit_words);
  for (size_t i = 0; i < machines_.size(); ++i) {
    STRIDE_TRY(machines_[i]->backend().copy(results.data(), columns[i].results->data(),
                                            results.size() * 8));
    const std::span<const uint64_t> all(results);
    STRIDE_TRY(explain(phase + ", " + machines_[i]->name(),
                       data_->check_put(all.first(n), all.subspan(n))));
  }
  return {};
}

Status GpusRun::measure_build(Place where, const char* place_name) {
  const KeyColumn sorted = data_->keys->sorted().view();
  std::vector<std::unique_ptr<BackendMemory>> keys;
  for (const auto& machine : machines_) {
    auto made = allocate(where, *machine, sorted.bytes());
    if (!made.ok()) return explain(machine->name(), made.status());
    STRIDE_TRY(machine->backend().copy((*made)->data(), sorted.data, sorted.bytes()));
    keys.push_back(std::move(*made));
  }
  return measure(std::string("build_") + place_name, sorted.size, [&](size_t machine) {
    return machines_[machine]
        ->backend()
        .tree_index()
        .build_index(KeyColumn::fixed(keys[machine]->data(), sorted.width, sorted.size),
                     KeyOrder::ascending, {})
        .status();
  });
}

ResultRow GpusRun::prototype(const GpusMachine& machine) const {
  ResultRow row;
  row.workload = "gpus";
  row.engine = "stride";
  row.configuration = machine.name();
  row.backend = machine.backend().name();
  row.machine = this_machine().to_string();
  row.is_database = false;
  row.numbers = {{"devices", static_cast<double>(machine.devices())},
                 {"keys", static_cast<double>(data_->keys->size())},
                 {"prefixes", static_cast<double>(data_->routes->size())},
                 {"value_bytes", options_.value_bytes},
                 {"zipf", options_.zipf},
                 {"seed", static_cast<double>(options_.seed)},
                 {"bus_both_bytes_per_second", machine.limits().bus_both_bytes_per_second},
                 {"bus_out_bytes_per_second", machine.limits().bus_out_bytes_per_second},
                 {"link_bytes_per_second", machine.limits().link_bytes_per_second}};
  row.texts = {{"kind", options_.one_gpu ? "one-gpu" : "gpus"},
               {"placement", options_.cut.in_parts ? "parts" : "copies"}};
  return row;
}

Status GpusRun::measure_timed(const std::string& phase, uint64_t records,
                              const std::function<Status(size_t machine, double* seconds)>& call) {
  for (unsigned round = 0; round < options_.rounds; ++round) {
    for (size_t i = 0; i < machines_.size(); ++i) {
      TimedPhases phases(options_.timing, prototype(*machines_[i]),
                         "round " + std::to_string(round + 1), &progress_);
      STRIDE_TRY(phases.measure(phase, records, [&](double* s) { return call(i, s); }));
      rows_.push_back(std::move(phases.rows()[0]));
    }
  }
  return {};
}

}  // namespace

Status run_gpus(const GpusOptions& options, const Progress& progress,
                std::vector<ResultRow>* rows) {
  return GpusRun(options, progress).run(rows);
}

}  // namespace stride::benchmark
