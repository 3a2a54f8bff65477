#include "gpu/host/measure_memory.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>

#include "gpu/bulk_vector.h"
#include "storage/prefetch.h"

namespace stride {

namespace {

double seconds_of(const std::function<void()>& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

constexpr uint64_t numbers_per_line = 8, line_bytes = 64;

// Knuth's generator; fewer than 2^32 lines.
uint64_t random_line(uint64_t* random, uint64_t lines) {
  *random = *random * 6364136223846793005ull + 1442695040888963407ull;
  return ((*random >> 32) * lines >> 32) * numbers_per_line;
}

// One thread's random reads of lines of cache, several at once.
uint64_t gather_lines(const uint64_t* table, uint64_t lines, uint64_t begin, uint64_t end) {
  constexpr uint64_t at_once = 32;
  uint64_t sum = 0, random = begin * 2 + 1;
  for (; begin < end; begin += at_once) {
    uint64_t at[at_once];
    for (uint64_t& i : at) {
      i = random_line(&random, lines);
      prefetch(&table[i]);
    }
    for (uint64_t i : at) sum += table[i];
  }
  return sum;
}

}  // namespace

Status measure_limits_host(TaskPool& pool, uint64_t table_bytes, BackendLimits* limits) {
  constexpr uint64_t least_bytes = 1 << 20, gathers = 1 << 23, grain = 1 << 16;
  *limits = {};
  BulkVector<uint64_t> table(std::max(table_bytes, least_bytes) / 8), copy(table.size());
  auto bytes = static_cast<double>(table.size() * 8);
  pool.run(table.size(), grain, [&](uint64_t begin, uint64_t end) {
    std::fill(&table[begin], &table[begin] + (end - begin), begin);
    std::fill(&copy[begin], &copy[begin] + (end - begin), begin);
  });
  std::atomic<uint64_t> sum{0};
  for (int repeat = 0; repeat < 3; ++repeat) {
    double seconds = seconds_of([&] {
      pool.run(gathers, grain, [&](uint64_t begin, uint64_t end) {
        sum.fetch_add(gather_lines(table.data(), table.size() / numbers_per_line, begin, end),
                      std::memory_order_relaxed);
      });
    });
    limits->gathers_per_second = std::max(limits->gathers_per_second, gathers / seconds);
    seconds = seconds_of([&] {
      pool.run(table.size(), grain, [&](uint64_t begin, uint64_t end) {
        std::memcpy(&copy[begin], &table[begin], (end - begin) * 8);
      });
    });
    limits->copy_bytes_per_second = std::max(limits->copy_bytes_per_second, 2 * bytes / seconds);
  }
  return {};
}

Status measure_costs_host(TaskPool& pool, AccessCosts* costs) {
  constexpr uint64_t max_bytes = AccessCosts::bytes_of(AccessCosts::sizes - 1);
  constexpr uint64_t grain = 1 << 12, chained = 1 << 12;
  const uint64_t gathers = uint64_t{1 << 19} * pool.threads();
  *costs = AccessCosts::typical_host(pool.threads());
  BulkVector<uint64_t> table(max_bytes / 8);
  pool.run(table.size(), 1 << 16,
           [&](uint64_t begin, uint64_t end) { std::memset(&table[begin], 0, (end - begin) * 8); });
  std::atomic<uint64_t> sum{0};
  // The least of several rounds, each of all sizes, so that what disturbs for a while spoils none.
  costs->nanoseconds_at.fill(1e9);
  costs->latency_at.fill(1e9);
  auto take = [](double* least, uint64_t reads, const std::function<void()>& work) {
    *least = std::min(*least, seconds_of(work) / static_cast<double>(reads) * 1e9);
  };
  for (uint64_t round = 0; round < 8; ++round) {
    for (uint32_t i = 0; i < AccessCosts::sizes; ++i) {
      const uint64_t lines = AccessCosts::bytes_of(i) / line_bytes;
      take(&costs->nanoseconds_at[i], gathers, [&] {
        pool.run(gathers, grain, [&](uint64_t begin, uint64_t end) {
          sum.fetch_add(gather_lines(table.data(), lines, begin, end), std::memory_order_relaxed);
        });
      });
      take(&costs->latency_at[i], chained, [&] {
        uint64_t random = round;
        for (uint64_t n = 0; n < chained; ++n) random += table[random_line(&random, lines)];
        sum.fetch_add(random, std::memory_order_relaxed);
      });
    }
  }
  costs->drop_noise();
  return {};
}

}  // namespace stride
