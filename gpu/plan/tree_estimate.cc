#include "gpu/plan/tree_estimate.h"

#include <algorithm>
#include <cmath>

#include "gpu/keys/key_bits.h"
#include "gpu/plan/planner_weights.h"
#include "gpu/tree/directory.h"
#include "gpu/tree/nodes/node_kinds.h"
#include "gpu/tree/tree_layout.h"
#include "gpu/tree/tree_plan.h"

namespace stride {

namespace {

constexpr uint32_t line_bytes = 64;
// A search on the host fetches a leaf as a whole that lies in so few bytes (search_group.h).
constexpr double short_leaf_bytes = 4 * line_bytes, log2_short_leaf_bytes = 8;
// A device reads sectors, and its cache has places for lines. An entry is that of cuda_search.cuh.
constexpr uint32_t sector_bytes = 32, device_line_bytes = 128;
constexpr double entry_bytes = 16;
// The offset of a key among keys of many lengths takes so many bytes (PackedOffsets).
constexpr double offset_bytes = 2.1;
// A line has 8 entries, or 16 words with a bit for each of 32 entries.
constexpr uint32_t entries_of_line_bits = 3, bits_of_line_bits = 9;
// Queries, keys and results that rush through a device's first-level cache need so much of it.
constexpr double streamed_bytes = 65536;

// The chance that all searches that go together do what one does with chance p.
double all_together(double p) {
  static_assert(searches_together == 32);
  for (int i = 0; i < 5; ++i) p *= p;
  return p;
}
double any_together(double p) { return 1 - all_together(1 - std::clamp(p, 0.0, 1.0)); }
// Says how many of `lines` equally likely ones the searches that go together read, for each search.
double lines_of_equals(double lines) { return lines * any_together(1 / lines) / searches_together; }

}  // namespace

uint64_t default_image_bytes(const KeyStatistics& statistics) {
  constexpr uint64_t few = 1 << 16;
  return std::max({4 * statistics.keys, statistics.key_bytes / 8, few});
}

double searched_key_bytes(const KeyStatistics& statistics, bool device) {
  double bytes = static_cast<double>(statistics.key_bytes), each = 0;
  if (statistics.width == 0) each += offset_bytes;
  if (device && !statistics.are_numbers()) each += sizeof(uint64_t);
  return bytes + each * static_cast<double>(statistics.keys);
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

SampledTree::SampledTree(const SampleGroups& groups, const PlanTarget& target,
                         uint32_t leaf_capacity, bool path_compression, uint32_t one_of)
    : groups_(&groups),
      statistics_(&groups.statistics()),
      target_(&target),
      leaf_capacity_(leaf_capacity),
      path_compression_(path_compression),
      one_of_(one_of) {
  uint32_t depth = path_compression ? statistics_->prefix_bits : 0;
  active_.reserve(statistics_->samples() / one_of + 1);
  for (uint32_t i = 0; i < statistics_->samples(); i += one_of)
    active_.push_back({i, depth, 0, 0, groups.of(i)});
  share_ = 1.0 / static_cast<double>(std::max<size_t>(active_.size(), 1));
}

void SampledTree::add_level(uint32_t stride, NodeKind kind) {
  look_at(stride);
  take_kind(kind);
}

void SampledTree::look_at(uint32_t stride) {
  LevelEstimate level{.stride = stride};
  level.visits = share_ * static_cast<double>(active_.size());
  const auto capacity = static_cast<float>(leaf_capacity_);
  double nodes = 0, entries = 0, log2_node = 0, log2_entry = 0;
  size_t left = 0;
  met_.clear();
  for (Place place : active_) {
    nodes += place.group->share;
    log2_node += place.group->log2_keys;
    if (place.sure == place.depth) place.sure += stride;
    auto keys_that_share = [&](uint32_t bits) {
      place.used = place.depth + bits;
      narrow(&place);
      return place.group->keys;
    };
    if (target_->costs.device)
      met_.push_back({keys_that_share(stride - std::min(stride, bits_of_line_bits)),
                      keys_that_share(stride - std::min(stride, entries_of_line_bits)),
                      keys_that_share(stride)});
    keys_that_share(stride);
    entries += place.group->share;
    log2_entry += place.group->log2_keys;
    // Keys that are equal as bit strings are not told apart by more levels.
    if (place.group->keys <= capacity || place.group->depth == same_bits) {
      reach_leaf(place, &leaves_);
      continue;
    }
    place.depth = path_compression_ ? place.group->depth : place.used;
    active_[left++] = place;
  }
  active_.resize(left);
  const double all = share_ * static_cast<double>(statistics_->keys);
  if (!target_->costs.device) {
    double ended = level.visits - share_ * static_cast<double>(left);
    add(SearchWork::uneven, std::min(ended, level.visits - ended));
  }
  const double searched = level.visits * static_cast<double>(statistics_->keys);
  const double visitors = std::max(level.visits / share_, 1.0);
  level.busy_nodes = searched / std::exp2(log2_node / visitors);
  level.busy_entries = searched / std::exp2(log2_entry / visitors);
  level.nodes = levels_.empty() ? 1 : all * nodes;
  level.entries = all * entries;
  levels_.push_back(level);
}

void SampledTree::take_kind(NodeKind kind) {
  LevelEstimate& level = levels_.back();
  const bool root = levels_.size() == 1;
  if (kind == NodeKind::automatic)
    kind = plan_kind(static_cast<uint64_t>(std::llround(level.nodes)), level.stride,
                     static_cast<uint64_t>(std::llround(level.entries)));
  level.kind = root ? NodeKind::dense : kind;
  account_level(level, starts_of(level.kind, level.stride, level.nodes, level.entries),
                level.nodes * static_cast<double>(words_of_node(level.kind, level.stride)));
}

double SampledTree::read_cost(double bytes) const {
  const AccessCosts& costs = target_->costs;
  if (costs.device && bytes > 0) bytes += streamed_bytes;
  auto at = [&](double b) {
    // A thread has up to 32 searches in flight, a device as many as it is given.
    auto batch = static_cast<double>(std::max<uint64_t>(target_->batch, 1));
    double in_flight =
        costs.device ? batch : std::min<double>(batch, searches_together) * target_->threads();
    return std::max(costs.nanoseconds(b), costs.latency(b) / in_flight);
  };
  return target_->locality == QueryLocality::sorted ? 0 : at(bytes) - at(0);
}

double SampledTree::compared_bytes() const {
  const KeyStatistics& s = *statistics_;
  bool tails = target_->costs.device && !s.are_numbers();
  return static_cast<double>(tails ? s.keys * sizeof(uint64_t) : s.key_bytes);
}

// How many lines of the last level a search reads, where those that go together read each line
// once: one that a search meets with chance p is read by 32 of them with chance 1 - (1 - p)^32.
double SampledTree::lines_apart(bool bitmap) const {
  const float share = 1 / static_cast<float>(statistics_->keys);
  const LevelEstimate& level = levels_.back();
  // (1 - q^32) / (1 - q) = (1 + q) (1 + q^2) (1 + q^4) (1 + q^8) (1 + q^16)
  auto reads = [&](float keys) {
    float q = 1 - std::min(keys * share, 1.0f), product = 1;
    for (uint32_t power = 1; power < searches_together; power *= 2) {
      product *= 1 + q;
      q *= q;
    }
    return product;
  };
  // The entries of a bitmap node lie side by side, and after those of other nodes.
  const auto side_by_side = static_cast<float>(
      std::max(1.0, (1 << entries_of_line_bits) * level.entries / (level.entries + level.nodes)));
  float sum = 0;
  for (const Met& met : met_)
    sum +=
        bitmap ? reads(met.entry * side_by_side) + reads(met.bitmap_line) : reads(met.dense_line);
  return share_ * sum / searches_together;
}

// Adds what a level takes, and what a search reads of it.
void SampledTree::account_level(const LevelEstimate& level, double starts, double words) {
  const bool root = levels_.size() == 1, bitmap = words > 0;
  // The children of the level before, which now has some.
  double children = root ? 0 : starts_ / 32 * sizeof(RankedWord);
  double depths = root ? 0 : level.nodes * sizeof(uint32_t);
  image_bytes_ += children + depths + words * sizeof(RankedWord) + starts * sizeof(uint32_t);
  const double line = target_->costs.device ? sector_bytes : line_bytes;
  auto busy = [&](double bytes, double places) { return std::min(bytes, places * line); };
  busy_bytes_ += busy(words * sizeof(RankedWord), level.busy_entries);
  double reads = 1 + bitmap;
  if (target_->costs.device) {
    busy_bytes_ += busy(starts * entry_bytes, level.busy_entries);
  } else {
    busy_bytes_ += busy(starts * sizeof(uint32_t), level.busy_entries) +
                   busy(children, level.busy_nodes) + busy(depths, level.busy_nodes);
    if (!root) reads += 2;  // children and depth
  }
  // When a device's cache would have all of it, searches have read about twice as much of the keys:
  // so the measured trees say of which the weights were made.
  double rush = target_->costs.device ? std::min(compared_bytes(), 2 * busy_bytes_) : 0;
  const double cost = read_cost(busy_bytes_ + rush);
  add(SearchWork::memory, level.visits * reads * cost);
  if (target_->costs.device) {
    another_read_ += level.visits * cost;
    add(SearchWork::lines_apart, lines_apart(bitmap));
  }
  if (!root) {
    add(bitmap ? SearchWork::bitmap_visits : SearchWork::dense_visits, level.visits);
    add(SearchWork::levels_together, any_together(level.visits));
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
  const bool device = target_->costs.device, numbers = statistics_->are_numbers();
  const uint32_t width = numbers ? statistics_->width : 8;
  const int shift = std::countr_zero((device ? sector_bytes : line_bytes) / width);
  const int64_t neighbours = device ? 3 : 2;
  const SampleGroups::Group& leaf = *place.group;
  const int64_t rank = statistics_->ranks[place.sample];
  const int64_t low = rank - static_cast<int64_t>(leaf.before);
  const double guess = fraction_after(place.sample, place.used) * leaf.keys;
  const int64_t off = std::abs(((low + static_cast<int64_t>(guess)) >> shift) - (rank >> shift));
  double reads = 1 + static_cast<double>(std::min(off, neighbours));
  if (off > neighbours) reads += std::max(0.0, static_cast<double>(leaf.log2_keys) - shift) - 1;
  // Equal tails may lie before the first of a sector.
  if (device && !numbers && (rank >> shift) << shift == rank && rank > low) reads += 1;
  leaves->reads += reads;
  // A device's memory gives 64 bytes at once, and more of a page that is open.
  const double beside = device ? static_cast<double>(std::min(off, neighbours)) : 0;
  leaves->memory_reads += reads - beside;
  leaves->beside_reads += beside;
  leaves->rounds.add(reads);
}

// Adds what a search does in the leaf where a sampled key is.
void SampledTree::reach_leaf(const Place& place, Leaves* leaves) const {
  const KeyStatistics& s = *statistics_;
  leaves->count += 1;
  leaves->log_keys += place.group->log2_keys;
  if (s.are_numbers()) return add_reads(place, leaves);
  const SampleGroups::Length& key = groups_->length_of(place.sample);
  const double length = key.bytes, words = key.words;
  const bool variable = s.width == 0;
  leaves->query_words += length / 8;
  // Keys of the leaf that agree with this one in the 8 bytes that are compared first.
  const uint32_t tail = place.used / 8;
  Place same = place;
  same.used = 8 * tail + 64;
  narrow(&same);
  const double equal = same.group->log2_keys;
  if (target_->costs.device) {
    add_reads(place, leaves);
    // The way down and the tail may have seen all of it.
    bool seen = place.sure / 8 == tail && length <= tail + 8;
    leaves->words.add((!seen + equal) * words);
    leaves->other_reads += (1 + equal) * (1 + length / sector_bytes + (variable ? 2 : 0));
    return;
  }
  double bytes = place.group->keys * length;
  double halvings = std::ceil(std::max(
      0.0, static_cast<double>(place.group->log2_keys + key.log2_bytes) - log2_short_leaf_bytes));
  double lines = 1 + std::min(bytes, short_leaf_bytes) / line_bytes;
  leaves->reads += halvings + lines;
  leaves->memory_reads += halvings + 1 + length / line_bytes;
  if (variable) leaves->other_reads += 1 + halvings;
  const double steps = place.group->log2_keys + 1;
  leaves->steps += steps;
  leaves->rounds.add(steps);
  // Whole keys where these bytes agree: at the last step, and at each where the keys share them.
  double shared = place.group->depth == same_bits ? words : place.group->depth / 64.0 + 1;
  leaves->words.add((1 + equal) * std::min(words, shared) + words);
}

double SampledTree::Amounts::mean() const {
  double n = 0, all = 0;
  for (size_t i = 0; i < kinds; ++i) n += count[i], all += sum[i];
  return all / std::max(n, 1.0);
}

double SampledTree::Amounts::most_together() const {
  double n = 0, most = 0, before = 0, so_far = 0;
  for (float c : count) n += c;
  for (size_t i = 0; i < kinds; ++i) {
    if (count[i] == 0) continue;
    so_far += count[i];
    double all = all_together(so_far / n);
    most += (all - before) * sum[i] / count[i];
    before = all;
  }
  return most;
}

double SampledTree::Amounts::unforeseen() const {
  double n = 0, rarer = 0, more = 0;
  for (size_t i = kinds; i-- > 0;) {
    n += count[i];
    rarer += std::min<double>(count[i], more);
    more += count[i];
  }
  return rarer / std::max(n, 1.0);
}

// As if every sampled key that is still on its way went through one more node and found its leaf
// at the first read.
double SampledTree::min_nanoseconds() const {
  auto work = work_;
  const double left = share_ * static_cast<double>(active_.size());
  auto add = [&](SearchWork w, double x) { work[static_cast<size_t>(w)] += x; };
  add(SearchWork::search, 1);
  const PlannerModel& model = planner_model(target_->costs.device, statistics_->are_numbers());
  auto cost_of = [&](SearchWork w) { return model.cost[static_cast<size_t>(w)]; };
  bool dense = cost_of(SearchWork::dense_visits) <= cost_of(SearchWork::bitmap_visits);
  add(dense ? SearchWork::dense_visits : SearchWork::bitmap_visits, left);
  add(SearchWork::levels_together, any_together(left));
  add(SearchWork::leaf_reads, share_ * leaves_.reads + left);
  add(SearchWork::reads_together, 1);
  add(SearchWork::leaf_steps, share_ * leaves_.steps);
  const double leaf_read = read_cost(busy_bytes_ + compared_bytes());
  add(SearchWork::memory,
      left * read_cost(busy_bytes_) + (share_ * leaves_.memory_reads + left) * leaf_read);
  add(SearchWork::memory_beside, share_ * leaves_.beside_reads * leaf_read);
  return nanoseconds_of(work, *statistics_, *target_);
}

double SampledTree::image_bytes() const {
  return image_bytes_ + sizeof(TreeHeader) +
         static_cast<double>(levels_.size()) * sizeof(TreeLevel);
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

bool SampledTree::beats(const SampledTree& other) const {
  return nanoseconds() <= other.nanoseconds() && image_bytes_ <= other.image_bytes_ &&
         busy_bytes_ <= other.busy_bytes_ && starts_ <= other.starts_ &&
         all_starts_ <= other.all_starts_ && another_read_ <= other.another_read_ &&
         leaves_ == other.leaves_;
}

TreeEstimate SampledTree::finish() const {
  const KeyStatistics& s = *statistics_;
  TreeEstimate estimate;
  estimate.levels = levels_;
  estimate.leaf_capacity = leaf_capacity_;
  estimate.complete = active_.empty();
  estimate.image_bytes = image_bytes();
  estimate.memory_bytes = estimate.image_bytes + searched_key_bytes(s, target_->costs.device);
  Leaves leaves = leaves_;
  estimate.work = work_;
  double searched = busy_bytes_;
  auto work = [&](SearchWork w) -> double& { return estimate.work[static_cast<size_t>(w)]; };
  if (target_->costs.device && levels_.size() == 1) {
    // The device has a directory in its place.
    leaves = {};
    SampledTree directory(*groups_, *target_, 0, path_compression_, one_of_);
    uint32_t bits = directory_bits_for(s.keys);
    for (Place& place : directory.active_) {
      place.used = place.depth + bits;
      place.sure = place.depth ? 0 : bits;
      narrow(&place);
      reach_leaf(place, &leaves);
    }
    searched = std::exp2(bits) * sizeof(uint32_t);
    estimate.memory_bytes += searched;
    work(SearchWork::memory) = read_cost(searched);
    work(SearchWork::lines_apart) = lines_of_equals(searched / device_line_bytes);
  } else {
    for (const Place& place : active_) reach_leaf(place, &leaves);
  }
  if (target_->costs.device && levels_.size() > 1) {
    if (device_keeps_entries(all_starts_, s.keys)) {
      estimate.memory_bytes += entry_bytes * all_starts_;
    } else {
      // It reads the tree as the host does: depth, starts and child apart.
      work(SearchWork::memory) += 2 * another_read_;
    }
  }
  const double share = 1 / std::max(leaves.count, 1.0);
  const auto key_bytes = static_cast<double>(s.key_bytes), tail_bytes = compared_bytes();
  double offsets = s.width ? 0 : offset_bytes * static_cast<double>(s.keys);
  work(SearchWork::search) = 1;
  work(SearchWork::memory_beside) = share * leaves.beside_reads * read_cost(searched + tail_bytes);
  work(SearchWork::memory) +=
      share * leaves.memory_reads * read_cost(searched + tail_bytes) +
      share * leaves.other_reads *
          read_cost(searched + tail_bytes + offsets + (target_->costs.device ? key_bytes : 0));
  work(SearchWork::leaf_reads) = share * leaves.reads;
  work(SearchWork::reads_together) = leaves.rounds.most_together();
  work(SearchWork::leaf_steps) = share * leaves.steps;
  work(SearchWork::compare_words) = leaves.words.mean();
  work(SearchWork::words_together) = leaves.words.most_together();
  work(SearchWork::query_words) = share * leaves.query_words;
  if (s.width == 0) work(SearchWork::offsets) = 1 + share * leaves.steps;
  if (!target_->costs.device) work(SearchWork::uneven) += leaves.rounds.unforeseen();
  estimate.leaf_keys = std::exp2(share * leaves.log_keys);
  estimate.nanoseconds = nanoseconds_of(estimate.work, s, *target_);
  return estimate;
}

TreeEstimate estimate_tree(const SampleGroups& groups, const PlanTarget& target,
                           const TreeOptions& options) {
  SampledTree tree(groups, target, options.leaf_capacity, options.path_compression);
  for (size_t i = 0; i < options.strides.size() && (i == 0 || !tree.is_complete()); ++i)
    tree.add_level(options.strides[i], options.kind_of(i));
  return tree.finish();
}

TreeEstimate estimate_tree(const KeyStatistics& statistics, const PlanTarget& target,
                           const TreeOptions& options) {
  return estimate_tree(SampleGroups(statistics), target, options);
}

}  // namespace stride
