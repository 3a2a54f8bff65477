#include "gpu/tree_estimate.h"

#include <algorithm>
#include <cmath>

#include "gpu/directory.h"
#include "gpu/key_bits.h"
#include "gpu/planner_weights.h"
#include "gpu/tree_layout.h"
#include "gpu/tree_plan.h"

namespace stride {

namespace {

constexpr double line_bytes = 64;
// Of a search on the host: what lies in so few bytes is fetched as a whole (search_group.h).
constexpr double short_leaf_bytes = 4 * line_bytes;
constexpr double entry_bytes = 16;  // of a device

// Searches that go down together (search_group.h).
constexpr double group_searches = 32;

// The chance that any of a group does what one does with chance p.
double any_of_group(double p) { return 1 - std::pow(1 - std::clamp(p, 0.0, 1.0), group_searches); }

double log2_of(double x) { return std::log2(std::max(x, 1.0)); }

}  // namespace

uint64_t default_image_bytes(const KeyStatistics& statistics) {
  constexpr uint64_t few = 1 << 16;
  return std::max({4 * statistics.keys, statistics.key_bytes / 8, few});
}

double TreeEstimate::visits() const {
  double sum = 0;
  for (const LevelEstimate& level : levels) sum += level.visits;
  return sum;
}

TreeOptions TreeEstimate::options(bool path_compression) const {
  TreeOptions options;
  options.leaf_capacity = leaf_capacity;
  options.path_compression = path_compression;
  for (const LevelEstimate& level : levels) {
    options.strides.push_back(level.stride);
    options.kinds.push_back(level.kind);
  }
  return options;
}

SampleGroups::SampleGroups(const KeyStatistics& statistics) : statistics_(statistics) {
  const KeyStatistics& s = statistics;
  // The points of one side of a sampled key, from the outermost one inwards.
  struct Side {
    const KeyStatistics& s;
    uint32_t begin, end;
    double most;  // keys on that side

    // Leaves what shares more than so many bits.
    void narrow(uint32_t bits) {
      while (end > begin && s.shared[end - 1] <= bits) {
        --end;
        most = s.distances[end] - 1;
      }
    }
    uint32_t depth() const { return end > begin ? s.shared[end - 1] : same_bits; }
    // The last key is somewhere from the outermost point on, where the next one is out.
    float keys() const {
      return end > begin ? static_cast<float>(std::sqrt(s.distances[end - 1] * most)) : 0;
    }
  };
  for (uint32_t sample = 0; sample < s.samples(); ++sample) {
    first_.push_back(static_cast<uint32_t>(groups_.size()));
    const uint32_t rank = s.ranks[sample];
    const uint32_t* first = &s.first[2 * sample];
    Side before{s, first[0], first[1], static_cast<double>(rank)};
    Side after{s, first[1], first[2], static_cast<double>(s.keys - 1 - rank)};
    groups_.push_back({s.prefix_bits, static_cast<float>(s.keys), static_cast<float>(rank),
                       static_cast<float>(log2_of(static_cast<double>(s.keys)))});
    uint32_t depth = 0;
    while (depth != same_bits) {
      before.narrow(depth);
      after.narrow(depth);
      depth = std::min(before.depth(), after.depth());
      float keys = 1 + before.keys() + after.keys();
      groups_.push_back({depth == same_bits ? depth : depth + s.prefix_bits, keys, before.keys(),
                         static_cast<float>(log2_of(keys))});
    }
  }
}

SampledTree::SampledTree(const SampleGroups& groups, const PlanTarget& target,
                         uint32_t leaf_capacity, bool path_compression)
    : groups_(&groups),
      statistics_(&groups.statistics()),
      target_(&target),
      leaf_capacity_(leaf_capacity),
      path_compression_(path_compression) {
  uint32_t depth = path_compression ? statistics_->prefix_bits : 0;
  active_.reserve(statistics_->samples());
  for (uint32_t i = 0; i < statistics_->samples(); ++i)
    active_.push_back({i, depth, 0, groups.of(i)});
}

void SampledTree::add_level(uint32_t stride, NodeKind kind) {
  look_at(stride);
  take_kind(kind);
}

void SampledTree::look_at(uint32_t stride) {
  LevelEstimate level{.stride = stride};
  const double share = 1.0 / std::max<uint32_t>(statistics_->samples(), 1);
  level.visits = share * static_cast<double>(active_.size());
  const auto capacity = static_cast<float>(leaf_capacity_);
  double nodes = 0, entries = 0;
  size_t left = 0;
  for (Place place : active_) {
    nodes += 1 / place.group->keys;
    place.used = place.depth + stride;
    narrow(&place);
    entries += 1 / place.group->keys;
    // Keys that are equal as bit strings are not told apart by more levels.
    if (place.group->keys <= capacity || place.group->depth == same_bits) {
      reach_leaf(place, &leaves_);
      continue;
    }
    place.depth = path_compression_ ? place.group->depth : place.used;
    active_[left++] = place;
  }
  active_.resize(left);
  const double all = share * static_cast<double>(statistics_->keys);
  if (!target_->costs.device) {
    double ended = level.visits - share * static_cast<double>(left);
    work_[static_cast<size_t>(SearchWork::uneven)] += std::min(ended, level.visits - ended);
  }
  level.nodes = levels_.empty() ? 1 : all * nodes;
  level.entries = all * entries;
  levels_.push_back(level);
}

void SampledTree::take_kind(NodeKind kind) {
  LevelEstimate& level = levels_.back();
  const bool root = levels_.size() == 1;
  double slots = std::exp2(level.stride);
  double words = level.nodes * static_cast<double>(words_of_node(level.stride));
  if (kind == NodeKind::automatic)
    kind = plan_kind(static_cast<uint64_t>(std::llround(level.nodes)), level.stride,
                     static_cast<uint64_t>(std::llround(level.entries)));
  level.kind = root ? NodeKind::dense : kind;
  const bool dense = level.kind == NodeKind::dense;
  account_level(level, dense ? level.nodes * (slots + 1) : level.entries + level.nodes,
                dense ? 0 : words);
}

double SampledTree::read_cost(double bytes) const {
  const AccessCosts& costs = target_->costs;
  auto at = [&](double b) {
    // A thread has up to 32 searches in flight, a device as many as it is given.
    auto batch = static_cast<double>(std::max<uint64_t>(target_->batch, 1));
    double in_flight = costs.device ? batch : std::min(batch, group_searches) * target_->threads();
    return std::max(costs.nanoseconds(b), costs.latency(b) / in_flight);
  };
  const double least = at(0);
  switch (target_->locality) {
    case QueryLocality::sorted:
      return 0;
    case QueryLocality::skewed:
      return (at(bytes / 1024) + at(bytes)) / 2 - least;
    default:
      return at(bytes) - least;
  }
}

// A search's share of the time that its group waits for a read: few or many of the group, it is
// about the same.
double SampledTree::wait_cost(double bytes) const {
  const AccessCosts& costs = target_->costs;
  if (costs.device) return 0;
  auto batch = static_cast<double>(std::max<uint64_t>(target_->batch, 1));
  bool sorted = target_->locality == QueryLocality::sorted;
  return costs.latency(sorted ? 0 : bytes) / std::min(batch, group_searches) / target_->threads();
}

// Adds what a level takes, and what a search reads of it.
void SampledTree::account_level(const LevelEstimate& level, double starts, double words) {
  const bool root = levels_.size() == 1;
  auto& memory = work_[static_cast<size_t>(SearchWork::memory)];
  // The children of the level before, which now has some.
  double children = root ? 0 : starts_ / 32 * sizeof(RankedWord);
  double depths = root ? 0 : level.nodes * sizeof(uint32_t);
  double bytes = depths + words * sizeof(RankedWord) + starts * sizeof(uint32_t);
  image_bytes_ += children + bytes;
  if (target_->costs.device) {
    searched_bytes_ += words * sizeof(RankedWord) + starts * entry_bytes;
    memory += level.visits * (words > 0 ? 2 : 1) * read_cost(searched_bytes_);
  } else {
    searched_bytes_ += children + bytes;
    // Children, depth, word and starts, or starts alone.
    double reads = (root ? 1 : 3) + (words > 0);
    memory += level.visits * reads * read_cost(searched_bytes_);
    work_[static_cast<size_t>(SearchWork::waits)] +=
        any_of_group(level.visits) * reads * wait_cost(searched_bytes_);
  }
  if (!root) {
    SearchWork visits = words > 0 ? SearchWork::bitmap_visits : SearchWork::dense_visits;
    work_[static_cast<size_t>(visits)] += level.visits;
  }
  starts_ = starts;
  all_starts_ += starts;
}

// The bits of a sampled key from `bits` on as a fraction of 1.
double SampledTree::fraction_after(uint32_t sample, uint32_t bits) const {
  uint32_t past = bits - std::min(bits, statistics_->prefix_bits);
  uint32_t word = past / 64;
  if (word >= KeyStatistics::head_words) return 0.5;
  const uint64_t* heads = &statistics_->heads[sample * KeyStatistics::head_words];
  uint64_t x = heads[word] << past % 64;
  if (past % 64 && word + 1 < KeyStatistics::head_words) x |= heads[word + 1] >> (64 - past % 64);
  return static_cast<double>(x >> 11) * 0x1p-53;
}

// Lines (sectors) of numbers that a search by interpolation reads.
void SampledTree::add_reads(const Place& place, Leaves* leaves) const {
  const bool device = target_->costs.device;
  const double width = statistics_->are_numbers() ? statistics_->width : 8;
  const double per_line = (device ? line_bytes / 2 : line_bytes) / width;
  const double neighbours = device ? 3 : 2;
  const double keys = place.group->keys;
  double rank = statistics_->ranks[place.sample], low = rank - place.group->before;
  double guess = low + std::floor(fraction_after(place.sample, place.used) * keys);
  double off = std::abs(std::floor(guess / per_line) - std::floor(rank / per_line));
  double reads = 1 + std::min(off, neighbours);
  if (off > neighbours) reads += log2_of(keys / per_line) - 1;
  // Equal tails may lie before the first of a sector.
  bool first_of_sector = std::fmod(rank, per_line) == 0 && rank > low;
  if (device && !statistics_->are_numbers() && first_of_sector) reads += 1;
  leaves->reads += reads;
  leaves->memory_reads += reads;
  leaves->count_round(reads);
  double all = reads + static_cast<double>(levels_.size());
  leaves->squares += all * all;
}

// Adds what a search does in the leaf where a sampled key is.
void SampledTree::reach_leaf(const Place& place, Leaves* leaves) const {
  const KeyStatistics& s = *statistics_;
  leaves->count += 1;
  leaves->log_keys += place.group->log2_keys;
  if (s.are_numbers()) return add_reads(place, leaves);
  const double length = s.lengths[place.sample];
  const double words = std::ceil(length / 8);
  const bool variable = s.width == 0;
  // Keys of the leaf that agree with this one in the 8 bytes that are compared first.
  Place same = place;
  same.used = place.used / 8 * 8 + 64;
  narrow(&same);
  const double equal = same.group->log2_keys;
  if (target_->costs.device) {
    add_reads(place, leaves);
    leaves->steps += 2 * equal;
    leaves->words += (1 + equal) * words;
    leaves->other_reads += (1 + equal) * (1 + length / 32 + (variable ? 2 : 0));
    return;
  }
  double bytes = place.group->keys * length;
  double halvings = std::ceil(log2_of(bytes / short_leaf_bytes));
  double lines = 1 + std::min(bytes, short_leaf_bytes) / line_bytes;
  double reads = halvings + lines;
  leaves->reads += reads;
  leaves->memory_reads += halvings + 1 + length / line_bytes;
  if (variable) leaves->other_reads += 1 + halvings;
  leaves->steps += place.group->log2_keys + 1;
  // Whole keys where these bytes agree: at the last step, and at each where the keys share them.
  leaves->words += (1 + equal) * std::min(words, (place.group->depth == same_bits
                                                      ? words
                                                      : place.group->depth / 64.0 + 1)) +
                   words;
  leaves->count_round(std::ceil(place.group->log2_keys));
}

double SampledTree::Leaves::further_rounds() const {
  double left = 0, sum = 0;
  for (size_t i = rounds.size(); i-- > 2;) {
    left += rounds[i];
    sum += any_of_group(left / std::max(count, 1.0));
  }
  return sum;
}

// Of each branch that is taken with a chance p, the lesser of p and 1 - p.
double SampledTree::Leaves::unforeseen() const {
  double left = 0, sum = 0;
  for (size_t i = rounds.size(); i-- > 0;) {
    // Of those that came as far as round i, some ended there.
    sum += std::min<double>(rounds[i], left);
    left += rounds[i];
  }
  return sum;
}

// As if every sampled key that is still on its way went through one more node and found its leaf
// at the first read.
double SampledTree::least_nanoseconds() const {
  auto work = work_;
  const double share = 1.0 / std::max<uint32_t>(statistics_->samples(), 1);
  const double left = share * static_cast<double>(active_.size());
  auto add = [&](SearchWork w, double x) { work[static_cast<size_t>(w)] += x; };
  add(SearchWork::search, 1);
  const PlannerModel& model = planner_model(target_->costs.device, statistics_->are_numbers());
  auto cost_of = [&](SearchWork w) { return model.cost[static_cast<size_t>(w)]; };
  bool dense = cost_of(SearchWork::dense_visits) <= cost_of(SearchWork::bitmap_visits);
  add(dense ? SearchWork::dense_visits : SearchWork::bitmap_visits, left);
  add(SearchWork::leaf_reads, share * leaves_.reads + left);
  add(SearchWork::leaf_steps, share * leaves_.steps);
  add(SearchWork::compare_words, share * leaves_.words);
  double key_bytes = static_cast<double>(target_->costs.device && !statistics_->are_numbers()
                                             ? 8 * statistics_->keys
                                             : statistics_->key_bytes);
  add(SearchWork::memory,
      left * read_cost(searched_bytes_) +
          (share * leaves_.memory_reads + left) * read_cost(searched_bytes_ + key_bytes));
  return nanoseconds_of(work, *statistics_, *target_);
}

double SampledTree::nanoseconds() const { return nanoseconds_of(work_, *statistics_, *target_); }

uint64_t SampledTree::state() const {
  uint64_t hash = levels_.size();
  for (const Place& place : active_) {
    hash = (hash ^ (uint64_t{place.sample} << 32 | place.depth)) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

TreeEstimate SampledTree::finish() const {
  const KeyStatistics& s = *statistics_;
  TreeEstimate estimate;
  estimate.levels = levels_;
  estimate.leaf_capacity = leaf_capacity_;
  estimate.complete = active_.empty();
  estimate.image_bytes =
      image_bytes_ + sizeof(TreeHeader) + static_cast<double>(levels_.size()) * sizeof(TreeLevel);
  Leaves leaves = leaves_;
  estimate.work = work_;
  double searched = searched_bytes_;
  auto work = [&](SearchWork w) -> double& { return estimate.work[static_cast<size_t>(w)]; };
  if (target_->costs.device && levels_.size() == 1) {
    // The device has a directory in its place.
    leaves = {};
    SampledTree directory(*groups_, *target_, 0, path_compression_);
    uint32_t bits = directory_bits_for(s.keys);
    for (Place& place : directory.active_) {
      place.used = place.depth + bits;
      narrow(&place);
      reach_leaf(place, &leaves);
    }
    searched = std::exp2(bits) * sizeof(uint32_t);
    work(SearchWork::memory) = read_cost(searched);
  } else {
    for (const Place& place : active_) reach_leaf(place, &leaves);
  }
  if (target_->costs.device && !device_keeps_entries(all_starts_, s.keys)) {
    // It reads the tree as the host does: depth, starts and child apart.
    if (levels_.size() > 1)
      work(SearchWork::memory) += 2 * estimate.visits() * read_cost(image_bytes_);
  }
  const double share = 1 / std::max(leaves.count, 1.0);
  auto key_bytes = static_cast<double>(s.key_bytes);
  double tail_bytes =
      s.are_numbers() || !target_->costs.device ? key_bytes : 8.0 * static_cast<double>(s.keys);
  double offsets = s.width ? 0 : 2.1 * static_cast<double>(s.keys);
  work(SearchWork::search) = 1;
  work(SearchWork::memory) +=
      share * leaves.memory_reads * read_cost(searched + tail_bytes) +
      share * leaves.other_reads *
          read_cost(searched + tail_bytes + offsets + (target_->costs.device ? key_bytes : 0));
  work(SearchWork::leaf_reads) = share * leaves.reads;
  work(SearchWork::leaf_steps) = share * leaves.steps;
  work(SearchWork::compare_words) = share * leaves.words;
  if (target_->costs.device) {
    double mean = share * leaves.reads + estimate.visits();
    work(SearchWork::uneven) = std::sqrt(std::max(0.0, share * leaves.squares - mean * mean));
  } else {
    work(SearchWork::uneven) += share * leaves.unforeseen();
    if (s.are_numbers())
      work(SearchWork::waits) += leaves.further_rounds() * wait_cost(searched + key_bytes);
  }
  estimate.leaf_keys = std::exp2(share * leaves.log_keys);
  estimate.nanoseconds = nanoseconds_of(estimate.work, s, *target_);
  return estimate;
}

TreeEstimate estimate_tree(const KeyStatistics& statistics, const PlanTarget& target,
                           const TreeOptions& options) {
  SampleGroups groups(statistics);
  SampledTree tree(groups, target, options.leaf_capacity, options.path_compression);
  for (size_t i = 0; i < options.strides.size() && (i == 0 || !tree.is_complete()); ++i)
    tree.add_level(options.strides[i], options.kind_of(i));
  return tree.finish();
}

}  // namespace stride
