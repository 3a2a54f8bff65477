#include "gpu/scatter/exchange_plan.h"

#include <algorithm>
#include <utility>

namespace stride {

namespace {

uint32_t filled_up(uint32_t n, uint32_t to) { return (n + to - 1) / to * to; }

class Planner {
 public:
  Planner(const Indexes& targets, uint64_t first, uint64_t n, uint64_t limit)
      : targets_(targets), first_(first), n_(n), counts_(limit), part_of_(limit) {}

  ExchangeSlab plan(uint32_t processors) {
    slab_.first = first_;
    slab_.sources = static_cast<uint32_t>(n_);
    const uint64_t round = uint64_t{processors} * exchange_chunk_sources;
    const uint64_t chunks = (n_ + round - 1) / round * processors;
    slab_.chunk_sources = filled_up(static_cast<uint32_t>((n_ + chunks - 1) / chunks), 32);
    slab_.chunks = static_cast<uint32_t>((n_ + slab_.chunk_sources - 1) / slab_.chunk_sources);
    for (uint64_t i = 0; i < n_; ++i)
      if (target(i) < limit()) ++counts_[target(i)];
    cut_parts();
    size_parts();
    make_groups();
    slab_.chunk_piece.push_back(0);
    slab_.chunk_pick.push_back(0);
    for (uint32_t c = 0; c < slab_.chunks; ++c) fill_chunk(c);
    return std::move(slab_);
  }

 private:
  uint64_t limit() const { return counts_.size(); }
  uint64_t target(uint64_t i) const {
    if (targets_.width == 4) return static_cast<const uint32_t*>(targets_.data)[first_ + i];
    return static_cast<const uint64_t*>(targets_.data)[first_ + i];
  }
  bool is_heavy_hitter(uint64_t t) const { return counts_[t] > heavy_hitter_sources; }

  // Sets the parts, and for each target which it is in; heavy hitters are parts behind all others.
  void cut_parts() {
    uint32_t sources = 0;
    for (uint32_t t = 0; t < limit(); ++t)
      if (!is_heavy_hitter(t)) sources += counts_[t];
    const uint32_t aim = std::max(1u, (sources + slab_.chunks - 1) / slab_.chunks);
    slab_.part_target.push_back(0);
    uint32_t in_part = 0;
    for (uint32_t t = 0; t < limit(); ++t) {
      if (in_part >= aim || t - slab_.part_target.back() == exchange_part_targets) {
        slab_.part_target.push_back(t);
        in_part = 0;
      }
      if (is_heavy_hitter(t)) {
        slab_.heavy_hitters.push_back({t, 0});
        continue;
      }
      part_of_[t] = static_cast<uint32_t>(slab_.part_target.size() - 1);
      in_part += counts_[t];
    }
    slab_.parts = static_cast<uint32_t>(slab_.part_target.size());
    slab_.part_target.push_back(static_cast<uint32_t>(limit()));
    for (uint32_t h = 0; h < slab_.heavy_hitters.size(); ++h)
      part_of_[slab_.heavy_hitters[h].target] = slab_.parts + h;
    slab_.heavy_hitters.push_back({limit(), 0});
  }

  // How many sources of a chunk go to each part, and to each heavy hitter.
  void count_runs(uint32_t chunk) {
    runs_.assign(slab_.parts + slab_.heavy_hitter_count(), 0);
    for (uint64_t i = begin_of(chunk); i < begin_of(chunk + 1); ++i)
      if (target(i) < limit()) ++runs_[part_of_[target(i)]];
  }
  uint64_t begin_of(uint32_t chunk) const {
    return std::min<uint64_t>(n_, uint64_t{chunk} * slab_.chunk_sources);
  }

  // Sets where the items of parts and the sums of heavy hitters lie.
  void size_parts() {
    std::vector<uint32_t> sizes(slab_.parts + slab_.heavy_hitter_count());
    for (uint32_t c = 0; c < slab_.chunks; ++c) {
      count_runs(c);
      for (uint32_t p = 0; p < slab_.parts; ++p) sizes[p] += filled_up(runs_[p], exchange_quad);
      for (uint32_t p = slab_.parts; p < sizes.size(); ++p) sizes[p] += runs_[p] > 0;
    }
    for (uint32_t size : sizes) {
      end_.push_back(slab_.items);
      slab_.items += size;
    }
    slab_.part_item.assign(end_.begin(), end_.begin() + slab_.parts);
    const uint32_t end = slab_.items;
    slab_.items = slab_.heavy_hitter_count() > 0 ? end_[slab_.parts] : end;
    slab_.part_item.push_back(slab_.items);
    for (uint32_t h = 0; h < slab_.heavy_hitter_count(); ++h)
      slab_.heavy_hitters[h].begin = end_[slab_.parts + h];
    slab_.heavy_hitters.back().begin = end;
  }

  // Sets the groups, with lists that name nothing yet, and where the first item of each target goes
  // in one.
  void make_groups() {
    next_.resize(limit());
    std::vector<uint32_t> targets;
    slab_.part_group.push_back(0);
    uint32_t at = 0;
    for (uint32_t p = 0; p < slab_.parts; ++p) {
      targets.clear();
      for (uint32_t t = slab_.part_target[p]; t < slab_.part_target[p + 1]; ++t)
        if (counts_[t] > 0 && !is_heavy_hitter(t)) targets.push_back(t);
      std::stable_sort(targets.begin(), targets.end(),
                       [&](uint32_t a, uint32_t b) { return counts_[a] > counts_[b]; });
      targets.resize(filled_up(static_cast<uint32_t>(targets.size()), exchange_group_targets),
                     no_exchange_target);
      const uint32_t begin = at, items = slab_.part_item[p + 1] - slab_.part_item[p];
      for (uint32_t g = 0; g < targets.size(); g += exchange_group_targets) {
        slab_.group_list.push_back(at);
        for (uint32_t k = 0; k < exchange_group_targets && targets[g + k] != no_exchange_target;
             ++k)
          next_[targets[g + k]] = at + k;
        at += counts_[targets[g]] * exchange_group_targets;
      }
      slab_.list.resize(at, static_cast<uint16_t>(items));
      slab_.group_targets.insert(slab_.group_targets.end(), targets.begin(), targets.end());
      slab_.part_group.push_back(static_cast<uint32_t>(slab_.group_list.size()));
      slab_.max_items = std::max(slab_.max_items, items);
      slab_.most_list = std::max(slab_.most_list, at - begin);
      slab_.most_targets =
          std::max(slab_.most_targets, slab_.part_target[p + 1] - slab_.part_target[p]);
    }
    slab_.group_list.push_back(at);
  }

  // Sets a chunk's picks and pieces, and names its items in the lists of their targets.
  void fill_chunk(uint32_t chunk) {
    count_runs(chunk);
    const uint32_t first_pick = slab_.chunk_pick.back();
    uint32_t at = 0;
    // From here on runs_ says where the next pick of each goes, and to_item_ how far from there its
    // item is in the part.
    to_item_.resize(slab_.parts);
    for (uint32_t p = 0; p < runs_.size(); ++p) {
      const uint32_t count = runs_[p];
      runs_[p] = at;
      if (count == 0) continue;
      if (p >= slab_.parts) {
        add_piece(at, count, end_[p]++);
        at += count;
        continue;
      }
      to_item_[p] = end_[p] - slab_.part_item[p] - at;
      const uint32_t filled = filled_up(count, exchange_quad);
      for (uint32_t done = 0; done < filled; done += exchange_piece_sources)
        add_piece(at + done, std::min(exchange_piece_sources, filled - done), end_[p] + done);
      end_[p] += filled;
      at += filled;
    }
    slab_.chunk_piece.push_back(static_cast<uint32_t>(slab_.pieces.size()));
    slab_.most_picks = std::max(slab_.most_picks, filled_up(at, 8));
    slab_.chunk_pick.push_back(first_pick + filled_up(at, 8));
    slab_.picks.resize(slab_.chunk_pick.back());
    const uint64_t begin = begin_of(chunk);
    for (uint64_t i = begin; i < begin_of(chunk + 1); ++i) {
      const uint64_t t = target(i);
      if (t >= limit()) continue;
      const uint32_t p = part_of_[t], place = runs_[p]++;
      slab_.picks[first_pick + place] = static_cast<uint16_t>(i - begin);
      if (p >= slab_.parts) continue;
      slab_.list[next_[t]] = static_cast<uint16_t>(to_item_[p] + place);
      next_[t] += exchange_group_targets;
    }
  }
  void add_piece(uint32_t begin, uint32_t count, uint32_t to) {
    slab_.pieces.push_back({static_cast<uint16_t>(begin), static_cast<uint16_t>(count), to});
  }

  Indexes targets_;
  uint64_t first_, n_;
  ExchangeSlab slab_;
  std::vector<uint32_t> counts_, part_of_;  // of targets
  std::vector<uint32_t> next_;              // of a target: where its next item goes in a list
  std::vector<uint32_t> end_;               // of a part or heavy hitter: what comes next there
  std::vector<uint32_t> runs_, to_item_;    // of a part or heavy hitter, in one chunk
};

}  // namespace

bool is_exchanged(uint64_t sources, uint64_t targets) {
  constexpr uint64_t min_sources = 1 << 20, min_targets = 48 << 10;
  return sources >= min_sources && targets > min_targets &&
         targets <= std::min(sources, exchange_slab_sources(targets));
}

uint64_t exchange_slab_sources(uint64_t targets) { return targets <= 1 << 20 ? 1 << 22 : 1 << 24; }

ExchangeSlab plan_slab(const Indexes& targets, uint64_t first, uint64_t n, uint64_t limit,
                       uint32_t processors) {
  return Planner(targets, first, n, limit).plan(processors);
}

}  // namespace stride
