// Starts the searches of cuda_search.cuh, and measures what the device allows.
#include <algorithm>

#include "gpu/device/cuda_pieces.cuh"
#include "gpu/device/cuda_space.cuh"
#include "gpu/tree/cuda_index.h"
#include "gpu/tree/cuda_search.cuh"

namespace stride {

namespace {

const CudaResident& as_cuda(const ResidentIndex& index) {
  return static_cast<const CudaResident&>(index);
}

template <SearchOp op, uint32_t width>
DeviceNumberSearch<op, width> number_search(const DeviceIndex& index, const KeyColumn& queries,
                                            uint32_t* out) {
  using Number = typename StoredNumber<width>::Type;
  return {index, reinterpret_cast<const Number*>(queries.data), out};
}

template <SearchOp op>
void search(const CudaResident& resident, const KeyColumn& queries, uint32_t* out,
            const QueryPieces* pieces, cudaStream_t stream) {
  const DeviceIndex& index = resident.index();
  if (are_numbers(index.keys, 8) && are_numbers(queries, 8)) {
    start_search(number_search<op, 8>(index, queries, out), queries.size, pieces, stream);
  } else if (are_numbers(index.keys, 4) && are_numbers(queries, 4)) {
    start_search(number_search<op, 4>(index, queries, out), queries.size, pieces, stream);
  } else {
    search_keys<op><<<blocks_for(queries.size), block_threads, 0, stream>>>(resident.device_copy(),
                                                                            queries, out);
  }
  cuda_check(cudaGetLastError(), "start a search");
}

}  // namespace

void search_cuda(const ResidentIndex& index, CudaSearch op, const KeyColumn& queries, uint32_t* out,
                 const QueryPieces* pieces, cudaStream_t stream) {
  if (queries.size == 0) return;
  const CudaResident& on = as_cuda(index);
  switch (op) {
    case CudaSearch::find_ranks:
      return search<SearchOp::find>(on, queries, out, pieces, stream);
    case CudaSearch::lower_bound:
      return search<SearchOp::lower_bound>(on, queries, out, pieces, stream);
    case CudaSearch::upper_bound:
      return search<SearchOp::upper_bound>(on, queries, out, pieces, stream);
  }
}

void find_prefixes_cuda(const ResidentIndex& index, const KeyColumn& queries, RankInterval* out,
                        cudaStream_t stream) {
  if (queries.size == 0) return;
  find_prefixes<<<blocks_for(queries.size), block_threads, 0, stream>>>(
      as_cuda(index).device_copy(), queries, out);
  cuda_check(cudaGetLastError(), "start a search");
}

namespace {

template <uint32_t width>
void find_numbers(const DeviceIndexes& indexes, const KeyColumn& queries, Location* out,
                  const QueryPieces* pieces, cudaStream_t stream) {
  using Number = typename StoredNumber<width>::Type;
  start_search(
      DeviceNumberSearchIn<width>{indexes, reinterpret_cast<const Number*>(queries.data), out},
      queries.size, pieces, stream);
}

}  // namespace

void find_in_cuda(const DeviceIndexes& indexes, uint32_t key_width, const KeyColumn& queries,
                  Location* out, const QueryPieces* pieces, cudaStream_t stream) {
  if (queries.size == 0) return;
  if (key_width == 8 && are_numbers(queries, 8)) {
    find_numbers<8>(indexes, queries, out, pieces, stream);
  } else if (key_width == 4 && are_numbers(queries, 4)) {
    find_numbers<4>(indexes, queries, out, pieces, stream);
  } else {
    find_keys_in<<<blocks_for(queries.size), block_threads, 0, stream>>>(indexes, queries, out);
  }
  cuda_check(cudaGetLastError(), "start a search");
}

QueryAccess access_of(uint32_t number_width, const KeyColumn& queries) {
  return number_width && are_numbers(queries, number_width) ? QueryAccess::once : QueryAccess::any;
}

void mark_use_cuda(const ResidentIndex& index, cudaStream_t stream) {
  as_cuda(index).used_on(stream);
}

uint32_t number_width(const ResidentIndex& index) {
  const PackedColumn& keys = as_cuda(index).index().keys;
  return are_numbers(keys, 8) ? 8 : are_numbers(keys, 4) ? 4 : 0;
}

uint32_t number_width(std::span<const IndexView> indexes) {
  const uint32_t width = indexes.empty() ? 0 : number_width(*indexes[0].resident);
  auto has_width = [&](const IndexView& i) { return number_width(*i.resident) == width; };
  return std::all_of(indexes.begin(), indexes.end(), has_width) ? width : 0;
}

namespace {

__global__ void gather_sectors(const uint4* table, uint64_t sectors, uint64_t count,
                               uint32_t* out) {
  uint64_t i = this_thread();
  if (i >= count) return;
  uint64_t random = i * 0x9E3779B97F4A7C15ull;
  random = (random ^ random >> 32) * 0xD6E8FEB86659FD93ull;
  random = (random ^ random >> 32) * 0xD6E8FEB86659FD93ull;
  uint64_t at = __umul64hi(random, sectors);
  uint4 a = __ldg(table + 2 * at), b = __ldg(table + 2 * at + 1);
  uint32_t sum = a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w;
  if (sum == 0x12345678) out[0] = sum;  // so that the loads are not left out
}

__global__ void copy_words(const uint4* from, uint4* to, uint64_t count) {
  uint64_t i = this_thread();
  if (i < count) to[i] = from[i];
}

class Event {
 public:
  Event() { cuda_check(cudaEventCreate(&event_), "make an event"); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }  // NOLINT: it is one

 private:
  cudaEvent_t event_ = nullptr;
};

// The least of several times, in seconds.
template <class Work>
double fastest(cudaStream_t stream, const Work& work) {
  const Event begin, end;
  float least = 1e30f;
  for (int repeat = 0; repeat < 5; ++repeat) {
    cuda_check(cudaEventRecord(begin, stream), "measure limits");
    work();
    cuda_check(cudaGetLastError(), "measure limits");
    cuda_check(cudaEventRecord(end, stream), "measure limits");
    cuda_check(cudaEventSynchronize(end), "measure limits");
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, begin, end), "measure limits");
    least = std::min(least, ms);
  }
  return least / 1e3;
}

}  // namespace

void measure_memory_cuda(CudaDevice& device, uint64_t table_bytes, BackendLimits* limits) {
  constexpr uint64_t gathers = 1 << 26, copied = 1 << 28;
  CudaStream stream(device);
  CudaSpace space(device, stream);
  CudaArray<std::byte> table = space.buffer<std::byte>(table_bytes);
  space.set_zero(table.data(), table_bytes);
  CudaArray<uint32_t> out = space.buffer<uint32_t>(1);
  const auto* words = reinterpret_cast<const uint4*>(table.data());
  double seconds = fastest(stream, [&] {
    gather_sectors<<<blocks_for(gathers), block_threads, 0, stream>>>(words, table_bytes / 32,
                                                                      gathers, out.data());
  });
  limits->gathers_per_second = gathers / seconds;
  CudaArray<std::byte> from = space.buffer<std::byte>(copied), to = space.buffer<std::byte>(copied);
  space.set_zero(from.data(), copied);
  seconds = fastest(stream, [&] {
    copy_words<<<blocks_for(copied / 16), block_threads, 0, stream>>>(
        reinterpret_cast<const uint4*>(from.data()), reinterpret_cast<uint4*>(to.data()),
        copied / 16);
  });
  limits->copy_bytes_per_second = 2.0 * copied / seconds;
  // One way over the bus, from and to pinned memory.
  uint64_t bus_bytes = 256 << 20;
  PinnedMemory pinned(bus_bytes);
  seconds = fastest(stream, [&] {
    cuda_check(cudaMemcpyAsync(to.data(), pinned.data(), bus_bytes, cudaMemcpyHostToDevice, stream),
               "measure the bus");
  });
  limits->bus_in_bytes_per_second = bus_bytes / seconds;
  seconds = fastest(stream, [&] {
    cuda_check(cudaMemcpyAsync(pinned.data(), to.data(), bus_bytes, cudaMemcpyDeviceToHost, stream),
               "measure the bus");
  });
  limits->bus_out_bytes_per_second = bus_bytes / seconds;
  // Both ways at once, on a stream each.
  CudaStream back(device);
  PinnedMemory other(bus_bytes);
  StreamUses begun, done;
  seconds = fastest(stream, [&] {
    begun.add(stream);
    begun.hold_back(back);
    cuda_check(cudaMemcpyAsync(to.data(), pinned.data(), bus_bytes, cudaMemcpyHostToDevice, stream),
               "measure the bus");
    cuda_check(cudaMemcpyAsync(other.data(), from.data(), bus_bytes, cudaMemcpyDeviceToHost, back),
               "measure the bus");
    done.add(back);
    done.hold_back(stream);
  });
  limits->bus_both_bytes_per_second = bus_bytes / seconds;
}

void measure_costs_cuda(CudaDevice& device, AccessCosts* costs) {
  constexpr uint64_t max_bytes = AccessCosts::bytes_of(AccessCosts::sizes - 1);
  constexpr uint64_t gathers = 1 << 25;
  *costs = AccessCosts::typical_device();
  CudaStream stream(device);
  CudaSpace space(device, stream);
  CudaArray<std::byte> table = space.buffer<std::byte>(max_bytes);
  space.set_zero(table.data(), max_bytes);
  CudaArray<uint32_t> out = space.buffer<uint32_t>(1);
  const auto* words = reinterpret_cast<const uint4*>(table.data());
  for (uint32_t i = 0; i < AccessCosts::sizes; ++i) {
    double seconds = fastest(stream, [&] {
      gather_sectors<<<blocks_for(gathers), block_threads, 0, stream>>>(
          words, AccessCosts::bytes_of(i) / sector_bytes, gathers, out.data());
    });
    costs->nanoseconds_at[i] = seconds / gathers * 1e9;
  }
  costs->drop_noise();
}

void check_kernels() {
  cudaFuncAttributes attributes;
  cuda_check(cudaFuncGetAttributes(&attributes, search_keys<SearchOp::find>),
             "look for code for this device");
}

}  // namespace stride
