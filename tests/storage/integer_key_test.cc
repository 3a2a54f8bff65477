// Keys of numbers sort as the numbers do, and are those of the C interface and the command line.
#include "storage/integer_key.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

using namespace stride;

namespace {

Bytes bytes_of(const uint64_t& key) { return {reinterpret_cast<const std::byte*>(&key), 8}; }

TEST_CASE("IntegerKeyTest.TheHighestByteComesFirst", "[IntegerKeyTest]") {
  uint64_t key = u64_key(0x0102030405060708);
  CHECK(as_text(bytes_of(key)) == "\x01\x02\x03\x04\x05\x06\x07\x08");
  key = i64_key(0x0102030405060708);
  CHECK(as_text(bytes_of(key)) == "\x81\x02\x03\x04\x05\x06\x07\x08");
}

TEST_CASE("IntegerKeyTest.KeysSortAsNumbersAndLeadBack", "[IntegerKeyTest]") {
  using Limits = std::numeric_limits<int64_t>;
  std::vector<int64_t> numbers = {0, -1, 1, Limits::min(), Limits::max(), 255, 256, -256};
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 1000; ++i) numbers.push_back(static_cast<int64_t>(random() >> random() % 64));
  std::sort(numbers.begin(), numbers.end());
  std::vector<uint64_t> keys = i64_keys(numbers);
  for (size_t i = 0; i < keys.size(); ++i) {
    CHECK(i64_of_key(bytes_of(keys[i])) == numbers[i]);
    CHECK((i == 0 || numbers[i] == numbers[i - 1] ||
           compare(bytes_of(keys[i - 1]), bytes_of(keys[i])) < 0));
  }
  std::vector<uint64_t> plain(numbers.begin(), numbers.end());
  std::sort(plain.begin(), plain.end());
  keys = u64_keys(plain);
  for (size_t i = 0; i < keys.size(); ++i) {
    CHECK(u64_of_key(bytes_of(keys[i])) == plain[i]);
    CHECK((i == 0 || plain[i] == plain[i - 1] ||
           compare(bytes_of(keys[i - 1]), bytes_of(keys[i])) < 0));
  }
}

}  // namespace
