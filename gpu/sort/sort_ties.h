// Sorts rows by whole keys of any length, on one thread, 8 bytes of the keys at a time.
//
// Rows that are equal in one slice of 8 bytes (zeros past a key's end) are told apart by length
// where a key ends in the slice, for the shorter one sorts first, and by the next slice otherwise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpu/keys/column_reader.h"
#include "gpu/sort/sort_rows.h"
#include "gpu/sorter.h"
#include "storage/column.h"

namespace stride {

struct ChunkKeys {
  std::span<const KeyColumn> chunks;
  Bytes operator[](uint32_t id) const {
    return chunks[id >> row_bits][id & ((1u << row_bits) - 1)];
  }
  uint64_t slice(uint32_t id, uint64_t depth) const {
    Bytes key = (*this)[id];
    return slice8(key.data(), key.size(), depth);
  }
};

// How many bytes from `depth` on all keys share. All have depth bytes or more.
inline uint64_t shared_bytes(Bytes a, Bytes b, uint64_t depth, uint64_t most) {
  most = std::min<uint64_t>({most, a.size() - depth, b.size() - depth});
  for (uint64_t at = 0; at < most; at += 8) {
    uint64_t difference =
        slice8(a.data(), a.size(), depth + at) ^ slice8(b.data(), b.size(), depth + at);
    if (difference) return std::min<uint64_t>(most, at + leading_zeros(difference) / 8);
  }
  return most;
}

class TieSorter {
 public:
  explicit TieSorter(ChunkKeys keys) : keys_(keys) {}

  // Sorts n rows whose keys share `depth` bytes and whose numbers are their next slices, and drops
  // all but the last of those with equal keys. Returns how many are left, at the front. `other` is
  // room for n rows.
  uint64_t sort(Rows rows, Rows other, uint64_t n, uint64_t depth) {
    RowSorter().sort(rows, other, n, false);
    groups_.clear();
    order_runs(rows, 0, n, depth);
    while (!groups_.empty()) {
      Group group = groups_.back();
      groups_.pop_back();
      sort_group(rows, other, group);
    }
    return keep_marked(rows, n);
  }

  // Orders n ids whose keys are equal in the slice at `depth` by how many bytes they have from
  // there on, up to 9; returns where those of 9 begin: the others are finished, keys of one length
  // being equal. Sets kept[i] to 1 for the finished ids that stay, else to 0.
  uint64_t split_by_length(uint32_t* ids, uint64_t* kept, uint64_t n, uint64_t depth) {
    if (std::all_of(ids, ids + n, [&](uint32_t id) { return rest(id, depth) == longer; })) {
      return 0;
    }
    uint64_t ends[longer + 1] = {};
    for (uint64_t i = 0; i < n; ++i) ++ends[rest(ids[i], depth)];
    uint64_t begin = 0;
    for (uint64_t& end : ends) begin += std::exchange(end, begin);
    ids_.resize(n);
    for (uint64_t i = 0; i < n; ++i) ids_[ends[rest(ids[i], depth)]++] = ids[i];
    std::copy(ids_.begin(), ids_.end(), ids);
    for (uint64_t length = 0, from = 0; length < longer; from = ends[length++]) {
      std::fill(kept + from, kept + ends[length], 0);
      if (from < ends[length]) kept[ends[length] - 1] = 1;
    }
    return ends[longer - 1];
  }

 private:
  struct Group {
    uint64_t begin, end, depth;
  };
  static constexpr uint64_t longer = 9;
  static constexpr uint64_t insertion_rows = 24;

  uint64_t rest(uint32_t id, uint64_t depth) const {
    return std::min<uint64_t>(keys_[id].size() - depth, longer);
  }

  // For rows [begin, end), sorted by the slice at `depth`: orders those whose slice no other has,
  // and small groups of equal slices; puts large ones on the list. A finished row's number is
  // whether it stays.
  void order_runs(Rows rows, uint64_t begin, uint64_t end, uint64_t depth) {
    while (begin < end) {
      uint64_t number = rows.numbers[begin], stop = begin + 1;
      while (stop < end && rows.numbers[stop] == number) ++stop;
      if (stop - begin == 1) {
        rows.numbers[begin] = 1;
      } else if (stop - begin <= insertion_rows) {
        insert(rows.ids + begin, stop - begin, depth);
        mark_last_of_equal(rows.at(begin), stop - begin);
      } else {
        uint64_t finished =
            split_by_length(rows.ids + begin, rows.numbers + begin, stop - begin, depth);
        if (begin + finished < stop) groups_.push_back({begin + finished, stop, depth + 8});
      }
      begin = stop;
    }
  }

  void sort_group(Rows rows, Rows other, Group group) {
    uint64_t n = group.end - group.begin;
    uint32_t* ids = rows.ids + group.begin;
    Bytes first = keys_[ids[0]];
    uint64_t shared = first.size() - group.depth;
    for (uint64_t i = 1; i < n && shared > 0; ++i) {
      shared = shared_bytes(first, keys_[ids[i]], group.depth, shared);
    }
    group.depth += shared;
    for (uint64_t i = 0; i < n; ++i) {
      rows.numbers[group.begin + i] = keys_.slice(ids[i], group.depth);
    }
    RowSorter().sort(rows.at(group.begin), other.at(group.begin), n, false);
    order_runs(rows, group.begin, group.end, group.depth);
  }

  void insert(uint32_t* ids, uint64_t n, uint64_t depth) {
    for (uint64_t i = 1; i < n; ++i) {
      uint32_t id = ids[i];
      Bytes key = keys_[id].subspan(depth);
      uint64_t hole = i;
      for (; hole > 0 && compare_keys(keys_[ids[hole - 1]].subspan(depth), key) > 0; --hole) {
        ids[hole] = ids[hole - 1];
      }
      ids[hole] = id;
    }
  }

  void mark_last_of_equal(Rows rows, uint64_t n) {
    for (uint64_t i = 0; i + 1 < n; ++i) {
      rows.numbers[i] = !equal_keys(keys_[rows.ids[i]], keys_[rows.ids[i + 1]]);
    }
    rows.numbers[n - 1] = 1;
  }

  static uint64_t keep_marked(Rows rows, uint64_t n) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; ++i) {
      rows.ids[kept] = rows.ids[i];
      kept += rows.numbers[i];
    }
    return kept;
  }

  ChunkKeys keys_;
  std::vector<Group> groups_;
  std::vector<uint32_t> ids_;
};

}  // namespace stride
