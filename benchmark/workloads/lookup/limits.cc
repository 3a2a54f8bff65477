#include "benchmark/workloads/lookup/limits.h"

#include <algorithm>
#include <random>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/device_backend.h"
#include "benchmark/harness/lookup_plan.h"
#include "benchmark/limits/gather.h"
#include "benchmark/limits/write.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t key_bytes = 8, rank_bytes = 4, offset_bytes = 8;
constexpr uint64_t min_file_bytes = 64 << 20, max_file_bytes = uint64_t{4} << 30;
// StrideDB gives smaller batches to the host, whatever backend it has.
constexpr uint64_t min_device_batch = 512;
const double hit_share = 1 - LookupOptions().miss_share;

double value_bytes_per_query(const LookupWorkloadOptions& options) {
  return hit_share * options.records.value_bytes;
}

bool copies_values(const std::string& phase) { return !phase.starts_with("find_"); }

}  // namespace

Status LookupLimits::measure(const RandomRecords& records, Parallel* parallel,
                             const Progress& progress) {
  progress.show("measuring the limits of the machine");
  STRIDE_TRY(measure_device());
  STRIDE_TRY(measure_load(records, parallel));
  measure_memory(records, parallel);
  return {};
}

Status LookupLimits::measure_device() {
  Result<std::unique_ptr<Backend>> backend =
      device_backend(options_.stride.backend, options_.threads);
  if (!backend.ok()) return backend.status();
  if (*backend == nullptr) return {};
  device_name_ = (*backend)->name();
  uint64_t table_bytes = std::max(options_.records.records * key_bytes, uint64_t{1} << 20);
  return (*backend)->measure_limits(table_bytes, &device_);
}

Status LookupLimits::measure_load(const RandomRecords& records, Parallel* parallel) {
  uint64_t record_bytes = key_bytes + options_.records.value_bytes;
  if (options_.durability == Durability::sync) {
    uint64_t bytes =
        std::clamp(options_.records.records * record_bytes, min_file_bytes, max_file_bytes);
    Result<double> rate = disk_bytes_per_second(options_.directory, bytes);
    if (!rate.ok()) return rate.status();
    load_ = {"disk", *rate / static_cast<double>(record_bytes)};
  } else {
    double rate = copy_bytes_per_second(records.keys(), records.values(), parallel);
    load_ = {"memory copy", rate / static_cast<double>(record_bytes)};
  }
  return {};
}

void LookupLimits::measure_memory(const RandomRecords& records, Parallel* parallel) {
  std::mt19937_64 random(options_.records.seed);
  std::uniform_int_distribution<uint32_t> any_row(
      0, static_cast<uint32_t>(options_.records.records - 1));
  BulkVector<uint32_t> places(LookupPlan::queries_for(options_.batches));
  std::generate(places.begin(), places.end(), [&] { return any_row(random); });
  for (uint64_t batch : options_.batches) {
    auto hits = static_cast<uint64_t>(std::max(1.0, hit_share * static_cast<double>(batch)));
    if (options_.records.value_bytes) {
      GatherLimit gather(records.values(), places, options_.lookup_seconds, parallel);
      gathers_[batch] = gather.values_per_second(hits) / hit_share;
    }
    GatherLimit read(records.keys(), places, options_.lookup_seconds, parallel);
    reads_[batch] = read.values_per_second(batch);
  }
}

LookupLimits::Limit LookupLimits::host_limit(bool copies, uint64_t batch) const {
  bool gathers = copies && options_.records.value_bytes != 0;
  return {gathers ? "gather" : "reads", (gathers ? gathers_ : reads_).at(batch)};
}

// Both ways at once: keys to the device, ranks or values with their offsets back.
LookupLimits::Limit LookupLimits::bus_limit(bool copies) const {
  bool values = copies && options_.stride.value_placement == ValuePlacement::device;
  double out = values ? offset_bytes + value_bytes_per_query(options_) : rank_bytes;
  return {"bus", std::min(device_.bus_in_bytes_per_second / key_bytes,
                          device_.bus_out_bytes_per_second / out)};
}

LookupLimits::Limit LookupLimits::bound(const ResultRow& row) const {
  if (row.phase == "load") return load_;
  auto batch = row.numbers.find("batch");
  if (batch == row.numbers.end() || row.phase.starts_with("cold_")) return {};
  bool copies = copies_values(row.phase);
  auto size = static_cast<uint64_t>(batch->second);
  Limit host = host_limit(copies, size);
  if (row.engine != "stride" || device_name_.empty() || size < min_device_batch) return host;
  Limit device = bus_limit(copies);
  bool host_gathers = copies && options_.stride.value_placement == ValuePlacement::host;
  if (host_gathers && host.per_second < device.per_second) device = host;
  if (options_.stride.backend == BackendKind::cuda) return device;
  return host.per_second > device.per_second ? host : device;
}

std::vector<ResultRow> LookupLimits::rows(const ResultRow& prototype) const {
  std::vector<ResultRow> rows;
  auto add = [&](const std::string& phase, const Limit& limit, const std::string& backend) {
    ResultRow row = prototype;
    row.engine = "limit";
    row.configuration = limit.name;
    row.is_database = false;
    row.backend = backend;
    row.phase = phase;
    row.records = options_.records.records;
    row.seconds = static_cast<double>(row.records) / limit.per_second;
    rows.push_back(std::move(row));
  };
  add("load", load_, "host");
  for (const std::string kind : {options_.cold ? "warm_" : "lookup_", "find_"}) {
    if (options_.cold && kind == "find_") continue;
    bool copies = copies_values(kind);
    for (uint64_t batch : options_.batches) {
      add(kind + batch_name(batch), host_limit(copies, batch), "host");
      if (device_name_.empty() || batch < min_device_batch) continue;
      add(kind + batch_name(batch), bus_limit(copies), device_name_);
    }
  }
  return rows;
}

void LookupLimits::apply(std::vector<ResultRow>* rows) const {
  for (ResultRow& row : *rows) {
    Limit limit = bound(row);
    if (limit.per_second <= 0) continue;
    row.texts["limit"] = limit.name;
    row.numbers["limit_per_second"] = limit.per_second;
    row.numbers["limit_percent"] = 100 * row.records_per_second() / limit.per_second;
  }
}

}  // namespace stride::benchmark
