// Reads of segments that have checksums of pages and were written by an earlier opening.
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/segment_format.h"
#include "tests/support/catch.h"
#include "tests/support/forged_files.h"
#include "tests/support/key_sets.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

struct PagedShape {
  const char* name;
  bool fixed_keys, fixed_values;
};

class PagedReadsTest {
 protected:
  const PagedShape shape_ =
      GENERATE(PagedShape{"one width", true, true}, PagedShape{"values of any length", true, false},
               PagedShape{"keys and values of any length", false, false});
  RunsWith name_{shape_.name};

  // 9,000 rows in one segment of some 8 MB; some values are larger than a page, some empty.
  PagedReadsTest() {
    {
      auto db = open();
      Table table = *db->create_table("t");
      WriteTransaction t = db->begin();
      while (model_.size() < 9000) {
        const std::string key = random_key();
        const uint64_t bytes = shape_.fixed_values   ? 900
                               : random_() % 50 == 0 ? random_() % 20'000
                                                     : random_() % 1500;
        std::string value(bytes, static_cast<char>('a' + random_() % 26));
        for (uint64_t i = 0; i < bytes; i += 50) value[i] = static_cast<char>(random_());
        REQUIRE_OK(t.put(table, key, value));
        model_[key] = value;
      }
      REQUIRE_OK(t.commit());
      REQUIRE_OK(db->compact());
      REQUIRE_OK(db->close());
    }
    for (const auto& file : fs::directory_iterator(directory_.path()))
      if (file.path().extension() == ".seg" && fs::file_size(file) > least_paged_bytes)
        segment_ = file.path();
    REQUIRE(!segment_.empty());
    good_ = bytes_of_file(segment_.string());
    REQUIRE(entry_of(good_, SectionType::page_checksums) != 0u);
  }
  std::string random_key() {
    const uint64_t number = random_() % 1'000'000;
    std::string key = std::to_string(10'000'000 + number);
    if (!shape_.fixed_keys) key += std::string(number % 40, 'k');
    return key;
  }
  std::unique_ptr<Database> open() const {
    Options options;
    options.backend = BackendKind::host;
    auto db = Database::open(directory_.path(), options);
    REQUIRE_OK(db);
    return std::move(*db);
  }

  std::mt19937_64 random_{seed()};
  TemporaryDirectory directory_;
  Model model_;
  fs::path segment_;
  std::string good_;
};

TEST_CASE_METHOD(PagedReadsTest, "PagedReadsTest.AnswersAreThoseOfAModel", "[PagedReadsTest]") {
  auto db = open();
  Table table = *db->open_table("t");
  for (int i = 0; i < 500; ++i) {
    std::string key = random_key();
    const auto near = model_.lower_bound(key);
    if (random_() % 4 && near != model_.end()) key = near->first;
    auto value = db->snapshot().get(table, std::string_view(key));
    REQUIRE_OK(value);
    REQUIRE(value->has_value() == model_.contains(key));
    if (value->has_value()) REQUIRE(as_text(**value) == model_[key]);
  }
  expect_equal(db->snapshot(), table, model_, random_);
  REQUIRE_OK(db->verify());
}

// One read after another, and many at once: each answer is right, or the file is named.
TEST_CASE_METHOD(PagedReadsTest, "PagedReadsTest.DamageGivesNoWrongAnswer", "[PagedReadsTest]") {
  uint64_t damaged = 0;
  for (int i = 0; i < 25; ++i) {
    std::string bytes = good_;
    for (uint64_t n = 1 + random_() % 4; n > 0; --n)
      bytes[random_() % bytes.size()] ^= static_cast<char>(1 + random_() % 255);
    std::ofstream(segment_, std::ios::binary) << bytes;
    auto db = open();
    auto table = db->open_table("t");
    REQUIRE_OK(table);
    uint64_t wrong = 0;
    auto check = [&](const Status& status) {
      if (status.ok()) return true;
      wrong += status.code() != StatusCode::corruption;
      ++damaged;
      return false;
    };
    std::vector<std::string> keys;
    for (int k = 0; k < 60; ++k) {
      auto at = model_.lower_bound(random_key());
      keys.push_back(at == model_.end() ? random_key() : at->first);
      auto value = db->snapshot().get(*table, std::string_view(keys.back()));
      if (!check(value.status())) continue;
      const auto expected = model_.find(keys.back());
      wrong += value->has_value() != (expected != model_.end());
      if (value->has_value() && expected != model_.end())
        wrong += as_text(**value) != expected->second;
    }
    const OwnedColumn queries(keys, shape_.fixed_keys);
    GetResult result;
    if (check(db->snapshot().get(*table, queries.column(), &result)))
      for (uint64_t k = 0; k < keys.size(); ++k) {
        const auto expected = model_.find(keys[k]);
        wrong += result.found[k] != (expected != model_.end());
        if (result.found[k] && expected != model_.end())
          wrong += as_text(result.values[k]) != expected->second;
      }
    REQUIRE(wrong == 0u);
    CHECK(db->verify().code() == StatusCode::corruption);
  }
  CHECK(damaged > 0u);
}

}  // namespace
}  // namespace stride::test
