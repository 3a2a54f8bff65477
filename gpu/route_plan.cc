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

constexpr uint32_t no_part = UINT32_MAX;

// Sets parts, and for each target which part it is in (no_part: hot) and where its list begins.
void cut_parts(const std::vector<uint32_t>& counts, RouteSlab* slab,
               std::vector<uint32_t>* part_of) {
  const uint64_t limit = counts.size();
  uint64_t cold = 0;
  for (uint32_t count : counts)
    if (count <= route_hot_sources) cold += count;
  slab->items = static_cast<uint32_t>(cold);
  const auto aim = static_cast<uint32_t>((cold + slab->chunks - 1) / slab->chunks);
  part_of->resize(limit);
  slab->list_begin.resize(limit);
  slab->part_target.push_back(0);
  slab->part_item.push_back(0);
  uint32_t in_part = 0, before = 0;
  for (uint64_t t = 0; t < limit; ++t) {
    bool is_hot = counts[t] > route_hot_sources;
    if (in_part >= aim && aim > 0) {
      before += in_part;
      slab->part_target.push_back(t);
      slab->part_item.push_back(before);
      in_part = 0;
    }
    slab->list_begin[t] = static_cast<uint16_t>(in_part);
    (*part_of)[t] = is_hot ? no_part : static_cast<uint32_t>(slab->part_target.size() - 1);
    if (!is_hot) in_part += counts[t];
  }
  slab->part_target.push_back(limit);
  slab->part_item.push_back(before + in_part);
  slab->parts = static_cast<uint32_t>(slab->part_target.size() - 1);
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
  std::vector<uint32_t> part_of;
  cut_parts(counts, &slab, &part_of);

  // Hot targets: where the next source of each goes.
  std::vector<uint32_t> next(limit);
  uint32_t hot_sources = 0;
  for (uint64_t t = 0; t < limit; ++t) {
    if (part_of[t] != no_part) continue;
    slab.hot.push_back({t, hot_sources});
    next[t] = hot_sources;
    hot_sources += counts[t];
  }
  slab.hot_sources.resize(hot_sources);
  for (uint64_t t = 0; t < limit; ++t)
    if (part_of[t] != no_part) next[t] = slab.part_item[part_of[t]] + slab.list_begin[t];

  slab.picks.resize(uint64_t{slab.chunks} * slab.chunk_sources);
  slab.run_begin.resize(uint64_t{slab.chunks} * (slab.parts + 1));
  slab.run_to.resize(uint64_t{slab.chunks} * slab.parts);
  slab.list.resize(slab.items);
  std::vector<uint32_t> part_end(slab.part_item.begin(), slab.part_item.end() - 1);
  std::vector<uint32_t> run_next(slab.parts);
  for (uint32_t c = 0; c < slab.chunks; ++c) {
    const uint64_t begin = uint64_t{c} * slab.chunk_sources;
    const uint64_t end = std::min<uint64_t>(n, begin + slab.chunk_sources);
    uint16_t* run_begin = slab.run_begin.data() + uint64_t{c} * (slab.parts + 1);
    uint32_t* run_to = slab.run_to.data() + uint64_t{c} * slab.parts;
    std::fill(run_next.begin(), run_next.end(), 0);
    for (uint64_t i = begin; i < end; ++i) {
      uint64_t t = target[i];
      if (t < limit && part_of[t] != no_part) ++run_next[part_of[t]];
    }
    uint32_t at = 0;
    for (uint32_t p = 0; p < slab.parts; ++p) {
      run_begin[p] = static_cast<uint16_t>(at);
      run_to[p] = part_end[p];
      part_end[p] += run_next[p];
      at += std::exchange(run_next[p], at);
    }
    run_begin[slab.parts] = static_cast<uint16_t>(at);
    for (uint64_t i = begin; i < end; ++i) {
      uint64_t t = target[i];
      if (t >= limit) continue;
      uint32_t p = part_of[t];
      if (p == no_part) {
        slab.hot_sources[next[t]++] = static_cast<uint32_t>(i);
        continue;
      }
      uint32_t place = run_next[p]++;
      slab.picks[begin + place] = static_cast<uint16_t>(i - begin);
      uint32_t item = run_to[p] + place - run_begin[p];
      slab.list[next[t]++] = static_cast<uint16_t>(item - slab.part_item[p]);
    }
  }
  return slab;
}

}  // namespace stride
