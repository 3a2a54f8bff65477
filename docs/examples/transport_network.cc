// Traffic on the links of a road network, added up by zones: T[R[i]] += S[i] for days of weights S,
// where a table says in which zone each link lies. docs/map.md explains it.
//
//   g++ -std=c++20 -O2 transport_network.cc $(pkg-config --cflags --libs stridedb) -o
//   transport_network
//   ./transport_network network.db                     # 4,000,000 links, 500,000 zones, 5 days
//   ./transport_network network.db 100000 5000 3
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "engine/database.h"
#include "engine/group_by.h"
#include "engine/scatter_plan.h"

namespace {

using stride::Column;
using stride::MutableNumbers;
using stride::Numbers;

void check(const stride::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}
template <class T>
T take(stride::Result<T> result) {
  check(result.status());
  return std::move(*result);
}

// Keys are ordered as bytes: the high byte comes first.
uint64_t key_of(uint64_t number) { return __builtin_bswap64(number); }

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// The mapping from links to zones. Links have numbers with gaps; neighbours are often in one zone.
void write_mapping(stride::Database& db, const stride::Table& mapping,
                   const std::vector<uint64_t>& links, uint32_t zones) {
  std::mt19937 random(1);
  std::vector<uint32_t> zone_of(links.size());
  for (size_t i = 0; i < links.size(); ++i) {
    uint64_t near = i * zones / links.size() + random() % 8;
    zone_of[i] = static_cast<uint32_t>(random() % 20 ? near % zones : random() % zones);
  }
  stride::WriteTransaction t = db.begin();
  check(t.put(mapping, Column::fixed(links.data(), 8, links.size()),
              Column::fixed(zone_of.data(), 4, zone_of.size())));
  check(t.commit());
}

// The plain loop, in doubles; how far it is from T at most, in units of what a float can tell.
double largest_error(const std::vector<uint32_t>& zone_of, const std::vector<float>& weights,
                     const std::vector<float>& sums) {
  std::vector<double> expected(sums.size());
  for (size_t i = 0; i < weights.size(); ++i) expected[zone_of[i]] += weights[i];
  double error = 0;
  for (size_t z = 0; z < sums.size(); ++z) {
    double unit = std::max(std::abs(expected[z]), 1.0) * 0x1p-24;
    error = std::max(error, std::abs(sums[z] - expected[z]) / unit);
  }
  return error;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s DATABASE [LINKS [ZONES [DAYS]]]\n", argv[0]);
    return 2;
  }
  auto argument = [&](int i, uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const uint64_t n = argument(2, 4'000'000), days = argument(4, 5);
  const auto zones = static_cast<uint32_t>(argument(3, 500'000));
  if (n == 0 || zones == 0) return 2;

  auto db = take(stride::Database::open(argv[1]));
  auto mapping = take(db->open_or_create_table("zone_of_link", {.key_width = 8}));
  std::mt19937_64 random(7);
  std::vector<uint64_t> links(n);
  for (uint64_t i = 0; i < n; ++i) links[i] = key_of(1000 + 3 * i);
  write_mapping(*db, mapping, links, zones);

  // The links of a day's weights come in an order of their own, the same every day.
  std::shuffle(links.begin(), links.end(), random);
  auto start = std::chrono::steady_clock::now();
  stride::Snapshot now = db->snapshot();
  auto plan =
      take(stride::ScatterPlan::make(now, mapping, Column::fixed(links.data(), 8, n),
                                     {.targets = zones, .unmapped = stride::Unmapped::error}));
  std::printf("%llu links to %u zones: prepared in %.1f ms on %s, %.1f bytes a link\n",
              static_cast<unsigned long long>(n), zones, milliseconds_since(start),
              plan.backend_name().c_str(),
              static_cast<double>(plan.memory_bytes()) / static_cast<double>(n));

  // To check: where each link goes, asked for directly.
  stride::GetResult found;
  check(now.get(mapping, Column::fixed(links.data(), 8, n), &found));
  const auto* zone_data = reinterpret_cast<const uint32_t*>(found.values.data);
  const std::vector<uint32_t> zone_of(zone_data, zone_data + n);

  // Results are kept, too: day and zone -> traffic.
  auto traffic = take(db->open_or_create_table("traffic", {.key_width = 8}));
  std::vector<float> weights(n), sums(zones);
  std::vector<uint64_t> keys(zones);
  std::vector<double> totals;
  std::uniform_real_distribution<float> vehicles(0, 2000);
  bool right = true;
  for (uint64_t day = 0; day < days; ++day) {
    for (float& weight : weights) weight = vehicles(random);
    start = std::chrono::steady_clock::now();
    check(plan.map(Numbers::of<float>(weights), MutableNumbers::of<float>(sums),
                   {.mode = stride::ScatterMode::reproducible, .clear = true}));
    double milliseconds = milliseconds_since(start);
    double error = largest_error(zone_of, weights, sums);
    right &= error <= 2;
    std::printf("day %llu: %.2f ms, %.0f million links a second; largest error %.2f units\n",
                static_cast<unsigned long long>(day), milliseconds,
                static_cast<double>(n) / milliseconds / 1000, error);
    for (uint32_t z = 0; z < zones; ++z) keys[z] = key_of(day << 32 | z);
    stride::WriteTransaction t = db->begin();
    check(
        t.put(traffic, Column::fixed(keys.data(), 8, zones), Column::fixed(sums.data(), 4, zones)));
    check(t.commit());
    totals.push_back(std::accumulate(sums.begin(), sums.end(), 0.0));
  }

  // What came of each day, from the table: the first 4 bytes of a key are the day.
  auto by_day =
      take(stride::group_by(db->snapshot(), traffic, {},
                            {.prefix_bytes = 4, .type = stride::NumberType::f32, .sum = true}));
  right &= by_day.size() >= days;
  for (uint64_t day = 0; right && day < days; ++day) {
    double sum = by_day.float_sums()[day];
    right &= std::abs(sum - totals[day]) <= 1e-9 * totals[day];
    std::printf("day %llu: %.0f vehicles in %llu zones\n", static_cast<unsigned long long>(day),
                sum, static_cast<unsigned long long>(by_day.counts()[day]));
  }
  check(db->close());
  std::puts(right ? "all sums are right" : "SUMS ARE WRONG");
  return right ? 0 : 1;
}
