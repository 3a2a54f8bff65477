#include "gpu/match/match_build_host.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "gpu/bulk_vector.h"
#include "gpu/host/host_space.h"
#include "gpu/longest_prefix.h"
#include "gpu/match/match_boundaries.h"
#include "gpu/match/match_build.h"
#include "gpu/match/match_layout.h"
#include "gpu/match/match_number.h"
#include "gpu/match/match_plan.h"
#include "gpu/plan/tree_planner.h"
#include "gpu/tree/tree_build_host.h"

namespace stride {

namespace {

// Prefixes of up to 128 bits. A prefix ends where its last bit, counted up, carries to; 0 stands
// for the end of all addresses.
template <class Number>
class NumberPrefixes {
 public:
  NumberPrefixes(TaskPool& pool, const PackedColumn& keys, uint32_t address_bits)
      : begins_(keys.size), ends_(keys.size) {
    ReadPrefixes<Number> read{keys.data, static_cast<uint32_t>(keys.width), address_bits,
                              begins_.data(), ends_.data()};
    pool.run(keys.size, 1 << 14, [&](uint64_t first, uint64_t last) {
      for (uint64_t i = first; i < last; ++i) read(i);
    });
  }
  uint64_t size() const { return begins_.size(); }
  Number begin(uint32_t i) const { return begins_[i]; }
  Number end(uint32_t i) const { return ends_[i]; }

  bool begins_with_last(uint32_t i) const { return begins_[i - 1] == begins_[i]; }
  bool ends_by(uint32_t i, uint32_t j) const { return ends_[i] != 0 && ends_[i] <= begins_[j]; }
  bool ends_at(uint32_t i, uint32_t j) const { return ends_[i] == begins_[j]; }
  bool ends_together(uint32_t i, uint32_t j) const { return ends_[i] == ends_[j]; }
  bool ends(uint32_t i) const { return ends_[i] != 0; }

 private:
  BulkVector<Number> begins_, ends_;
};

// The boundaries as a tree's builder takes them. There is one at address 0.
template <class Number>
struct NumberBoundaries {
  BulkVector<Number> at;
  BulkVector<uint32_t> answers;

  NumberBoundaries(const NumberPrefixes<Number>& prefixes, uint32_t* parents) {
    at.reserve(prefixes.size() * 2 + 1);
    answers.reserve(prefixes.size() * 2 + 1);
    if (prefixes.size() == 0 || prefixes.begin(0) != 0) add(0, no_match);
    flatten(prefixes, parents, [&](uint32_t i, bool end, uint32_t answer) {
      add(end ? prefixes.end(i) : prefixes.begin(i), answer);
    });
  }
  uint32_t size() const { return static_cast<uint32_t>(at.size()); }

 private:
  void add(Number address, uint32_t answer) {
    at.push_back(address);
    answers.push_back(answer);
  }
};

template <class Number>
MatchCounts count_depths(const NumberBoundaries<Number>& boundaries) {
  int64_t bins[match_count_bins] = {};
  CountDepths<Number> count{boundaries.at.data()};
  for (uint32_t i = 0; i + 1 < boundaries.size(); ++i)
    count(i, [&](uint32_t bin, int32_t by) { bins[bin] += by; });
  return sum_counts(bins);
}

// One level while it is built.
struct LevelBuild {
  MatchLevel shape{};
  std::vector<MatchBlock> blocks;
  std::vector<uint32_t> starts, entries;
  std::vector<uint16_t> slots;
};

// Boundaries [first, last).
struct BoundaryRange {
  uint32_t first, last;
};

// Builds a level for the nodes, and finds those of the next.
template <class Number>
class LevelBuilder {
 public:
  LevelBuilder(const NumberBoundaries<Number>& boundaries, MatchStride chosen, uint32_t depth,
               uint64_t nodes)
      : boundaries_(boundaries), stride_(chosen.stride), depth_(depth) {
    level_.shape.stride = chosen.stride;
    level_.shape.kind = chosen.kind;
    level_.shape.depth = depth;
    level_.shape.nodes = static_cast<uint32_t>(nodes);
    if (chosen.kind == MatchKind::bitmap) level_.blocks.reserve(nodes * blocks_of(stride_));
  }

  void add_node(BoundaryRange node) {
    if (level_.shape.kind == MatchKind::list) {
      level_.starts.push_back(static_cast<uint32_t>(level_.entries.size()));
    } else {
      first_block_ = level_.blocks.size();
      level_.blocks.push_back({static_cast<uint32_t>(level_.entries.size()) - 1, {}});
    }
    uint32_t i = node.first, slot = slot_at(i);
    if (slot != 0) add_entry(0, boundaries_.answers[i - 1]);
    while (i < node.last) {
      uint32_t j = i + 1;
      while (j < node.last && slot_at(j) == slot) ++j;
      uint32_t next = j < node.last ? slot_at(j) : uint32_t{1} << stride_;
      if (j == i + 1 && significant_bits(boundaries_.at[i]) <= depth_ + stride_) {
        add_entry(slot, boundaries_.answers[i]);
      } else {
        add_entry(slot, match_child | static_cast<uint32_t>(children_.size()));
        children_.push_back({i, j});
        if (next > slot + 1) add_entry(slot + 1, boundaries_.answers[j - 1]);
      }
      i = j;
      slot = next;
    }
    if (level_.shape.kind == MatchKind::bitmap) {
      while (level_.blocks.size() < first_block_ + blocks_of(stride_)) add_block();
    }
  }

  LevelBuild take(std::vector<BoundaryRange>* children) {
    if (level_.shape.kind == MatchKind::list) {
      level_.starts.push_back(static_cast<uint32_t>(level_.entries.size()));
      level_.slots.resize(level_.slots.size() + slots_past_list);
    }
    level_.shape.entries = static_cast<uint32_t>(level_.entries.size());
    *children = std::move(children_);
    return std::move(level_);
  }

 private:
  uint32_t slot_at(uint32_t i) const { return slot_of(boundaries_.at[i], depth_, stride_); }
  void add_block() {
    level_.blocks.push_back({static_cast<uint32_t>(level_.entries.size()) - 1, {}});
  }
  void add_entry(uint32_t slot, uint32_t entry) {
    if (level_.shape.kind == MatchKind::list) {
      level_.slots.push_back(static_cast<uint16_t>(slot));
    } else {
      while (level_.blocks.size() <= first_block_ + slot / slots_of_block) add_block();
      uint32_t bit = slot % slots_of_block;
      level_.blocks.back().bits[bit / 32] |= uint32_t{1} << bit % 32;
    }
    level_.entries.push_back(entry);
  }

  const NumberBoundaries<Number>& boundaries_;
  const uint32_t stride_, depth_;
  uint64_t first_block_ = 0;
  LevelBuild level_;
  std::vector<BoundaryRange> children_;
};

template <class T>
uint64_t place(const std::vector<T>& array, uint64_t* end) {
  if (array.empty()) return 0;
  uint64_t at = *end;
  *end = align_match(at + array.size() * sizeof(T));
  return at;
}
template <class T>
void put(const std::vector<T>& array, uint64_t at, std::byte* image) {
  if (!array.empty()) std::memcpy(image + at, array.data(), array.size() * sizeof(T));
}

template <class Number>
void build_tree_of(TaskPool& pool, const PackedColumn& keys, uint32_t address_bits,
                   std::vector<std::byte>* image, uint32_t* parents) {
  NumberPrefixes<Number> prefixes(pool, keys, address_bits);
  NumberBoundaries<Number> boundaries(prefixes, parents);
  std::vector<LevelBuild> levels;
  std::vector<BoundaryRange> nodes{{0, boundaries.size()}};
  uint32_t depth = 0;
  for (MatchStride chosen : plan_matches(count_depths(boundaries), address_bits)) {
    LevelBuilder<Number> builder(boundaries, chosen, depth, nodes.size());
    for (BoundaryRange node : nodes) builder.add_node(node);
    levels.push_back(builder.take(&nodes));
    depth += chosen.stride;
  }

  std::vector<MatchLevel> shapes;
  for (const LevelBuild& level : levels) shapes.push_back(level.shape);
  MatchHeader header =
      place_match_arrays(address_bits, static_cast<uint32_t>(keys.size), boundaries.size(), shapes);
  image->assign(header.image_bytes, std::byte{0});
  std::byte* out = image->data();
  std::memcpy(out, &header, sizeof header);
  std::memcpy(out + sizeof header, shapes.data(), shapes.size() * sizeof(MatchLevel));
  for (size_t i = 0; i < levels.size(); ++i) {
    const LevelBuild& level = levels[i];
    put(level.blocks, shapes[i].blocks_offset, out);
    put(level.starts, shapes[i].starts_offset, out);
    put(level.slots, shapes[i].slots_offset, out);
    if (header.entry_bytes == 3) {
      NarrowEntries narrow{level.entries.data(), out + shapes[i].entries_offset};
      for (uint64_t e = 0; e < level.entries.size(); ++e) narrow(e);
    } else {
      put(level.entries, shapes[i].entries_offset, out);
    }
  }
}

// Prefixes of any length.
class BytePrefixes {
 public:
  BytePrefixes(const PackedColumn& keys, uint32_t address_bits)
      : keys_(keys), address_bits_(address_bits) {}
  uint64_t size() const { return keys_.size; }
  Bytes begin(uint32_t i) const { return prefix_address(keys_[i], address_bits_); }
  // Precondition: the prefix has an end. The result is good until the next call.
  Bytes end(uint32_t i) const {
    Bytes address = begin(i);
    uint32_t carry = last_zero(i);
    end_.assign(address.begin(), address.begin() + carry / 8 + 1);
    end_.back() &= static_cast<std::byte>(0xFF00u >> carry % 8);
    end_.back() |= static_cast<std::byte>(0x80u >> carry % 8);
    if (address_bits_ != byte_strings) end_.resize(address.size());
    return end_;
  }

  bool begins_with_last(uint32_t i) const {
    return address_bits_ != byte_strings && compare(begin(i - 1), begin(i)) == 0;
  }
  bool ends_by(uint32_t i, uint32_t j) const { return shared_bits(begin(i), begin(j)) < length(i); }
  bool ends_at(uint32_t i, uint32_t j) const { return compare(end(i), begin(j)) == 0; }
  bool ends_together(uint32_t i, uint32_t around) const {
    uint32_t zero = last_zero(i);
    return zero == none || zero < length(around);
  }
  bool ends(uint32_t i) const { return last_zero(i) != none; }

 private:
  static constexpr uint32_t none = 0xFFFFFFFF;

  uint32_t length(uint32_t i) const { return prefix_length(keys_[i], address_bits_); }
  // The last bit of the prefix that is 0, which one counted up at its end carries to.
  uint32_t last_zero(uint32_t i) const {
    Bytes address = begin(i);
    uint32_t end = length(i);
    while (end > 0) {
      uint32_t in_byte = (end - 1) % 8 + 1;  // bits of the last byte
      auto zeros = static_cast<uint32_t>(~static_cast<uint8_t>(address[(end - 1) / 8])) & 0xFF;
      zeros >>= 8 - in_byte;
      if (zeros) return end - 1 - static_cast<uint32_t>(std::countr_zero(zeros));
      end -= in_byte;
    }
    return none;
  }

  const PackedColumn& keys_;
  const uint32_t address_bits_;
  mutable std::vector<std::byte> end_;
};

// The column of boundaries while it is made.
struct BoundaryColumn {
  std::vector<std::byte> data;
  std::vector<uint64_t> bases;
  std::vector<uint32_t> deltas, answers;

  void add(Bytes address, uint32_t answer) {
    begin_row();
    data.insert(data.end(), address.begin(), address.end());
    answers.push_back(answer);
  }
  void begin_row() {
    if (answers.size() % (uint64_t{1} << PackedOffsets::group_bits) == 0) {
      bases.push_back(data.size());
    }
    deltas.push_back(static_cast<uint32_t>(data.size() - bases.back()));
  }
};

Status build_column_of(TaskPool& pool, const PackedColumn& keys, uint32_t address_bits,
                       std::vector<std::byte>* image, uint32_t* parents) {
  BytePrefixes prefixes(keys, address_bits);
  BoundaryColumn boundaries;
  flatten(prefixes, parents, [&](uint32_t i, bool end, uint32_t answer) {
    boundaries.add(end ? prefixes.end(i) : prefixes.begin(i), answer);
  });
  boundaries.begin_row();  // where the last ends

  MatchColumn shape{};
  PackedColumn column;
  column.size = boundaries.answers.size();
  column.data = boundaries.data.data();
  column.data_bytes = shape.key_bytes = boundaries.data.size();
  if (address_bits == byte_strings) {
    column.fixed = false;
    column.offsets = {boundaries.bases.data(), boundaries.deltas.data(), sizeof(uint32_t)};
  } else {
    column.width = shape.width = address_bytes(address_bits);
    boundaries.bases.clear();
    boundaries.deltas.clear();
  }
  std::vector<std::byte> tree;
  // The same bytes on every machine.
  auto choose = [&](const KeyStatistics& statistics, const TreeOptions& options) {
    auto run_each = [&](uint64_t n, const TaskPool::Body& body) { pool.run_each(n, body); };
    return with_strides(statistics, AccessCosts::typical_host(1), options, run_each);
  };
  STRIDE_TRY(build_tree_host(pool, column, choose, {}, &tree));
  shape.tree_bytes = tree.size();

  uint64_t bytes = align_match(sizeof(MatchHeader) + sizeof shape);
  shape.answers_offset = place(boundaries.answers, &bytes);
  shape.keys_offset = place(boundaries.data, &bytes);
  shape.bases_offset = place(boundaries.bases, &bytes);
  shape.deltas_offset = place(boundaries.deltas, &bytes);
  shape.tree_offset = place(tree, &bytes);
  image->assign(bytes, std::byte{0});
  std::byte* out = image->data();
  MatchHeader header{};
  header.magic = match_magic;
  header.address_bits = address_bits;
  header.image_bytes = bytes;
  header.prefixes = static_cast<uint32_t>(keys.size);
  header.boundaries = static_cast<uint32_t>(column.size);
  std::memcpy(out, &header, sizeof header);
  std::memcpy(out + sizeof header, &shape, sizeof shape);
  put(boundaries.answers, shape.answers_offset, out);
  put(boundaries.data, shape.keys_offset, out);
  put(boundaries.bases, shape.bases_offset, out);
  put(boundaries.deltas, shape.deltas_offset, out);
  put(tree, shape.tree_offset, out);
  return {};
}

}  // namespace

Status check_prefixes(const ParallelFor& run, const PackedColumn& prefixes, uint32_t address_bits) {
  if (address_bits == 0 || (address_bits > max_address_bits && address_bits != byte_strings)) {
    return Status::invalid("addresses of " + std::to_string(address_bits) + " bits")
        .with_remedy("use 1 to " + std::to_string(max_address_bits) + " bits, or byte_strings");
  }
  if (prefixes.size > max_match_prefixes) {
    return Status::invalid("a match of " + std::to_string(prefixes.size) + " prefixes: at most " +
                           std::to_string(max_match_prefixes))
        .with_remedy("make several tables of the prefixes");
  }
  if (prefixes.size && prefixes.fixed == (address_bits == byte_strings)) {
    return Status::invalid("prefix keys of another layout than their table's")
        .with_remedy("give keys of one width, or of any length where addresses are byte strings");
  }
  std::atomic<uint64_t> bad{prefixes.size};
  run(prefixes.size, 1 << 14, [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      if (is_prefix_key(prefixes[i], address_bits) &&
          (i == 0 || compare(prefixes[i - 1], prefixes[i]) < 0)) {
        continue;
      }
      uint64_t seen = bad.load(std::memory_order_relaxed);
      while (i < seen && !bad.compare_exchange_weak(seen, i)) {
      }
      return;
    }
  });
  if (bad == prefixes.size) return {};
  return Status::invalid("row " + std::to_string(bad.load()) +
                         " is no prefix key, or not behind the one before")
      .with_remedy("make the keys with prefix_key.h's form, ascending and without duplicates");
}

void build_matches_parallel(TaskPool& pool, const PackedColumn& prefixes, uint32_t address_bits,
                            std::vector<std::byte>* image, std::vector<uint32_t>* parents) {
  with_policy(pool, prefixes.size, [&](const auto& policy) {
    using Space = HostSpace<std::decay_t<decltype(policy)>>;
    Space space(policy);
    auto size = static_cast<uint32_t>(prefixes.size);
    typename Space::template Buffer<uint32_t> around;
    if (address_bits <= 64) {
      MatchBuilder<Space, uint64_t>(space, prefixes.data, size, address_bits).build(image, &around);
    } else {
      MatchBuilder<Space, Wide>(space, prefixes.data, size, address_bits).build(image, &around);
    }
    if (parents) parents->assign(around.data(), around.data() + size);
  });
}

Status build_matches_host(TaskPool& pool, const PackedColumn& prefixes, uint32_t address_bits,
                          std::vector<std::byte>* image, std::vector<uint32_t>* parents) {
  auto run = [&](uint64_t n, uint64_t grain, const auto& body) { pool.run(n, grain, body); };
  STRIDE_TRY(check_prefixes(run, prefixes, address_bits));
  uint32_t* parents_of = nullptr;
  if (parents) {
    parents->resize(prefixes.size);
    parents_of = parents->data();
  }
  if (address_bits > max_tree_address_bits) {
    return build_column_of(pool, prefixes, address_bits, image, parents_of);
  }
  // For fewer of either one thread is faster with its stack.
  constexpr unsigned min_threads = 4;
  constexpr uint64_t min_prefixes = 1 << 18;
  if (pool.threads() >= min_threads && prefixes.size >= min_prefixes) {
    build_matches_parallel(pool, prefixes, address_bits, image, parents);
  } else if (address_bits <= 64) {
    build_tree_of<uint64_t>(pool, prefixes, address_bits, image, parents_of);
  } else {
    build_tree_of<Wide>(pool, prefixes, address_bits, image, parents_of);
  }
  return {};
}

}  // namespace stride
