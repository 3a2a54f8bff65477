// What a device backend leaves behind: the caller's current device, and nothing of what failed.
#include "gpu/device/cuda_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/backend.h"
#include "gpu/device/device_faults.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

int current_device() {
  int device = -1;
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  return device;
}

TEST_CASE("CudaDeviceTest.MakingOneThatFailsLeavesNothing", "[CudaDeviceTest]") {
  if (auto one = Backend::cuda({.host_threads = 1}); !one.ok()) SKIP(one.status().to_string());
  const int before = current_device();
  for (DeviceFault fault : {DeviceFault::out_of_memory, DeviceFault::lost}) {
    bool is_made = false;
    uint64_t call = 1;
    for (; !is_made && call < 100; ++call) {
      DeviceFaults::fail_call(call, fault);
      auto made = Backend::cuda({.host_threads = 1});
      is_made = made.ok();
      DeviceFaults::clear();
      CHECK(current_device() == before);
    }
    CHECK(is_made);
    CHECK_MESSAGE(call > 5u, "calls of a construction");
  }
  CHECK(Backend::cuda({.device = 1000}).status().code() == StatusCode::unavailable);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(current_device() == before);
}

// On another device than the caller's, of which there have to be two.
class OtherDeviceTest {
 protected:
  OtherDeviceTest() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2) SKIP("needs two devices");
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    auto made = Backend::cuda({.device = 1, .host_threads = 2});
    REQUIRE_OK(made);
    backend_ = std::move(*made);
    for (uint64_t i = 0; i < n; ++i) keys_[i] = __builtin_bswap64(3 * i);
    unchanged({});
  }
  ~OtherDeviceTest() {
    backend_.reset();
    unchanged({});
  }

  static void unchanged(const Status& status) {
    CHECK_OK(status);
    CHECK(current_device() == 0);
  }
  KeyColumn column() const { return Column::fixed(keys_.data(), 8, n); }

  static constexpr uint64_t n = 300'000;
  std::unique_ptr<Backend> backend_;
  std::vector<uint64_t> keys_ = std::vector<uint64_t>(n);
};

TEST_CASE_METHOD(OtherDeviceTest, "CudaDeviceTest.TheCallersDeviceStaysCurrent",
                 "[CudaDeviceTest]") {
  Sorted sorted;
  std::vector<KeyColumn> chunks;
  constexpr uint64_t chunk_rows = uint64_t{1} << row_bits;
  for (uint64_t first = 0; first < n; first += chunk_rows)
    chunks.push_back(column().slice(first, std::min(chunk_rows, n - first)));
  unchanged(backend_->sorter().sort(chunks, &sorted));
  auto index = backend_->tree_index().build_index(column(), KeyOrder::any, TreeOptions{});
  unchanged(index.status());
  std::vector<uint32_t> ranks(n);
  unchanged(backend_->tree_index().find_ranks((*index)->view(), column(), ranks));
  CHECK(ranks[n - 1] == n - 1);
  auto memory = backend_->allocate(1 << 20);
  unchanged(memory.status());
  CHECK(backend_->is_on_device((*memory)->data()));
  auto pinned = backend_->allocate_host(1 << 20);
  unchanged(pinned.status());
  unchanged(backend_->copy((*memory)->data(), (*pinned)->data(), 1 << 20));
  memory->reset();
  index->reset();
  unchanged({});
}

// Values that were found, as long as they live and when they go.
TEST_CASE_METHOD(OtherDeviceTest, "CudaDeviceTest.TheCallersDeviceStaysCurrentForValues",
                 "[CudaDeviceTest]") {
  TreeIndex& trees = backend_->tree_index();
  auto index = trees.build_index(column(), KeyOrder::any, TreeOptions{});
  unchanged(index.status());
  std::vector<std::byte> image;
  unchanged((*index)->copy_image(&image));
  IndexView view;
  view.keys = {.data = column().data, .data_bytes = n * 8, .size = n, .width = 8};
  view.tree = {image.data(), image.size()};
  const PackedColumn values = view.keys;
  auto with_values = trees.make_resident(view, {.values = &values});
  unchanged(with_values.status());
  const IndexView resident = (*with_values)->view();
  std::vector<uint64_t> found((n + 63) / 64), ends(n), back(n);
  {
    auto result = trees.find_values({&resident, 1}, column(), found, ends);
    unchanged(result.status());
    unchanged((*result)->copy(reinterpret_cast<std::byte*>(back.data())));
    CHECK(back == keys_);
    // On another thread than the one that asked.
    int device_there = -1;
    std::thread([&, values_found = std::move(*result)]() mutable {
      values_found.reset();
      cudaGetDevice(&device_there);
    }).join();
    CHECK(device_there == 0);
  }
  unchanged({});
  with_values->reset();
  index->reset();
  unchanged({});
}

TEST_CASE_METHOD(OtherDeviceTest, "CudaDeviceTest.TheCallersDeviceStaysCurrentForSums",
                 "[CudaDeviceTest]") {
  std::vector<float> numbers(n, 1), sums(1000);
  std::vector<uint32_t> targets(n, 5);
  const Numbers sources = Numbers::of(std::span<const float>(numbers));
  const MutableNumbers into = MutableNumbers::of(std::span<float>(sums));
  unchanged(backend_->scatter().apply(sources, Indexes::of(targets), into));
  {
    auto prepared = backend_->scatter().prepare(Indexes::of(targets), 1000, OutOfRange::error);
    unchanged(prepared.status());
    unchanged((*prepared)->apply(sources, into));
  }
  CHECK(sums[5] == 2.0f * n);
  auto set = backend_->sets().make_vector_set({.words = 2});
  unchanged(set.status());
  std::vector<uint64_t> ids(n), back(n);
  unchanged((*set)->find_or_put(column(), ids, {}));
  unchanged((*set)->get(ids, std::as_writable_bytes(std::span(back))));
  unchanged((*set)->clear());
  set->reset();
  unchanged({});
}

}  // namespace
}  // namespace stride::test
