#include <utility>

#include "gpu/several/cuda_split.cuh"
#include "gpu/several/vector_split.h"
#include "gpu/vector_set.h"

namespace stride {

namespace {

static_assert(max_vector_parts == max_split_parts);

// Vectors of 1, 2 or 4 words that begin at multiples of their size. The hash is that of words, too.
template <class Entry>
struct Entries {
  using Row = Entry;

  const Entry* entries;
  VectorHash hash;
  uint32_t parts;

  __device__ Row load(uint64_t i) const { return entries[i]; }
  __device__ uint32_t part_of(Row entry) const {
    auto word = [entry](uint32_t i) { return static_cast<uint32_t>(entry >> (32 * i)); };
    return part_of_hash(hash.first(word, sizeof entry / 4), parts);
  }
  __device__ void store(Row entry, std::byte* to, uint64_t at) const {
    reinterpret_cast<Entry*>(to)[at] = entry;
  }
};

struct Vectors {
  using Row = const uint32_t*;

  const uint32_t* data;
  uint32_t words;
  VectorHash hash;
  uint32_t parts;

  __device__ Row load(uint64_t i) const { return data + i * words; }
  __device__ uint32_t part_of(Row row) const {
    return part_of_hash(hash.first([row](uint32_t i) { return row[i]; }, words), parts);
  }
  __device__ void store(Row row, std::byte* to, uint64_t at) const {
    auto* out = reinterpret_cast<uint32_t*>(to) + at * words;
    for (uint32_t i = 0; i < words; ++i) out[i] = row[i];
  }
};

struct Ids {
  using Row = uint64_t;

  const uint64_t* ids;
  uint32_t parts;

  __device__ Row load(uint64_t i) const { return ids[i]; }
  __device__ uint32_t part_of(Row id) const { return static_cast<uint32_t>(id % parts); }
  __device__ void store(Row id, std::byte* to, uint64_t at) const {
    reinterpret_cast<uint64_t*>(to)[at] = id / parts;
  }
};

struct PartEdges {
  uint32_t starts[max_split_parts + 1];  // slots at which parts begin, and the end
  uint32_t words[max_split_parts];       // of bits, at which those of a part begin
  uint32_t parts;
};

// The bits of a warp's rows are one word.
__global__ void put_back_ids(const uint64_t* found, const uint64_t* bits, const uint32_t* slots,
                             uint32_t n, PartEdges edges, uint64_t* ids, uint32_t* was_new) {
  const uint64_t first = uint64_t{blockIdx.x} * split::tile_rows + threadIdx.x;
#pragma unroll
  for (uint32_t j = 0; j < split::thread_rows; ++j) {
    const uint64_t row = first + j * block_threads;
    bool is_new = false;
    if (row < n) {
      const uint32_t slot = slots[row];
      uint32_t part = 0;
      while (slot >= edges.starts[part + 1]) ++part;
      if (ids) {
        const uint64_t id = found[slot];
        ids[row] = id == VectorSet::absent ? id : id * edges.parts + part;
      }
      if (was_new) {
        const uint32_t bit = slot - edges.starts[part];
        is_new = bits[edges.words[part] + bit / 64] >> bit % 64 & 1;
      }
    }
    if (!was_new) continue;
    const uint32_t word = __ballot_sync(split::all_lanes, is_new);
    // Bitmaps are words of 64 bits.
    if (threadIdx.x % 32 == 0 && row < (uint64_t{n} + 63) / 64 * 64) was_new[row / 32] = word;
  }
}

// A thread a word.
__global__ void put_back_vectors(const uint32_t* found, const uint32_t* slots, uint64_t all_words,
                                 uint32_t words, uint32_t* vectors) {
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < all_words; i += step)
    vectors[i] = found[uint64_t{slots[i / words]} * words + i % words];
}

class CudaVectorSplit final : public VectorSplit, private CudaSplit {
 public:
  CudaVectorSplit(CudaDevice& device, const KeyColumn& vectors, size_t parts, bool in_order,
                  const RoomOfDevice& memory)
      : CudaSplit(device,
                  {.rows = vectors.size,
                   .row_bytes = vectors.width,
                   .parts = parts,
                   .in_order = in_order,
                   .with_places = false,
                   .slot_bytes = sizeof(uint64_t),
                   .more_bytes = (vectors.size / 64 + parts) * sizeof(uint64_t)},
                  memory),
        ids_(take<uint64_t>(all_slots_)),
        bits_(take<uint64_t>(vectors.size / 64 + parts)) {}

  void split(const KeyColumn& vectors, const VectorHash& hash) {
    const auto all_parts = static_cast<uint32_t>(parts());
    auto move_entries = [&](auto entry) {
      using Entry = decltype(entry);
      const bool fits = row_bytes_ == sizeof entry &&
                        reinterpret_cast<uintptr_t>(vectors.data) % sizeof entry == 0;
      if (fits) move(Entries<Entry>{reinterpret_cast<const Entry*>(vectors.data), hash, all_parts});
      return fits;
    };
    if (!move_entries(uint32_t{}) && !move_entries(uint64_t{}) && !move_entries(Wide{}))
      move(Vectors{reinterpret_cast<const uint32_t*>(vectors.data),
                   static_cast<uint32_t>(row_bytes_ / 4), hash, all_parts});
    edges_.parts = all_parts;
    for (uint32_t part = 0, words = 0; part < all_parts; ++part) {
      edges_.starts[part] = starts_[part];
      edges_.words[part] = words;
      words += static_cast<uint32_t>((count(part) + 63) / 64);
    }
    edges_.starts[all_parts] = starts_[all_parts];
  }

  KeyColumn rows(size_t part) const override {
    return KeyColumn::fixed(moved(part), row_bytes_, count(part));
  }
  std::span<uint64_t> ids(size_t part) override { return {ids_ + starts_[part], count(part)}; }
  std::span<uint64_t> was_new(size_t part) override {
    return {bits_ + edges_.words[part], (count(part) + 63) / 64};
  }
  Status put_ids(uint64_t* ids, uint64_t* was_new) override {
    if (n_ == 0 || (!ids && !was_new)) return {};
    return cuda_guarded([&] {
      put_back_ids<<<tiles(), block_threads, 0, stream_>>>(ids_, bits_, slots_, n_, edges_, ids,
                                                           reinterpret_cast<uint32_t*>(was_new));
      cuda_check(cudaGetLastError(), "put ids back");
      stream_.wait();
      return Status();
    });
  }

 private:
  uint64_t* const ids_;   // of the rows in moved_
  uint64_t* const bits_;  // those of each part begin at a word
  PartEdges edges_{};
};

class CudaIdSplit final : public IdSplit, private CudaSplit {
 public:
  CudaIdSplit(CudaDevice& device, uint64_t ids, uint32_t words, size_t parts,
              const RoomOfDevice& memory)
      : CudaSplit(device,
                  {.rows = ids,
                   .row_bytes = sizeof(uint64_t),
                   .parts = parts,
                   .in_order = true,
                   .with_places = true,
                   .slot_bytes = words * sizeof(uint32_t)},
                  memory),
        words_(words),
        vectors_(take<uint32_t>(ids * words)) {}

  void split(std::span<const uint64_t> ids) {
    move(Ids{ids.data(), static_cast<uint32_t>(parts())});
  }

  std::span<const uint64_t> ids(size_t part) const override {
    return {reinterpret_cast<const uint64_t*>(moved(part)), count(part)};
  }
  std::span<std::byte> vectors(size_t part) override {
    return {reinterpret_cast<std::byte*>(vectors_ + uint64_t{starts_[part]} * words_),
            count(part) * words_ * 4};
  }
  Status put_vectors(std::byte* vectors) override {
    if (n_ == 0) return {};
    return cuda_guarded([&] {
      const uint64_t words = uint64_t{n_} * words_;
      put_back_vectors<<<blocks_for(words), block_threads, 0, stream_>>>(
          vectors_, slots_, words, words_, reinterpret_cast<uint32_t*>(vectors));
      cuda_check(cudaGetLastError(), "put vectors back");
      stream_.wait();
      return Status();
    });
  }
  Result<uint64_t> row(size_t part, uint64_t i) const override {
    return cuda_guarded([&]() -> Result<uint64_t> {
      OnDevice on(stream_.device());
      uint32_t row = 0;
      cuda_check(cudaMemcpyAsync(&row, places_ + starts_[part] + i, sizeof row,
                                 cudaMemcpyDeviceToHost, stream_),
                 "look a row up");
      stream_.wait();
      return row;
    });
  }

 private:
  const uint32_t words_;
  uint32_t* const vectors_;  // of the ids in moved_
};

}  // namespace

Result<std::unique_ptr<VectorSplit>> split_vectors_on(CudaDevice& device, const KeyColumn& vectors,
                                                      const VectorHash& hash, size_t parts,
                                                      bool in_order, const RoomOfDevice& memory) {
  return cuda_guarded([&]() -> Result<std::unique_ptr<VectorSplit>> {
    auto split = std::make_unique<CudaVectorSplit>(device, vectors, parts, in_order, memory);
    split->split(vectors, hash);
    return std::unique_ptr<VectorSplit>(std::move(split));
  });
}

Result<std::unique_ptr<IdSplit>> split_ids_on(CudaDevice& device, std::span<const uint64_t> ids,
                                              uint32_t words, size_t parts,
                                              const RoomOfDevice& memory) {
  return cuda_guarded([&]() -> Result<std::unique_ptr<IdSplit>> {
    auto split = std::make_unique<CudaIdSplit>(device, ids.size(), words, parts, memory);
    split->split(ids);
    return std::unique_ptr<IdSplit>(std::move(split));
  });
}

}  // namespace stride
