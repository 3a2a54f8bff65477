#include "benchmark/workloads/map/workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string_view>
#include <unordered_map>

#include "benchmark/harness/machine.h"
#include "benchmark/harness/scratch_directory.h"
#include "benchmark/harness/stream_mark.h"
#include "engine/database.h"
#include "engine/scatter_plan.h"

namespace stride::benchmark {
namespace {

constexpr const char* table_name = "bridge";

const char* mode_name(ScatterMode mode) {
  return mode == ScatterMode::fast ? "fast" : "reproducible";
}

// One S, and what T must be.
struct Weights {
  NumberType type;
  BulkVector<std::byte> numbers;
  std::vector<double> sums, absolute;  // of each target; in doubles
  std::vector<uint64_t> wrapped;       // integers, in 64 bits
  std::vector<uint64_t> counts;

  Numbers view(uint64_t sources) const { return {type, numbers.data(), sources}; }
};

// std::unordered_map from key to target. Keys of 4 or 8 bytes are hashed as integers.
class TargetMap {
 public:
  // The keys must outlive it.
  TargetMap(const KeyColumn& keys, std::span<const uint32_t> targets)
      : is_number_(keys.is_fixed() && (keys.width == 4 || keys.width == 8)) {
    is_number_ ? numbers_.reserve(keys.size) : texts_.reserve(keys.size);
    for (uint64_t i = 0; i < keys.size; ++i) {
      if (is_number_) {
        numbers_.emplace(number(keys[i]), targets[i]);
      } else {
        texts_.emplace(as_text(keys[i]), targets[i]);
      }
    }
  }
  // Precondition: the keys are there.
  void find(const KeyColumn& keys, std::span<uint32_t> targets) const {
    if (is_number_) {
      for (uint64_t i = 0; i < keys.size; ++i) targets[i] = numbers_.find(number(keys[i]))->second;
    } else {
      for (uint64_t i = 0; i < keys.size; ++i) targets[i] = texts_.find(as_text(keys[i]))->second;
    }
  }

 private:
  static uint64_t number(Bytes key) {
    if (key.size() == 4) return load_big_endian<uint32_t>(key.data());
    return load_big_endian<uint64_t>(key.data());
  }

  bool is_number_;
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::unordered_map<std::string_view, uint32_t> texts_;
};

// S and T in one memory.
struct Place {
  Backend* backend = nullptr;  // null: the host's memory
  std::unique_ptr<BackendMemory> weights, into;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
};

class MapRun {
 public:
  MapRun(const MapOptions& options, const Progress& progress, std::vector<ResultRow>* rows)
      : options_(options), progress_(progress), rows_(rows), parallel_(options.threads) {}

  Status run();

 private:
  Status make_bridge();
  Status open_database(std::shared_ptr<Backend> backend);
  Weights make_weights(NumberType type);
  template <class T>
  void add_up(Weights* weights);

  Status measure_loop(const Weights& weights);
  Status measure_stride(const Weights& weights, const std::shared_ptr<Backend>& backend,
                        unsigned threads);
  Status measure_plan(const Weights& weights, const ScatterPlan& plan, ScatterMode mode,
                      const Place& place, TimedPhases* phases);
  Status measure_stream(const Weights& weights, const ScatterPlan& plan, ScatterMode mode,
                        const Place& place, TimedPhases* phases);
  void finish(TimedPhases* phases, const std::map<std::string, double>& numbers);

  Result<Place> place_numbers(const Weights& weights, Backend* backend) const;
  Status clear(const Weights& weights, const Place& place) const;
  // The call, with T cleared before.
  template <class Call>
  TimedCall on_cleared(const Weights& weights, const Place& place, const Call& call) const {
    return [this, &weights, &place, call](double* seconds) -> Status {
      STRIDE_TRY(clear(weights, place));
      return timed(call)(seconds);
    };
  }
  // T is `calls` times what S comes to.
  Status check(const Weights& weights, const Place& place, uint64_t calls,
               const std::string& who) const;
  Status check_bits(const Weights& weights, const Place& place);

  ResultRow prototype(const Weights& weights, const std::string& engine,
                      const std::string& configuration, unsigned threads) const;
  uint64_t into_bytes(const Weights& weights) const {
    return options_.targets * width_of(weights.type);
  }

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

// Integers from -1000 to 1000, floats from -1 to 1.
Weights MapRun::make_weights(NumberType type) {
  Weights weights;
  weights.type = type;
  weights.numbers.resize(targets_.size() * width_of(type));
  weights.sums.resize(options_.targets);
  weights.absolute.resize(options_.targets);
  weights.wrapped.resize(options_.targets);
  weights.counts.resize(options_.targets);
  switch (type) {
    case NumberType::i32:
      add_up<int32_t>(&weights);
      break;
    case NumberType::i64:
      add_up<int64_t>(&weights);
      break;
    case NumberType::f32:
      add_up<float>(&weights);
      break;
    default:
      add_up<double>(&weights);
      break;
  }
  return weights;
}

template <class T>
void MapRun::add_up(Weights* weights) {
  std::mt19937_64 random(options_.seed + 1);
  T* numbers = reinterpret_cast<T*>(weights->numbers.data());
  for (uint64_t i = 0; i < targets_.size(); ++i) {
    int64_t whole = static_cast<int64_t>(random() % 2'000'001) - 1'000'000;
    if constexpr (std::is_integral_v<T>) {
      numbers[i] = static_cast<T>(whole / 1000);
      weights->wrapped[targets_[i]] += static_cast<uint64_t>(numbers[i]);
    } else {
      numbers[i] = static_cast<T>(whole) / 1'000'000;
      weights->sums[targets_[i]] += numbers[i];
      weights->absolute[targets_[i]] += std::abs(static_cast<double>(numbers[i]));
    }
    ++weights->counts[targets_[i]];
  }
}

Result<Place> MapRun::place_numbers(const Weights& weights, Backend* backend) const {
  Place place;
  place.backend = backend;
  auto host = Backend::host(1);
  auto allocate = [&](uint64_t bytes) {
    return backend ? backend->allocate(bytes) : host->allocate(bytes);
  };
  auto into = allocate(into_bytes(weights));
  if (!into.ok()) return into.status();
  place.into = std::move(*into);
  place.to = place.into->data();
  place.from = weights.numbers.data();
  if (!backend) return place;
  auto from = allocate(weights.numbers.size());
  if (!from.ok()) return from.status();
  place.weights = std::move(*from);
  place.from = place.weights->data();
  if (Status s =
          backend->copy(place.weights->data(), weights.numbers.data(), weights.numbers.size());
      !s.ok())
    return s;
  return place;
}

Status MapRun::clear(const Weights& weights, const Place& place) const {
  if (!place.backend) {
    std::memset(place.to, 0, into_bytes(weights));
    return {};
  }
  std::vector<std::byte> zeros(into_bytes(weights));
  return place.backend->copy(place.to, zeros.data(), zeros.size());
}

template <class T>
uint64_t first_wrong(const Weights& weights, const T* into, uint64_t calls) {
  for (uint64_t t = 0; t < weights.sums.size(); ++t) {
    if constexpr (std::is_integral_v<T>) {
      if (into[t] != static_cast<T>(weights.wrapped[t] * calls)) return t;
    } else {
      auto times = static_cast<double>(calls);
      double most = static_cast<double>(weights.counts[t] + 2) * times * times *
                    weights.absolute[t] * std::numeric_limits<T>::epsilon();
      if (!(std::abs(static_cast<double>(into[t]) - times * weights.sums[t]) <= most)) return t;
    }
  }
  return UINT64_MAX;
}

Status MapRun::check(const Weights& weights, const Place& place, uint64_t calls,
                     const std::string& who) const {
  std::vector<std::byte> copy(into_bytes(weights));
  if (place.backend) {
    STRIDE_TRY(place.backend->copy(copy.data(), place.to, copy.size()));
  } else {
    std::memcpy(copy.data(), place.to, copy.size());
  }
  const void* into = copy.data();
  uint64_t wrong = UINT64_MAX;
  switch (weights.type) {
    case NumberType::i32:
      wrong = first_wrong(weights, static_cast<const int32_t*>(into), calls);
      break;
    case NumberType::i64:
      wrong = first_wrong(weights, static_cast<const int64_t*>(into), calls);
      break;
    case NumberType::f32:
      wrong = first_wrong(weights, static_cast<const float*>(into), calls);
      break;
    default:
      wrong = first_wrong(weights, static_cast<const double*>(into), calls);
      break;
  }
  if (wrong == UINT64_MAX) return {};
  return Status(StatusCode::corruption, "wrong answer: target " + std::to_string(wrong) + " of " +
                                            who + ", " + std::string(to_string(weights.type)));
}

// Checks that reproducible sums have the same bits as all before.
Status MapRun::check_bits(const Weights& weights, const Place& place) {
  std::vector<std::byte> copy(into_bytes(weights));
  if (place.backend) {
    STRIDE_TRY(place.backend->copy(copy.data(), place.to, copy.size()));
  } else {
    std::memcpy(copy.data(), place.to, copy.size());
  }
  auto [known, is_new] = reproducible_.try_emplace(weights.type, copy);
  if (is_new || known->second == copy) return {};
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

template <class T>
void plain_loop(const T* weights, const uint32_t* targets, uint64_t n, T* into) {
  for (uint64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, int32_t>) {
      into[targets[i]] = static_cast<int32_t>(static_cast<uint32_t>(into[targets[i]]) +
                                              static_cast<uint32_t>(weights[i]));
    } else {
      into[targets[i]] += weights[i];
    }
  }
}

void plain_loop(const Numbers& weights, const uint32_t* targets, void* into) {
  auto loop = [&](auto zero) {
    using T = decltype(zero);
    plain_loop(static_cast<const T*>(weights.data), targets, weights.size, static_cast<T*>(into));
  };
  switch (weights.type) {
    case NumberType::i32:
      return loop(int32_t{});
    case NumberType::i64:
      return loop(int64_t{});
    case NumberType::f32:
      return loop(float{});
    default:
      return loop(double{});
  }
}

// What one writes without a database: std::unordered_map, and a loop.
Status MapRun::measure_loop(const Weights& weights) {
  const uint64_t n = targets_.size();
  KeyColumn keys = sources_.view();
  const TargetMap bridge(bridge_.view(), bridge_targets_);
  auto place = place_numbers(weights, nullptr);
  if (!place.ok()) return place.status();
  BulkVector<uint32_t> found(n);
  auto look_up = [&] {
    bridge.find(keys, found);
    return Status();
  };
  auto map = [&] {
    plain_loop(weights.view(n), found.data(), place->to);
    return Status();
  };
  auto both = [&] {
    Status looked_up = look_up();
    return looked_up.ok() ? map() : looked_up;
  };
  TimedPhases phases(options_.timing, prototype(weights, "loop", "1 thread", 1), "map", &progress_);
  STRIDE_TRY(phases.measure("prepare", n, timed(look_up)));
  STRIDE_TRY(phases.measure("map", n, on_cleared(weights, *place, map)));
  STRIDE_TRY(check(weights, *place, 1, "the loop"));
  STRIDE_TRY(phases.measure("whole", n, on_cleared(weights, *place, both)));
  STRIDE_TRY(check(weights, *place, 1, "the loop"));
  finish(&phases, {});
  return {};
}

Status MapRun::measure_plan(const Weights& weights, const ScatterPlan& plan, ScatterMode mode,
                            const Place& place, TimedPhases* phases) {
  const uint64_t n = targets_.size();
  Numbers from{weights.type, place.from, n};
  MutableNumbers into{weights.type, place.to, options_.targets};
  auto map = [&] { return plan.map(from, into, {.mode = mode}); };
  STRIDE_TRY(phases->measure("map", n, on_cleared(weights, place, map)));
  STRIDE_TRY(check(weights, place, 1, "a plan"));
  return mode == ScatterMode::reproducible ? check_bits(weights, place) : Status();
}

Status MapRun::measure_stream(const Weights& weights, const ScatterPlan& plan, ScatterMode mode,
                              const Place& place, TimedPhases* phases) {
  const uint64_t n = targets_.size();
  Numbers from{weights.type, place.from, n};
  MutableNumbers into{weights.type, place.to, options_.targets};
  auto mark = StreamMark::make(place.backend);
  if (!mark.ok()) return mark.status();
  auto calls = [&]() -> Status {
    for (uint64_t i = 0; i < options_.calls; ++i)
      STRIDE_TRY(plan.map(from, into, {.mode = mode, .stream = StreamMark::stream()}));
    return mark->wait();
  };
  STRIDE_TRY(phases->measure("map", n * options_.calls, on_cleared(weights, place, calls)));
  return check(weights, place, options_.calls, "a stream");
}

// backend: of the database. threads: of the host's.
Status MapRun::measure_stride(const Weights& weights, const std::shared_ptr<Backend>& backend,
                              unsigned threads) {
  const uint64_t n = targets_.size();
  const bool device = backend->has_device();
  const std::string where = device ? "device" : threads_name(threads);
  STRIDE_TRY(open_database(backend));
  Snapshot now = database_->snapshot();
  auto on_host = place_numbers(weights, nullptr);
  if (!on_host.ok()) return on_host.status();
  auto row = [&](const std::string& configuration) {
    ResultRow made = prototype(weights, "stride", configuration, threads);
    made.backend = backend->name();
    return made;
  };

  TimedPhases at_once(options_.timing, row("map_weights, " + where), "map", &progress_);
  auto whole = [&] {
    return map_weights(now, table_, sources_.view(), weights.view(n),
                       {weights.type, on_host->to, options_.targets});
  };
  STRIDE_TRY(at_once.measure("whole", n, on_cleared(weights, *on_host, whole)));
  STRIDE_TRY(check(weights, *on_host, 1, "map_weights"));
  finish(&at_once, {});

  std::unique_ptr<ScatterPlan> plan;
  auto prepare = [&] {
    auto made = ScatterPlan::make(now, table_, sources_.view(), {.targets = options_.targets});
    if (made.ok()) plan = std::make_unique<ScatterPlan>(std::move(*made));
    return made.status();
  };
  Place on_device;
  if (device) {
    auto placed = place_numbers(weights, backend.get());
    if (!placed.ok()) return placed.status();
    on_device = std::move(*placed);
  }
  bool prepared = false;
  for (ScatterMode mode : options_.modes) {
    for (bool resident : {false, true}) {
      if (resident && !device) continue;
      const Place& place = resident ? on_device : *on_host;
      std::string name = std::string("plan, ") + mode_name(mode) + ", " + where;
      if (device) name += resident ? " memory" : ", host memory";
      ResultRow proto = row(name);
      proto.texts["mode"] = mode_name(mode);
      proto.texts["memory"] = resident ? "device" : "host";
      TimedPhases phases(options_.timing, proto, "map", &progress_);
      if (!prepared) {
        STRIDE_TRY(phases.measure("prepare", n, timed(prepare)));
        prepared = true;
        if (plan->unmapped() > 0)
          return Status(StatusCode::corruption, "wrong answer: sources without a target");
      }
      STRIDE_TRY(measure_plan(weights, *plan, mode, place, &phases));
      double bytes = static_cast<double>(plan->memory_bytes()) / static_cast<double>(n);
      finish(&phases, {{"bytes_per_source", bytes}});
      if (!resident) continue;
      proto.configuration += ", stream";
      proto.numbers["calls"] = static_cast<double>(options_.calls);
      TimedPhases stream(options_.timing, proto, "map", &progress_);
      STRIDE_TRY(measure_stream(weights, *plan, mode, place, &stream));
      finish(&stream, {{"bytes_per_source", bytes}});
    }
  }
  return {};
}

Status MapRun::run() {
  std::shared_ptr<Backend> device;
  if (options_.backend != BackendKind::host && options_.with_stride) {
    auto made = Backend::cuda({.host_threads = options_.threads});
    if (made.ok()) {
      device = std::move(*made);
    } else if (options_.backend == BackendKind::cuda) {
      return made.status();
    }
  }
  STRIDE_TRY(make_bridge());
  for (NumberType type : options_.types) {
    Weights weights = make_weights(type);
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
