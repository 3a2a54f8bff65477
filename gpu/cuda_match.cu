#include <cstring>
#include <utility>

#include "gpu/cuda_match.h"
#include "gpu/cuda_space.cuh"
#include "gpu/cuda_transfer.h"
#include "gpu/match_build.h"
#include "gpu/match_layout.h"
#include "gpu/match_number.h"
#include "gpu/match_tree.h"

namespace stride {

namespace {

// Addresses of a thread: so many accesses to memory are under way at once.
constexpr uint32_t addresses_of_thread = 4;

class CudaMatches final : public ResidentMatches {
 public:
  CudaMatches(const CudaContext& context, const MatchView& matches, cudaStream_t stream)
      : image_(context.device, stream, matches.image_bytes),
        address_bits_(reinterpret_cast<const MatchHeader*>(matches.image)->address_bits) {
    context.transfer.to_device(image_.data(), matches.image, matches.image_bytes, stream);
    tree_ = MatchTreeRef(matches.image, image_.data());
    cuda_check(cudaStreamSynchronize(stream), "make matches resident");
    image_.settle();
  }
  uint64_t memory_bytes() const override { return image_.bytes(); }
  const MatchTreeRef& tree() const { return tree_; }
  uint32_t address_bits() const { return address_bits_; }

 private:
  CudaArray<std::byte> image_;
  uint32_t address_bits_;
  MatchTreeRef tree_;
};

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

template <class Addresses>
__global__ void __launch_bounds__(block_threads)
    match(const __grid_constant__ MatchTreeRef tree, Addresses addresses, uint64_t count,
          uint32_t* out) {
  constexpr uint32_t n = addresses_of_thread;
  typename Addresses::Number x[n];
  uint32_t entry[n];
  uint64_t first = blockIdx.x * uint64_t{block_threads} * n + threadIdx.x;
#pragma unroll
  for (uint32_t k = 0; k < n; ++k) {
    uint64_t i = first + k * block_threads;
    x[k] = i < count ? addresses[i] : 0;
    entry[k] = match_child;  // node 0 of the root
  }
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
        if (entry[k] & match_child) entry[k] = __ldg(level.entries + at[k]);
      }
    } else {
#pragma unroll
      for (uint32_t k = 0; k < n; ++k) {
        if (!(entry[k] & match_child)) continue;
        uint32_t slot = slot_of(x[k], level.depth, level.stride);
        entry[k] = __ldg(level.entries + find_in_list(level, entry[k] & ~match_child, slot));
      }
    }
#pragma unroll
    for (uint32_t k = 0; k < n; ++k) more |= (entry[k] & match_child) != 0;
  }
#pragma unroll
  for (uint32_t k = 0; k < n; ++k) {
    uint64_t i = first + k * block_threads;
    if (i < count) __stcs(out + i, entry[k] == no_match ? Location::absent : entry[k]);
  }
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
                                                    const MatchView& matches) {
  CudaStream stream(context.device);
  context.device.require(matches.image_bytes + context.device.reserve());
  return std::make_shared<CudaMatches>(context, matches, stream);
}

void match_cuda(const ResidentMatches& matches, const KeyColumn& addresses, uint32_t* out,
                cudaStream_t stream) {
  if (addresses.size == 0) return;
  const auto& on_device = static_cast<const CudaMatches&>(matches);
  uint32_t width = address_bytes(on_device.address_bits());
  const std::byte* data = addresses.data;
  auto blocks = static_cast<uint32_t>((addresses.size + block_threads * addresses_of_thread - 1) /
                                      (block_threads * addresses_of_thread));
  auto search = [&](const auto& rows) {
    match<<<blocks, block_threads, 0, stream>>>(on_device.tree(), rows, addresses.size, out);
    cuda_check(cudaGetLastError(), "match addresses");
  };
  bool aligned = reinterpret_cast<uintptr_t>(data) % width == 0;
  if (width == 4 && aligned) {
    search(Aligned4{reinterpret_cast<const uint32_t*>(data)});
  } else if (width == 8 && aligned) {
    search(Aligned8{reinterpret_cast<const unsigned long long*>(data)});
  } else if (width == 16 && aligned) {
    search(Aligned16{reinterpret_cast<const ulonglong2*>(data)});
  } else if (width <= 8) {
    search(AddressesOf<uint64_t>{data, width, width});
  } else {
    search(AddressesOf<Wide>{data, width, width});
  }
}

}  // namespace stride
