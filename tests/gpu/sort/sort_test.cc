
#include <map>

#include "gpu/backend.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

// Chunks of random sizes and layouts that hold the keys in order.
struct Batch {
  std::vector<OwnedColumn> columns;
  std::vector<KeyColumn> chunks;
  std::map<std::string, uint32_t> newest;

  Batch(Random& random, const Keys& keys, size_t largest, bool fixed) {
    for (size_t begin = 0; begin < keys.size();) {
      if (random() % 8 == 0) add({}, fixed);
      size_t size = std::min(keys.size() - begin, 1 + random() % largest);
      add(Keys(keys.begin() + static_cast<ptrdiff_t>(begin),
               keys.begin() + static_cast<ptrdiff_t>(begin + size)),
          fixed && (random() % 16 || keys[0].size() == 8));
      begin += size;
    }
    for (const OwnedColumn& column : columns) chunks.push_back(column.column());
  }
  void add(const Keys& keys, bool fixed) {
    auto chunk = static_cast<uint32_t>(columns.size());
    for (uint32_t row = 0; row < keys.size(); ++row) newest[keys[row]] = make_row_id(chunk, row);
    columns.emplace_back(keys, fixed);
  }
};

void expect_sorted(Backend& backend, const Batch& batch) {
  Sorted sorted;
  sorted.order = {1, 2, 3};  // what is there already goes
  REQUIRE_OK(backend.sorter().sort(batch.chunks, &sorted));
  REQUIRE(sorted.order.size() == batch.newest.size());
  size_t i = 0;
  for (const auto& [key, id] : batch.newest)
    REQUIRE_MESSAGE(sorted.order[i++] == id, "rank " << i - 1);
  bool numbers = true;
  for (const KeyColumn& chunk : batch.chunks) {
    numbers &= chunk.size == 0 || (chunk.is_fixed() && chunk.width == 8);
  }
  REQUIRE(sorted.keys8.size() == (numbers ? sorted.order.size() : 0));
  if (!numbers) return;
  i = 0;
  for (const auto& [key, id] : batch.newest) {
    REQUIRE(0 == std::memcmp(key.data(), &sorted.keys8[i++], 8));
  }
}

// With so many threads of the host, or a device.
class SortTest {
 protected:
  const std::string side_ = GENERATE(as<std::string>{}, "host", "cuda");
  RunsWith name_{side_};

  SortTest() {
    if (side_ != "cuda") return;
    auto device = Backend::cuda({.host_threads = 2});
    if (!device.ok()) SKIP(device.status().to_string());
    device_ = std::move(*device);
  }
  std::shared_ptr<Backend> backend(unsigned threads) {
    return device_ ? device_ : std::shared_ptr<Backend>(Backend::host(threads));
  }
  std::shared_ptr<Backend> device_;
};

TEST_CASE_METHOD(SortTest, "SortTest.SortsEveryKindOfKeys", "[SortTest]") {
  Random random(seed());
  for (unsigned threads : {1u, 3u}) {
    auto backend = this->backend(threads);
    for (const KeySet& set : key_sets()) {
      for (size_t n : {0, 1, 2, 25, 1000, smaller_under_sanitizers(20000, 5000)}) {
        INFO(std::string(set.name) + " " + std::to_string(n));
        if (n > 1000 && set.make == only_zeros) n = smaller_under_sanitizers(3000, 1500);
        Keys keys = set.make(random, n);
        expect_sorted(*backend, Batch(random, keys, 1 + random() % 3000, random() % 2));
        std::sort(keys.begin(), keys.end());
        expect_sorted(*backend, Batch(random, keys, 1 + random() % 3000, true));
      }
    }
  }
}

// Large enough that parts are divided by all threads together.
TEST_CASE_METHOD(SortTest, "SortTest.SortsLargeBatches", "[SortTest]") {
  Random random(seed());
  auto backend = this->backend(0);
  const size_t n = smaller_under_sanitizers(300000, 150000);
  Keys half_equal = random_numbers(random, n);
  for (size_t i = 0; i < half_equal.size(); i += 2) half_equal[i] = half_equal[0];
  expect_sorted(*backend, Batch(random, half_equal, 65536, true));
  for (auto make : {random_numbers, clusters, words, all_equal8, all_equal, exponential}) {
    expect_sorted(*backend, Batch(random, make(random, n), 65536, true));
  }
}

TEST_CASE_METHOD(SortTest, "SortTest.SettlesLargeGroupsOfEqualSlices", "[SortTest]") {
  Random random(seed());
  auto backend = this->backend(2);
  Keys keys;
  for (size_t i = 0; i < smaller_under_sanitizers(150000, 80000); ++i) {
    std::string key = "https://" + std::string(random() % 3, 'x') + std::string(12, '/');
    if (random() % 4) key += std::string(random() % 10, '\0') + big_endian(random() % 1000, 2);
    keys.push_back(key);
  }
  expect_sorted(*backend, Batch(random, keys, 65536, false));
}

TEST_CASE_METHOD(SortTest, "SortTest.SaysWhichLimitIsExceeded", "[SortTest]") {
  auto backend = this->backend(1);
  Sorted sorted;
  std::vector<std::byte> bytes(65537);
  KeyColumn chunk = KeyColumn::fixed(bytes.data(), 1, 65537);
  CHECK(backend->sorter().sort({&chunk, 1}, &sorted).code() == StatusCode::invalid_argument);
  chunk.size = 65536;
  CHECK_OK(backend->sorter().sort({&chunk, 1}, &sorted));
  CHECK(sorted.order == BulkVector<uint32_t>{65535});
  std::vector<KeyColumn> chunks(65537, KeyColumn::fixed(bytes.data(), 1, 1));
  CHECK(backend->sorter().sort(chunks, &sorted).code() == StatusCode::invalid_argument);
  chunks.resize(65536);
  CHECK_OK(backend->sorter().sort(chunks, &sorted));
  CHECK(sorted.order == BulkVector<uint32_t>{make_row_id(65535, 0)});
  chunk.size = 65536;
  std::fill(chunks.begin(), chunks.end(), chunk);
  CHECK(backend->sorter().sort(chunks, &sorted).code() == StatusCode::invalid_argument);
}

}  // namespace
}  // namespace stride::test
