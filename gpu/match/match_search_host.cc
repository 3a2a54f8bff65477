#include "gpu/match/match_search_host.h"

#include <algorithm>
#include <cstring>
#include <string>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "gpu/match/match_layout.h"
#include "gpu/match/match_number.h"
#include "gpu/match/match_tree.h"
#include "gpu/tree/search_host.h"
#include "storage/prefetch.h"

namespace stride {

namespace {

// Addresses that pass a level together: what they need of it is in flight at once, and those that
// are done drop out without a branch that could be mispredicted.
constexpr uint32_t group_size = 128;
constexpr uint64_t addresses_per_task = 8192;

const MatchHeader& header_of(const MatchView& matches) {
  return *reinterpret_cast<const MatchHeader*>(matches.image);
}

// How many of 16 ascending slots are not behind `slot`; looks only at the first `size`.
[[gnu::always_inline]] inline uint32_t count_up_to(const uint16_t* slots, uint32_t size,
                                                   uint32_t slot) {
#if defined(__SSE2__)
  auto load = [](const uint16_t* p) __attribute__((always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  };
  __m128i all = _mm_set1_epi16(static_cast<int16_t>(slot)), zero = _mm_setzero_si128();
  // Unsigned differences that stop at 0.
  __m128i low = _mm_cmpeq_epi16(_mm_subs_epu16(load(slots), all), zero);
  __m128i high = _mm_cmpeq_epi16(_mm_subs_epu16(load(slots + 8), all), zero);
  auto mask = static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
  return count_bits(mask & ((1u << size) - 1));
#else
  uint32_t count = 0;
  for (uint32_t i = 0; i < slots_past_list; ++i) count += slots[i] <= slot && i < size;
  return count;
#endif
}

// The last of a list node's slots that is not behind `slot`. There are slots_past_list more.
[[gnu::always_inline]] inline uint32_t list_entry_of(const uint16_t* slots, uint32_t size,
                                                     uint32_t slot) {
  uint32_t first = 0;
  while (size > slots_past_list) {
    uint32_t half = size / 2;
    first += slots[first + half] <= slot ? half : 0;
    size -= half;
  }
  return first + count_up_to(slots + first, size, slot) - 1;
}

// Entries of so many bytes, moved up so that the highest bit of 32 tells a child.
template <uint32_t bytes>
struct Entries {
  static constexpr uint32_t spare = 32 - 8 * bytes;
  static constexpr uint32_t none = (match_child - 1) >> spare;

  static const std::byte* address(const MatchLevelRef& level, uint32_t i) {
    return level.entries + uint64_t{i} * bytes;
  }
  [[gnu::always_inline]] static uint32_t load(const MatchLevelRef& level, uint32_t i) {
    uint32_t entry;
    std::memcpy(&entry, address(level, i), sizeof entry);
    return entry << spare;
  }
  static uint32_t child(uint32_t entry) { return (entry & ~match_child) >> spare; }
  static uint32_t rank(uint32_t entry) {
    return entry >> spare == none ? Location::absent : entry >> spare;
  }
};

// Those of a group that are not done.
struct Left {
  uint32_t size = 0;
  uint16_t index[group_size + 1];
};

// One level for those that are left; slot(i) is the i-th address's. The level is a copy, for what
// is written might lie over the original as far as the compiler knows.
template <class Entry, class Slot>
[[gnu::always_inline]] inline void pass_level(MatchLevelRef level, const Slot& slot, uint32_t* out,
                                              Left* left) {
  uint32_t still = 0;
  auto step = [&](uint32_t i, uint32_t entry) __attribute__((always_inline)) {
    out[i] = entry;
    left->index[still] = static_cast<uint16_t>(i);
    still += entry >> 31;
  };
  if (level.blocks) {
    const MatchBlock* blocks[group_size];
    uint32_t at[group_size];
    for (uint32_t k = 0; k < left->size; ++k) {
      uint32_t i = left->index[k];
      blocks[k] = level.blocks + uint64_t{Entry::child(out[i])} * level.blocks_of_node +
                  slot(i) / slots_of_block;
      prefetch(blocks[k]);
    }
    for (uint32_t k = 0; k < left->size; ++k) {
      at[k] = bitmap_entry_of(*blocks[k], slot(left->index[k]));
      prefetch(Entry::address(level, at[k]));
    }
    for (uint32_t k = 0; k < left->size; ++k) step(left->index[k], Entry::load(level, at[k]));
  } else {
    uint32_t begins[group_size], sizes[group_size];
    for (uint32_t k = 0; k < left->size; ++k) {
      uint32_t node = Entry::child(out[left->index[k]]);
      begins[k] = level.starts[node];
      sizes[k] = level.starts[node + 1] - begins[k];
      prefetch(level.slots + begins[k]);
      prefetch(level.slots + begins[k] + sizes[k] / 2);
    }
    for (uint32_t k = 0; k < left->size; ++k) {
      begins[k] += list_entry_of(level.slots + begins[k], sizes[k], slot(left->index[k]));
      prefetch(Entry::address(level, begins[k]));
    }
    for (uint32_t k = 0; k < left->size; ++k) step(left->index[k], Entry::load(level, begins[k]));
  }
  left->size = still;
}

// The root for all of a group. Where it does not fit the second-level cache, everything is asked
// for before it is used.
template <class Entry, class Addresses>
[[gnu::always_inline]] inline void pass_root(MatchLevelRef root, bool is_large,
                                             const Addresses& addresses, uint64_t first,
                                             uint32_t size, uint32_t* out, Left* left) {
  uint32_t still = 0;
  auto step = [&](uint32_t i, uint32_t entry) __attribute__((always_inline)) {
    out[i] = entry;
    left->index[still] = static_cast<uint16_t>(i);
    still += entry >> 31;
  };
  auto slot = [&](uint32_t i) __attribute__((always_inline)) {
    return slot_of(addresses.top(first + i), 0, root.stride);
  };
  if (is_large) {
    for (uint32_t i = 0; i < size; ++i) {
      out[i] = slot(i);
      prefetch(root.blocks + out[i] / slots_of_block);
    }
    for (uint32_t i = 0; i < size; ++i) {
      out[i] = bitmap_entry_of(root.blocks[out[i] / slots_of_block], out[i]);
      prefetch(Entry::address(root, out[i]));
    }
    for (uint32_t i = 0; i < size; ++i) step(i, Entry::load(root, out[i]));
  } else {
    for (uint32_t i = 0; i < size; ++i) {
      uint32_t at = bitmap_entry_of(root.blocks[slot(i) / slots_of_block], slot(i));
      step(i, Entry::load(root, at));
    }
  }
  left->size = still;
}

template <class Entry, class Addresses>
[[gnu::always_inline]] inline void match_group(const MatchTreeRef& tree, const Addresses& addresses,
                                               uint64_t first, uint32_t size, uint32_t* out) {
  constexpr uint64_t large_root_bytes = 512 << 10;
  Left left;
  const MatchLevelRef root = tree.level[0];
  bool is_large = uint64_t{root.blocks_of_node} * sizeof(MatchBlock) >= large_root_bytes;
  pass_root<Entry>(root, is_large, addresses, first, size, out, &left);
  for (uint32_t l = 1; left.size > 0; ++l) {
    const MatchLevelRef level = tree.level[l];
    uint32_t depth = level.depth, stride = level.stride;
    if (depth + stride <= 64) {
      auto slot = [&](uint32_t i) __attribute__((always_inline)) {
        return slot_of(addresses.top(first + i), depth, stride);
      };
      pass_level<Entry>(level, slot, out, &left);
    } else {
      auto slot = [&](uint32_t i) __attribute__((always_inline)) {
        return slot_of(addresses[first + i], depth, stride);
      };
      pass_level<Entry>(level, slot, out, &left);
    }
  }
  for (uint32_t i = 0; i < size; ++i) out[i] = Entry::rank(out[i]);
}

template <class Entry, class Addresses>
[[gnu::always_inline]] inline void match_groups(const MatchTreeRef& tree,
                                                const Addresses& addresses, uint64_t first,
                                                uint64_t last, uint32_t* out) {
  for (uint64_t i = first; i < last; i += group_size) {
    match_group<Entry>(tree, addresses, i,
                       static_cast<uint32_t>(std::min<uint64_t>(last - i, group_size)), out + i);
  }
}

// The same code for any processor, and for those that count bits in one instruction.
template <class Entry, class Addresses>
void match_groups_anywhere(const MatchTreeRef& tree, const Addresses& addresses, uint64_t first,
                           uint64_t last, uint32_t* out) {
  match_groups<Entry>(tree, addresses, first, last, out);
}
#if defined(__x86_64__)
template <class Entry, class Addresses>
__attribute__((target("avx2,bmi,bmi2,popcnt"))) void match_groups_v3(const MatchTreeRef& tree,
                                                                     const Addresses& addresses,
                                                                     uint64_t first, uint64_t last,
                                                                     uint32_t* out) {
  match_groups<Entry>(tree, addresses, first, last, out);
}
#endif

template <class Entry, class Addresses>
void match_all_of(TaskPool& pool, const MatchTreeRef& tree, const Addresses& addresses,
                  uint64_t size, uint32_t* out) {
  auto* search = match_groups_anywhere<Entry, Addresses>;
#if defined(__x86_64__)
  static const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  if (v3) search = match_groups_v3<Entry, Addresses>;
#endif
  pool.run(size, addresses_per_task,
           [&](uint64_t first, uint64_t last) { search(tree, addresses, first, last, out); });
}

template <class Addresses>
void match_all(TaskPool& pool, const MatchTreeRef& tree, const Addresses& addresses, uint64_t size,
               uint32_t* out) {
  if (tree.level[0].entry_bytes == 3) {
    match_all_of<Entries<3>>(pool, tree, addresses, size, out);
  } else {
    match_all_of<Entries<4>>(pool, tree, addresses, size, out);
  }
}

Status match_column(TaskPool& pool, const MatchView& matches, const KeyColumn& addresses,
                    std::span<uint32_t> out) {
  const MatchHeader& header = header_of(matches);
  const auto& shape = *reinterpret_cast<const MatchColumn*>(matches.image + sizeof(MatchHeader));
  IndexView index;
  index.keys.size = header.boundaries;
  index.keys.data = matches.image + shape.keys_offset;
  index.keys.data_bytes = shape.key_bytes;
  index.keys.width = shape.width;
  index.keys.fixed = header.address_bits != byte_strings;
  if (!index.keys.fixed) {
    index.keys.offsets = {reinterpret_cast<const uint64_t*>(matches.image + shape.bases_offset),
                          matches.image + shape.deltas_offset, sizeof(uint32_t)};
  }
  index.tree = {matches.image + shape.tree_offset, shape.tree_bytes};
  STRIDE_TRY(upper_bound_host(pool, index, addresses, out));
  const auto* answers = reinterpret_cast<const uint32_t*>(matches.image + shape.answers_offset);
  pool.run(addresses.size, addresses_per_task, [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      uint32_t answer = out[i] ? answers[out[i] - 1] : no_match;
      out[i] = answer == no_match ? Location::absent : answer;
    }
  });
  return {};
}

}  // namespace

Status check_addresses(const MatchView& matches, const KeyColumn& addresses) {
  uint32_t bits = header_of(matches).address_bits;
  if (bits == byte_strings) return {};
  uint32_t width = address_bytes(bits);
  if (addresses.is_fixed()) {
    if (addresses.width == width || addresses.size == 0) return {};
    return Status::invalid("addresses of " + std::to_string(addresses.width) +
                           " bytes, where prefixes are of " + std::to_string(bits) + " bits")
        .with_remedy("give each address " + std::to_string(width) + " bytes");
  }
  for (uint64_t i = 0; i < addresses.size; ++i) {
    if (addresses[i].size() == width) continue;
    return Status::invalid("address " + std::to_string(i) + " has " +
                           std::to_string(addresses[i].size()) + " bytes, where prefixes are of " +
                           std::to_string(bits) + " bits")
        .with_remedy("give each address " + std::to_string(width) + " bytes");
  }
  return {};
}

Status longest_match_host(TaskPool& pool, const MatchView& matches, const KeyColumn& addresses,
                          std::span<uint32_t> out) {
  STRIDE_TRY(check_addresses(matches, addresses));
  const MatchHeader& header = header_of(matches);
  if (header.prefixes == 0) {
    std::fill(out.begin(), out.end(), Location::absent);
    return {};
  }
  if (header.levels == 0) return match_column(pool, matches, addresses, out);
  MatchTreeRef tree(matches.image, matches.image);
  // Rows of one width each are one after the other, whether there are offsets or not.
  const std::byte* data = addresses.size ? addresses.data + addresses.begin(0) : nullptr;
  uint32_t width = address_bytes(header.address_bits);
  auto search = [&](const auto& rows) { match_all(pool, tree, rows, addresses.size, out.data()); };
  if (width == 4) {
    search(Addresses4{data});
  } else if (width == 8) {
    search(Addresses8{data});
  } else if (width == 16) {
    search(Addresses16{data});
  } else if (width < 8) {
    search(AddressesOf<uint64_t>{data, width, width});
  } else {
    search(AddressesOf<Wide>{data, width, width});
  }
  return {};
}

}  // namespace stride
