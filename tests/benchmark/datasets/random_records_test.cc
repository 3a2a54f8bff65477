// Random records are distinct and follow from the seed alone; what measures the machine with them
// copies what it should.
#include "benchmark/datasets/random_records.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "benchmark/harness/page_cache.h"
#include "benchmark/limits/gather.h"
#include "benchmark/limits/write.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::benchmark {
namespace {

std::string text_of(const Column& column) {
  return std::string(as_text(Bytes(column.data, column.bytes())));
}

TEST_CASE("RandomRecordsTest.KeysAreDistinct", "[RandomRecordsTest]") {
  Parallel parallel(3);
  RandomRecords random({.records = 200'000, .value_bytes = 1, .seed = test::seed()}, &parallel);
  std::set<std::string_view> keys;
  for (uint64_t i = 0; i < random.keys().size; ++i) keys.insert(as_text(random.keys()[i]));
  CHECK(keys.size() == 200'000u);
}

TEST_CASE("RandomRecordsTest.FollowFromTheSeedAlone", "[RandomRecordsTest]") {
  Parallel one(1), two(2);
  for (uint32_t value_bytes : {0, 1, 7, 8, 44}) {
    RandomRecordsOptions options{
        .records = 100'003, .value_bytes = value_bytes, .seed = test::seed()};
    RandomRecords a(options, &one), b(options, &two);
    CHECK(text_of(a.keys()) == text_of(b.keys()));
    CHECK(text_of(a.values()) == text_of(b.values()));
    CHECK(a.view().key_width() == 8u);
    CHECK(a.view().longest_value() == value_bytes);
    CHECK(a.view().bytes() == 100'003 * (8 + uint64_t{value_bytes}));
    ++options.seed;
    RandomRecords other(options, &two);
    CHECK(text_of(a.keys()) != text_of(other.keys()));
    if (value_bytes) CHECK(text_of(a.values()) != text_of(other.values()));
  }
}

TEST_CASE("RandomRecordsTest.ValuesDiffer", "[RandomRecordsTest]") {
  Parallel parallel(2);
  RandomRecords random({.records = 10'000, .value_bytes = 9}, &parallel);
  std::set<std::string_view> values;
  for (uint64_t i = 0; i < 10'000; ++i) values.insert(as_text(random.values()[i]));
  CHECK(values.size() == 10'000u);
}

TEST_CASE("GatherLimitTest.CopiesTheValuesInOrder", "[GatherLimitTest]") {
  Parallel parallel(2);
  std::mt19937_64 numbers(test::seed());
  for (uint32_t width : {1, 3, 4, 7, 8, 15, 16, 17, 44, 64, 200, 300, 1024, 1500}) {
    RandomRecords random({.records = 1000, .value_bytes = width, .seed = test::seed()}, &parallel);
    for (uint64_t n : {0, 1, 63, 64, 1000}) {
      std::vector<uint32_t> places(n);
      std::string expected;
      for (uint32_t& place : places) {
        place = static_cast<uint32_t>(numbers() % 1000);
        expected += as_text(random.values()[place]);
      }
      for (bool past_caches : {false, true}) {
        BulkVector<std::byte> out(expected.size() + 1);
        out[expected.size()] = std::byte{0x5A};
        gather_rows(random.values(), places, 8, past_caches, out.data());
        CHECK_MESSAGE(std::string(as_text(Bytes(out.data(), expected.size()))) == expected, width);
        CHECK_MESSAGE(out[expected.size()] == std::byte{0x5A}, "written past the end");
      }
    }
  }
}

TEST_CASE("GatherLimitTest.MeasuresEveryBatch", "[GatherLimitTest]") {
  Parallel parallel(2);
  RandomRecords random({.records = 1000, .value_bytes = 5}, &parallel);
  std::vector<uint32_t> places(5000, 7);
  GatherLimit gather(random.values(), places, 0.01, &parallel);
  for (uint64_t batch : {1, 1000, 5000}) CHECK_MESSAGE(gather.values_per_second(batch) > 0, batch);
}

TEST_CASE("WriteLimitTest.DiskAndMemory", "[WriteLimitTest]") {
  Parallel parallel(2);
  RandomRecords random({.records = 1000, .value_bytes = 5}, &parallel);
  CHECK(copy_bytes_per_second(random.keys(), random.values(), &parallel) > 0);
  std::string directory = std::filesystem::temp_directory_path().string() + "/stride-write-limit-" +
                          std::to_string(getpid());
  Result<double> rate = disk_bytes_per_second(directory, 1 << 20);
  REQUIRE_OK(rate);
  CHECK(*rate > 0);
  CHECK_MESSAGE(std::filesystem::is_empty(directory), "the file is removed");
  std::filesystem::remove_all(directory);
  std::ofstream(directory) << "x";
  CHECK_FALSE(disk_bytes_per_second(directory, 1 << 20).ok());
  std::filesystem::remove_all(directory);
}

TEST_CASE("PageCacheTest.Evict", "[PageCacheTest]") {
  std::string directory = std::filesystem::temp_directory_path().string() + "/stride-page-cache-" +
                          std::to_string(getpid());
  std::filesystem::create_directories(directory + "/below");
  std::ofstream(directory + "/empty");
  std::ofstream(directory + "/below/file") << std::string(1 << 20, 'x');
  uint64_t before = cached_bytes(directory);
  Status status = evict_page_cache(directory);
  CHECK_OK(status);
  uint64_t after = cached_bytes(directory);
  std::filesystem::remove_all(directory);
  CHECK_FALSE(evict_page_cache(directory).ok());
  if (before == 0 || after == before) SKIP("this file system keeps or hides its cache");
  CHECK(after == 0u);
}

}  // namespace
}  // namespace stride::benchmark
