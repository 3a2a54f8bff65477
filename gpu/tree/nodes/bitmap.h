// Bitmap nodes: entries of the slots that have keys alone. Bit b of a node's word w stands for slot
// 32 w + b; `before` is the start that belongs to the word's first bit set.
#pragma once

#include <cstdint>

#include "gpu/keys/atomic_bits.h"
#include "gpu/tree/nodes/level_ref.h"
#include "storage/prefetch.h"

namespace stride {

STRIDE_HD inline constexpr uint64_t bitmap_words(uint32_t stride) {
  return stride < 5 ? 1 : uint64_t{1} << (stride - 5);
}

// Sets the bits of the slots that have keys. Parts of one node may meet in a word.
struct MarkSlots {
  RankedWord* words;

  template <class Level>
  STRIDE_HD uint64_t operator()(const Level& level, uint32_t node, uint32_t begin,
                                uint32_t end) const {
    RankedWord* base = words + node * bitmap_words(level.stride);
    uint32_t before = level.slot(node, begin);
    set_bits(&base[before >> 5].bits, uint32_t{1} << (before & 31));
    for (uint32_t rank = begin + 1; rank < end; ++rank) {
      uint32_t slot = level.slot(node, rank);
      if (slot == before) continue;
      set_bits(&base[slot >> 5].bits, uint32_t{1} << (slot & 31));
      before = slot;
    }
    return 0;
  }
};

// Writes the starts of a level whose words are ranked.
struct FillBitmap {
  const RankedWord* words;
  uint32_t* starts;

  template <class Level>
  STRIDE_HD uint64_t operator()(const Level& level, uint32_t node, uint32_t begin,
                                uint32_t end) const {
    const RankedWord* base = words + node * bitmap_words(level.stride);
    bool at_start = begin == level.spans[node].first;
    uint32_t before = level.slot(node, at_start ? begin : begin - 1);
    uint32_t start = entry_of(base, before);
    if (at_start) starts[start] = begin;
    for (uint32_t rank = begin; rank < end; ++rank) {
      uint32_t slot = level.slot(node, rank);
      if (slot == before) continue;
      starts[++start] = rank;
      before = slot;
    }
    if (end == level.spans[node].last) starts[start + 1] = end;
    return 0;
  }

  STRIDE_HD static uint32_t entry_of(const RankedWord* base, uint32_t slot) {
    RankedWord word = base[slot >> 5];
    return word.before + count_bits(word.bits & ((uint32_t{1} << (slot & 31)) - 1));
  }
};

struct BitmapNodes {
  static constexpr NodeKind kind = NodeKind::bitmap;
  static constexpr const char* name = "bitmap";
  static constexpr bool has_words = true;

  STRIDE_HD static constexpr uint64_t words_of_node(uint32_t stride) {
    return bitmap_words(stride);
  }
  STRIDE_HD static constexpr uint64_t starts_of_node(uint32_t) { return 0; }

  template <class Passes>
  static void fill(Passes& passes, uint32_t, RankedWord* words, uint32_t* starts) {
    passes.over_keys(MarkSlots{words});
    passes.rank_words();
    passes.over_keys(FillBitmap{words, starts});
  }

  static bool check_node(const LevelRef& level, uint32_t node, uint32_t start, uint64_t* entries) {
    uint64_t words = bitmap_words(level.stride);
    uint32_t allowed = level.stride < 5 ? (uint32_t{1} << (1u << level.stride)) - 1 : 0xFFFFFFFF;
    *entries = 0;
    for (uint64_t w = 0; w < words; ++w) {
      const RankedWord& word = level.words[node * words + w];
      if (word.before != start + *entries || (word.bits & ~allowed)) return false;
      *entries += count_bits(word.bits);
    }
    return true;
  }

  template <class Level>
  STRIDE_HD static EntryRef find(const Level& level, uint32_t node, uint32_t slot) {
    RankedWord word = level.word(node * bitmap_words(level.stride) + (slot >> 5));
    uint32_t bit = uint32_t{1} << (slot & 31);
    return {word.before + count_bits(word.bits & (bit - 1)), (word.bits & bit) != 0};
  }
  STRIDE_HD static RankInterval ranks_of_node(const LevelRef& level, uint32_t node) {
    uint64_t words = bitmap_words(level.stride);
    const RankedWord& last = level.words[(node + 1) * words - 1];
    return {level.starts[level.words[node * words].before],
            level.starts[last.before + count_bits(last.bits)]};
  }
  static void prefetch_entry(const LevelRef& level, uint32_t node, uint32_t slot) {
    prefetch(level.words + node * bitmap_words(level.stride) + (slot >> 5));
  }
};

}  // namespace stride
