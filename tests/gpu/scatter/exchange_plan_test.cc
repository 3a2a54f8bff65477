// The plan of an exchange, carried out by loops as a device does.
#include "gpu/scatter/exchange_plan.h"

#include <cstdint>
#include <random>
#include <vector>

#include "tests/gpu/scatter/scatter_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

// The sources that each item and each sum of a heavy hitter gets.
struct Exchanged {
  std::vector<uint64_t> items;
  std::vector<std::vector<uint64_t>> sums;
};

Exchanged exchange_chunks(const ExchangeSlab& slab, uint64_t n) {
  Exchanged to{std::vector<uint64_t>(slab.items, UINT64_MAX),
               std::vector<std::vector<uint64_t>>(slab.heavy_hitter_sums())};
  for (uint32_t chunk = 0; chunk < slab.chunks; ++chunk) {
    const uint64_t begin = uint64_t{chunk} * slab.chunk_sources;
    const uint32_t first_pick = slab.chunk_pick[chunk];
    const uint32_t picks = slab.chunk_pick[chunk + 1] - first_pick;
    REQUIRE(first_pick % 8 == 0u);
    REQUIRE(picks <= slab.most_picks);
    for (uint32_t p = slab.chunk_piece[chunk]; p < slab.chunk_piece[chunk + 1]; ++p) {
      const ExchangeSlab::Piece& piece = slab.pieces[p];
      const bool is_sum = piece.to >= slab.items;
      REQUIRE(piece.count > 0u);
      REQUIRE(piece.begin + piece.count <= picks);
      if (!is_sum) {
        REQUIRE(piece.count <= exchange_piece_sources);
        REQUIRE(piece.begin % exchange_quad + piece.count % exchange_quad +
                    piece.to % exchange_quad ==
                0u);
      }
      for (uint32_t j = 0; j < piece.count; ++j) {
        const uint64_t source = begin + slab.picks[first_pick + piece.begin + j];
        REQUIRE(source < n);
        if (is_sum) {
          to.sums.at(piece.to - slab.items).push_back(source);
        } else {
          to.items.at(piece.to + j) = source;
        }
      }
    }
  }
  return to;
}

// The sources that each target adds up.
std::vector<std::vector<uint64_t>> sources_of_targets(const ExchangeSlab& slab,
                                                      const Exchanged& from, uint64_t limit) {
  std::vector<std::vector<uint64_t>> sources(limit);
  for (uint32_t p = 0; p < slab.parts; ++p) {
    const uint32_t size = slab.part_item[p + 1] - slab.part_item[p];
    REQUIRE(size <= slab.max_items);
    REQUIRE(size <= exchange_part_sources + (exchange_quad - 1) * slab.chunks);
    REQUIRE(slab.part_target[p + 1] - slab.part_target[p] <= slab.most_targets);
    REQUIRE(slab.most_targets <= exchange_part_targets);
    const uint32_t first_group = slab.part_group[p], last_group = slab.part_group[p + 1];
    REQUIRE(slab.group_list[first_group] % 8 == 0u);
    REQUIRE(slab.group_list[last_group] - slab.group_list[first_group] <= slab.most_list);
    for (uint32_t g = first_group; g < last_group; ++g) {
      for (uint32_t at = slab.group_list[g]; at < slab.group_list[g + 1]; ++at) {
        if (slab.list[at] == size) continue;
        const uint32_t k = (at - slab.group_list[g]) % exchange_group_targets;
        const uint32_t t = slab.group_targets[g * exchange_group_targets + k];
        REQUIRE(t >= slab.part_target[p]);
        REQUIRE(t < slab.part_target[p + 1]);
        sources[t].push_back(from.items[slab.part_item[p] + slab.list[at]]);
      }
    }
  }
  for (uint32_t h = 0; h < slab.heavy_hitter_count(); ++h)
    for (uint64_t at = slab.heavy_hitters[h].begin; at < slab.heavy_hitters[h + 1].begin; ++at) {
      auto& of = sources[slab.heavy_hitters[h].target];
      const auto& sum = from.sums[at - slab.items];
      REQUIRE_FALSE(sum.empty());
      of.insert(of.end(), sum.begin(), sum.end());
    }
  return sources;
}

TEST_CASE("ExchangePlanTest.LeadsEverySourceToItsTarget", "[ExchangePlanTest]") {
  std::mt19937_64 rng(seed());
  struct Case {
    uint64_t n, limit;
    uint32_t processors;
    int kind;
  };
  for (Case c : {Case{100, 30, 2, 0}, Case{50000, 700, 3, 2}, Case{400000, 30000, 4, 3},
                 Case{400000, 390000, 132, 0}, Case{300000, 5, 7, 1}, Case{200000, 10000, 2, 4}}) {
    auto r = random_targets<uint64_t>(rng, c.n + 10, c.limit, c.kind);
    const uint64_t first = 10;
    ExchangeSlab slab = plan_slab(Indexes::of(r), first, c.n, c.limit, c.processors);
    REQUIRE(slab.sources == c.n);
    REQUIRE(slab.chunk_sources <= exchange_chunk_sources);
    REQUIRE(slab.part_target.size() == slab.parts + 1u);
    REQUIRE(slab.chunk_piece.size() == slab.chunks + 1u);
    const auto sources = sources_of_targets(slab, exchange_chunks(slab, c.n), c.limit);
    std::vector<std::vector<uint64_t>> expected(c.limit);
    for (uint64_t i = 0; i < c.n; ++i)
      if (r[first + i] < c.limit) expected[r[first + i]].push_back(i);
    REQUIRE_MESSAGE(sources == expected, c.n << " to " << c.limit);
  }
}

}  // namespace
}  // namespace stride::test
