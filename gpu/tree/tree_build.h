// Builds a tree image over a sorted key column. Written once for every place where it can run: a
// Space says which Thrust policy executes the passes and where their arrays lie.
//
//   struct Space {
//     const Policy& policy() const;           // a Thrust execution policy, never thrust::device
//     static constexpr uint64_t keys_per_task;
//     template <class T> class Buffer;        // data(), size(); Buffer(): empty
//     template <class T> Buffer<T> buffer(uint64_t n);            // n uninitialised T
//     class Image;                                                // what is built: bytes
//     void make_image(uint64_t bytes, Image* image);              // of zeros
//     std::byte* data(Image* image);
//     void copy(void* to, const void* from, uint64_t bytes);      // within the space
//     void copy_in(void* to, const void* from, uint64_t bytes);   // from host memory
//     void copy_out(void* to, const void* from, uint64_t bytes);  // to host memory
//   };
//
// The image depends on the keys and options alone, not on the Space.
#pragma once

#include <thrust/fill.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/scan.h>
#include <thrust/transform_reduce.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpu/tree/least_behind.h"
#include "gpu/tree/nodes/node_kinds.h"
#include "gpu/tree/tree_layout.h"
#include "gpu/tree/tree_passes.h"
#include "gpu/tree/tree_plan.h"
#include "gpu/tree_options.h"
#include "storage/status.h"

namespace stride {

template <class Space, class Keys>
class TreeBuilder {
  template <class T>
  using Buffer = typename Space::template Buffer<T>;

 public:
  // Preconditions: options.check(), with strides; size <= max_index_keys; the keys ascend strictly.
  TreeBuilder(Space& space, const Keys& keys, uint32_t size, uint64_t key_bytes,
              const TreeOptions& options)
      : space_(space),
        keys_(keys),
        size_(size),
        options_(options),
        leaf_capacity_(plan_leaf_capacity(options, size, key_bytes)) {}

  Status build(typename Space::Image* image) {
    start_root();
    while (true) {
      bool fits = false;
      for (uint32_t stride = options_.strides[levels_.size()]; !fits && stride;
           stride = narrower_stride(stride)) {
        STRIDE_TRY(build_level(stride, &fits));
      }
      if (!fits) {
        depths_ = std::move(levels_.back().depths);
        break;
      }
      if (levels_.size() == options_.strides.size()) break;
      mark_children();
      Oversized oversized = measure_oversized();
      if (oversized.nodes == 0) break;
      start_level(oversized);
    }
    levels_.back().children = {};
    write_image(image);
    return {};
  }

 private:
  struct Level {
    TreeLevel shape{};
    Buffer<uint32_t> depths;
    Buffer<RankedWord> words;
    Buffer<uint32_t> starts;
    Buffer<RankedWord> children;
  };

  template <class Op>
  void each(uint64_t n, const Op& op) {
    thrust::for_each_n(space_.policy(), thrust::counting_iterator<uint64_t>(0), n, op);
  }
  template <class Result, class Op, class Add>
  Result reduce(uint64_t n, const Op& op, Result zero, const Add& add) {
    thrust::counting_iterator<uint64_t> first(0);
    return thrust::transform_reduce(space_.policy(), first, first + n, op, zero, add);
  }
  static uint64_t tasks_for(uint64_t keys) {
    return (keys + Space::keys_per_task - 1) / Space::keys_per_task;
  }

  // Runs one pass over the keys of the current level's nodes.
  template <class Op>
  void over_keys(uint32_t stride, const Op& op) {
    each(tasks_for(level_keys_), KeyTask<Keys, Op>{view(stride), op});
  }
  LevelKeys<Keys> view(uint32_t stride) const {
    return {keys_,  spans_.data(), depths_.data(),      offsets_.data(),
            nodes_, stride,        Space::keys_per_task};
  }

  void start_root() {
    nodes_ = 1;
    level_keys_ = size_;
    prefix_bits_ = 0;
    if (options_.path_compression && size_ > 1) {
      uint32_t shared = shared_by_all();
      if (shared != same_bits) prefix_bits_ = shared;
    }
    NodeSpan span{0, size_};
    uint64_t offsets[2] = {0, size_};
    spans_ = space_.template buffer<NodeSpan>(1);
    depths_ = space_.template buffer<uint32_t>(1);
    offsets_ = space_.template buffer<uint64_t>(2);
    space_.copy_in(spans_.data(), &span, sizeof span);
    space_.copy_in(depths_.data(), &prefix_bits_, sizeof prefix_bits_);
    space_.copy_in(offsets_.data(), offsets, sizeof offsets);
  }

  uint32_t shared_by_all() {
    return static_cast<uint32_t>(
        reduce(1, SharedByAll<Keys>{keys_, size_}, uint64_t{0}, AddNumbers()));
  }

  std::vector<TreeLevel> shapes() const {
    std::vector<TreeLevel> shapes;
    for (const Level& level : levels_) shapes.push_back(level.shape);
    return shapes;
  }

  // Leaves a level out that does not fit into the image's limit; never the root.
  Status build_level(uint32_t stride, bool* fits) {
    NodeKind kind = levels_.empty() ? NodeKind::dense : options_.kind_of(levels_.size());
    uint64_t entries = 0;
    if (kind == NodeKind::automatic || starts_of_node(kind, stride) == 0) {
      entries =
          reduce(tasks_for(level_keys_), KeyTask<Keys, CountEntries>{view(stride), CountEntries()},
                 uint64_t{0}, AddNumbers());
      if (kind == NodeKind::automatic) kind = plan_kind(nodes_, stride, entries);
    }
    const auto starts = starts_of<uint64_t>(kind, stride, nodes_, entries);
    const bool limited = options_.max_image_bytes > 0 && !levels_.empty();
    if (limited && starts > options_.max_image_bytes) {
      *fits = false;
      return {};
    }
    if (starts > 0xFFFFFFFFull) {
      return Status::invalid("a stride of " + std::to_string(stride) + " bits in level " +
                             std::to_string(levels_.size()) + " makes more than 2^32 entries")
          .with_remedy("choose a smaller stride or bitmap nodes");
    }
    TreeLevel shape{};
    shape.stride = stride;
    shape.kind = static_cast<uint32_t>(kind);
    shape.nodes = nodes_;
    shape.starts = static_cast<uint32_t>(starts);
    *fits = !limited || image_bytes_with(shape) <= options_.max_image_bytes;
    if (!*fits) return {};
    Level& level = levels_.emplace_back();
    level.shape = shape;
    level.starts = space_.template buffer<uint32_t>(starts);
    fill(level);
    return {};
  }

  uint64_t image_bytes_with(const TreeLevel& shape) const {
    std::vector<TreeLevel> shapes = this->shapes();
    shapes.push_back(shape);
    return place_tree_arrays(&shapes);
  }

  // The passes that a kind of node is built of (nodes/level_ref.h).
  struct KindPasses {
    TreeBuilder& builder;
    Level& level;
    uint64_t words_per_node;

    template <class Op>
    void over_keys(const Op& op) {
      builder.over_keys(level.shape.stride, op);
    }
    void rank_words() { builder.rank_words(level.words, words_per_node); }
    // Then no task may be much longer than others.
    static constexpr bool thread_a_key = Space::keys_per_task == 1;
    void unmark_starts(uint32_t unmarked) {
      thrust::fill_n(builder.space_.policy(), level.starts.data(), level.shape.starts, unmarked);
    }
    // Each start becomes the least of it and those behind it.
    void take_next_starts() {
      take_least_behind(builder.space_.policy(), level.starts.data(), level.shape.starts);
    }
  };

  void fill(Level& level) {
    if (size_ == 0) {  // the root alone
      thrust::fill_n(space_.policy(), level.starts.data(), level.starts.size(), 0u);
      return;
    }
    const uint32_t stride = level.shape.stride;
    if (const uint64_t words = words_of(level.shape)) {
      level.words = space_.template buffer<RankedWord>(words);
      thrust::fill_n(space_.policy(), level.words.data(), words, RankedWord{0, 0});
    }
    visit_kind(static_cast<NodeKind>(level.shape.kind), [&](auto nodes) {
      KindPasses passes{*this, level, nodes.words_of_node(stride)};
      nodes.fill(passes, stride, level.words.data(), level.starts.data());
    });
  }

  void rank_words(Buffer<RankedWord>& words, uint64_t words_per_node) {
    Buffer<uint32_t> counts = space_.template buffer<uint32_t>(words.size());
    auto bits = thrust::make_transform_iterator(static_cast<const RankedWord*>(words.data()),
                                                CountWordBits());
    thrust::exclusive_scan(space_.policy(), bits, bits + static_cast<ptrdiff_t>(words.size()),
                           counts.data(), 0u);
    each(words.size(), RankWord{words.data(), counts.data(), words_per_node});
  }

  BuiltStarts built_starts() const {
    const Level& level = levels_.back();
    const auto kind = static_cast<NodeKind>(level.shape.kind);
    const uint32_t stride = level.shape.stride;
    return {level.starts.data(),
            level.words.size() ? level.words.data() : nullptr,
            level.shape.starts,
            level.shape.nodes,
            stride,
            static_cast<uint32_t>(starts_of_node(kind, stride)),
            words_of_node(kind, stride)};
  }

  void mark_children() {
    Level& level = levels_.back();
    level.children = space_.template buffer<RankedWord>(child_words_of(level.shape));
    each(level.children.size(),
         MarkChildren<Keys>{keys_, built_starts(), level.children.data(), leaf_capacity_});
  }

  Oversized measure_oversized() {
    Level& level = levels_.back();
    return reduce(level.children.size(),
                  MeasureOversized{level.starts.data(), level.children.data()}, Oversized{},
                  AddOversized());
  }

  // Makes the children of the last level the nodes of the next one.
  void start_level(const Oversized& oversized) {
    Level& level = levels_.back();
    rank_words(level.children, 0);
    nodes_ = static_cast<uint32_t>(oversized.nodes);
    level_keys_ = oversized.keys;
    Buffer<uint32_t> depths = space_.template buffer<uint32_t>(nodes_);
    spans_ = space_.template buffer<NodeSpan>(nodes_);
    offsets_ = space_.template buffer<uint64_t>(nodes_ + uint64_t{1});
    each(level.children.size(),
         EmitNodes<Keys>{keys_, built_starts(), level.children.data(), depths_.data(),
                         spans_.data(), depths.data(), offsets_.data(), options_.path_compression});
    thrust::exclusive_scan(space_.policy(), offsets_.data(), offsets_.data() + nodes_,
                           offsets_.data(), uint64_t{0});
    space_.copy_in(offsets_.data() + nodes_, &level_keys_, sizeof level_keys_);
    level.depths = std::move(depths_);
    depths_ = std::move(depths);
  }

  void write_image(typename Space::Image* image) {
    levels_.back().depths = std::move(depths_);
    std::vector<TreeLevel> shapes = this->shapes();
    uint64_t bytes = place_tree_arrays(&shapes);
    TreeHeader header{tree_magic,
                      tree_version,
                      static_cast<uint32_t>(shapes.size()),
                      bytes,
                      size_,
                      prefix_bits_,
                      leaf_capacity_,
                      {}};
    space_.make_image(bytes, image);
    std::byte* to = space_.data(image);
    space_.copy_in(to, &header, sizeof header);
    space_.copy_in(to + sizeof header, shapes.data(), shapes.size() * sizeof(TreeLevel));
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (i > 0) put(to + shapes[i].depths_offset, levels_[i].depths);
      put(to + shapes[i].words_offset, levels_[i].words);
      put(to + shapes[i].starts_offset, levels_[i].starts);
      put(to + shapes[i].children_offset, levels_[i].children);
    }
  }

  template <class T>
  void put(std::byte* to, Buffer<T>& buffer) {
    if (buffer.size()) space_.copy(to, buffer.data(), buffer.size() * sizeof(T));
    buffer = {};
  }

  Space& space_;
  Keys keys_;
  uint32_t size_;
  const TreeOptions& options_;
  uint32_t leaf_capacity_;
  uint32_t prefix_bits_ = 0;
  std::vector<Level> levels_;
  // The nodes of the level that is being built.
  uint32_t nodes_ = 0;
  uint64_t level_keys_ = 0;
  Buffer<NodeSpan> spans_;
  Buffer<uint32_t> depths_;
  Buffer<uint64_t> offsets_;
};

}  // namespace stride
