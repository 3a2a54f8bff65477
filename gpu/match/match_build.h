// Builds a match tree (match_layout.h) with data-parallel passes. Written once for every place
// where it can run: a Space as tree_build.h takes it, which has besides
//
//   void copy_out(void* to, const void* from, uint64_t bytes);   // to host memory
//   // Adds up what op(i, add) passes to add(bin, n), for all i below n.
//   template <uint32_t bins, class Op> void histogram(uint64_t n, const Op& op, int64_t* counts);
//
// What encloses a prefix, and where boundaries lie, follow from counts and searches: of prefixes
// that are sorted, `after` of i is the number of those that begin before i ends, and the parent of
// i is the last before it whose `after` is behind i.
#pragma once

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/scan.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/match/match_layout.h"
#include "gpu/match/match_passes.h"
#include "gpu/match/match_plan.h"

namespace stride {

template <class Space, class Number>
class MatchBuilder {
  template <class T>
  using Buffer = typename Space::template Buffer<T>;

 public:
  // keys: `size` prefix keys (storage/prefix_key.h) in the memory of the space, strictly ascending,
  // of addresses that fit the number. At most max_match_prefixes.
  MatchBuilder(Space& space, const std::byte* keys, uint32_t size, uint32_t address_bits)
      : space_(space), keys_(keys), size_(size), address_bits_(address_bits) {}

  void build(typename Space::Image* image, Buffer<uint32_t>* parents) {
    find_boundaries(parents);
    uint32_t depth = 0;
    for (MatchStride chosen : plan_matches(count_depths(), address_bits_)) {
      build_level(chosen, depth);
      depth += chosen.stride;
    }
    write_image(image);
  }

 private:
  struct Level {
    MatchLevel shape{};
    Buffer<MatchBlock> blocks;
    Buffer<uint32_t> starts;
    Buffer<uint16_t> slots;
    Buffer<uint32_t> entries;
  };

  template <class T>
  Buffer<T> buffer(uint64_t n) {
    return space_.template buffer<T>(n);
  }
  template <class T>
  Buffer<T> zeros(uint64_t n) {
    Buffer<T> b = buffer<T>(n);
    if (n) space_.set_zero(b.data(), n * sizeof(T));
    return b;
  }
  template <class Op>
  void each(uint64_t n, const Op& op) {
    if (n) thrust::for_each_n(space_.policy(), thrust::counting_iterator<uint64_t>(0), n, op);
  }

  void find_boundaries(Buffer<uint32_t>* parents) {
    Buffer<Number> begins = buffer<Number>(size_), ends = buffer<Number>(size_);
    each(size_, ReadPrefixes<Number>{keys_, prefix_key_width(address_bits_), address_bits_,
                                     begins.data(), ends.data()});
    PrefixArrays<Number> prefixes{begins.data(), ends.data(), size_};
    Buffer<uint32_t> after = buffer<uint32_t>(size_);
    each(size_, FindAfter<Number>{prefixes, after.data()});
    *parents = buffer<uint32_t>(size_);
    find_parents(after, parents);

    // Addresses before the first prefix have a boundary too.
    bool none_at_0 = size_ == 0;
    if (size_ > 0) {
      Number first{};
      space_.copy_out(&first, begins.data(), sizeof first);
      none_at_0 = first != 0;
    }
    BoundaryRules<Number> rules{prefixes, after.data(), parents->data()};
    Buffer<uint32_t> counts = zeros<uint32_t>(size_ + uint64_t{2});
    each(size_, CountBoundaries<Number>{rules, counts.data()});
    thrust::exclusive_scan(space_.policy(), counts.data(), counts.data() + size_ + 2, counts.data(),
                           uint32_t{none_at_0});
    space_.copy_out(&boundaries_, counts.data() + size_ + 1, sizeof boundaries_);
    at_ = buffer<Number>(boundaries_);
    answers_ = buffer<uint32_t>(boundaries_);
    if (none_at_0) {
      Number zero{};
      space_.copy_in(at_.data(), &zero, sizeof zero);
      space_.copy_in(answers_.data(), &no_match, sizeof no_match);
    }
    each(size_, WriteBoundaries<Number>{rules, counts.data(), at_.data(), answers_.data()});
  }

  void find_parents(const Buffer<uint32_t>& after, Buffer<uint32_t>* parents) {
    AfterTree tree{};
    Buffer<uint32_t> levels[AfterTree::max_levels];
    tree.level[0] = after.data();
    uint32_t size = size_;
    for (tree.levels = 1; size > AfterTree::fan_out; ++tree.levels) {
      uint32_t next = (size + AfterTree::fan_out - 1) / AfterTree::fan_out;
      levels[tree.levels] = buffer<uint32_t>(next);
      uint32_t* out = levels[tree.levels].data();
      each(next, LargestOfLevel{tree.level[tree.levels - 1], size, out});
      tree.level[tree.levels] = out;
      size = next;
    }
    each(size_, FindParents{tree, parents->data()});
  }

  MatchCounts count_depths() {
    int64_t bins[match_count_bins] = {};
    if (boundaries_ > 1) {
      space_.template histogram<match_count_bins>(boundaries_ - 1, CountDepths<Number>{at_.data()},
                                                  bins);
    }
    return sum_counts(bins);
  }

  void build_level(MatchStride chosen, uint32_t depth) {
    Level level;
    level.shape.stride = chosen.stride;
    level.shape.kind = chosen.kind;
    level.shape.depth = depth;
    level.shape.nodes = levels_.empty() ? 1 : children_;
    bool root = levels_.empty();
    MatchLevelInput<Number> input{at_.data(),
                                  answers_.data(),
                                  root ? nullptr : inside_.data(),
                                  root ? nullptr : nodes_.data(),
                                  root ? boundaries_ : inside_count_,
                                  depth,
                                  chosen.stride};
    Buffer<MatchPlace> places = buffer<MatchPlace>(input.size + uint64_t{1});
    auto counts = thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0),
                                                  CountMatchEntries<Number>{input});
    thrust::exclusive_scan(space_.policy(), counts, counts + input.size + 1, places.data(),
                           MatchPlace{}, AddPlaces());
    MatchPlace sum;
    space_.copy_out(&sum, places.data() + input.size, sizeof sum);
    level.shape.entries = sum.entries;
    level.entries = buffer<uint32_t>(sum.entries);
    if (chosen.kind == MatchKind::bitmap) {
      level.blocks = zeros<MatchBlock>(level.shape.nodes * blocks_of(chosen.stride));
    } else {
      level.starts = buffer<uint32_t>(level.shape.nodes + uint64_t{1});
      level.slots = zeros<uint16_t>(sum.entries + uint64_t{slots_past_list});
    }
    Buffer<uint32_t> inside = buffer<uint32_t>(sum.inside), nodes = buffer<uint32_t>(sum.inside);
    each(input.size, WriteMatchEntries<Number>{input, places.data(), level.blocks.data(),
                                               level.starts.data(), level.slots.data(),
                                               level.entries.data(), inside.data(), nodes.data()});
    if (chosen.kind == MatchKind::bitmap) rank_blocks(&level.blocks);
    inside_ = std::move(inside);
    nodes_ = std::move(nodes);
    inside_count_ = sum.inside;
    children_ = sum.children;
    levels_.push_back(std::move(level));
  }

  void rank_blocks(Buffer<MatchBlock>* blocks) {
    Buffer<uint32_t> before = buffer<uint32_t>(blocks->size());
    auto bits = thrust::make_transform_iterator(blocks->data(), CountBlockBits());
    thrust::exclusive_scan(space_.policy(), bits, bits + static_cast<ptrdiff_t>(blocks->size()),
                           before.data(), uint32_t{0});
    each(blocks->size(), RankBlocks{blocks->data(), before.data()});
  }

  void write_image(typename Space::Image* image) {
    std::vector<MatchLevel> shapes;
    for (const Level& level : levels_) shapes.push_back(level.shape);
    MatchHeader header = place_match_arrays(address_bits_, size_, boundaries_, shapes);
    space_.make_image(header.image_bytes, image);
    std::byte* to = space_.data(image);
    space_.copy_in(to, &header, sizeof header);
    space_.copy_in(to + sizeof header, shapes.data(), shapes.size() * sizeof(MatchLevel));
    for (size_t i = 0; i < levels_.size(); ++i) {
      const Level& level = levels_[i];
      put(to + shapes[i].blocks_offset, level.blocks);
      put(to + shapes[i].starts_offset, level.starts);
      put(to + shapes[i].slots_offset, level.slots);
      std::byte* entries = to + shapes[i].entries_offset;
      if (header.entry_bytes == 3) {
        each(level.entries.size(), NarrowEntries{level.entries.data(), entries});
      } else {
        put(entries, level.entries);
      }
    }
  }

  template <class T>
  void put(std::byte* to, const Buffer<T>& array) {
    if (array.size()) space_.copy(to, array.data(), array.size() * sizeof(T));
  }

  Space& space_;
  const std::byte* keys_;
  uint32_t size_, address_bits_;
  uint32_t boundaries_ = 0;
  Buffer<Number> at_;
  Buffer<uint32_t> answers_;
  std::vector<Level> levels_;
  // The boundaries inside the last level's children, and the child of each.
  Buffer<uint32_t> inside_, nodes_;
  uint32_t inside_count_ = 0, children_ = 0;
};

}  // namespace stride
