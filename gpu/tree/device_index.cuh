// An index in device memory, and the way down its tree to the leaf where a query can be.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/tree/tree_search.h"
#include "gpu/tree_index.h"
#include "storage/column.h"

namespace stride {

// An entry of a level with all that the way down needs of it, in one access.
struct alignas(16) DeviceEntry {
  uint32_t first, last;  // ranks
  uint32_t child;        // a node of the next level, or no_node
  uint32_t child_depth;
};

struct DeviceLevel {
  const RankedWord* words;     // null: the kind has none
  const DeviceEntry* entries;  // one for each start
  uint32_t stride;
  NodeKind kind;

  STRIDE_HD RankedWord word(uint64_t i) const {
#if defined(__CUDA_ARCH__)
    uint2 word = __ldg(reinterpret_cast<const uint2*>(words) + i);
    return {word.x, word.y};
#else
    return words[i];
#endif
  }
};

// What a search on the device needs of an index; all pointers are the device's.
struct DeviceIndex {
  PackedColumn keys;
  TreeRef tree;
  bool has_tree;
  // In place of a tree without deeper levels; null: none.
  const uint32_t* directory;  // 2^directory_bits starts, and the number of keys
  uint32_t directory_bits;
  const uint64_t* tails;  // of keys that are no numbers, big-endian; null: none
  bool has_entries;
  DeviceLevel level[max_tree_levels];  // of trees with deeper levels, if has_entries
  PackedColumn values;                 // if has_values
  bool has_values;
  const uint8_t* hidden;  // IndexRows

  STRIDE_HD const TreeRef* tree_or_null() const { return has_tree ? &tree : nullptr; }
};

// An index of this backend's.
class CudaResident : public ResidentIndex {
 public:
  const DeviceIndex& index() const { return index_; }
  const DeviceIndex* device_copy() const { return device_copy_; }
  bool on_device() const override { return true; }
  bool has_values() const override { return index_.has_values; }
  // Work that reads the index was started on a stream that is not the backend's: its memory is not
  // used again before that is done.
  virtual void used_on(cudaStream_t stream) const = 0;

 protected:
  DeviceIndex index_{};
  const DeviceIndex* device_copy_ = nullptr;
};

// Where a query's key can be, and what the way there has looked at.
struct DeviceLeaf {
  RankInterval ranks;
  uint32_t used_bits;  // all bits before this, but for those that were skipped
  uint32_t sure_bits;  // all bits before this

  __device__ uint32_t tail() const { return used_bits / 8; }  // the byte where tails begin
  __device__ bool is_sure_before_tail() const { return tail() == sure_bits / 8; }
};

// The bits of a way down: sure while no level skips any.
struct UsedBits {
  uint32_t used = 0;
  uint32_t sure = 0;
  __device__ void look(uint32_t depth, uint32_t stride) {
    if (depth == sure) sure += stride;
    used = depth + stride;
  }
  __device__ void visit(const LevelRef& level, uint32_t, uint32_t depth) {
    look(depth, level.stride);
  }
};

// Reads what many searches share, so that the second-level cache keeps it before the keys that rush
// through.
__device__ inline uint32_t load_shared(const uint32_t* p) {
#if __CUDA_ARCH__ >= 800
  uint64_t keep;
  uint32_t x;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
  asm("ld.global.nc.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(x) : "l"(p), "l"(keep));
  return x;
#else
  return __ldg(p);
#endif
}

__device__ inline DeviceEntry load_entry(const DeviceEntry* p) {
  uint4 x = __ldg(reinterpret_cast<const uint4*>(p));
  return {x.x, x.y, x.z, x.w};
}

template <class Query>
__device__ DeviceLeaf leaf_by_entries(const DeviceIndex& index, const Query& query) {
  uint32_t node = 0, depth = index.tree.prefix_bits;
  UsedBits bits;
  for (uint32_t i = 0;; ++i) {
    const DeviceLevel& level = index.level[i];
    bits.look(depth, level.stride);
    uint32_t slot = query.bits(depth, level.stride);
    EntryRef at = find_entry(level, node, slot);
    DeviceEntry entry = load_entry(level.entries + at.start);
    if (!at.present) return {{entry.first, entry.first}, bits.used, bits.sure};
    if (entry.child == no_node) return {{entry.first, entry.last}, bits.used, bits.sure};
    node = entry.child;
    depth = entry.child_depth;
  }
}

template <class Query>
__device__ DeviceLeaf leaf_of(const DeviceIndex& index, const Query& query) {
  if (index.directory) {
    uint32_t slot = query.bits(index.tree.prefix_bits, index.directory_bits);
    return {{load_shared(index.directory + slot), load_shared(index.directory + slot + 1)},
            index.tree.prefix_bits + index.directory_bits,
            index.tree.prefix_bits ? 0 : index.directory_bits};
  }
  if (index.has_entries) return leaf_by_entries(index, query);
  if (!index.has_tree) return {{0, static_cast<uint32_t>(index.keys.size)}, 0, 0};
  UsedBits bits;
  RankInterval ranks = descend(index.tree, query, bits);
  return {ranks, bits.used, bits.sure};
}

}  // namespace stride
