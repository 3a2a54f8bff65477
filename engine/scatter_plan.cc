#include "engine/scatter_plan.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/analytics/scatter_targets.h"
#include "engine/device/executor.h"
#include "engine/snapshot_version.h"
#include "storage/no_throw.h"
#include "storage/work_watch.h"

namespace stride {

struct ScatterPlan::State {
  std::shared_ptr<Executor> executor;
  std::shared_ptr<Backend> backend;  // outlives what follows
  std::unique_ptr<PreparedScatter> prepared;
  ScatterReport report;
  std::vector<std::byte> key_data;
  std::vector<uint64_t> key_offsets;
  std::unique_ptr<BackendMemory> zeros;  // of a device

  static Status make(const Snapshot& snapshot, const Table& mapping, const KeyColumn* sources,
                     const ScatterPlanOptions& options, std::unique_ptr<State>* made);
};

namespace {

constexpr uint64_t max_zeros = 64 << 20;
constexpr uint64_t bytes_per_task = 1 << 20;

Status check_options(const ScatterPlanOptions& options) {
  if (options.targets > max_scatter_plan_targets)
    return Status::invalid("a plan to " + std::to_string(options.targets) +
                           " targets is not possible: give at most " +
                           std::to_string(max_scatter_plan_targets));
  if (options.targets == 0 || options.values == ScatterPlanTargets::numbers) return {};
  return Status::invalid("a number of targets with ScatterPlanTargets::keys")
      .with_remedy("leave it 0: there are as many targets as different names");
}

// What does the additions of a plan of so many sources, or of 0 where that is made for one S.
std::shared_ptr<Backend> choose_backend(Executor& executor, const ScatterPlanOptions& options,
                                        uint64_t sources) {
  if (options.backend) return options.backend;
  std::shared_ptr<Backend> device;
  if (executor.insists()) {
    device = executor.device();
  } else if (sources >= Executor::min_rows) {
    device = executor.device_for_batch(sources);
  }
  return device ? device : executor.host();
}

const void* first_byte(const KeyColumn& column) {
  return column.is_fixed() ? static_cast<const void*>(column.data) : column.offsets;
}

// Whether a column lies in the memory of the device that the database uses, or of `backend`.
bool is_on_any_device(Executor& executor, const std::shared_ptr<Backend>& backend,
                      const void* data) {
  if (!data) return false;
  auto device = executor.device_if_known();
  return (device && device->is_on_device(data)) || (backend && backend->is_on_device(data));
}

Status resolve(const Snapshot& snapshot, const Table& mapping, const KeyColumn* sources,
               const ScatterPlanOptions& options, ScatterTargets* targets) {
  Executor& executor = *SnapshotVersion::of(snapshot)->executor;
  STRIDE_TRY(check_options(options));
  bool on_host = sources && !is_on_any_device(executor, options.backend, first_byte(*sources));
  return read_scatter_targets(snapshot, mapping, sources, on_host, options, *executor.host(),
                              targets);
}

// Numbers that lie on a device which the plan knows nothing of cannot be read.
Status check_places(Executor& executor, Backend& backend, const Numbers& weights,
                    const MutableNumbers& into, void* stream) {
  bool elsewhere = false;
  for (const void* data : {weights.data, static_cast<const void*>(into.data)})
    elsewhere |= is_on_any_device(executor, nullptr, data) && !backend.is_on_device(data);
  if (!elsewhere && (!stream || backend.has_device())) return {};
  return Status(StatusCode::unavailable, "the additions are done on " + backend.name() +
                                             ", and S, T or the stream are a device's")
      .with_remedy("name the device in ScatterPlanOptions::backend, or copy S and T to the host");
}

Status check_clear(const ScatterMapOptions& options) {
  if (!options.clear || !options.stream) return {};
  return Status::invalid("T cannot be cleared on a stream")
      .with_remedy("clear it there before, or give no stream");
}

// T becomes 0. zeros: what a device copies them from, made where it is missing.
Status clear(Backend& backend, const MutableNumbers& into, std::unique_ptr<BackendMemory>* zeros) {
  const uint64_t bytes = into.size * width_of(into.type);
  auto* to = static_cast<std::byte*>(into.data);
  if (bytes == 0) return {};
  if (!backend.is_on_device(to)) {
    backend.parallel_for(bytes, bytes_per_task, [&](uint64_t begin, uint64_t end) {
      std::memset(to + begin, 0, end - begin);
    });
    return {};
  }
  const uint64_t chunk = std::min(bytes, max_zeros);
  if (!*zeros || (*zeros)->size() < chunk) {
    auto memory = backend.allocate(chunk);
    if (!memory.ok()) return memory.status();
    std::vector<std::byte> none(chunk);
    STRIDE_TRY(backend.copy((*memory)->data(), none.data(), chunk));
    *zeros = std::move(*memory);
  }
  for (uint64_t at = 0; at < bytes; at += chunk)
    STRIDE_TRY(backend.copy(to + at, (*zeros)->data(), std::min(chunk, bytes - at)));
  return {};
}

Status check_targets(const MutableNumbers& into, uint64_t targets) {
  if (into.size == targets) return {};
  return Status::invalid("a T of " + std::to_string(into.size) + " numbers, for a plan to " +
                         std::to_string(targets))
      .with_remedy("give room for one number for each target");
}

}  // namespace

Status ScatterPlan::State::make(const Snapshot& snapshot, const Table& mapping,
                                const KeyColumn* sources, const ScatterPlanOptions& options,
                                std::unique_ptr<State>* made) {
  ScatterTargets targets;
  STRIDE_TRY(resolve(snapshot, mapping, sources, options, &targets));
  auto state = std::make_unique<State>();
  state->executor = SnapshotVersion::of(snapshot)->executor;
  Executor& executor = *state->executor;
  state->backend = choose_backend(executor, options, targets.targets.size());
  auto prepare = [&]() -> Status {
    auto prepared = state->backend->scatter().prepare(targets.targets.view(), targets.target_count,
                                                      OutOfRange::count);
    if (prepared.ok()) state->prepared = std::move(*prepared);
    return prepared.status();
  };
  Status status = prepare();
  if (!status.ok() && !options.backend && state->backend->has_device() && executor.failed(status)) {
    state->backend = executor.host();
    status = prepare();
  }
  STRIDE_TRY(status);
  state->report = targets.report;
  state->key_data = std::move(targets.key_data);
  state->key_offsets = std::move(targets.key_offsets);
  *made = std::move(state);
  return {};
}

ScatterPlan::ScatterPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
ScatterPlan::ScatterPlan(ScatterPlan&&) noexcept = default;
ScatterPlan& ScatterPlan::operator=(ScatterPlan&&) noexcept = default;
ScatterPlan::~ScatterPlan() = default;

Result<ScatterPlan> ScatterPlan::make(const Snapshot& snapshot, const Table& mapping,
                                      const KeyColumn& sources, const ScatterPlanOptions& options) {
  std::unique_ptr<State> state;
  const WorkWatch::Scope watched(WorkWatch::offered());
  STRIDE_TRY(no_throw([&] { return State::make(snapshot, mapping, &sources, options, &state); }));
  return ScatterPlan(std::move(state));
}

Result<ScatterPlan> ScatterPlan::of_table(const Snapshot& snapshot, const Table& mapping,
                                          const ScatterPlanOptions& options) {
  std::unique_ptr<State> state;
  const WorkWatch::Scope watched(WorkWatch::offered());
  STRIDE_TRY(no_throw([&] { return State::make(snapshot, mapping, nullptr, options, &state); }));
  return ScatterPlan(std::move(state));
}

Status ScatterPlan::map(const Numbers& weights, const MutableNumbers& into,
                        const ScatterMapOptions& options) const {
  return no_throw([&] {
    STRIDE_TRY(
        check_scatter(weights, sources(), into, {.mode = options.mode, .stream = options.stream}));
    STRIDE_TRY(check_targets(into, targets()));
    STRIDE_TRY(check_clear(options));
    STRIDE_TRY(check_places(*state_->executor, *state_->backend, weights, into, options.stream));
    if (options.clear) STRIDE_TRY(clear(*state_->backend, into, &state_->zeros));
    return state_->prepared->apply(weights, into, options.mode, options.stream);
  });
}

uint64_t ScatterPlan::sources() const { return state_->prepared->sources(); }
uint64_t ScatterPlan::targets() const { return state_->prepared->targets(); }
uint64_t ScatterPlan::unmapped() const { return state_->report.out_of_range; }
uint64_t ScatterPlan::first_unmapped() const { return state_->report.first_out_of_range; }
KeyColumn ScatterPlan::target_keys() const {
  if (state_->key_offsets.empty()) return {};
  return Column::variable(state_->key_data.data(), state_->key_offsets.data(),
                          state_->key_offsets.size() - 1);
}
uint64_t ScatterPlan::memory_bytes() const {
  return state_->prepared->memory_bytes() + state_->key_data.size() +
         state_->key_offsets.size() * sizeof(uint64_t) +
         (state_->zeros ? state_->zeros->size() : 0);
}
const std::shared_ptr<Backend>& ScatterPlan::backend() const { return state_->backend; }
std::string ScatterPlan::backend_name() const { return state_->backend->name(); }

Status map_weights(const Snapshot& snapshot, const Table& mapping, const KeyColumn& sources,
                   const Numbers& weights, const MutableNumbers& into,
                   const ScatterPlanOptions& plan_options, const ScatterMapOptions& options,
                   ScatterReport* report) {
  return no_throw([&] {
    if (options.stream)
      return Status::invalid("map_weights() on a stream")
          .with_remedy("make a ScatterPlan, which is there until the work is done");
    STRIDE_TRY(check_scatter(weights, sources.size, into, {.mode = options.mode}));
    ScatterPlanOptions planned = plan_options;
    if (planned.values == ScatterPlanTargets::numbers && planned.targets == 0)
      planned.targets = into.size;
    Executor& executor = *SnapshotVersion::of(snapshot)->executor;
    // To bring S and R to a device for one use gains nothing.
    std::shared_ptr<Backend> backend = choose_backend(executor, planned, 0);
    bool on_device = is_on_any_device(executor, nullptr, weights.data) ||
                     is_on_any_device(executor, nullptr, into.data);
    if (on_device && !planned.backend) backend = executor.device_if_known();
    STRIDE_TRY(check_places(executor, *backend, weights, into, nullptr));
    ScatterTargets targets;
    STRIDE_TRY(resolve(snapshot, mapping, &sources, planned, &targets));
    STRIDE_TRY(check_targets(into, targets.target_count));
    std::unique_ptr<BackendMemory> zeros;
    if (options.clear) STRIDE_TRY(clear(*backend, into, &zeros));
    if (report) *report = targets.report;
    return backend->scatter().apply(weights, targets.targets.view(), into, {.mode = options.mode});
  });
}

}  // namespace stride
