// What a tree over sampled keys would be: its levels, its size, and how long a search in it takes.
//
//   SampleGroups groups(statistics);
//   SampledTree tree(groups, target, leaf_capacity, path_compression);
//   tree.add_level(18, NodeKind::dense);
//   tree.add_level(6, NodeKind::bitmap);
//   TreeEstimate estimate = tree.finish();
//
// Nothing is built: each sampled key is led down the levels by what key_statistics.h says of it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/access_costs.h"
#include "gpu/key_statistics.h"
#include "gpu/plan/sample_groups.h"
#include "gpu/tree_options.h"

namespace stride {

// In which order searches ask for keys.
enum class QueryLocality : uint8_t {
  random,  // any key at any time
  sorted,  // in key order
};

// For whom a tree is made.
struct PlanTarget {
  AccessCosts costs;
  uint64_t batch = uint64_t{1} << 20;  // queries of a call
  QueryLocality locality = QueryLocality::random;
  uint64_t max_image_bytes = 0;  // 0: default_image_bytes()

  // That a call wakes: one for each 2,048 queries at most (search_host.cc).
  double threads() const {
    auto tasks = static_cast<double>(batch) / 2048;
    return tasks < 1 ? 1 : tasks < costs.threads ? tasks : costs.threads;
  }
};

// What a tree may take where nobody says: 4 bytes a key, or an eighth of the keys' own bytes.
uint64_t default_image_bytes(const KeyStatistics& statistics);
// Memory that keys take where they are searched: of keys that are no numbers offsets and, on a
// device, tails too.
double searched_key_bytes(const KeyStatistics& statistics, bool device);

// Searches that go on together until the last of them is done: a group on the host
// (search_group.h), a warp on a device.
inline constexpr uint32_t searches_together = 32;

// The work of one search, on average over the sampled keys: what the cost of a tree is made of.
enum class SearchWork : uint8_t {
  search,           // 1
  memory,           // ns of reads, by AccessCosts, beyond those of the fastest memory
  dense_visits,     // nodes below the root
  bitmap_visits,    // likewise
  levels_together,  // below the root, of the deepest of the searches that go together
  lines_apart,      // lines of levels, less those that searches that go together share (device)
  leaf_reads,       // lines (sectors of a device) of keys or tails
  reads_together,   // of the search with most; of keys that are no numbers, on the host, steps
  leaf_steps,       // comparisons in a leaf (host)
  compare_words,    // 8-byte words of whole keys
  words_together,   // of the search with most
  offsets,          // steps, and one more, where each has to find where its key begins
  query_words,      // 8-byte words of a query
  uneven,           // branch mispredictions (host)
  memory_beside,    // as memory, of sectors beside one that the search has read (device)
  count,
};
inline constexpr size_t search_works = static_cast<size_t>(SearchWork::count);

struct LevelEstimate {
  uint32_t stride = 0;
  NodeKind kind = NodeKind::dense;
  double visits = 0;   // of a search, on average
  double nodes = 0;    // expected
  double entries = 0;  // of all nodes, those that have keys
  // As many as would be met equally often: 2^entropy of the one that a search meets. Some nodes
  // have most of the keys, and stay in the cache.
  double busy_nodes = 0;
  double busy_entries = 0;
};

struct TreeEstimate {
  std::vector<LevelEstimate> levels;
  uint32_t leaf_capacity = 0;
  bool complete = false;  // no sampled key ends in more keys than that
  double image_bytes = 0;
  double memory_bytes = 0;  // that searches need: keys, image, and what a device makes of it
  double leaf_keys = 0;     // that a search finds in its leaf, on average (geometric)
  std::array<double, search_works> work{};
  double nanoseconds = 0;  // of a search, all threads together

  double operator[](SearchWork w) const { return work[static_cast<size_t>(w)]; }
  // Nodes that a search visits, the root included.
  double visits() const;
  // The tree as explicit options.
  TreeOptions options(bool path_compression) const;
};

class SampledTree {
 public:
  // groups and target must outlive it. Only one of so many sampled keys is looked at.
  SampledTree(const SampleGroups& groups, const PlanTarget& target, uint32_t leaf_capacity,
              bool path_compression, uint32_t one_of = 1);

  // The root first, whose kind is dense. automatic: as the builder chooses, by size.
  void add_level(uint32_t stride, NodeKind kind);
  // The same in two steps: the kind of a level may be chosen when its nodes are known.
  void look_at(uint32_t stride);
  void take_kind(NodeKind kind);
  // Adds up the levels so far.
  double image_bytes() const;
  // A search takes at least so long, whatever levels follow.
  double min_nanoseconds() const;
  double nanoseconds() const;  // of the way down
  bool is_complete() const { return active_.empty(); }
  const std::vector<LevelEstimate>& levels() const { return levels_; }
  // Equal for trees in which all sampled keys have come equally far.
  uint64_t state() const;
  // Whether it is at least as good as one of the same state, whatever levels follow on both.
  bool beats(const SampledTree& other) const;
  TreeEstimate finish() const;

 private:
  // A sampled key that is in a node with too many keys for a leaf.
  struct Place {
    uint32_t sample;
    uint32_t depth;  // where the node looks, from the key's first bit
    uint32_t used;   // bits, those skipped before the node not included
    uint32_t sure;   // bits before the first that was skipped
    const SampleGroups::Group* group;
  };
  // How much of something the sampled keys take: of each power of two, and of each number up to 8.
  struct Amounts {
    static constexpr size_t kinds = 16;
    std::array<float, kinds> count{}, sum{};
    void add(double x) {
      auto n = static_cast<uint32_t>(std::min(x, 1e9));
      size_t kind = n < 8 ? n : std::min(kinds - 1, size_t{4} + std::bit_width(n));
      count[kind] += 1;
      sum[kind] += static_cast<float>(x);
    }
    double mean() const;
    bool operator==(const Amounts&) const = default;
    double most_together() const;  // of searches_together, expected
    double unforeseen() const;     // whether there is more: of each such branch the rarer turn
  };
  struct Leaves {
    double count = 0;  // sampled keys
    double log_keys = 0, query_words = 0;
    double reads = 0, steps = 0, memory_reads = 0, beside_reads = 0, other_reads = 0;
    Amounts rounds;  // reads; of keys that are no numbers, on the host, steps
    Amounts words;   // compared
    bool operator==(const Leaves&) const = default;
  };

  void narrow(Place* place) const {
    while (place->group->depth < place->used) ++place->group;
  }
  void reach_leaf(const Place& place, Leaves* leaves) const;
  void add_reads(const Place& place, Leaves* leaves) const;
  double fraction_after(uint32_t sample, uint32_t bits) const;
  void account_level(const LevelEstimate& level, double starts, double words);
  double read_cost(double bytes) const;
  double compared_bytes() const;  // of all keys, or of their tails
  double lines_apart(bool bitmap) const;
  void add(SearchWork work, double x) { work_[static_cast<size_t>(work)] += x; }

  const SampleGroups* groups_;
  const KeyStatistics* statistics_;
  const PlanTarget* target_;
  uint32_t leaf_capacity_;
  bool path_compression_;
  uint32_t one_of_;
  double share_;  // of a search that a sampled key stands for
  std::vector<Place> active_;
  // What searches meet in the last level of a device: the keys of all entries that have their bits
  // in one line with that of the one they meet, of those that are in one line with it, and of it.
  struct Met {
    float bitmap_line, dense_line, entry;  // of ever more shared bits
  };
  std::vector<Met> met_;
  Leaves leaves_;
  std::vector<LevelEstimate> levels_;
  double image_bytes_ = 0;              // without the header
  double busy_bytes_ = 0;               // of what searches read of the levels, most of the time
  double starts_ = 0, all_starts_ = 0;  // of the last level, and of all
  double another_read_ = 0;             // of each level (device)
  std::array<double, search_works> work_{};
};

// The time that so much work takes (planner_weights.h).
double nanoseconds_of(const std::array<double, search_works>& work, const KeyStatistics& statistics,
                      const PlanTarget& target);

// A tree with these options: strides must be given.
TreeEstimate estimate_tree(const SampleGroups& groups, const PlanTarget& target,
                           const TreeOptions& options);
TreeEstimate estimate_tree(const KeyStatistics& statistics, const PlanTarget& target,
                           const TreeOptions& options);

}  // namespace stride
