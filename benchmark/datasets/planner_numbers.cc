#include "benchmark/datasets/planner_numbers.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "benchmark/harness/random_bits.h"

namespace stride::benchmark {
namespace {

using Random = std::mt19937_64;
using NumberColumn = BulkVector<uint64_t>;

// NumberColumn are drawn in parts of so many, each with random numbers of its own.
constexpr uint64_t part_size = 1 << 20;

// Calls f(part, numbers of it) for each part.
template <class F>
void each_part(NumberColumn* numbers, Parallel* parallel, const F& f) {
  parallel->for_parts(numbers->size(), part_size, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t part = (begin + part_size - 1) / part_size; part * part_size < end; ++part) {
      uint64_t first = part * part_size, size = std::min(numbers->size() - first, part_size);
      f(part, std::span(numbers->data() + first, size));
    }
  });
}

template <class Draw>
void draw_parts(NumberColumn* numbers, uint64_t seed, Parallel* parallel, const Draw& draw) {
  each_part(numbers, parallel, [&](uint64_t part, std::span<uint64_t> range) {
    Random random(seed + part * 0x9E3779B97F4A7C15ull);
    draw(random, range);
  });
}

// Makes of steps the sums of all up to each, from `first` on.
void add_up(NumberColumn* numbers, uint64_t first, Parallel* parallel) {
  std::vector<uint64_t> before((numbers->size() + part_size - 1) / part_size + 1, first);
  each_part(numbers, parallel, [&](uint64_t part, std::span<uint64_t> range) {
    uint64_t sum = 0;
    for (uint64_t& step : range) step = sum += step;
    before[part + 1] = sum;
  });
  for (size_t part = 1; part < before.size(); ++part) before[part] += before[part - 1];
  each_part(numbers, parallel, [&](uint64_t part, std::span<uint64_t> range) {
    for (uint64_t& number : range) number += before[part];
  });
}

void clustered(NumberColumn* numbers, uint64_t seed, Parallel* parallel) {
  draw_parts(numbers, seed, parallel, [](Random& random, std::span<uint64_t> part) {
    uint64_t next = 0, left = 0;
    for (uint64_t& number : part) {
      if (left == 0) {
        next = random();
        left = static_cast<uint64_t>(std::exp2(16 * share_of_one(random())));
      }
      --left;
      number = next++;
    }
  });
}

void zipf_gaps(NumberColumn* numbers, uint64_t seed, Parallel* parallel) {
  draw_parts(numbers, seed, parallel, [](Random& random, std::span<uint64_t> part) {
    for (uint64_t& gap : part) gap = static_cast<uint64_t>(std::exp2(40 * share_of_one(random())));
  });
  add_up(numbers, 0, parallel);
}

void timestamps(NumberColumn* numbers, uint64_t seed, Parallel* parallel) {
  constexpr double month = 30.0 * 86'400 * 1e9;
  const double mean = month / static_cast<double>(numbers->size());
  draw_parts(numbers, seed, parallel, [&](Random& random, std::span<uint64_t> part) {
    uint64_t left = 0;
    double scale = 1;
    for (uint64_t& gap : part) {
      if (left-- == 0) {
        left = 1 + random() % 1000;
        scale = std::exp2(8 * share_of_one(random()) - 7);
      }
      gap = 1 + static_cast<uint64_t>(-std::log(1 - share_of_one(random())) * scale * mean);
    }
  });
  add_up(numbers, 1'700'000'000'000'000'000ull, parallel);
}

}  // namespace

std::optional<OwnedColumn> make_planner_numbers(const std::string& name, uint64_t keys,
                                                uint64_t seed, Parallel* parallel) {
  auto* draw = name == "clustered"    ? clustered
               : name == "zipf_gaps"  ? zipf_gaps
               : name == "timestamps" ? timestamps
                                      : nullptr;
  if (!draw || keys == 0) return {};
  NumberColumn numbers(keys);
  draw(&numbers, seed, parallel);
  numbers = sorted_numbers<uint64_t>(column_of(numbers, parallel).view(), parallel);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return column_of(numbers, parallel);
}

}  // namespace stride::benchmark
