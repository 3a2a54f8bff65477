#include "benchmark/workloads/accumulate/workload.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "benchmark/datasets/key_columns.h"
#include "benchmark/datasets/tree_keys.h"
#include "benchmark/harness/machine.h"
#include "benchmark/harness/scratch_directory.h"
#include "benchmark/peers/rocksdb_accumulate.h"
#include "benchmark/peers/stride_accumulate.h"

namespace stride::benchmark {
namespace {

uint64_t load_key(const KeyColumn& keys, uint64_t row) {
  uint64_t key;
  std::memcpy(&key, keys[row].data(), sizeof key);
  return key;
}

class LoopAccumulate : public AccumulateEngine {
 public:
  Status open() override { return {}; }
  Status load(const KeyColumn& keys, std::span<const int64_t> numbers) override {
    numbers_.reserve(keys.size);
    for (uint64_t i = 0; i < keys.size; ++i) numbers_[load_key(keys, i)] = numbers[i];
    return {};
  }
  Status accumulate(const KeyColumn& keys, std::span<const int64_t> deltas) override {
    for (uint64_t i = 0; i < keys.size; ++i) {
      int64_t& number = numbers_[load_key(keys, i)];
      number = wrapping_sum(number, deltas[i]);
    }
    return {};
  }
  Status read(BulkVector<uint64_t>* keys, BulkVector<int64_t>* numbers) override {
    for (const auto& [key, number] : numbers_) {
      keys->push_back(key);
      numbers->push_back(number);
    }
    return {};
  }
  Status close() override { return {}; }

 private:
  std::unordered_map<uint64_t, int64_t> numbers_;
};

std::unique_ptr<AccumulateEngine> make_loop(const AccumulateSettings&) {
  return std::make_unique<LoopAccumulate>();
}

struct AccumulateData {
  OwnedColumn keys;  // distinct
  OwnedNumbers numbers, deltas;
  OwnedColumn delta_keys;
  BulkVector<int64_t> sums;  // of each key, in the end

  std::span<const int64_t> first() const { return span_of(numbers); }
  std::span<const int64_t> changes() const { return span_of(deltas); }

 private:
  static std::span<const int64_t> span_of(const OwnedNumbers& n) {
    return {static_cast<const int64_t*>(n.view().data), n.size};
  }
};

AccumulateData make_data(const AccumulateOptions& options) {
  Parallel parallel(options.settings.threads);
  AccumulateData data;
  RandomKeys random(8, options.seed);
  data.keys.rows = options.keys;
  data.keys.width = 8;
  data.keys.data.resize(options.keys * 8);
  parallel.for_parts(options.keys, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) random.write(i, data.keys.data.data() + 8 * i);
  });
  data.numbers = make_sources(NumberType::i64, options.keys, options.seed, &parallel);
  data.deltas = make_sources(NumberType::i64, options.deltas, options.seed + 1, &parallel);
  OwnedIndexes targets = make_targets(
      {options.deltas, options.keys, options.distribution, options.seed}, 8, &parallel);
  KeyColumn keys = data.keys.view();
  data.delta_keys =
      make_column(8, options.deltas, &parallel, [&](uint64_t i) { return keys[targets[i]]; });
  data.sums.assign(data.first().begin(), data.first().end());
  for (uint64_t i = 0; i < options.deltas; ++i) {
    int64_t& sum = data.sums[targets[i]];
    sum = wrapping_sum(sum, data.changes()[i]);
  }
  return data;
}

// Each key was read once, with its sum.
Status check(const AccumulateData& data, std::span<const uint64_t> keys,
             std::span<const int64_t> numbers) {
  if (keys.size() != data.keys.rows) {
    return Status(StatusCode::corruption, "wrong answer: " + std::to_string(keys.size()) +
                                              " keys were read, of " +
                                              std::to_string(data.keys.rows));
  }
  std::unordered_map<uint64_t, int64_t> sums;
  sums.reserve(keys.size());
  for (uint64_t i = 0; i < keys.size(); ++i) sums[load_key(data.keys.view(), i)] = data.sums[i];
  for (uint64_t i = 0; i < keys.size(); ++i) {
    auto sum = sums.find(keys[i]);
    if (sum == sums.end() || sum->second != numbers[i])
      return Status(StatusCode::corruption, "wrong answer: the number of row " + std::to_string(i));
    sums.erase(sum);
  }
  return {};
}

const char* durability_name(Durability durability) {
  return durability == Durability::sync    ? "sync"
         : durability == Durability::flush ? "flush"
                                           : "none";
}

Status run_engine(const AccumulateOptions& options, const AccumulateData& data,
                  const AccumulateConfiguration& configuration, const Progress& progress,
                  std::vector<ResultRow>* rows) {
  Result<ScratchDirectory> directory =
      ScratchDirectory::create(options.directory, configuration.name());
  if (!directory.ok()) return directory.status();
  AccumulateSettings settings = options.settings;
  settings.directory = directory->path();
  std::unique_ptr<AccumulateEngine> engine = configuration.make(settings);
  return_freed_memory();
  const uint64_t resident_before = resident_bytes();
  STRIDE_TRY(engine->open());

  const size_t first_row = rows->size();
  auto measure = [&](const char* phase, uint64_t records, const auto& call) -> Status {
    progress.show(configuration.name() + " " + phase);
    ResultRow row;
    row.workload = "accumulate";
    row.engine = configuration.engine;
    row.configuration = configuration.configuration;
    row.is_database = configuration.is_database;
    row.backend = "host";
    row.phase = phase;
    row.records = records;
    row.machine = this_machine().to_string();
    row.raw_bytes = options.keys * 16;
    row.numbers = {{"threads", settings.threads},
                   {"keys", static_cast<double>(options.keys)},
                   {"batch", static_cast<double>(settings.batch)},
                   {"seed", static_cast<double>(options.seed)}};
    row.texts = {{"durability", durability_name(settings.durability)},
                 {"distribution", options.distribution.name}};
    reset_peak_resident();
    Stopwatch watch;
    STRIDE_TRY(call());
    row.seconds = watch.seconds();
    uint64_t peak = peak_resident_bytes();
    row.peak_rss_bytes = peak > resident_before ? peak - resident_before : 0;
    rows->push_back(std::move(row));
    return {};
  };
  auto load = [&] { return engine->load(data.keys.view(), data.first()); };
  auto accumulate = [&] { return engine->accumulate(data.delta_keys.view(), data.changes()); };
  BulkVector<uint64_t> keys;
  BulkVector<int64_t> numbers;
  keys.reserve(options.keys);
  numbers.reserve(options.keys);
  auto read = [&] { return engine->read(&keys, &numbers); };
  STRIDE_TRY(measure("load", options.keys, load));
  STRIDE_TRY(measure("accumulate", options.deltas, accumulate));
  STRIDE_TRY(measure("read", options.keys, read));
  STRIDE_TRY(check(data, keys, numbers));
  STRIDE_TRY(engine->close());
  for (size_t i = first_row; i < rows->size(); ++i)
    (*rows)[i].bytes_on_disk = configuration.is_database ? directory->bytes() : 0;
  return {};
}

}  // namespace

const std::vector<AccumulateConfiguration>& accumulate_engines() {
  static const std::vector<AccumulateConfiguration> engines = [] {
    std::vector<AccumulateConfiguration> all = stride_accumulate_configurations();
    for (AccumulateConfiguration& peer : rocksdb_accumulate_configurations())
      all.push_back(std::move(peer));
    all.push_back(
        {"loop", "unordered_map", "std::unordered_map in memory, 1 thread", false, make_loop});
    return all;
  }();
  return engines;
}

Status run_accumulate(const AccumulateOptions& options, const Progress& progress,
                      std::vector<ResultRow>* rows) {
  progress.show("making keys and deltas");
  const AccumulateData data = make_data(options);
  for (unsigned repeat = 0; repeat < options.repeats; ++repeat) {
    for (const AccumulateConfiguration& engine : options.engines) {
      Status status = run_engine(options, data, engine, progress, rows);
      if (!status.ok()) return explain(engine.name(), status);
    }
  }
  return {};
}

}  // namespace stride::benchmark
