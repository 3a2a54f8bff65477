// A filter never denies a key that it has, and seldom admits another one.

#include "storage/key_filter.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "storage/aligned_bytes.h"
#include "storage/checksum.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride {
namespace {

class FilterOf {
 public:
  explicit FilterOf(const std::set<std::string>& keys) {
    blocks_.resize(KeyFilter::bytes_for(keys.size()));
    for (const std::string& key : keys)
      KeyFilter::add({blocks_.data(), blocks_.size()}, hash_key(as_bytes(key)));
  }
  bool may_contain(const std::string& key) const {
    return KeyFilter({blocks_.data(), blocks_.size()}).may_contain(hash_key(as_bytes(key)));
  }

 private:
  AlignedBytes blocks_;
};

// The shape of a test's keys.
struct Keys {
  const char* name;
  size_t min_bytes, max_bytes;
  bool ascending;  // numbers one after the other
};

std::string any_key(const Keys& keys, std::mt19937_64& random, uint64_t number) {
  std::string key(keys.min_bytes + random() % (keys.max_bytes - keys.min_bytes + 1), '\0');
  for (char& c : key) c = static_cast<char>(random());
  if (keys.ascending)
    for (size_t i = 0; i < 8; ++i) key[7 - i] = static_cast<char>(number >> 8 * i);
  return key;
}

TEST_CASE("KeyFilterTest.HasAllOfItsKeysAndFewOthers", "[KeyFilterTest]") {
  const Keys keys = GENERATE(Keys{"of 8 bytes", 8, 8, false}, Keys{"that ascend", 8, 8, true},
                             Keys{"of 20 bytes", 20, 20, false},
                             Keys{"of any width, some of them empty", 0, 40, false});
  const uint64_t count = GENERATE(1u, 2u, 50u, 1'000u, 60'000u);
  std::mt19937_64 random(test::seed());
  // One small filter may be worse than most.
  const int filters = count < 1'000u ? 50 : count < 60'000u ? 10 : 1;
  uint64_t asked = 0, admitted = 0;
  for (int f = 0; f < filters; ++f) {
    std::set<std::string> stored{keys.min_bytes == 0 ? "" : any_key(keys, random, 0)};
    for (uint64_t i = 1; i < count; ++i) stored.insert(any_key(keys, random, 2 * i));
    const FilterOf filter(stored);
    for (const std::string& key : stored)
      if (!filter.may_contain(key)) FAIL("a key is denied, among " << count << " " << keys.name);
    for (int i = 0; i < 100'000 / filters; ++i) {
      std::string other = any_key(keys, random, 2 * static_cast<uint64_t>(i) + 1);
      if (stored.contains(other)) continue;
      ++asked;
      admitted += filter.may_contain(other);
    }
  }
  const double rate = static_cast<double>(admitted) / static_cast<double>(asked);
  INFO(count << " keys " << keys.name << ": " << rate);
  // What random hashes give is 0.0105 at 10 bits a key.
  CHECK(rate < 0.013);
  if (count == 60'000u) CHECK(rate > 0.007);
}

TEST_CASE("KeyFilterTest.OfNoKeysHasNone", "[KeyFilterTest]") {
  CHECK(KeyFilter::bytes_for(0) == 64u);
  const FilterOf filter({});
  std::mt19937_64 random(test::seed());
  CHECK_FALSE(filter.may_contain(""));
  for (int i = 0; i < 100; ++i) CHECK_FALSE(filter.may_contain(std::to_string(random())));
  CHECK_FALSE(KeyFilter().is_there());
}

TEST_CASE("KeyFilterTest.SizesAreWholeBlocks", "[KeyFilterTest]") {
  for (auto [keys, blocks] : {std::pair<uint64_t, uint64_t>{1, 1},
                              {51, 1},
                              {52, 2},
                              {1'000'000, 19'532},
                              {4'294'967'294, 83'886'080}}) {
    CHECK(KeyFilter::blocks_for(keys) == blocks);
    CHECK(KeyFilter::bytes_for(keys) == blocks * 64);
    CHECK(KeyFilter::block_of(~uint64_t{0}, blocks) == blocks - 1);
    CHECK(KeyFilter::block_of(0, blocks) == 0u);
  }
}

// A column's hashes are those of its keys, one by one, and the checksum of their bytes.
TEST_CASE("KeyFilterTest.HashesOfColumns", "[KeyFilterTest]") {
  std::mt19937_64 random(test::seed());
  for (uint32_t width : {0u, 1u, 4u, 8u, 9u, 33u, 300u}) {
    constexpr uint64_t rows = 200;
    std::string bytes(rows * width, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const KeyColumn column = KeyColumn::fixed(bytes.data(), width, rows);
    PackedColumn packed;
    packed.data = column.data;
    packed.data_bytes = bytes.size();
    packed.size = rows;
    packed.width = width;
    std::vector<uint64_t> offsets(rows + 1);
    for (uint64_t i = 0; i <= rows; ++i) offsets[i] = i * width;
    const KeyColumn variable = KeyColumn::variable(bytes.data(), offsets.data(), rows);
    std::vector<uint64_t> of_packed(rows), of_fixed(rows), of_variable(rows);
    std::vector<uint32_t> all(rows);
    for (uint32_t i = 0; i < rows; ++i) all[i] = i;
    hash_keys(packed, 0, of_packed);
    hash_keys(column, all, of_fixed.data());
    hash_keys(variable, all, of_variable.data());
    for (uint64_t i = 0; i < rows; ++i) {
      CHECK(of_packed[i] == checksum(column[i]));
      CHECK(of_fixed[i] == of_packed[i]);
      CHECK(of_variable[i] == of_packed[i]);
    }
    std::vector<uint64_t> part(50);
    hash_keys(packed, 100, part);
    CHECK(std::equal(part.begin(), part.end(), of_packed.begin() + 100));
  }
}

}  // namespace
}  // namespace stride
