#include "benchmark/workloads/transactions/workload.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "benchmark/datasets/zipf.h"
#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/latency_histogram.h"
#include "benchmark/harness/machine.h"
#include "benchmark/harness/random_bits.h"
#include "benchmark/harness/scratch_directory.h"
#include "benchmark/harness/stopwatch.h"
#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t load_batch = 1000;

struct CounterKey {
  explicit CounterKey(uint64_t number) : words{scramble(number + 1), number} {}
  Bytes view() const { return std::as_bytes(std::span(words)); }
  uint64_t words[2];
};

uint64_t counter_of(Bytes value) {
  uint64_t counter = 0;
  std::memcpy(&counter, value.data(), std::min(sizeof counter, value.size()));
  return counter;
}

void add_one(std::string* value) {
  const uint64_t counter = counter_of(as_bytes(*value)) + 1;
  std::memcpy(value->data(), &counter, sizeof counter);
}

// What the threads of a phase have done.
struct TransactionCounts {
  LatencyHistogram latencies;
  uint64_t conflicts = 0;
  Status status;
};

class TransactionsRun {
 public:
  TransactionsRun(const TransactionsOptions& options, const SmallStoreConfiguration& store,
                  unsigned threads, const KeyChoice& keys, unsigned repeat)
      : options_(options), store_(store), threads_(threads), keys_(keys), repeat_(repeat) {}

  Status run(ResultRow* row) {
    Result<ScratchDirectory> directory =
        ScratchDirectory::create(options_.directory, store_.name());
    if (!directory.ok()) return directory.status();
    SmallStoreSettings settings;
    settings.directory = directory->path();
    settings.durability = options_.durability;
    settings.threads = threads_;
    settings.max_bytes = options_.records * (sizeof(CounterKey) + options_.value_bytes);
    settings.transactions = true;
    std::unique_ptr<SmallStore> store = store_.make(settings);
    STRIDE_TRY(store->open());
    STRIDE_TRY(load(*store));
    STRIDE_TRY(measure(*store, row));
    STRIDE_TRY(check_sum(*store, row->records));
    STRIDE_TRY(store->close());
    row->bytes_on_disk = directory->bytes();
    return {};
  }

 private:
  Status load(SmallStore& store) const {
    const std::string value(options_.value_bytes, '\0');
    std::vector<CounterKey> keys;
    std::vector<SmallRecord> records;
    for (uint64_t first = 0; first < options_.records; first += load_batch) {
      keys.clear();
      records.clear();
      const uint64_t end = std::min(options_.records, first + load_batch);
      for (uint64_t n = first; n < end; ++n) keys.emplace_back(n);
      for (const CounterKey& key : keys) records.push_back({key.view(), as_bytes(value)});
      STRIDE_TRY(store.put_all(records));
    }
    return {};
  }

  Status measure(SmallStore& store, ResultRow* row) const {
    std::vector<TransactionCounts> counts(threads_);
    std::atomic<bool> ends{false};
    Stopwatch watch;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < threads_; ++t)
      threads.emplace_back([&, t] {
        counts[t].status = work(store, t, watch, ends, &counts[t]);
        if (!counts[t].status.ok()) ends = true;
      });
    for (std::thread& thread : threads) thread.join();
    const double seconds = watch.seconds();
    TransactionCounts all;
    for (TransactionCounts& of_thread : counts) {
      STRIDE_TRY(std::move(of_thread.status));
      all.latencies.add(of_thread.latencies);
      all.conflicts += of_thread.conflicts;
    }
    *row = row_of(all, seconds);
    return {};
  }

  Status work(SmallStore& store, unsigned thread, const Stopwatch& watch,
              const std::atomic<bool>& ends, TransactionCounts* counts) const {
    const bool is_zipf = keys_.distribution == KeyDistribution::zipf;
    const ScrambledZipf zipf(options_.records, is_zipf ? keys_.theta : 0);
    const uint64_t seed = scramble(options_.seed * 1000 + repeat_) + thread;
    std::vector<CounterKey> keys;
    std::vector<Bytes> views;
    for (uint64_t random_count = 0; !ends && watch.seconds() < options_.seconds;) {
      keys.clear();
      while (keys.size() < options_.reads) {
        const uint64_t bits = random_word(seed, random_count++);
        const CounterKey key(is_zipf ? zipf[bits] : below(bits, options_.records));
        const bool is_there = std::any_of(keys.begin(), keys.end(), [&](const CounterKey& other) {
          return other.words[1] == key.words[1];
        });
        if (!is_there) keys.push_back(key);
      }
      views.clear();
      for (const CounterKey& key : keys) views.push_back(key.view());
      STRIDE_TRY(transact(store, views, counts));
    }
    return {};
  }

  Status transact(SmallStore& store, const std::vector<Bytes>& keys,
                  TransactionCounts* counts) const {
    Status wrong;
    auto change = [&](std::span<std::string> values) {
      for (const std::string& value : values)
        if (value.size() != options_.value_bytes)
          wrong = Status(StatusCode::corruption, "wrong answer: a record has another length");
      for (uint32_t i = 0; i < options_.writes && wrong.ok(); ++i) add_one(&values[i]);
    };
    Stopwatch watch;
    for (bool conflict = true; conflict;) {
      STRIDE_TRY(store.transact(keys, options_.writes, change, &conflict));
      STRIDE_TRY(wrong);
      counts->conflicts += conflict;
    }
    counts->latencies.record(static_cast<uint64_t>(watch.seconds() * 1e9));
    return {};
  }

  Status check_sum(SmallStore& store, uint64_t commits) const {
    uint64_t sum = 0, rows = 0;
    STRIDE_TRY(store.scan({}, options_.records + 1, [&](Bytes, Bytes value) {
      sum += counter_of(value);
      ++rows;
    }));
    if (rows == options_.records && sum == commits * options_.writes) return {};
    return Status(StatusCode::corruption, "wrong answer: " + std::to_string(rows) +
                                              " counters have " + std::to_string(sum) +
                                              " in all after " + std::to_string(commits) +
                                              " commits of " + std::to_string(options_.writes));
  }

  ResultRow row_of(const TransactionCounts& all, double seconds) const {
    ResultRow row;
    row.workload = "transactions";
    row.engine = store_.engine;
    row.configuration = store_.configuration;
    row.backend = "host";
    row.phase = keys_.to_string() + "_" + std::to_string(threads_);
    row.records = all.latencies.count();
    row.seconds = seconds;
    row.machine = this_machine().to_string();
    row.raw_bytes = options_.records * (sizeof(CounterKey) + options_.value_bytes);
    row.numbers = {{"threads", threads_},
                   {"value_bytes", options_.value_bytes},
                   {"reads", options_.reads},
                   {"writes", options_.writes},
                   {"loaded", static_cast<double>(options_.records)},
                   {"conflicts", static_cast<double>(all.conflicts)},
                   {"p50_us", all.latencies.percentile(0.5) / 1e3},
                   {"p99_us", all.latencies.percentile(0.99) / 1e3},
                   {"max_us", static_cast<double>(all.latencies.max()) / 1e3},
                   {"seed", static_cast<double>(options_.seed)}};
    return row;
  }

  const TransactionsOptions& options_;
  const SmallStoreConfiguration& store_;
  const unsigned threads_;
  const KeyChoice keys_;
  const unsigned repeat_;
};

}  // namespace

Status run_transactions(const TransactionsOptions& options, const Progress& progress,
                        std::vector<ResultRow>* rows) {
  for (unsigned repeat = 0; repeat < options.repeats; ++repeat)
    for (const KeyChoice& keys : options.keys)
      for (unsigned threads : options.threads)
        for (const SmallStoreConfiguration& store : options.stores) {
          progress.show(store.name() + " " + keys.to_string() + ", " + std::to_string(threads) +
                        " threads");
          ResultRow row;
          Status s = TransactionsRun(options, store, threads, keys, repeat).run(&row);
          if (!s.ok()) return explain(store.name(), s);
          rows->push_back(std::move(row));
        }
  return {};
}

std::string transactions_table(const std::vector<ResultRow>& rows) {
  TextTable table;
  table.add({"transactions", "phase", "commits", "conflicts", "p50 us", "p99 us", "max us"});
  table.add_rule();
  for (const ResultRow& row : medians(rows))
    table.add({row.engine_name(), row.phase, std::to_string(row.records),
               three_digits(row.number_of("conflicts")), three_digits(row.number_of("p50_us")),
               three_digits(row.number_of("p99_us")), three_digits(row.number_of("max_us"))});
  return table.to_string();
}

}  // namespace stride::benchmark
