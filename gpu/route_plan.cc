#include "gpu/route_plan.h"

#include <algorithm>
#include <utility>

namespace stride {

namespace {

// Targets of sources, whatever their width.
class Targets {
 public:
  Targets(const Indexes& indexes, uint64_t first) : indexes_(indexes), first_(first) {}
  uint64_t operator[](uint64_t i) const {
    if (indexes_.width == 4) return static_cast<const uint32_t*>(indexes_.data)[first_ + i];
    return static_cast<const uint64_t*>(indexes_.data)[first_ + i];
  }

 private:
  Indexes indexes_;
  uint64_t first_;
};

// Sets the parts, and for each target which it is in; hot targets are parts behind all others.
std::vector<uint32_t> cut_parts(const std::vector<uint32_t>& counts, RouteSlab* slab) {
  const uint64_t limit = counts.size();
  for (uint32_t count : counts)
    if (count <= route_hot_sources) slab->items += count;
  const uint32_t aim = std::max(1u, (slab->items + slab->chunks - 1) / slab->chunks);
  std::vector<uint32_t> part_of(limit);
  slab->part_target.push_back(0);
  slab->part_item.push_back(0);
  uint32_t items = 0;
  for (uint32_t t = 0; t < limit; ++t) {
    if (items - slab->part_item.back() >= aim ||
        t - slab->part_target.back() == route_part_targets) {
      slab->part_target.push_back(t);
      slab->part_item.push_back(items);
    }
    if (counts[t] > route_hot_sources) {
      slab->hot.push_back({t, 0});
      continue;
    }
    part_of[t] = static_cast<uint32_t>(slab->part_target.size() - 1);
    items += counts[t];
  }
  slab->part_target.push_back(static_cast<uint32_t>(limit));
  slab->part_item.push_back(items);
  slab->parts = static_cast<uint32_t>(slab->part_target.size() - 1);
  for (uint32_t h = 0; h < slab->hot.size(); ++h) part_of[slab->hot[h].target] = slab->parts + h;
  slab->hot.push_back({limit, 0});
  return part_of;
}

// Sets the groups, with lists that name nothing yet, and for each target where its first item goes
// in a list.
std::vector<uint32_t> make_groups(const std::vector<uint32_t>& counts, RouteSlab* slab) {
  std::vector<uint32_t> first_of(counts.size()), targets;
  slab->part_group.push_back(0);
  uint32_t at = 0;
  for (uint32_t p = 0; p < slab->parts; ++p) {
    targets.clear();
    for (uint32_t t = slab->part_target[p]; t < slab->part_target[p + 1]; ++t)
      if (counts[t] > 0 && counts[t] <= route_hot_sources) targets.push_back(t);
    std::stable_sort(targets.begin(), targets.end(),
                     [&](uint32_t a, uint32_t b) { return counts[a] > counts[b]; });
    targets.resize(
        (targets.size() + route_group_targets - 1) / route_group_targets * route_group_targets,
        no_route_target);
    const uint32_t begin = at, items = slab->part_item[p + 1] - slab->part_item[p];
    for (uint32_t g = 0; g < targets.size(); g += route_group_targets) {
      slab->group_list.push_back(at);
      for (uint32_t k = 0; k < route_group_targets && targets[g + k] != no_route_target; ++k)
        first_of[targets[g + k]] = at + k;
      at += counts[targets[g]] * route_group_targets;
    }
    slab->list.resize(at, static_cast<uint16_t>(items));
    slab->group_targets.insert(slab->group_targets.end(), targets.begin(), targets.end());
    slab->part_group.push_back(static_cast<uint32_t>(slab->group_list.size()));
    slab->most_items = std::max(slab->most_items, items);
    slab->most_list = std::max(slab->most_list, at - begin);
    slab->most_targets =
        std::max(slab->most_targets, slab->part_target[p + 1] - slab->part_target[p]);
  }
  slab->group_list.push_back(at);
  return first_of;
}

// Sets where the sums of hot targets lie.
void place_hot_sums(const Targets& target, const std::vector<uint32_t>& part_of, uint64_t n,
                    RouteSlab* slab) {
  std::vector<uint32_t> last_chunk(slab->hot_count(), UINT32_MAX), sums(slab->hot_count());
  for (uint64_t i = 0; i < n; ++i) {
    if (target[i] >= part_of.size() || part_of[target[i]] < slab->parts) continue;
    const uint32_t h = part_of[target[i]] - slab->parts;
    const auto chunk = static_cast<uint32_t>(i / slab->chunk_sources);
    sums[h] += last_chunk[h] != chunk;
    last_chunk[h] = chunk;
  }
  uint32_t at = slab->items;
  for (uint32_t h = 0; h < sums.size(); ++h) {
    slab->hot[h].begin = at;
    at += sums[h];
  }
  slab->hot.back().begin = at;
}

}  // namespace

bool is_exchanged(uint64_t sources, uint64_t targets) {
  constexpr uint64_t fewest_sources = 1 << 20, fewest_targets = 48 << 10;
  return sources >= fewest_sources && targets > fewest_targets &&
         targets <= std::min(sources, route_slab_sources);
}

RouteSlab plan_slab(const Indexes& targets, uint64_t first, uint64_t n, uint64_t limit,
                    uint32_t processors) {
  RouteSlab slab;
  slab.first = first;
  slab.sources = static_cast<uint32_t>(n);
  const uint64_t rounds = (n + uint64_t{processors} * route_chunk_sources - 1) /
                          (uint64_t{processors} * route_chunk_sources);
  slab.chunk_sources = static_cast<uint32_t>((n + rounds * processors - 1) / (rounds * processors));
  slab.chunk_sources = (slab.chunk_sources + 31) / 32 * 32;
  slab.chunks = static_cast<uint32_t>((n + slab.chunk_sources - 1) / slab.chunk_sources);

  const Targets target(targets, first);
  std::vector<uint32_t> counts(limit);
  for (uint64_t i = 0; i < n; ++i)
    if (target[i] < limit) ++counts[target[i]];
  const std::vector<uint32_t> part_of = cut_parts(counts, &slab);
  // Where the next source of each target goes, in a list.
  std::vector<uint32_t> next = make_groups(counts, &slab);
  place_hot_sums(target, part_of, n, &slab);

  slab.picks.resize(uint64_t{slab.chunks} * slab.chunk_sources);
  slab.chunk_piece.push_back(0);
  // Where the next of each part goes, and of each hot target.
  std::vector<uint32_t> part_end(slab.part_item.begin(), slab.part_item.end() - 1);
  for (uint32_t h = 0; h < slab.hot_count(); ++h) part_end.push_back(slab.hot[h].begin);
  const auto all_parts = static_cast<uint32_t>(part_end.size());
  std::vector<uint32_t> run_next(all_parts), run_to(slab.parts);
  for (uint32_t c = 0; c < slab.chunks; ++c) {
    const uint64_t begin = uint64_t{c} * slab.chunk_sources;
    const uint64_t end = std::min<uint64_t>(n, begin + slab.chunk_sources);
    std::fill(run_next.begin(), run_next.end(), 0);
    for (uint64_t i = begin; i < end; ++i) {
      uint64_t t = target[i];
      if (t < limit) ++run_next[part_of[t]];
    }
    uint32_t at = 0;
    for (uint32_t p = 0; p < slab.parts; ++p) {
      const uint32_t count = run_next[p];
      for (uint32_t done = 0; done < count; done += route_piece_sources)
        slab.pieces.push_back({static_cast<uint16_t>(at + done),
                               static_cast<uint16_t>(std::min(route_piece_sources, count - done)),
                               part_end[p] + done});
      // From a place among the picks to an item.
      run_to[p] = part_end[p] - at;
      part_end[p] += count;
      run_next[p] = at;
      at += count;
    }
    for (uint32_t p = slab.parts; p < all_parts; ++p) {
      const uint32_t count = run_next[p];
      if (count > 0)
        slab.pieces.push_back(
            {static_cast<uint16_t>(at), static_cast<uint16_t>(count), part_end[p]++});
      run_next[p] = at;
      at += count;
    }
    slab.chunk_piece.push_back(static_cast<uint32_t>(slab.pieces.size()));
    slab.chunk_picks.push_back(at);
    for (uint64_t i = begin; i < end; ++i) {
      uint64_t t = target[i];
      if (t >= limit) continue;
      uint32_t p = part_of[t];
      uint32_t place = run_next[p]++;
      slab.picks[begin + place] = static_cast<uint16_t>(i - begin);
      if (p >= slab.parts) continue;
      slab.list[next[t]] = static_cast<uint16_t>(run_to[p] + place - slab.part_item[p]);
      next[t] += route_group_targets;
    }
  }
  return slab;
}

}  // namespace stride
