#include "benchmark/workloads/gpus/data.h"

#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "benchmark/datasets/scatter_data.h"
#include "benchmark/peers/route_intervals.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t min_values_per_part = 4096;
constexpr double hit_rate = 0.9;

// A number for each one, which looks random (the finalizer of SplitMix64; Steele, Lea, Flood,
// OOPSLA 2014).
uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

PackedColumn packed(const std::byte* data, uint32_t width, uint64_t rows) {
  PackedColumn column;
  column.data = data;
  column.data_bytes = rows * width;
  column.size = rows;
  column.width = width;
  return column;
}

}  // namespace

PackedColumn GpusData::packed_keys() const {
  const KeyColumn sorted = keys->sorted().view();
  return packed(sorted.data, sorted.width, sorted.size);
}

PackedColumn GpusData::packed_values() const {
  return packed(values.data(), value_bytes, keys->size());
}

Result<std::unique_ptr<GpusData>> GpusData::make(const GpusOptions& options, Backend& host,
                                                 Parallel* parallel) {
  auto data = std::make_unique<GpusData>();
  STRIDE_TRY(data->make_keys(options, host, parallel));
  STRIDE_TRY(data->make_routes(options, host, parallel));
  STRIDE_TRY(data->make_sums(options, host));
  data->make_vectors(options, parallel);
  return data;
}

Status GpusData::make_keys(const GpusOptions& options, Backend& host, Parallel* parallel) {
  Result<TreeKeys> made =
      TreeKeys::make({.name = "u64", .width = 8, .path = ""}, options.keys, options.seed, parallel);
  if (!made.ok()) return made.status();
  keys.emplace(std::move(*made));
  Result<OwnedColumn> drawn = keys->draw_queries(
      {.queries = options.queries, .hit_rate = hit_rate, .seed = options.seed}, parallel);
  if (!drawn.ok()) return drawn.status();
  queries = std::move(*drawn);
  if (options.zipf > 0) STRIDE_TRY(replace_queries(options, parallel));
  found.resize(options.queries);
  lower_bounds.resize(options.queries);
  keys->sorted().find_ranks(queries.view(), parallel, found);
  keys->sorted().lower_bound(queries.view(), parallel, lower_bounds);
  value_bytes = options.value_bytes;
  values.resize(keys->size() * value_bytes);
  parallel->for_parts(keys->size(), min_values_per_part,
                      [&](unsigned, uint64_t rank, uint64_t end) {
                        for (; rank < end; ++rank)
                          for (uint32_t at = 0; at < value_bytes; ++at)
                            values[rank * value_bytes + at] = value_byte(rank, at);
                      });
  return host.tree_index().build_tree(packed_keys(), {}, &tree);
}

Status GpusData::replace_queries(const GpusOptions& options, Parallel* parallel) {
  if (keys->size() > UINT32_MAX) return Status::invalid("--zipf takes up to 2^32 keys");
  const KeyColumn all = keys->shuffled();
  const OwnedIndexes hot =
      make_targets({.sources = options.queries,
                    .targets = keys->size(),
                    .distribution = {"zipf", TargetDistribution::Kind::zipf, options.zipf},
                    .seed = options.seed},
                   sizeof(uint32_t), parallel);
  parallel->for_parts(options.queries, min_rows_per_part, [&](unsigned, uint64_t i, uint64_t end) {
    for (; i < end; ++i) std::memcpy(&queries.data[i * all.width], all[hot[i]].data(), all.width);
  });
  return {};
}

void GpusData::make_vectors(const GpusOptions& options, Parallel* parallel) {
  const uint64_t n = options.set_vectors, numbers = n / 2 + 1;
  vectors.resize(n * set_words);
  vector_numbers.resize(n);
  parallel->for_parts(n, min_rows_per_part, [&](unsigned, uint64_t i, uint64_t end) {
    for (; i < end; ++i) {
      vector_numbers[i] = static_cast<uint32_t>(mixed(i + (options.seed << 40)) % numbers);
      for (uint32_t word = 0; word < set_words; ++word)
        vectors[i * set_words + word] =
            static_cast<uint32_t>(mixed(vector_numbers[i] + (uint64_t{word} << 40)) >> 32);
    }
  });
  std::vector<bool> seen(numbers);
  for (uint32_t number : vector_numbers) {
    different_vectors += !seen[number];
    seen[number] = true;
  }
}

Status GpusData::check_put(std::span<const uint64_t> ids, std::span<const uint64_t> was_new) const {
  BulkVector<uint64_t> id_of(vector_numbers.size() / 2 + 1);
  std::fill(id_of.begin(), id_of.end(), VectorSet::absent);
  uint64_t news = 0;
  for (uint64_t i = 0; i < ids.size(); ++i) {
    uint64_t& id = id_of[vector_numbers[i]];
    news += was_new[i / 64] >> i % 64 & 1;
    if (id == VectorSet::absent) id = ids[i];
    if (id != ids[i] || id == VectorSet::absent)
      return Status(StatusCode::corruption, "wrong id of vector " + std::to_string(i));
  }
  if (news == different_vectors) return {};
  return Status(StatusCode::corruption, std::to_string(news) + " new vectors, and not " +
                                            std::to_string(different_vectors));
}

Status GpusData::make_sums(const GpusOptions& options, Backend& host) {
  targets.resize(options.scatter_sources);
  sums.assign(options.scatter_targets, 0);
  std::mt19937_64 random(options.seed);
  for (uint32_t& target : targets) target = static_cast<uint32_t>(random() % sums.size());
  return host.scatter().apply({NumberType::i32, targets.data(), targets.size()},
                              Indexes::of(targets), MutableNumbers::of(std::span<int32_t>(sums)));
}

Status GpusData::make_routes(const GpusOptions& options, Backend& host, Parallel* parallel) {
  Result<std::vector<RouteTable>> tables = read_routes(options.prefixes);
  if (!tables.ok()) return tables.status();
  for (RouteTable& table : *tables)
    if (table.address_bits == 32) routes.emplace(std::move(table));
  if (!routes) return Status::invalid("--prefixes: no file has prefixes of IPv4");
  addresses = uniform_addresses(*routes, options.queries, options.seed);
  matched.resize(options.queries);
  const RouteIntervals intervals(routes->keys.view(), routes->address_bits);
  intervals.match(addresses.view(), parallel, matched);
  return host.longest_prefix().build_matches(routes->packed_keys(), routes->address_bits, &matches);
}

}  // namespace stride::benchmark
