#include "benchmark/workloads/gpus/data.h"

#include <random>
#include <utility>

#include "benchmark/peers/route_intervals.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t min_values_per_part = 4096;
constexpr double hit_rate = 0.9;

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
