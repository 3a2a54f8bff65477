#include "engine/build/filter_builder.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/bulk_vector.h"
#include "storage/key_filter.h"

namespace stride {
namespace {

// Hashes that a thread has at hand between their making and their use.
constexpr uint64_t hashes_at_once = 1024;
constexpr uint64_t rows_per_task = 1 << 16;
constexpr uint64_t rows_per_round = 1 << 22;
// A part of the filter stays in the second-level cache while it is filled.
constexpr uint64_t blocks_per_part = 2048;

// Calls use(hash) for each of rows [first, last).
template <class Use>
void for_each_hash(const PackedColumn& keys, uint64_t first, uint64_t last, const Use& use) {
  uint64_t hashes[hashes_at_once];
  while (first < last) {
    const uint64_t count = std::min(hashes_at_once, last - first);
    hash_keys(keys, first, {hashes, count});
    for (uint64_t i = 0; i < count; ++i) use(hashes[i]);
    first += count;
  }
}

// The hashes of a round's rows, moved to where those lie that lead to the same part of the filter:
// each part is filled by one thread, and from the cache.
class Round {
 public:
  Round(const PackedColumn& keys, Backend& backend, std::span<std::byte> blocks)
      : keys_(keys),
        backend_(backend),
        filter_(blocks),
        blocks_(blocks.size() / KeyFilter::block_bytes),
        parts_((blocks_ + blocks_per_part - 1) / blocks_per_part) {}

  void run(uint64_t first, uint64_t last) {
    first_ = first;
    last_ = last;
    tasks_ = (last - first + rows_per_task - 1) / rows_per_task;
    hashes_.resize(last - first);
    counts_.assign(tasks_ * parts_, 0);
    for_each_task([&](uint64_t task) {
      for_each_hash_of(task, [&](uint64_t hash) { ++counts_[task * parts_ + part_of(hash)]; });
    });
    find_positions();
    for_each_task([&](uint64_t task) {
      uint64_t* positions = &counts_[task * parts_];
      for_each_hash_of(task, [&](uint64_t hash) { hashes_[positions[part_of(hash)]++] = hash; });
    });
    backend_.parallel_for(parts_, 1, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin ? ends_[begin - 1] : 0; i < ends_[end - 1]; ++i)
        KeyFilter::add(filter_, hashes_[i]);
    });
  }

 private:
  uint64_t part_of(uint64_t hash) const {
    return KeyFilter::block_of(hash, blocks_) / blocks_per_part;
  }
  template <class Body>
  void for_each_task(const Body& body) {
    backend_.parallel_for(tasks_, 1, [&](uint64_t begin, uint64_t end) {
      for (uint64_t task = begin; task < end; ++task) body(task);
    });
  }
  template <class Use>
  void for_each_hash_of(uint64_t task, const Use& use) const {
    const uint64_t begin = first_ + task * rows_per_task;
    for_each_hash(keys_, begin, std::min(last_, begin + rows_per_task), use);
  }
  // Makes of each count the position of the first of those hashes: by part, then by task.
  void find_positions() {
    ends_.resize(parts_);
    uint64_t at = 0;
    for (uint64_t part = 0; part < parts_; ++part) {
      for (uint64_t task = 0; task < tasks_; ++task) {
        uint64_t& count = counts_[task * parts_ + part];
        at += count;
        count = at - count;
      }
      ends_[part] = at;
    }
  }

  const PackedColumn& keys_;
  Backend& backend_;
  const std::span<std::byte> filter_;
  const uint64_t blocks_, parts_;
  uint64_t first_ = 0, last_ = 0, tasks_ = 0;
  BulkVector<uint64_t> hashes_;
  std::vector<uint64_t> counts_;  // of a task and a part
  std::vector<uint64_t> ends_;    // of each part
};

}  // namespace

void build_filter(const PackedColumn& keys, Backend& backend, std::span<std::byte> blocks) {
  if (blocks.size() <= blocks_per_part * KeyFilter::block_bytes) {
    for_each_hash(keys, 0, keys.size, [&](uint64_t hash) { KeyFilter::add(blocks, hash); });
    return;
  }
  Round round(keys, backend, blocks);
  for (uint64_t first = 0; first < keys.size; first += rows_per_round)
    round.run(first, std::min(keys.size, first + rows_per_round));
}

}  // namespace stride
