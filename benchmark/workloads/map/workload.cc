#include "benchmark/workloads/map/workload.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>

#include "benchmark/harness/device_backend.h"
#include "benchmark/harness/machine.h"
#include "benchmark/harness/scratch_directory.h"
#include "benchmark/harness/stream_mark.h"
#include "benchmark/peers/scatter_loop.h"
#include "benchmark/peers/target_map.h"
#include "benchmark/workloads/map/placed_weights.h"
#include "engine/database.h"
#include "engine/scatter_plan.h"

namespace stride::benchmark {
namespace {

constexpr const char* table_name = "bridge";

const char* mode_name(ScatterMode mode) {
  return mode == ScatterMode::fast ? "fast" : "reproducible";
}

// Where a plan maps.
struct PlanPlace {
  const PlacedWeights* weights;
  const char* name;    // goes after the name of the device or of the threads
  const char* memory;  // "host", "device"
};

class MapRun {
 public:
  MapRun(const MapOptions& options, const Progress& progress, std::vector<ResultRow>* rows)
      : options_(options), progress_(progress), rows_(rows), parallel_(options.threads) {}

  Status run();

 private:
  Status make_bridge();
  Status open_database(std::shared_ptr<Backend> backend);

  Status measure_loop(const Weights& weights);
  Status measure_stride(const Weights& weights, const std::shared_ptr<Backend>& backend,
                        unsigned threads);
  Status measure_plans(const Weights& weights, const Snapshot& now,
                        const std::vector<PlanPlace>& places, const ResultRow& row,
                        const std::string& where);
  Status measure_plan(const Weights& weights, const ScatterPlan& plan, ScatterMode mode,
                       const PlacedWeights& place, TimedPhases* phases);
  Status measure_stream(const Weights& weights, const ScatterPlan& plan, ScatterMode mode,
                        const PlacedWeights& place, TimedPhases* phases);
  void finish(TimedPhases* phases, const std::map<std::string, double>& numbers);

  // Makes the call, with T cleared before.
  template <class Call>
  static TimedCall on_cleared(const PlacedWeights& place, const Call& call) {
    return [&place, call](double* seconds) -> Status {
      STRIDE_TRY(place.clear());
      return timed(call)(seconds);
    };
  }
  // Checks that reproducible sums have the same bits as all before.
  Status check_bits(const Weights& weights, const PlacedWeights& place);

  ResultRow prototype(const Weights& weights, const std::string& engine,
                      const std::string& configuration, unsigned threads) const;

  const MapOptions& options_;
  const Progress& progress_;
  std::vector<ResultRow>* rows_;
  Parallel parallel_;
  OwnedColumn bridge_;  // its keys, in the order in which they are written
  BulkVector<uint32_t> bridge_targets_;
  OwnedColumn sources_;           // the same keys in another order
  BulkVector<uint32_t> targets_;  // of each source
  std::unique_ptr<ScratchDirectory> directory_;
  std::unique_ptr<Database> database_;
  Table table_;
  std::map<NumberType, std::vector<std::byte>> reproducible_;
};

Status MapRun::make_bridge() {
  progress_.show("making keys");
  auto keys = TreeKeys::make(options_.keys, options_.sources, options_.seed, &parallel_);
  if (!keys.ok()) return keys.status();
  KeyColumn given = keys->shuffled();
  const uint64_t n = given.size;
  const uint32_t width = given.is_fixed() ? given.width : 0;
  bridge_ = make_column(width, n, &parallel_, [&](uint64_t i) { return given[i]; });
  std::mt19937_64 random(options_.seed);
  bridge_targets_.resize(n);
  for (uint32_t& target : bridge_targets_)
    target = static_cast<uint32_t>(random() % options_.targets);
  BulkVector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  sources_ = make_column(width, n, &parallel_, [&](uint64_t i) { return given[order[i]]; });
  targets_.resize(n);
  for (uint64_t i = 0; i < n; ++i) targets_[i] = bridge_targets_[order[i]];
  progress_.show("writing the bridge");
  auto directory = ScratchDirectory::create(options_.directory, "stride-map");
  if (!directory.ok()) return directory.status();
  directory_ = std::make_unique<ScratchDirectory>(std::move(*directory));
  STRIDE_TRY(open_database(Backend::host(options_.threads)));
  WriteTransaction transaction = database_->begin();
  STRIDE_TRY(
      transaction.put_view(table_, bridge_.view(), Column::fixed(bridge_targets_.data(), 4, n)));
  return transaction.commit(Durability::none);
}

Status MapRun::open_database(std::shared_ptr<Backend> backend) {
  if (database_) STRIDE_TRY(database_->close());
  database_.reset();
  auto opened = Database::open(directory_->path() + "/db", {.shared_backend = std::move(backend)});
  if (!opened.ok()) return opened.status();
  database_ = std::move(*opened);
  auto table = database_->open_or_create_table(table_name, {.key_width = sources_.width});
  if (!table.ok()) return table.status();
  table_ = *table;
  return {};
}

// T, as it is checked.
Status check_placed(const Weights& weights, const PlacedWeights& place, uint64_t calls,
                    const std::string& who) {
  std::vector<std::byte> into;
  STRIDE_TRY(place.fetch(&into));
  return check_sums(weights, into.data(), calls, who);
}

Status MapRun::check_bits(const Weights& weights, const PlacedWeights& place) {
  std::vector<std::byte> into;
  STRIDE_TRY(place.fetch(&into));
  auto [known, is_new] = reproducible_.try_emplace(weights.type, into);
  if (is_new || known->second == into) return {};
  return Status(StatusCode::corruption, "wrong answer: reproducible sums of other bits");
}

ResultRow MapRun::prototype(const Weights& weights, const std::string& engine,
                            const std::string& configuration, unsigned threads) const {
  ResultRow row;
  row.workload = "map";
  row.engine = engine;
  row.configuration = configuration;
  row.machine = this_machine().to_string();
  row.backend = "host";
  row.is_database = engine == "stride";
  row.raw_bytes = sources_.data.size() + targets_.size() * 4;
  row.numbers["targets"] = static_cast<double>(options_.targets);
  row.numbers["threads"] = threads;
  row.numbers["seed"] = static_cast<double>(options_.seed);
  row.texts["keys"] = options_.keys.name;
  row.texts["type"] = std::string(to_string(weights.type));
  return row;
}

void MapRun::finish(TimedPhases* phases, const std::map<std::string, double>& numbers) {
  for (ResultRow& row : phases->rows()) {
    for (const auto& [name, value] : numbers) row.numbers[name] = value;
    rows_->push_back(std::move(row));
  }
}

// What one writes without a database: std::unordered_map, and a loop.
Status MapRun::measure_loop(const Weights& weights) {
  const uint64_t n = targets_.size();
  KeyColumn keys = sources_.view();
  const TargetMap bridge(bridge_.view(), bridge_targets_);
  auto place = PlacedWeights::make(weights, nullptr);
  if (!place.ok()) return place.status();
  BulkVector<uint32_t> found(n);
  auto look_up = [&] {
    bridge.find(keys, found);
    return Status();
  };
  auto map = [&] {
    scatter_loop(weights.view(n), {found.data(), n, 4}, place->into(), ScatterOperation::add);
    return Status();
  };
  auto both = [&] {
    Status looked_up = look_up();
    return looked_up.ok() ? map() : looked_up;
  };
  TimedPhases phases(options_.timing, prototype(weights, "loop", "1 thread", 1), "map", &progress_);
  STRIDE_TRY(phases.measure("prepare", n, timed(look_up)));
  STRIDE_TRY(phases.measure("map", n, on_cleared(*place, map)));
  STRIDE_TRY(check_placed(weights, *place, 1, "the loop"));
  STRIDE_TRY(phases.measure("whole", n, on_cleared(*place, both)));
  STRIDE_TRY(check_placed(weights, *place, 1, "the loop"));
  finish(&phases, {});
  return {};
}

Status MapRun::measure_plan(const Weights& weights, const ScatterPlan& plan, ScatterMode mode,
                             const PlacedWeights& place, TimedPhases* phases) {
  const uint64_t n = targets_.size();
  const Numbers from = place.sources(n);
  const MutableNumbers into = place.into();
  auto map = [&] { return plan.map(from, into, {.mode = mode}); };
  STRIDE_TRY(phases->measure("map", n, on_cleared(place, map)));
  STRIDE_TRY(check_placed(weights, place, 1, "a plan"));
  return mode == ScatterMode::reproducible ? check_bits(weights, place) : Status();
}

Status MapRun::measure_stream(const Weights& weights, const ScatterPlan& plan, ScatterMode mode,
                              const PlacedWeights& place, TimedPhases* phases) {
  const uint64_t n = targets_.size();
  const Numbers from = place.sources(n);
  const MutableNumbers into = place.into();
  auto mark = StreamMark::make(place.backend());
  if (!mark.ok()) return mark.status();
  auto calls = [&]() -> Status {
    for (uint64_t i = 0; i < options_.calls; ++i)
      STRIDE_TRY(plan.map(from, into, {.mode = mode, .stream = StreamMark::stream()}));
    return mark->wait();
  };
  STRIDE_TRY(phases->measure("map", n * options_.calls, on_cleared(place, calls)));
  return check_placed(weights, place, options_.calls, "a stream");
}

// backend: of the database. threads: of the host's.
Status MapRun::measure_stride(const Weights& weights, const std::shared_ptr<Backend>& backend,
                              unsigned threads) {
  const uint64_t n = targets_.size();
  const bool device = backend->has_device();
  const std::string where = device ? "device" : threads_name(threads);
  STRIDE_TRY(open_database(backend));
  Snapshot now = database_->snapshot();
  auto on_host = PlacedWeights::make(weights, nullptr);
  if (!on_host.ok()) return on_host.status();
  auto row = [&](const std::string& configuration) {
    ResultRow made = prototype(weights, "stride", configuration, threads);
    made.backend = backend->name();
    return made;
  };

  TimedPhases at_once(options_.timing, row("map_weights, " + where), "map", &progress_);
  auto whole = [&] {
    return map_weights(now, table_, sources_.view(), weights.view(n), on_host->into());
  };
  STRIDE_TRY(at_once.measure("whole", n, on_cleared(*on_host, whole)));
  STRIDE_TRY(check_placed(weights, *on_host, 1, "map_weights"));
  finish(&at_once, {});

  std::vector<PlanPlace> places = {{&*on_host, device ? ", host memory" : "", "host"}};
  std::optional<PlacedWeights> on_device;
  if (device) {
    auto placed = PlacedWeights::make(weights, backend.get());
    if (!placed.ok()) return placed.status();
    on_device = std::move(*placed);
    places.push_back({&*on_device, " memory", "device"});
  }
  return measure_plans(weights, now, places, row("plan, "), where);
}

// In every mode and place, with a row for what prepares the plan in the first of them.
Status MapRun::measure_plans(const Weights& weights, const Snapshot& now,
                              const std::vector<PlanPlace>& places, const ResultRow& row,
                              const std::string& where) {
  const uint64_t n = targets_.size();
  std::unique_ptr<ScatterPlan> plan;
  auto prepare = [&] {
    auto made = ScatterPlan::make(now, table_, sources_.view(), {.targets = options_.targets});
    if (made.ok()) plan = std::make_unique<ScatterPlan>(std::move(*made));
    return made.status();
  };
  for (ScatterMode mode : options_.modes) {
    for (const PlanPlace& at : places) {
      ResultRow proto = row;
      proto.configuration += std::string(mode_name(mode)) + ", " + where + at.name;
      proto.texts["mode"] = mode_name(mode);
      proto.texts["memory"] = at.memory;
      TimedPhases phases(options_.timing, proto, "map", &progress_);
      if (!plan) {
        STRIDE_TRY(phases.measure("prepare", n, timed(prepare)));
        if (plan->unmapped() > 0)
          return Status(StatusCode::corruption, "wrong answer: sources without a target");
      }
      STRIDE_TRY(measure_plan(weights, *plan, mode, *at.weights, &phases));
      double bytes = static_cast<double>(plan->memory_bytes()) / static_cast<double>(n);
      finish(&phases, {{"bytes_per_source", bytes}});
      if (!at.weights->backend()) continue;
      proto.configuration += ", stream";
      proto.numbers["calls"] = static_cast<double>(options_.calls);
      TimedPhases stream(options_.timing, proto, "map", &progress_);
      STRIDE_TRY(measure_stream(weights, *plan, mode, *at.weights, &stream));
      finish(&stream, {{"bytes_per_source", bytes}});
    }
  }
  return {};
}

Status MapRun::run() {
  auto made =
      device_backend(options_.with_stride ? options_.backend : BackendKind::host, options_.threads);
  if (!made.ok()) return made.status();
  std::shared_ptr<Backend> device = std::move(*made);
  STRIDE_TRY(make_bridge());
  for (NumberType type : options_.types) {
    Weights weights = make_weights(type, targets_, options_.targets, options_.seed);
    if (options_.with_loop) STRIDE_TRY(measure_loop(weights));
    if (!options_.with_stride) continue;
    if (options_.backend != BackendKind::cuda) {
      std::vector<unsigned> counts = {1};
      if (options_.threads > 1) counts.push_back(options_.threads);
      for (unsigned threads : counts)
        STRIDE_TRY(measure_stride(weights, Backend::host(threads), threads));
    }
    if (device) STRIDE_TRY(measure_stride(weights, device, options_.threads));
  }
  return {};
}

}  // namespace

Status run_map(const MapOptions& options, const Progress& progress, std::vector<ResultRow>* rows) {
  return MapRun(options, progress, rows).run();
}

}  // namespace stride::benchmark
