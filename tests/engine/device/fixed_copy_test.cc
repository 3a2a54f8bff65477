// Copies of values of one width, which begin while the rest of a batch is still searched where a
// device hands over what it finds in pieces.
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/device/residency_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

class FixedCopyTest : protected ResidencyTest {
 protected:
  static constexpr uint32_t width = 12;  // of a value
  // With 16,384 rows it is measured whether a device is worth it, and the fake one is not.
  static constexpr uint64_t range = 17'000, rows = 15'000;

  // Big-endian, as the table has them.
  static uint64_t key_of(uint64_t number) { return __builtin_bswap64(number); }
  static KeyColumn column(const std::vector<uint64_t>& keys) {
    return KeyColumn::fixed(reinterpret_cast<const std::byte*>(keys.data()), 8, keys.size());
  }
  static std::string to_string(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void open_filled() {
    db_ = open(directory_.file("db" + std::to_string(++databases_)));
    model_.clear();
    table_ = *db_->open_or_create_table("t", {.key_width = 8});
    std::vector<uint64_t> keys;
    std::string values;
    for (uint64_t i = 0; i < rows; ++i) {
      const uint64_t number = random_() % range;
      std::string value = std::to_string(random_());
      value.resize(width, 'x');
      keys.push_back(key_of(number));
      values += value;
      model_[keys.back()] = value;
    }
    WriteTransaction t = db_->begin();
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    REQUIRE_OK(t.put(table_, column(keys), Column::fixed(bytes, width, keys.size())));
    REQUIRE_OK(t.commit());
  }

  // Of a hundred of them so many, and those that the table does not have, are not there.
  std::vector<uint64_t> random_keys(uint64_t n, uint64_t misses) {
    std::vector<uint64_t> keys;
    while (keys.size() < n)
      keys.push_back(key_of(random_() % range + (random_() % 100 < misses ? range : 0)));
    return keys;
  }
  uint64_t count_found(const std::vector<uint64_t>& keys) const {
    uint64_t count = 0;
    for (uint64_t key : keys) count += model_.count(key);
    return count;
  }

  void expect_copies(const std::vector<uint64_t>& keys, GetResult* result) {
    REQUIRE_OK(db_->snapshot().get(table_, column(keys), result));
    REQUIRE(result->values.size == keys.size());
    const std::string missing(result->row_width, '\0');
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < keys.size(); ++i) {
      const auto at = model_.find(keys[i]);
      const bool is_there = at != model_.end();
      wrong += result->found[i] != is_there ||
               to_string(result->values[i]) != (is_there ? at->second : missing);
    }
    CHECK(wrong == 0);
  }

  std::mt19937_64 random_{seed()};
  int databases_ = 0;
  std::unique_ptr<Database> db_;
  Table table_;
  std::map<uint64_t, std::string> model_;
};

TEST_CASE_METHOD(FixedCopyTest, "FixedCopyTest.BatchesOfAllSizes", "[FixedCopyTest]") {
  open_filled();
  GetResult plain, padded;
  padded.row_width = width;
  for (uint64_t piece : {0, 1, 700, 2048, 5000}) {
    if (fake_) fake_->set_piece(piece);
    if (!fake_ && piece) break;  // it has pieces of its own
    for (uint64_t n : {5u, 2047u, 2048u, 16'384u, smaller_under_sanitizers(150'001u, 20'001u),
                       262'143u, 262'144u, 300'001u}) {  // from 128 times 2048 on tasks are larger
      if (piece == 1 && n > 3000) continue;
      if (n > 200'000 && piece != 700) continue;
      for (uint64_t misses : {0, 10, 99, 100}) {
        if (n > 200'000 && misses != 10) continue;
        INFO("pieces of " << piece << ", " << n << " keys, " << misses << " % misses");
        const std::vector<uint64_t> keys = random_keys(n, misses);
        expect_copies(keys, &plain);
        CHECK(plain.data.size() == count_found(keys) * width);
        expect_copies(keys, &padded);
      }
    }
  }
}

// The C interface lends memory: what suffices for the values that are found has to be enough.
TEST_CASE_METHOD(FixedCopyTest, "FixedCopyTest.MemoryThatJustSuffices", "[FixedCopyTest]") {
  open_filled();
  if (fake_) fake_->set_piece(2048);
  for (uint64_t n : {3'000, 30'000}) {
    const std::vector<uint64_t> keys = random_keys(n, 30);
    const uint64_t bytes = count_found(keys) * width;
    for (uint64_t room : {bytes, n * width})
      for (uint32_t row_width : {0u, width}) {
        if (row_width && room == bytes) continue;  // rows that are not found have their place, too
        std::vector<std::byte> memory(room);
        GetResult result;
        result.row_width = row_width;
        result.data.borrow(memory.data(), room);
        expect_copies(keys, &result);
        CHECK(result.data.data() == memory.data());
        CHECK(result.data.size() == (row_width ? n * width : bytes));
      }
  }
}

TEST_CASE_METHOD(FixedCopyTest, "FixedCopyTest.TheHostGoesOnWhereADeviceFails", "[FixedCopyTest]") {
  const std::vector<uint64_t> keys = random_keys(30'000, 20);
  for (uint32_t row_width : {0u, width}) {
    for (StatusCode code : {StatusCode::io_error, StatusCode::resource_exhausted}) {
      uint64_t calls_of_all = 0;
      for (uint64_t n = 0; n <= calls_of_all; n += 1 + n / smaller_under_sanitizers(20, 3)) {
        INFO("call " << n << " fails");
        open_filled();
        if (fake_) fake_->set_piece(2048);
        GetResult result;
        result.row_width = row_width;
        expect_copies(random_keys(30'000, 90), &result);  // and brings the table to the device
        fail_call(n, code);                               // 0: none, to count them
        expect_copies(keys, &result);
        if (n == 0) calls_of_all = calls();
        work_again();
      }
    }
  }
}

}  // namespace
}  // namespace stride::test
