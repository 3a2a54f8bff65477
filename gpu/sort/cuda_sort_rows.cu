#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/transform_reduce.h>

#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <type_traits>
#include <utility>

#include "gpu/sort/cuda_sort.cuh"

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
  auto differ = thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0),
                                                LastOfEqual<Stored>{buffers.Current(), count});
  auto swapped = thrust::make_transform_iterator(static_cast<const Stored*>(buffers.Current()),
                                                 Swapped<Stored>());
  CudaArray<uint64_t> kept = space.buffer<uint64_t>(1);
  with_scratch(space, "drop equal numbers", [&](void* scratch, size_t& bytes) {
    return cub::DeviceSelect::Flagged(scratch, bytes, swapped, differ, buffers.Alternate(),
                                      kept.data(), count, space.stream());
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
struct Gather {
  const T* from;
  const uint32_t* at;
  T* to;
  STRIDE_HD void operator()(uint64_t i) const { to[i] = from[at[i]]; }
};

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
  space.each(n, Gather<Key>{keys, at->data(), moved.data()});
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

}  // namespace

uint64_t sort_rows(CudaSpace& space, const KeyColumn& keys, uint32_t* order) {
  uint64_t count = keys.size;
  if (count == 0) return 0;
  CudaArray<uint8_t> dropped = space.buffer<uint8_t>(count);
  TiedRows rows{space.buffer<uint32_t>(count), space.buffer<uint32_t>(count),
                space.buffer<uint32_t>(count), count};
  space.each(count, FillIds{rows.ids.data()});
  space.each(count, FillIds{rows.places.data()});
  space.set_zero(rows.groups.data(), count * 4);
  bool first = true;
  for (uint64_t depth = 0; rows.size > 0; depth += 8, first = false) {
    uint64_t n = rows.size;
    if (!first) {
      thrust::counting_iterator<uint64_t> from(0);
      depth += thrust::transform_reduce(
          space.policy(), from, from + static_cast<ptrdiff_t>(n),
          SharedWithPrevious{keys, rows.ids.data(), rows.groups.data(), depth}, UINT64_MAX,
          thrust::minimum<uint64_t>());
    }
    CudaArray<uint64_t> slices = space.buffer<uint64_t>(n);
    CudaArray<uint8_t> rests = space.buffer<uint8_t>(n);
    space.each(n, TakeSlice{keys, rows.ids.data(), depth, slices.data(), rests.data()});
    // The least significant part comes first; each sort is stable.
    CudaArray<uint32_t> at = space.buffer<uint32_t>(n), at2 = space.buffer<uint32_t>(n);
    space.each(n, FillIds{at.data()});
    if (!keys.is_fixed()) sort_ids(space, rests.data(), &at, &at2, n, 4);
    sort_ids(space, slices.data(), &at, &at2, n, 64);
    if (!first) {
      sort_ids(space, rows.groups.data(), &at, &at2, n, static_cast<int>(std::bit_width(count)));
    }
    auto sorted = [&](auto& values) {
      auto moved = space.buffer<std::decay_t<decltype(*values.data())>>(n);
      space.each(n, Gather<std::decay_t<decltype(*values.data())>>{values.data(), at.data(),
                                                                   moved.data()});
      values = std::move(moved);
    };
    sorted(slices);
    sorted(rests);
    sorted(rows.ids);
    sorted(rows.groups);
    RoundRows round{slices.data(), rests.data(), rows.groups.data(), n};
    space.each(n, WriteRound{round, rows.ids.data(), rows.places.data(), order, dropped.data()});

    CudaArray<uint32_t> kept = space.buffer<uint32_t>(n);
    CudaArray<uint64_t> kept_count = space.buffer<uint64_t>(1);
    with_scratch(space, "find tied keys", [&](void* scratch, size_t& bytes) {
      return cub::DeviceSelect::If(scratch, bytes, thrust::counting_iterator<uint32_t>(0),
                                   kept.data(), kept_count.data(), n, IsTied{round},
                                   space.stream());
    });
    uint64_t left = 0;
    space.copy_out(&left, kept_count.data(), 8);
    TiedRows next{space.buffer<uint32_t>(left), space.buffer<uint32_t>(left),
                  space.buffer<uint32_t>(left), left};
    if (left > 0) {
      auto starts =
          thrust::make_transform_iterator(thrust::counting_iterator<uint64_t>(0),
                                          GroupStart{round, rows.places.data(), kept.data()});
      with_scratch(space, "number tied keys", [&](void* scratch, size_t& bytes) {
        return cub::DeviceScan::InclusiveScan(scratch, bytes, starts, next.groups.data(),
                                              thrust::maximum<uint32_t>(), left, space.stream());
      });
      space.each(left, Gather<uint32_t>{rows.ids.data(), kept.data(), next.ids.data()});
      space.each(left, Gather<uint32_t>{rows.places.data(), kept.data(), next.places.data()});
    }
    rows = std::move(next);
  }
  return drop_marked(space, dropped.data(), order, count);
}

}  // namespace stride
