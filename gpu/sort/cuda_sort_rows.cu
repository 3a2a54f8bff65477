#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/sequence.h>
#include <thrust/transform_reduce.h>

#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <type_traits>
#include <utility>

#include "gpu/sort/cuda_sort.cuh"
#include "gpu/sort/cuda_sort.h"

namespace stride {

template <class Stored>
uint64_t sort_numbers(CudaSpace& space, const Stored* numbers, uint64_t count,
                      CudaArray<std::byte>* out) {
  if (count == 0) return 0;
  *out = space.buffer<std::byte>(count * sizeof(Stored));
  CudaArray<std::byte> other = space.buffer<std::byte>(count * sizeof(Stored));
  auto* first = reinterpret_cast<Stored*>(out->data());
  auto* second = reinterpret_cast<Stored*>(other.data());
  space.each(count, SwapBytes<Stored>{numbers, first});
  cub::DoubleBuffer<Stored> buffers(first, second);
  with_scratch(space, "sort numbers", [&](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(scratch, bytes, buffers, count, 0, 8 * sizeof(Stored),
                                          space.stream());
  });
  auto swapped = thrust::make_transform_iterator(static_cast<const Stored*>(buffers.Current()),
                                                 Swapped<Stored>());
  CudaArray<uint64_t> kept = space.buffer<uint64_t>(1);
  with_scratch(space, "drop equal numbers", [&](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::Unique(scratch, bytes, swapped, buffers.Alternate(), kept.data(),
                                     count, space.stream());
  });
  uint64_t left = 0;
  space.copy_out(&left, kept.data(), 8);
  if (buffers.Alternate() != first) *out = std::move(other);
  return left;
}

template uint64_t sort_numbers(CudaSpace&, const uint32_t*, uint64_t, CudaArray<std::byte>*);
template uint64_t sort_numbers(CudaSpace&, const uint64_t*, uint64_t, CudaArray<std::byte>*);

namespace {

// Rows that are still tied: where they stand, and in which group, named by its first place.
struct TiedRows {
  CudaArray<uint32_t> ids;
  CudaArray<uint32_t> places;
  CudaArray<uint32_t> groups;
  uint64_t size = 0;
};

constexpr uint32_t rest_goes_on = 9;

struct TakeSlice {
  KeyColumn keys;
  const uint32_t* ids;
  uint64_t depth;
  uint64_t* slices;
  uint8_t* rests;  // bytes from depth on, up to 9
  STRIDE_HD void operator()(uint64_t i) const {
    Bytes key = keys[ids[i]];
    slices[i] = slice8(key.data(), key.size(), depth);
    uint64_t rest = key.size() - depth;
    rests[i] = static_cast<uint8_t>(rest < rest_goes_on ? rest : rest_goes_on);
  }
};

template <class T>
void gather(CudaSpace& space, const T* from, const uint32_t* at, uint64_t n, T* to) {
  thrust::gather(space.policy(), at, at + n, from, to);
}
void number(CudaSpace& space, CudaArray<uint32_t>* ids, uint64_t n) {
  thrust::sequence(space.policy(), ids->data(), ids->data() + n);
}

// After a round: whether row i is equal to the one after in all that the round has seen.
struct RoundRows {
  const uint64_t* slices;
  const uint8_t* rests;
  const uint32_t* groups;
  uint64_t size;
  STRIDE_HD bool same(uint64_t i, uint64_t j) const {
    return groups[i] == groups[j] && slices[i] == slices[j] && rests[i] == rests[j];
  }
  STRIDE_HD bool same_as_next(uint64_t i) const { return i + 1 < size && same(i, i + 1); }
  STRIDE_HD bool same_as_previous(uint64_t i) const { return i > 0 && same(i - 1, i); }
  STRIDE_HD bool tied(uint64_t i) const {
    return rests[i] == rest_goes_on && (same_as_next(i) || same_as_previous(i));
  }
};

// Writes the round's order, and which rows are equal to a newer one.
struct WriteRound {
  RoundRows rows;
  const uint32_t* ids;
  const uint32_t* places;
  uint32_t* order;
  uint8_t* dropped;
  STRIDE_HD void operator()(uint64_t i) const {
    order[places[i]] = ids[i];
    dropped[places[i]] = rows.rests[i] != rest_goes_on && rows.same_as_next(i);
  }
};

struct IsTied {
  RoundRows rows;
  STRIDE_HD bool operator()(uint32_t i) const { return rows.tied(i); }
};

// The place of the first row of each row's new group, by a running maximum.
struct GroupStart {
  RoundRows rows;
  const uint32_t* places;
  const uint32_t* kept;  // the rows that are tied
  STRIDE_HD uint32_t operator()(uint64_t k) const {
    uint32_t i = kept[k];
    return rows.same_as_previous(i) ? 0 : places[i];
  }
};

// The bytes from `depth` on that a tied row shares with the one before it, where they are of one
// group; the least of all can be skipped.
struct SharedWithPrevious {
  KeyColumn keys;
  const uint32_t* ids;
  const uint32_t* groups;
  uint64_t depth;
  STRIDE_HD uint64_t operator()(uint64_t i) const {
    constexpr uint64_t no_limit = UINT64_MAX;
    if (i == 0 || groups[i] != groups[i - 1]) return no_limit;
    Bytes a = keys[ids[i - 1]], b = keys[ids[i]];
    uint64_t shorter = a.size() < b.size() ? a.size() : b.size(), at = depth;
    for (; at + 8 <= shorter; at += 8) {
      if (load8(a.data() + at) != load8(b.data() + at)) break;
    }
    return at - depth;
  }
};

// Sorts positions by the low `bits` of what `keys` has there. Stable. at2: room for as many.
template <class Key>
void sort_ids(CudaSpace& space, const Key* keys, CudaArray<uint32_t>* at, CudaArray<uint32_t>* at2,
              uint64_t n, int bits) {
  CudaArray<Key> moved = space.buffer<Key>(n), sorted = space.buffer<Key>(n);
  gather(space, keys, at->data(), n, moved.data());
  with_scratch(space, "sort keys", [&](void* scratch, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, moved.data(), sorted.data(), at->data(),
                                           at2->data(), n, 0, bits, space.stream());
  });
  std::swap(*at, *at2);
}

struct Stays {
  const uint8_t* dropped;
  STRIDE_HD bool operator()(uint64_t i) const { return !dropped[i]; }
};

uint64_t drop_marked(CudaSpace& space, const uint8_t* dropped, uint32_t* order, uint64_t count) {
  CudaArray<uint32_t> all = space.buffer<uint32_t>(count);
  CudaArray<uint64_t> kept = space.buffer<uint64_t>(1);
  space.copy(all.data(), order, count * 4);
  auto stays =
      thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0), Stays{dropped});
  with_scratch(space, "drop equal keys", [&](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, all.data(), stays, order, kept.data(), count,
                                      space.stream());
  });
  uint64_t left = 0;
  space.copy_out(&left, kept.data(), 8);
  return left;
}

// One round after the other, each by the next 8 bytes of the rows that are still tied.
class RowSort {
 public:
  RowSort(CudaSpace& space, const KeyColumn& keys, uint32_t* order)
      : space_(space),
        keys_(keys),
        order_(order),
        dropped_(space.buffer<uint8_t>(keys.size)),
        rows_(tied(keys.size)) {
    number(space, &rows_.ids, keys.size);
    number(space, &rows_.places, keys.size);
    space.set_zero(rows_.groups.data(), keys.size * 4);
  }

  uint64_t run() {
    bool first = true;
    for (uint64_t depth = 0; rows_.size > 0; depth += 8, first = false) {
      if (!first) depth += shared_from(depth);
      sort_by_bytes(depth, first);
      RoundRows round{slices_.data(), rests_.data(), rows_.groups.data(), rows_.size};
      space_.each(rows_.size, WriteRound{round, rows_.ids.data(), rows_.places.data(), order_,
                                         dropped_.data()});
      keep_tied(round);
      slices_ = {};
      rests_ = {};
    }
    return drop_marked(space_, dropped_.data(), order_, keys_.size);
  }

 private:
  TiedRows tied(uint64_t n) {
    return {space_.buffer<uint32_t>(n), space_.buffer<uint32_t>(n), space_.buffer<uint32_t>(n), n};
  }

  // The bytes from `depth` on that all tied rows of a group share.
  uint64_t shared_from(uint64_t depth) {
    thrust::counting_iterator<uint64_t> from(0);
    return thrust::transform_reduce(
        space_.policy(), from, from + static_cast<ptrdiff_t>(rows_.size),
        SharedWithPrevious{keys_, rows_.ids.data(), rows_.groups.data(), depth}, UINT64_MAX,
        thrust::minimum<uint64_t>());
  }

  // The least significant part comes first; each sort is stable.
  void sort_by_bytes(uint64_t depth, bool first) {
    const uint64_t n = rows_.size;
    slices_ = space_.buffer<uint64_t>(n);
    rests_ = space_.buffer<uint8_t>(n);
    space_.each(n, TakeSlice{keys_, rows_.ids.data(), depth, slices_.data(), rests_.data()});
    CudaArray<uint32_t> at = space_.buffer<uint32_t>(n), at2 = space_.buffer<uint32_t>(n);
    number(space_, &at, n);
    if (!keys_.is_fixed()) sort_ids(space_, rests_.data(), &at, &at2, n, 4);
    sort_ids(space_, slices_.data(), &at, &at2, n, 64);
    if (!first) {
      const int bits = static_cast<int>(std::bit_width(keys_.size));
      sort_ids(space_, rows_.groups.data(), &at, &at2, n, bits);
    }
    auto permute = [&](auto& values) {
      auto moved = space_.buffer<std::decay_t<decltype(*values.data())>>(n);
      gather(space_, values.data(), at.data(), n, moved.data());
      values = std::move(moved);
    };
    permute(slices_);
    permute(rests_);
    permute(rows_.ids);
    permute(rows_.groups);
  }

  // Leaves the rows that go on, with their new groups.
  void keep_tied(const RoundRows& round) {
    CudaArray<uint32_t> kept = space_.buffer<uint32_t>(rows_.size);
    CudaArray<uint64_t> kept_count = space_.buffer<uint64_t>(1);
    with_scratch(space_, "find tied keys", [&](void* scratch, size_t& bytes) {
      return cub::DeviceSelect::If(scratch, bytes, thrust::counting_iterator<uint32_t>(0),
                                   kept.data(), kept_count.data(), rows_.size, IsTied{round},
                                   space_.stream());
    });
    uint64_t left = 0;
    space_.copy_out(&left, kept_count.data(), 8);
    TiedRows next = tied(left);
    if (left > 0) {
      auto starts =
          thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0),
                                          GroupStart{round, rows_.places.data(), kept.data()});
      with_scratch(space_, "number tied keys", [&](void* scratch, size_t& bytes) {
        return cub::DeviceScan::InclusiveScan(scratch, bytes, starts, next.groups.data(),
                                              thrust::maximum<uint32_t>(), left, space_.stream());
      });
      gather(space_, rows_.ids.data(), kept.data(), left, next.ids.data());
      gather(space_, rows_.places.data(), kept.data(), left, next.places.data());
    }
    rows_ = std::move(next);
  }

  CudaSpace& space_;
  const KeyColumn& keys_;
  uint32_t* order_;
  CudaArray<uint8_t> dropped_;
  TiedRows rows_;
  CudaArray<uint64_t> slices_;
  CudaArray<uint8_t> rests_;
};

}  // namespace

uint64_t sort_rows(CudaSpace& space, const KeyColumn& keys, uint32_t* order) {
  return keys.size == 0 ? 0 : RowSort(space, keys, order).run();
}

}  // namespace stride
