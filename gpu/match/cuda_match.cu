#include <string>
#include <type_traits>
#include <utility>

#include "gpu/device/cuda_pieces.cuh"
#include "gpu/device/cuda_space.cuh"
#include "gpu/device/cuda_transfer.h"
#include "gpu/match/cuda_match.h"
#include "gpu/match/match_build.h"
#include "gpu/match/match_layout.h"
#include "gpu/match/match_number.h"
#include "gpu/match/match_tree.h"

namespace stride {

namespace {

// Addresses of a thread: so many accesses to memory are under way at once.
constexpr uint32_t addresses_of_thread = 4;

// What a kernel searches.
struct DeviceMatch {
  MatchTreeRef tree;
  const Location* rows;    // null: rank r is row r of index 0
  const uint8_t* lengths;  // null: only ranks are asked for
};

__global__ void widen_entries(const std::byte* entries, uint32_t count, uint32_t* out) {
  uint32_t i = blockIdx.x * block_threads + threadIdx.x;
  if (i >= count) return;
  const std::byte* entry = entries + uint64_t{i} * 3;
  uint32_t narrow = 0;
  for (uint32_t k = 0; k < 3; ++k) narrow |= static_cast<uint32_t>(entry[k]) << 8 * k;
  out[i] = widen_entry(narrow);
}

class CudaMatches final : public ResidentMatches {
 public:
  CudaMatches(const CudaContext& context, const MatchView& matches, const MatchRows& rows,
              cudaStream_t stream)
      : device_(context.device), image_(device_, stream, matches.image_bytes) {
    const auto& header = *reinterpret_cast<const MatchHeader*>(matches.image);
    prefixes_ = header.prefixes;
    address_bits_ = header.address_bits;
    context.transfer.to_device(image_.data(), matches.image, matches.image_bytes, stream);
    if (rows.rows) send(context, rows.rows, header.prefixes, &rows_, stream);
    if (rows.lengths) send(context, rows.lengths, header.prefixes, &lengths_, stream);
    match_ = {MatchTreeRef(matches.image, image_.data()), rows_.data(), lengths_.data()};
    if (header.entry_bytes == 3) widen(matches.image, stream);
    cuda_check(cudaStreamSynchronize(stream), "make matches resident");
    image_.outlive_stream();
    rows_.outlive_stream();
    lengths_.outlive_stream();
    entries_.outlive_stream();
  }
  // The arrays are freed on the home stream.
  ~CudaMatches() override { uses_.hold_back(device_.home_stream()); }
  uint64_t memory_bytes() const override {
    return image_.bytes() + rows_.bytes() + lengths_.bytes() + entries_.bytes();
  }
  const DeviceMatch& match() const { return match_; }
  bool has_lengths() const { return match_.lengths || prefixes_ == 0; }
  uint32_t address_bits() const { return address_bits_; }
  StreamUses& uses() const { return uses_; }

 private:
  // Entries of 4 bytes, which take one access each.
  void widen(const std::byte* image, cudaStream_t stream) {
    const auto* shapes = reinterpret_cast<const MatchLevel*>(image + sizeof(MatchHeader));
    uint64_t count = 0;
    for (uint32_t l = 0; l < match_.tree.levels; ++l) count += shapes[l].entries;
    entries_ = CudaArray<uint32_t>(device_, stream, count);
    uint32_t* next = entries_.data();
    for (uint32_t l = 0; l < match_.tree.levels; ++l) {
      MatchLevelRef& level = match_.tree.level[l];
      widen_entries<<<blocks_for(shapes[l].entries), block_threads, 0, stream>>>(
          level.entries, shapes[l].entries, next);
      level.entries = reinterpret_cast<const std::byte*>(next);
      level.entry_bytes = 4;
      next += shapes[l].entries;
    }
    cuda_check(cudaGetLastError(), "widen entries");
  }
  template <class T>
  void send(const CudaContext& context, const T* from, uint64_t n, CudaArray<T>* to,
            cudaStream_t stream) {
    *to = CudaArray<T>(device_, stream, n);
    context.transfer.to_device(to->data(), from, n * sizeof(T), stream);
  }

  CudaDevice& device_;
  CudaArray<std::byte> image_;
  CudaArray<Location> rows_;
  CudaArray<uint8_t> lengths_;
  CudaArray<uint32_t> entries_;
  uint32_t prefixes_ = 0, address_bits_ = 0;
  DeviceMatch match_;
  mutable StreamUses uses_;
};

const CudaMatches& as_cuda(const ResidentMatches& matches) {
  return static_cast<const CudaMatches&>(matches);
}

// Rows that are aligned to their width, read past what the tree needs of the caches.
struct Aligned4 {
  using Number = uint64_t;
  const uint32_t* data;
  __device__ uint64_t operator[](uint64_t i) const {
    return uint64_t{__byte_perm(__ldcs(data + i), 0, 0x0123)} << 32;
  }
};
struct Aligned8 {
  using Number = uint64_t;
  const unsigned long long* data;
  __device__ uint64_t operator[](uint64_t i) const { return byte_swap(__ldcs(data + i)); }
};
struct Aligned16 {
  using Number = Wide;
  const ulonglong2* data;
  __device__ Wide operator[](uint64_t i) const {
    ulonglong2 x = __ldcs(data + i);
    return Wide{byte_swap(x.x)} << 64 | byte_swap(x.y);
  }
};

__device__ MatchBlock read_block(const MatchBlock* block) {
  uint4 x = __ldg(reinterpret_cast<const uint4*>(block));
  return {x.x, {x.y, x.z, x.w}};
}

__device__ uint32_t entry_at(const MatchLevelRef& level, uint32_t i) {
  return __ldg(reinterpret_cast<const uint32_t*>(level.entries) + i);
}

// The last of a list node's slots that is not behind `slot`.
__device__ uint32_t find_in_list(const MatchLevelRef& level, uint32_t node, uint32_t slot) {
  uint32_t first = __ldg(level.starts + node), size = __ldg(level.starts + node + 1) - first;
  while (size > 1) {
    uint32_t half = size / 2;
    if (__ldg(level.slots + first + half) <= slot) first += half;
    size -= half;
  }
  return first;
}

// entry[k]: the rank of the longest prefix of address x[k], or no_match.
template <class Number, uint32_t n>
__device__ __forceinline__ void search(const MatchTreeRef& tree, const Number (&x)[n],
                                       uint32_t (&entry)[n]) {
#pragma unroll
  for (uint32_t k = 0; k < n; ++k) entry[k] = match_child;  // node 0 of the root
  bool more = true;
  for (uint32_t l = 0; more; ++l) {
    const MatchLevelRef& level = tree.level[l];
    more = false;
    if (level.blocks) {
      uint32_t at[n];
#pragma unroll
      for (uint32_t k = 0; k < n; ++k) {
        if (!(entry[k] & match_child)) continue;
        uint32_t slot = slot_of(x[k], level.depth, level.stride);
        uint64_t block = uint64_t{entry[k] & ~match_child} * level.blocks_of_node;
        at[k] = bitmap_entry_of(read_block(level.blocks + block + slot / slots_of_block), slot);
      }
#pragma unroll
      for (uint32_t k = 0; k < n; ++k) {
        if (entry[k] & match_child) entry[k] = entry_at(level, at[k]);
      }
    } else {
#pragma unroll
      for (uint32_t k = 0; k < n; ++k) {
        if (!(entry[k] & match_child)) continue;
        uint32_t slot = slot_of(x[k], level.depth, level.stride);
        entry[k] = entry_at(level, find_in_list(level, entry[k] & ~match_child, slot));
      }
    }
#pragma unroll
    for (uint32_t k = 0; k < n; ++k) more |= (entry[k] & match_child) != 0;
  }
}

// The addresses of a thread are block_threads apart, so that neighbours read neighbours.
template <class Addresses>
__device__ __forceinline__ uint64_t
read_addresses(const Addresses& addresses, uint64_t count,
               typename Addresses::Number (&x)[addresses_of_thread]) {
  uint64_t first = blockIdx.x * uint64_t{block_threads} * addresses_of_thread + threadIdx.x;
#pragma unroll
  for (uint32_t k = 0; k < addresses_of_thread; ++k) {
    uint64_t i = first + k * block_threads;
    x[k] = i < count ? addresses[i] : 0;
  }
  return first;
}

template <class Addresses>
__global__ void __launch_bounds__(block_threads)
    match(const __grid_constant__ MatchTreeRef tree, Addresses addresses, uint64_t count,
          uint32_t* out) {
  typename Addresses::Number x[addresses_of_thread];
  uint64_t first = read_addresses(addresses, count, x);
  uint32_t entry[addresses_of_thread];
  search(tree, x, entry);
#pragma unroll
  for (uint32_t k = 0; k < addresses_of_thread; ++k) {
    uint64_t i = first + k * block_threads;
    if (i < count) __stcs(out + i, entry[k] == no_match ? Location::absent : entry[k]);
  }
}

// The same as a Search (gpu/device/cuda_pieces.cuh).
template <class Addresses>
struct MatchSearch {
  using Query = typename Addresses::Number;
  MatchTreeRef tree;
  Addresses addresses;
  uint32_t* out;

  __device__ Query load(uint64_t i) const { return addresses[i]; }
  __device__ void answer(uint64_t i, Query query) const {
    const Query x[1] = {query};
    uint32_t entry[1];
    search(tree, x, entry);
    __stcs(out + i, entry[0] == no_match ? Location::absent : entry[0]);
  }
};

__device__ Location row_of(const DeviceMatch& match, uint32_t rank, uint32_t newer) {
  Location row{0, rank};
  if (match.rows) row = match.rows[rank];
  if (row.found()) row.index += newer;
  return row;
}

template <class Addresses, bool with_changes>
__global__ void __launch_bounds__(block_threads)
    match_rows(const __grid_constant__ DeviceMatch base, uint32_t newer,
               const __grid_constant__ DeviceMatch changes, Addresses addresses, uint64_t count,
               Location* out) {
  typename Addresses::Number x[addresses_of_thread];
  uint64_t first = read_addresses(addresses, count, x);
  uint32_t under[addresses_of_thread], over[addresses_of_thread];
  search(base.tree, x, under);
  if (with_changes) search(changes.tree, x, over);
#pragma unroll
  for (uint32_t k = 0; k < addresses_of_thread; ++k) {
    uint64_t i = first + k * block_threads;
    if (i >= count) continue;
    Location row{Location::absent, Location::absent};
    if (with_changes && over[k] != no_match &&
        (under[k] == no_match || base.lengths[under[k]] <= changes.lengths[over[k]])) {
      row = row_of(changes, over[k], 0);
    } else if (under[k] != no_match) {
      row = row_of(base, under[k], newer);
    }
    out[i] = row;
  }
}

// Calls search(rows, blocks) with the addresses as numbers.
template <class Search>
void with_addresses(const CudaMatches& matches, const KeyColumn& addresses, const Search& search) {
  uint32_t width = address_bytes(matches.address_bits());
  const std::byte* data = addresses.data;
  constexpr uint64_t of_block = block_threads * addresses_of_thread;
  auto blocks = static_cast<uint32_t>((addresses.size + of_block - 1) / of_block);
  bool aligned = reinterpret_cast<uintptr_t>(data) % width == 0;
  if (width == 4 && aligned) {
    search(Aligned4{reinterpret_cast<const uint32_t*>(data)}, blocks);
  } else if (width == 8 && aligned) {
    search(Aligned8{reinterpret_cast<const unsigned long long*>(data)}, blocks);
  } else if (width == 16 && aligned) {
    search(Aligned16{reinterpret_cast<const ulonglong2*>(data)}, blocks);
  } else if (width <= 8) {
    search(AddressesOf<uint64_t>{data, width, width}, blocks);
  } else {
    search(AddressesOf<Wide>{data, width, width}, blocks);
  }
  cuda_check(cudaGetLastError(), "match addresses");
}

template <class Number>
void build_tree_of(const CudaContext& context, CudaSpace& space, const PackedColumn& prefixes,
                   uint32_t address_bits, std::vector<std::byte>* image,
                   std::vector<uint32_t>* parents) {
  CudaArray<std::byte> keys = space.buffer<std::byte>(prefixes.row_bytes());
  keys.clear_padding();
  context.transfer.to_device(keys.data(), prefixes.data, prefixes.row_bytes(), space.stream());
  CudaArray<std::byte> built;
  CudaArray<uint32_t> around;
  MatchBuilder<CudaSpace, Number>(space, keys.data(), static_cast<uint32_t>(prefixes.size),
                                  address_bits)
      .build(&built, &around);
  image->resize(built.size());
  context.transfer.to_host(image->data(), built.data(), built.size(), space.stream());
  if (!parents) return;
  parents->resize(prefixes.size);
  context.transfer.to_host(parents->data(), around.data(), prefixes.size * sizeof(uint32_t),
                           space.stream());
}

}  // namespace

Status build_matches_cuda(const CudaContext& context, const PackedColumn& prefixes,
                          uint32_t address_bits, std::vector<std::byte>* image,
                          std::vector<uint32_t>* parents) {
  CudaStream stream(context.device);
  CudaSpace space(context.device, stream);
  if (address_bits <= 64) {
    build_tree_of<uint64_t>(context, space, prefixes, address_bits, image, parents);
  } else {
    build_tree_of<Wide>(context, space, prefixes, address_bits, image, parents);
  }
  return {};
}

std::shared_ptr<ResidentMatches> make_resident_cuda(const CudaContext& context,
                                                    const MatchView& matches,
                                                    const MatchRows& rows) {
  CudaStream stream(context.device);
  context.device.require(matches.image_bytes + context.device.reserve());
  return std::make_shared<CudaMatches>(context, matches, rows, stream);
}

void match_cuda(const ResidentMatches& matches, const KeyColumn& addresses, uint32_t* out,
                const QueryPieces* pieces, cudaStream_t stream) {
  if (addresses.size == 0) return;
  const CudaMatches& there = as_cuda(matches);
  with_addresses(there, addresses, [&](const auto& rows, uint32_t blocks) {
    if (pieces) {
      using Rows = std::decay_t<decltype(rows)>;
      const MatchSearch<Rows> search{there.match().tree, rows, out};
      return start_search(search, addresses.size, pieces, stream);
    }
    match<<<blocks, block_threads, 0, stream>>>(there.match().tree, rows, addresses.size, out);
  });
}

void match_rows_cuda(const ResidentMatches& base, uint32_t newer, const ResidentMatches* changes,
                     const KeyColumn& addresses, Location* out, cudaStream_t stream) {
  if (addresses.size == 0) return;
  const DeviceMatch& under = as_cuda(base).match();
  with_addresses(as_cuda(base), addresses, [&](const auto& rows, uint32_t blocks) {
    using Rows = std::decay_t<decltype(rows)>;
    if (changes) {
      match_rows<Rows, true><<<blocks, block_threads, 0, stream>>>(
          under, newer, as_cuda(*changes).match(), rows, addresses.size, out);
    } else {
      match_rows<Rows, false>
          <<<blocks, block_threads, 0, stream>>>(under, newer, under, rows, addresses.size, out);
    }
  });
}

Status check_rows_cuda(const ResidentMatches& matches, const KeyColumn& addresses) {
  const CudaMatches& there = as_cuda(matches);
  if (!there.has_lengths()) {
    return Status(StatusCode::unavailable, "the lengths of prefixes are not on the device")
        .with_remedy("make matches resident with their rows");
  }
  uint32_t width = address_bytes(there.address_bits());
  if (addresses.is_fixed() && (addresses.width == width || addresses.size == 0)) return {};
  return Status::invalid("addresses on the device that are no column of " + std::to_string(width) +
                         " bytes each")
      .with_remedy("give each address " + std::to_string(width) + " bytes");
}

void mark_use_cuda(const ResidentMatches& matches, cudaStream_t stream) {
  as_cuda(matches).uses().add(stream);
}

}  // namespace stride
