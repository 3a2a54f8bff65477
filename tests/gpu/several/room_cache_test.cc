// Memory that is kept for later chunks, on devices that have little: it never stands in the way of
// something else.
#include "gpu/several/room_cache.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/several/device_set.h"
#include "gpu/several/partitioned_index.h"
#include "gpu/several/split_rooms.h"
#include "tests/gpu/several/several_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

constexpr uint64_t mib = 1 << 20;

// A host with so much memory.
class TightBackend final : public ForwardingBackend {
 public:
  explicit TightBackend(uint64_t limit) : ForwardingBackend(Backend::host(1)), limit_(limit) {}

  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) override {
    ++calls;
    if (used + bytes > limit_) return Status(StatusCode::resource_exhausted, "no room");
    auto memory = to_->allocate(bytes);
    if (!memory.ok()) return memory;
    return std::unique_ptr<BackendMemory>(std::make_unique<Lent>(std::move(*memory), &used));
  }
  std::atomic<uint64_t> used{0}, calls{0};

 private:
  class Lent final : public BackendMemory {
   public:
    Lent(std::unique_ptr<BackendMemory> memory, std::atomic<uint64_t>* used)
        : memory_(std::move(memory)), used_(used) {
      data_ = memory_->data();
      size_ = memory_->size();
      *used_ += size_;
    }
    ~Lent() override { *used_ -= size_; }

   private:
    std::unique_ptr<BackendMemory> memory_;
    std::atomic<uint64_t>* used_;
  };

  const uint64_t limit_;
};

TEST_CASE("RoomCacheTest.AgreesWithAModel", "[RoomCacheTest]") {
  Random random(seed());
  TightBackend device(64 * mib);
  RoomCache cache(device, /*most_bytes=*/20 * mib);
  std::vector<std::unique_ptr<BackendMemory>> lent;
  for (int i = 0; i < 3000; ++i) {
    uint64_t in_use = 0;
    for (const auto& memory : lent) in_use += memory->size();
    REQUIRE(device.used >= in_use);
    REQUIRE(device.used - in_use <= 20 * mib);
    if (random() % 2 && !lent.empty()) {
      std::swap(lent[random() % lent.size()], lent.back());
      cache.give_back(std::move(lent.back()));
      lent.pop_back();
      continue;
    }
    const uint64_t bytes = 1 + random() % (random() % 4 ? 3 * mib : 30 * mib);
    auto taken = cache.take(bytes);
    const uint64_t rounded = (bytes + mib - 1) / mib * mib;
    // What nobody uses never stands in the way.
    REQUIRE((taken.ok() || in_use + rounded > 64 * mib));
    if (!taken.ok()) {
      REQUIRE(taken.status().code() == StatusCode::resource_exhausted);
      continue;
    }
    REQUIRE((*taken)->size() >= bytes);
    for (const auto& memory : lent) REQUIRE(memory->data() != (*taken)->data());
    std::fill_n((*taken)->data(), bytes, std::byte{1});
    lent.push_back(std::move(*taken));
  }
  lent.clear();
  cache.drop();
  CHECK(device.used == 0u);
  CHECK_FALSE(cache.drop());
}

TEST_CASE("RoomCacheTest.ChunksUseItAgain", "[RoomCacheTest]") {
  TightBackend device(8 * mib);
  RoomCache cache(device, 8 * mib), nothing(device, 0);
  for (int chunk = 0; chunk < 5; ++chunk) {
    ChunkRoom room;
    REQUIRE_OK(room.make(cache, 1000));
    const std::byte* first = room.data();
    REQUIRE_OK(room.make(cache, 10));  // is there
    REQUIRE(room.data() == first);
    REQUIRE_OK(room.make(cache, 3 * mib));
  }
  CHECK(device.calls == 2u);
  {
    ChunkRoom room;
    REQUIRE_OK(room.make(nothing, 1000));
    CHECK(device.used == 5 * mib);
  }
  CHECK(device.used == 4 * mib);
  ChunkRoom all;
  REQUIRE_OK(all.make(cache, 8 * mib));
  ChunkRoom more;
  CHECK(more.make(cache, 1).code() == StatusCode::resource_exhausted);
}

// However many come back at once.
TEST_CASE("RoomCacheTest.KeepsAFew", "[RoomCacheTest]") {
  TightBackend device(uint64_t{1} << 40);
  RoomCache cache(device, uint64_t{1} << 40);
  std::vector<std::unique_ptr<BackendMemory>> lent;
  for (int i = 0; i < 2000; ++i) {
    auto taken = cache.take(1);
    REQUIRE_OK(taken);
    lent.push_back(std::move(*taken));
  }
  for (auto& memory : lent) cache.give_back(std::move(memory));
  lent.clear();
  CHECK(device.used > 0u);
  CHECK(device.used <= 1000 * mib);
}

class KeptRoomsTest {
 protected:
  KeptRoomsTest() {
    for (int i = 0; i < 3; ++i) fakes_.push_back(std::make_shared<FakeDevice>(1 << 30));
    devices_ = std::make_unique<DeviceSet>(
        std::vector<std::shared_ptr<Backend>>(fakes_.begin(), fakes_.end()), small_shares);
  }
  void keep(size_t device) {
    auto memory = devices_->rooms(device).take(1);
    REQUIRE_OK(memory);
    devices_->rooms(device).give_back(std::move(*memory));
  }

  std::vector<std::shared_ptr<FakeDevice>> fakes_;
  std::unique_ptr<DeviceSet> devices_;
};

TEST_CASE_METHOD(KeptRoomsTest, "KeptRoomsTest.WorkWithoutRoomIsDoneAgainWithoutThem",
                 "[KeptRoomsTest]") {
  for (bool kept : {false, true}) {
    std::vector<std::atomic<int>> calls(3);
    auto fails_once = [&](size_t device) {
      return ++calls[device] > 1 ? Status() : Status(StatusCode::resource_exhausted, "no room");
    };
    const auto expected = kept ? StatusCode::ok : StatusCode::resource_exhausted;
    if (kept)
      for (size_t i = 0; i < 3; ++i) keep(i);
    CHECK(devices_->run_on_all(fails_once).code() == expected);
    for (const auto& n : calls) CHECK(n == 1 + kept);
    calls[0] = 0;
    if (kept) keep(0);
    CHECK(devices_->run_on_first(no_device_number, fails_once).code() == expected);
    CHECK(calls[0] == 1 + kept);
    CHECK_FALSE(devices_->drop_rooms());
    CHECK(devices_->lost() == 0u);
  }
}

TEST_CASE_METHOD(KeptRoomsTest, "KeptRoomsTest.PartsOfAnIndexGetTheirMemory", "[KeptRoomsTest]") {
  Random random(seed());
  const Keys keys = sorted_unique(random_numbers(random, 2000));
  const OwnedColumn owned(keys, true);
  for (bool kept : {false, true}) {
    for (size_t device = 0; device < 3; ++device) {
      if (kept) keep(device);
      fakes_[device]->fail_call(1, StatusCode::resource_exhausted);
      auto built = PartitionedIndex::build(*devices_, owned.column(), {});
      fakes_[device]->fail_call(0, StatusCode::io_error);
      CHECK(built.status().code() == (kept ? StatusCode::ok : StatusCode::resource_exhausted));
      if (built.ok()) CHECK((*built)->parts().size() == 3u);
    }
  }
}

// Chunks follow one another, begin at whole words of bits, and are no larger than they may be.
TEST_CASE("SeveralChunksTest.CoverAShare", "[SeveralChunksTest]") {
  Random random(seed());
  for (int i = 0; i < 2000; ++i) {
    const ChunkRows rows{64 * (1 + random() % 10), 64 * (10 + random() % 100)};
    const uint64_t size = random() % (random() % 2 ? 100'000 : 1000);
    INFO(size << " rows, chunks of " << rows.least << " to " << rows.most);
    const std::vector<Share> chunks = cut_into_chunks(size, rows);
    uint64_t end = 0, wrong = 0;
    for (const Share& chunk : chunks) {
      wrong += chunk.first != end || chunk.first % 64 != 0 || chunk.count == 0 ||
               chunk.count > rows.most + 64;
      end += chunk.count;
    }
    REQUIRE(wrong == 0u);
    REQUIRE(end == size);
    if (size > chunks_under_way * rows.most) {
      REQUIRE(chunks.size() >= 2 * chunks_under_way);
      REQUIRE(chunks[0].count < chunks[1].count);
      REQUIRE(chunks.back().count < chunks[chunks.size() - 2].count);
    }
  }
}

}  // namespace
}  // namespace stride::test
