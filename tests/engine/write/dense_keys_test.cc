// Numbers of keys by their codes, beside those of a map.
#include "engine/write/dense_keys.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

// Possible keys, if each byte may be any of those at its place.
double possible(const Keys& keys) {
  size_t shortest = keys[0].size(), longest = 0;
  for (const std::string& key : keys) {
    shortest = std::min(shortest, key.size());
    longest = std::max(longest, key.size());
  }
  double product = 1;
  for (size_t place = 0; place < longest; ++place) {
    std::set<char> bytes;
    for (const std::string& key : keys)
      if (place < key.size()) bytes.insert(key[place]);
    product *= static_cast<double>(bytes.size() + (shortest <= place));
  }
  return product;
}

// Cuts the keys into columns of any number of rows, and compares what becomes of them with a map.
bool check_numbers(const Keys& keys, uint32_t width, std::mt19937_64& random) {
  auto backend = Backend::host(1 + random() % 3);
  std::vector<std::unique_ptr<Rows>> parts;
  std::vector<KeyColumn> columns;
  for (size_t first = 0; first < keys.size();) {
    const size_t n = std::min<size_t>(random() % 3000, keys.size() - first);
    parts.push_back(std::make_unique<Rows>(Keys(keys.begin() + first, keys.begin() + first + n)));
    columns.push_back(parts.back()->column());
    first += n;
  }
  DenseKeys dense(*backend);
  const bool taken = dense.look(columns);
  const bool few = possible(keys) <= 64.0 * static_cast<double>(keys.size()) &&
                   std::all_of(keys.begin(), keys.end(), [](auto& k) { return k.size() <= 32; });
  REQUIRE(taken == (few && keys.size() >= 4096));
  if (!taken) return false;
  std::vector<uint32_t> numbers(keys.size());
  uint64_t at = 0;
  for (const KeyColumn& column : columns) {
    dense.mark(column, numbers.data() + at);
    at += column.size;
  }
  KeyCopies copies(width);
  dense.finish(numbers, &copies);
  std::map<std::string, uint32_t> expected;
  for (const std::string& key : keys) expected[key];
  REQUIRE(copies.size() == expected.size());
  uint32_t number = 0;
  for (auto& [key, its_number] : expected) {
    REQUIRE(as_text(copies.column()[number]) == key);
    its_number = number++;
  }
  for (size_t i = 0; i < keys.size(); ++i) REQUIRE(numbers[i] == expected[keys[i]]);
  return true;
}

// A key of 0x00, 0xFF and letters.
std::string any_key(size_t bytes, uint64_t alphabet, std::mt19937_64& random) {
  std::string key(bytes, '\0');
  for (char& c : key) {
    const uint64_t r = random() % alphabet;
    c = r == 0 ? '\0' : r == 1 ? '\xFF' : static_cast<char>('a' + r);
  }
  return key;
}

TEST_CASE("DenseKeysTest.NumbersAsAMapDoes", "[DenseKeysTest]") {
  std::mt19937_64 random(seed());
  int taken = 0;
  for (int round = 0; round < 60; ++round) {
    const bool fixed = round % 2;
    const size_t longest = random() % 35;
    const uint64_t alphabet = 1 + random() % (longest > 12 ? 2 : longest > 4 ? 5 : 30);
    INFO((fixed ? "keys of " : "keys of up to ") << longest << " bytes, " << alphabet << " kinds");
    Keys keys(4000 + random() % 20'000);
    for (std::string& key : keys)
      key = any_key(fixed ? longest : random() % (longest + 1), alphabet, random);
    taken += check_numbers(keys, fixed ? static_cast<uint32_t>(longest) : 0, random);
  }
  CHECK(taken >= 5);
}

// Places where all keys agree cost nothing, up to 32 of them.
TEST_CASE("DenseKeysTest.LongKeysThatDifferInFewBytes", "[DenseKeysTest]") {
  std::mt19937_64 random(seed());
  for (size_t bytes : {31u, 32u, 33u}) {
    Keys keys(5000, any_key(bytes, 20, random));
    for (std::string& key : keys)
      for (size_t place : {3u, 17u, 30u}) key[place] = static_cast<char>(random() % 50);
    CHECK(check_numbers(keys, static_cast<uint32_t>(bytes), random) == (bytes < 33));
  }
}

TEST_CASE("DenseKeysTest.FewRowsAndFewKeys", "[DenseKeysTest]") {
  std::mt19937_64 random(seed());
  CHECK(!check_numbers(Keys(4095, "a"), 0, random));
  CHECK(check_numbers(Keys(4096, "a"), 0, random));
  CHECK(check_numbers(Keys(4096, ""), 0, random));
  Keys prefixes(4096, "abab");
  for (std::string& key : prefixes) key.resize(random() % 5);
  CHECK(check_numbers(prefixes, 0, random));
  // What does not go with the first rows comes last.
  Keys late(70'000, "a");
  late.back() = std::string(33, 'a');
  CHECK(!check_numbers(late, 0, random));
  for (size_t i = 60'000; i < late.size(); ++i) late[i] = any_key(20, 20, random);
  CHECK(!check_numbers(late, 0, random));
}

}  // namespace
}  // namespace stride::test
