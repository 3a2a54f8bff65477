#include "benchmark/workloads/scatter/workload.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "benchmark/harness/machine.h"
#include "benchmark/harness/stream_mark.h"
#include "benchmark/peers/scatter_loop.h"

namespace stride::benchmark {
namespace {

// What is measured with the columns of one case: a call of Backend::scatter() or prepared targets.
using ScatterCall = std::function<Status(void* stream)>;

constexpr uint64_t min_stream_calls = 4, max_stream_calls = 200;

std::string hexadecimal(uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

// S and R, and which they are.
struct ScatterData {
  TargetOptions options;
  OwnedIndexes targets;
  OwnedNumbers sources;

  uint64_t read_bytes() const {
    return sources.size * (width_of(sources.type) + uint64_t{targets.width});
  }
};

// The columns of a case where a backend works on them.
class PlacedScatter {
 public:
  // plain: whose memory is the host's. Precondition: all outlive this.
  Status place(Backend* backend, Backend* plain, ScatterMemory memory, const ScatterData& data);

  Backend* backend() const { return backend_; }
  ScatterMemory memory() const { return memory_; }
  const Numbers& sources() const { return sources_; }
  const Indexes& targets() const { return targets_; }
  const MutableNumbers& into() const { return into_; }
  // T to zeros.
  Status clear() { return backend_->copy(into_.data, zeros_->data(), into_bytes()); }
  // T on the host, valid until the next call.
  Status fetch(const void** t);
  bool has_stream() const { return backend_->has_device() && memory_ == ScatterMemory::device; }
  // Waits for all that was started on StreamMark::stream(). Precondition: has_stream().
  Status wait() { return mark_->wait(); }

 private:
  uint64_t into_bytes() const { return into_.size * width_of(into_.type); }
  Status allocate(uint64_t bytes, std::unique_ptr<BackendMemory>* memory);
  Status copy_of(const void* from, uint64_t bytes, std::unique_ptr<BackendMemory>* memory);

  Backend* backend_ = nullptr;
  Backend* plain_ = nullptr;
  ScatterMemory memory_ = ScatterMemory::host;
  Numbers sources_;
  Indexes targets_;
  MutableNumbers into_;
  std::unique_ptr<BackendMemory> s_, r_, t_, zeros_;
  BulkVector<std::byte> fetched_;
  std::optional<StreamMark> mark_;
};

Status PlacedScatter::allocate(uint64_t bytes, std::unique_ptr<BackendMemory>* memory) {
  bytes = std::max<uint64_t>(bytes, 8);
  Result<std::unique_ptr<BackendMemory>> made =
      memory_ == ScatterMemory::device   ? backend_->allocate(bytes)
      : memory_ == ScatterMemory::pinned ? backend_->allocate_host(bytes)
                                         : plain_->allocate(bytes);
  if (!made.ok()) return made.status();
  *memory = std::move(*made);
  return {};
}

Status PlacedScatter::copy_of(const void* from, uint64_t bytes,
                              std::unique_ptr<BackendMemory>* memory) {
  STRIDE_TRY(allocate(bytes, memory));
  return backend_->copy((*memory)->data(), from, bytes);
}

Status PlacedScatter::place(Backend* backend, Backend* plain, ScatterMemory memory,
                            const ScatterData& data) {
  backend_ = backend;
  plain_ = plain;
  memory_ = memory;
  sources_ = data.sources.view();
  targets_ = data.targets.view();
  if (memory != ScatterMemory::host) {
    STRIDE_TRY(copy_of(sources_.data, sources_.size * width_of(sources_.type), &s_));
    STRIDE_TRY(copy_of(targets_.data, targets_.size * targets_.width, &r_));
    sources_.data = s_->data();
    targets_.data = r_->data();
  }
  into_ = {sum_type_of(sources_.type), nullptr, data.options.targets};
  std::vector<std::byte> zeros(into_bytes());
  STRIDE_TRY(allocate(into_bytes(), &t_));
  STRIDE_TRY(copy_of(zeros.data(), zeros.size(), &zeros_));
  into_.data = t_->data();
  if (!has_stream()) return {};
  Result<StreamMark> mark = StreamMark::make(backend);
  if (!mark.ok()) return mark.status();
  mark_ = std::move(*mark);
  return {};
}

Status PlacedScatter::fetch(const void** t) {
  *t = into_.data;
  if (memory_ != ScatterMemory::device) return {};
  fetched_.resize(into_bytes());
  *t = fetched_.data();
  return backend_->copy(fetched_.data(), into_.data, fetched_.size());
}

// One way to do it.
struct Variant {
  ScatterMode mode = ScatterMode::fast;
  ScatterMethod method = ScatterMethod::automatic;
  bool prepared = false;
  auto operator<=>(const Variant&) const = default;
};

class ScatterRun {
 public:
  ScatterRun(const ScatterWorkloadOptions& options, const ScatterBackends& backends,
             const Progress& progress, std::vector<ResultRow>* rows)
      : options_(options),
        backends_(backends),
        progress_(progress),
        rows_(rows),
        parallel_(options.threads) {}

  Status run();

 private:
  Status measure_data(const ScatterData& data);
  Status measure_operation(const ScatterData& data, ScatterOperation operation,
                           std::vector<std::unique_ptr<PlacedScatter>>* places);
  Status measure_loop(PlacedScatter* place, ResultRow row, ScatterOperation operation);
  Status measure_variant(PlacedScatter* place, ResultRow row, ScatterOperation operation,
                         const Variant& variant);
  Status measure_prepared(PlacedScatter* place, ResultRow row, ScatterMode mode);
  Status measure_calls(PlacedScatter* place, const ScatterCall& call, ScatterMode mode,
                       const char* phase, TimedPhases* phases);
  std::vector<Variant> variants(const PlacedScatter& place, ScatterOperation operation) const;

  ResultRow prototype(const ScatterData& data, ScatterOperation operation) const;
  std::string name_of(const ResultRow& row) const;
  // Compares T, and adds its hash to the phases' rows where every run has the same.
  Status check(PlacedScatter* place, ScatterMode mode, TimedPhases* phases);
  // Adds the rows with what is known by now.
  Status finish(PlacedScatter* place, std::vector<ResultRow>* rows);
  Status limits_of(Backend* backend, BackendLimits* limits);

  const ScatterWorkloadOptions& options_;
  ScatterBackends backends_;
  const Progress& progress_;
  std::vector<ResultRow>* rows_;
  Parallel parallel_;
  std::unique_ptr<Backend> plain_ = Backend::host(1);
  std::optional<ScatterReference> reference_;
  bool exact_ = false;  // what is measured has the same bits in all modes
  uint64_t read_bytes_ = 0;
  // Rates to compare with: of the loop (""), and of `direct` in each memory and phase.
  std::map<std::string, double> rates_;
  std::map<std::pair<Backend*, uint64_t>, BackendLimits> limits_;  // of a table's bytes
};

Status ScatterRun::run() {
  ScatterData data;
  for (uint64_t sources : options_.sources) {
    // Made again only where a thing changes that they are made of.
    data.sources = {};
    for (uint64_t targets : options_.targets) {
      for (const TargetDistribution& distribution : options_.distributions) {
        for (uint32_t width : options_.index_widths) {
          data.options = {sources, targets, distribution, options_.seed};
          progress_.show("making targets, " + distribution.name);
          data.targets = {};
          data.targets = make_targets(data.options, width, &parallel_);
          for (NumberType type : options_.types) {
            if (data.sources.type != type) {
              progress_.show("making sources");
              data.sources = {};
              data.sources = make_sources(type, sources, options_.seed, &parallel_);
            }
            STRIDE_TRY(measure_data(data));
          }
        }
      }
    }
  }
  return {};
}

Status ScatterRun::measure_data(const ScatterData& data) {
  std::vector<std::unique_ptr<PlacedScatter>> places;
  auto place = [&](Backend* backend, ScatterMemory memory) {
    places.push_back(std::make_unique<PlacedScatter>());
    return places.back()->place(backend, plain_.get(), memory, data);
  };
  if (backends_.host) STRIDE_TRY(place(backends_.host, ScatterMemory::host));
  if (backends_.device) {
    for (ScatterMemory memory : options_.memories) STRIDE_TRY(place(backends_.device, memory));
  }
  read_bytes_ = data.read_bytes();
  for (ScatterOperation operation : options_.operations)
    STRIDE_TRY(measure_operation(data, operation, &places));
  return {};
}

Status ScatterRun::measure_operation(const ScatterData& data, ScatterOperation operation,
                                     std::vector<std::unique_ptr<PlacedScatter>>* places) {
  ResultRow row = prototype(data, operation);
  progress_.show(name_of(row) + " the right answer");
  reference_.emplace(data.sources.view(), data.targets.view(), data.options.targets, operation,
                     &parallel_);
  exact_ = !is_float(data.sources.type) || operation != ScatterOperation::add;
  rates_.clear();
  for (auto& place : *places) {
    if (!place->backend()->has_device()) STRIDE_TRY(measure_loop(place.get(), row, operation));
    for (const Variant& variant : variants(*place, operation))
      STRIDE_TRY(measure_variant(place.get(), row, operation, variant));
  }
  reference_.reset();
  return {};
}

std::vector<Variant> ScatterRun::variants(const PlacedScatter& place,
                                          ScatterOperation operation) const {
  std::vector<Variant> all;
  auto add = [&](const Variant& variant) {
    if (std::find(all.begin(), all.end(), variant) == all.end()) all.push_back(variant);
  };
  if (place.backend()->has_device()) add({ScatterMode::fast, ScatterMethod::direct});
  for (ScatterMode mode : options_.modes) {
    if (exact_ && mode != options_.modes[0]) continue;
    for (ScatterMethod method : options_.methods) add({mode, method});
    if (options_.with_prepared && operation == ScatterOperation::add)
      add({mode, ScatterMethod::automatic, true});
  }
  return all;
}

ResultRow ScatterRun::prototype(const ScatterData& data, ScatterOperation operation) const {
  ResultRow row;
  row.workload = "scatter";
  row.machine = this_machine().to_string();
  row.backend = "host";
  row.is_database = false;
  row.records = data.options.sources;
  row.raw_bytes = data.read_bytes();
  row.texts = {{"distribution", data.options.distribution.name},
               {"type", std::string(to_string(data.sources.type))},
               {"operation", scatter_name(operation)}};
  row.numbers = {{"targets", static_cast<double>(data.options.targets)},
                 {"index_bytes", data.targets.width},
                 {"seed", static_cast<double>(options_.seed)}};
  return row;
}

std::string ScatterRun::name_of(const ResultRow& row) const {
  return row.texts.at("distribution") + " " + row.texts.at("type");
}

Status ScatterRun::measure_loop(PlacedScatter* place, ResultRow row, ScatterOperation operation) {
  row.engine = "loop";
  row.configuration = "1 thread";
  row.numbers["threads"] = 1;
  TimedPhases phases(options_.timing, row, name_of(row), &progress_);
  auto loop = [&](double* seconds) -> Status {
    STRIDE_TRY(place->clear());
    Stopwatch watch;
    scatter_loop(place->sources(), place->targets(), place->into(), operation);
    *seconds = watch.seconds();
    return {};
  };
  STRIDE_TRY(phases.measure("scatter", row.records, loop));
  STRIDE_TRY(check(place, ScatterMode::fast, &phases));
  rates_[""] = phases.rows()[0].records_per_second();
  return finish(place, &phases.rows());
}

Status ScatterRun::measure_variant(PlacedScatter* place, ResultRow row, ScatterOperation operation,
                                   const Variant& variant) {
  Backend* backend = place->backend();
  row.engine = "stride";
  row.configuration = backend->has_device() ? std::string(scatter_name(place->memory())) + " memory"
                                            : threads_name(backend->threads());
  row.configuration += std::string(", ") + scatter_name(variant.mode);
  if (variant.prepared) {
    row.configuration += ", prepared";
  } else if (variant.method != ScatterMethod::automatic) {
    row.configuration += std::string(", ") + scatter_name(variant.method);
  }
  row.backend = backend->name();
  row.numbers["threads"] = backend->threads();
  row.texts["mode"] = scatter_name(variant.mode);
  row.texts["method"] = variant.prepared ? "prepared" : scatter_name(variant.method);
  row.texts["memory"] = scatter_name(place->memory());
  if (variant.prepared) return measure_prepared(place, std::move(row), variant.mode);

  ScatterOptions how{.operation = operation, .mode = variant.mode, .method = variant.method};
  auto call = [&](void* stream) {
    how.stream = stream;
    return backend->scatter().apply(place->sources(), place->targets(), place->into(), how);
  };
  // Whether the method can do it at all.
  STRIDE_TRY(place->clear());
  Status tried = call(nullptr);
  bool refused = tried.code() == StatusCode::invalid_argument ||
                 tried.code() == StatusCode::unavailable ||
                 tried.code() == StatusCode::resource_exhausted;
  if (refused && variant.method != ScatterMethod::automatic) {
    row.phase = "scatter";
    row.texts["refused"] = tried.to_string();
    rows_->push_back(std::move(row));
    return {};
  }
  STRIDE_TRY(tried);
  TimedPhases phases(options_.timing, row, name_of(row), &progress_);
  STRIDE_TRY(measure_calls(place, call, variant.mode, "scatter", &phases));
  if (variant == Variant{ScatterMode::fast, ScatterMethod::direct} && backend->has_device()) {
    for (const ResultRow& made : phases.rows())
      rates_[row.texts["memory"] + " " + made.phase] = made.records_per_second();
  }
  return finish(place, &phases.rows());
}

Status ScatterRun::measure_prepared(PlacedScatter* place, ResultRow row, ScatterMode mode) {
  TimedPhases phases(options_.timing, row, name_of(row), &progress_);
  std::unique_ptr<PreparedScatter> prepared;
  auto prepare = [&](double* seconds) -> Status {
    prepared.reset();
    Stopwatch watch;
    auto made = place->backend()->scatter().prepare(place->targets(), place->into().size,
                                                    OutOfRange::count);
    *seconds = watch.seconds();
    if (!made.ok()) return made.status();
    prepared = std::move(*made);
    return {};
  };
  STRIDE_TRY(phases.measure("prepare", row.records, prepare));
  auto call = [&](void* stream) {
    return prepared->apply(place->sources(), place->into(), mode, stream);
  };
  STRIDE_TRY(measure_calls(place, call, mode, "apply", &phases));
  for (ResultRow& made : phases.rows())
    made.numbers["prepared_bytes"] = static_cast<double>(prepared->memory_bytes());
  return finish(place, &phases.rows());
}

// Calls that are waited for, each, and where there is a stream, calls that are not.
Status ScatterRun::measure_calls(PlacedScatter* place, const ScatterCall& call, ScatterMode mode,
                                 const char* phase, TimedPhases* phases) {
  const uint64_t n = place->sources().size;
  auto wait_for_one = [&](double* seconds) -> Status {
    STRIDE_TRY(place->clear());
    Stopwatch watch;
    Status status = call(nullptr);
    *seconds = watch.seconds();
    return status;
  };
  STRIDE_TRY(phases->measure(phase, n, wait_for_one));
  STRIDE_TRY(check(place, mode, phases));
  if (!place->has_stream()) return {};
  const double guess = options_.stream_seconds / std::max(phases->rows().back().seconds, 1e-9);
  const auto calls = static_cast<uint64_t>(std::clamp(guess, static_cast<double>(min_stream_calls),
                                                      static_cast<double>(max_stream_calls)));
  auto wait_for_all = [&](double* seconds) -> Status {
    STRIDE_TRY(place->clear());
    Stopwatch watch;
    for (uint64_t i = 0; i < calls; ++i) STRIDE_TRY(call(StreamMark::stream()));
    STRIDE_TRY(place->wait());
    *seconds = watch.seconds() / static_cast<double>(calls);
    return {};
  };
  STRIDE_TRY(phases->measure(std::string(phase) + "_stream", n, wait_for_all));
  phases->rows().back().numbers["stream_calls"] = static_cast<double>(calls);
  // One call alone, for T to be what it has to be.
  STRIDE_TRY(place->clear());
  STRIDE_TRY(call(StreamMark::stream()));
  STRIDE_TRY(place->wait());
  return check(place, mode, phases);
}

Status ScatterRun::check(PlacedScatter* place, ScatterMode mode, TimedPhases* phases) {
  const void* t = nullptr;
  STRIDE_TRY(place->fetch(&t));
  ResultRow& row = phases->rows().back();
  if (Status status = reference_->check(t, mode, &parallel_); !status.ok())
    return explain(name_of(row) + ", " + row.engine_name(), status);
  if (exact_ || (mode == ScatterMode::reproducible && row.engine != "loop"))
    row.texts["hash"] =
        hexadecimal(hash_numbers(place->into().type, t, place->into().size, &parallel_));
  return {};
}

Status ScatterRun::limits_of(Backend* backend, BackendLimits* limits) {
  // The limits are those of memory as large as what is read, up to 1 GiB, which no cache holds.
  uint64_t bytes = std::clamp<uint64_t>(std::bit_ceil(read_bytes_), 1 << 20, 1 << 30);
  auto [known, is_new] = limits_.try_emplace({backend, bytes});
  if (is_new) STRIDE_TRY(backend->measure_limits(bytes, &known->second));
  *limits = known->second;
  return {};
}

Status ScatterRun::finish(PlacedScatter* place, std::vector<ResultRow>* rows) {
  BackendLimits limits;
  STRIDE_TRY(limits_of(place->backend(), &limits));
  bool device = place->backend()->has_device();
  bool through_bus = device && place->memory() != ScatterMemory::device;
  double speed = through_bus ? limits.bus_in_bytes_per_second : limits.copy_bytes_per_second;
  for (ResultRow& row : *rows) {
    auto bytes = static_cast<double>(read_bytes_);
    row.numbers["copy_bytes_per_second"] = speed;
    if (row.phase != "prepare" && row.seconds > 0) {
      row.numbers["bytes_per_second"] = bytes / row.seconds;
      if (speed > 0) {
        row.numbers["bound_seconds"] = bytes / speed;
        row.numbers["bound_percent"] = 100 * bytes / speed / row.seconds;
      }
      bool in_stream = row.phase.ends_with("_stream");
      auto other = rates_.find(
          !device ? "" : row.texts["memory"] + (in_stream ? " scatter_stream" : " scatter"));
      if (other != rates_.end() && other->second > 0)
        row.numbers[device ? "to_direct" : "to_loop"] = row.records_per_second() / other->second;
    }
    rows_->push_back(std::move(row));
  }
  return {};
}

}  // namespace

const char* scatter_name(ScatterOperation operation) {
  return operation == ScatterOperation::add   ? "add"
         : operation == ScatterOperation::min ? "min"
                                              : "max";
}
const char* scatter_name(ScatterMode mode) {
  return mode == ScatterMode::fast ? "fast" : "reproducible";
}
const char* scatter_name(ScatterMethod method) {
  switch (method) {
    case ScatterMethod::automatic:
      return "automatic";
    case ScatterMethod::direct:
      return "direct";
    case ScatterMethod::privatized:
      return "privatized";
    case ScatterMethod::heavy_hitters:
      return "heavy_hitters";
    case ScatterMethod::partition:
      return "partition";
  }
  return "?";
}
const char* scatter_name(ScatterMemory memory) {
  return memory == ScatterMemory::device   ? "device"
         : memory == ScatterMemory::pinned ? "pinned"
                                           : "host";
}

Status run_scatter(const ScatterWorkloadOptions& options, const ScatterBackends& backends,
                   const Progress& progress, std::vector<ResultRow>* rows) {
  return ScatterRun(options, backends, progress, rows).run();
}

}  // namespace stride::benchmark
