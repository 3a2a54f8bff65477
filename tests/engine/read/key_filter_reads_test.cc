// Runs with filters of their keys: what is found is what would be found without, and a filter that
// is damaged or lies is told.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "engine/build/filter_builder.h"
#include "engine/database.h"
#include "gpu/backend.h"
#include "storage/aligned_bytes.h"
#include "storage/key_filter.h"
#include "tests/support/catch.h"
#include "tests/support/forged_files.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_rows.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void replace_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class KeyFilterReadsTest {
 protected:
  std::string path() const { return directory_.file("db"); }
  std::unique_ptr<Database> open() {
    auto db = Database::open(
        path(),
        {.memtable_bytes = 1 << 15, .background_work = false, .backend = BackendKind::host});
    REQUIRE_OK(db);
    return std::move(*db);
  }
  // Commits random rows and erasures of them until there are so many runs.
  void fill(Database& db, const Table& table, RandomRows& rows, uint64_t runs, Model* model) {
    auto runs_now = [&] {
      for (const TableStatistics& s : db.tables())
        if (s.name == table.name()) return s.runs;
      return uint64_t{0};
    };
    for (uint64_t made = runs_now(); made < runs; made = runs_now()) {
      for (int i = 0; i < 20; ++i) {
        WriteTransaction t = db.begin();
        for (int k = 0; k < 20; ++k) {
          std::string key = rows.key(), value = rows.value();
          if (!model->empty() && random_() % 5 == 0) {
            auto old = model->lower_bound(key);
            if (old == model->end()) old = model->begin();
            key = old->first;
            if (random_() % 2) {
              REQUIRE_OK(t.erase(table, key));
              model->erase(key);
              continue;
            }
          }
          REQUIRE_OK(t.put(table, key, value));
          (*model)[key] = value;
        }
        REQUIRE_OK(t.commit(Durability::flush));
      }
    }
  }
  static std::vector<SegmentReport> segments_of(Database& db, const Table& table) {
    auto segments = db.segments(table);
    REQUIRE_OK(segments);
    return *segments;
  }
  // The files of segments that have a filter.
  std::vector<std::string> filtered_files() const {
    std::vector<std::string> found;
    for (const auto& file : fs::directory_iterator(path()))
      if (file.path().extension() == ".seg" &&
          entry_of(bytes_of_file(file.path()), SectionType::key_filter))
        found.push_back(file.path());
    std::sort(found.begin(), found.end());
    return found;
  }
  void expect_corruption(const Status& status, const std::string& file) {
    CHECK_MESSAGE(status.code() == StatusCode::corruption, status.to_string());
    CHECK(status.file() == file);
    CHECK_MESSAGE(status.to_string().find("key_filter") != std::string::npos, status.to_string());
  }

  std::mt19937_64 random_{seed()};
  TemporaryDirectory directory_;
};

TEST_CASE_METHOD(KeyFilterReadsTest, "KeyFilterReadsTest.AnswersAreThoseOfAModel",
                 "[KeyFilterReadsTest]") {
  const Shape shape = GENERATE(
      Shape{"keys of 8 bytes", 8, 256, 0, 20}, Shape{"keys of 4 bytes", 4, 256, 0, 20},
      Shape{"any keys", 0, 256, 12, 20}, Shape{"few keys, one of them empty", 0, 3, 5, 20});
  RunsWith name{shape.name};
  RandomRows rows(shape, random_);
  Model model;
  {
    auto db = open();
    Table table = *db->create_table("t", {.key_width = shape.key_width});
    fill(*db, table, rows, 6, &model);
    CHECK(db->tables()[0].filter_bytes > 0);
    expect_equal(db->snapshot(), table, model, random_);
    REQUIRE_OK(db->verify());
  }
  // Now from files that have not been checked, and whose filters are checked first.
  auto db = open();
  Table table = *db->open_table("t");
  for (int i = 0; i < 20 && !model.empty(); ++i) {
    const std::string key = random_() % 2 ? rows.key() : model.begin()->first;
    auto value = db->snapshot().get(table, std::string_view(key));
    REQUIRE_OK(value);
    CHECK(value->has_value() == model.contains(key));
  }
  expect_equal(db->snapshot(), table, model, random_);
  fill(*db, table, rows, 9, &model);
  expect_equal(db->snapshot(), table, model, random_);
  REQUIRE_OK(db->verify());
  REQUIRE_OK(db->compact());
  expect_equal(db->snapshot(), table, model, random_);
  CHECK(db->tables()[0].filter_bytes == 0);
}

// Where most queries are in the newest run the filter is not asked about all of them.
TEST_CASE_METHOD(KeyFilterReadsTest, "KeyFilterReadsTest.BatchesThatAreAllInOneRun",
                 "[KeyFilterReadsTest]") {
  RandomRows rows({"", 8, 256, 0, 8}, random_);
  Model old, recent;
  auto db = open();
  Table table = *db->create_table("t", {.key_width = 8});
  fill(*db, table, rows, 3, &old);
  fill(*db, table, rows, 4, &recent);  // random keys are not among the old ones
  for (const auto& [key, value] : recent) old[key] = value;
  for (uint64_t others : {0, 1, 100, 3000}) {
    std::vector<std::string> queries;
    for (int i = 0; i < 3000; ++i) {
      auto at = recent.lower_bound(rows.key());
      queries.push_back(at == recent.end() ? recent.begin()->first : at->first);
    }
    for (uint64_t i = 0; i < others; ++i)
      queries[random_() % queries.size()] = random_() % 2 ? rows.key() : old.begin()->first;
    expect_lookups(db->snapshot(), table, old, queries);
  }
}

TEST_CASE_METHOD(KeyFilterReadsTest, "KeyFilterReadsTest.TheOldestRunHasNone",
                 "[KeyFilterReadsTest]") {
  auto db = open();
  Table table = *db->create_table("t", {.key_width = 8});
  RandomRows rows({"", 8, 256, 0, 20}, random_);
  Model model;
  fill(*db, table, rows, 4, &model);
  std::vector<SegmentReport> segments = segments_of(*db, table);
  REQUIRE(segments.size() > 1);
  uint64_t total = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const bool oldest = i + 1 == segments.size();
    CHECK(segments[i].filter_bytes == (oldest ? 0 : KeyFilter::bytes_for(segments[i].rows)));
    total += segments[i].filter_bytes;
  }
  CHECK(db->tables()[0].filter_bytes == total);
  // Resident bytes count whole files.
  CHECK(segments[0].resident_bytes == segments[0].bytes_on_disk);
  CHECK(filtered_files().size() + 1 == segments.size());
}

TEST_CASE_METHOD(KeyFilterReadsTest, "KeyFilterReadsTest.LargeCommitsAndPrefixTablesHaveNone",
                 "[KeyFilterReadsTest]") {
  auto db = open();
  Table table = *db->create_table("t");
  Table routes = *db->create_table("routes", {.address_bits = byte_strings});
  for (int i = 0; i < 3; ++i) {
    WriteTransaction t = db->begin();
    REQUIRE_OK(t.put(table, "key" + std::to_string(i), std::string(1 << 16, 'v')));
    REQUIRE_OK(t.put(routes, "prefix" + std::to_string(i), "v"));
    REQUIRE_OK(t.commit());
  }
  for (const TableStatistics& s : db->tables()) {
    CHECK(s.runs == 3u);
    CHECK(s.filter_bytes == 0u);
  }
}

TEST_CASE_METHOD(KeyFilterReadsTest, "KeyFilterReadsTest.DamageIsTold", "[KeyFilterReadsTest]") {
  RandomRows rows({"", 8, 256, 0, 20}, random_);
  {
    auto db = open();
    Model model;
    fill(*db, *db->create_table("t", {.key_width = 8}), rows, 4, &model);
  }
  const std::string damaged = filtered_files().front();
  std::string bytes = bytes_of_file(damaged);
  const SectionEntry filter = section_of(bytes, SectionType::key_filter);
  bytes[filter.offset + random_() % filter.bytes] ^= 16;
  replace_file(damaged, bytes);
  auto db = open();
  Table table = *db->open_table("t");
  std::vector<std::string> queries;
  for (int i = 0; i < 50; ++i) queries.push_back(rows.key());
  GetResult got;
  auto expect_damage = [&](const Status& status) {
    CHECK_MESSAGE(status.code() == StatusCode::corruption, status.to_string());
    CHECK(status.file() == damaged);
  };
  const Rows batch(queries);
  expect_damage(db->snapshot().get(table, batch.column(), &got));
  expect_damage(db->snapshot().get(table, std::string(7, '\x80') + "m").status());
  expect_damage(db->verify());
}

TEST_CASE_METHOD(KeyFilterReadsTest, "KeyFilterReadsTest.FiltersThatLie", "[KeyFilterReadsTest]") {
  RandomRows rows({"", 0, 256, 12, 20}, random_);
  Model model;
  {
    auto db = open();
    fill(*db, *db->create_table("t"), rows, 4, &model);
  }
  const std::string file = filtered_files().front(), good = bytes_of_file(file);
  const SectionEntry filter = section_of(good, SectionType::key_filter);
  auto with_filter = [&](auto change) {
    std::string bytes = good;
    change(bytes.data() + filter.offset);
    seal_segment(&bytes);
    replace_file(file, bytes);
    return open();
  };
  // Bits too many hide nothing.
  {
    auto db = with_filter([&](char* bits) { std::fill_n(bits, filter.bytes, '\xFF'); });
    REQUIRE_OK(db->verify());
    expect_equal(db->snapshot(), *db->open_table("t"), model, random_);
  }
  // One that is missing.
  {
    auto db = with_filter([&](char* bits) {
      uint64_t at = random_() % filter.bytes;
      while (bits[at] == 0) at = (at + 1) % filter.bytes;
      bits[at] = static_cast<char>(bits[at] & (bits[at] - 1));
    });
    expect_corruption(db->verify(), file);
  }
  auto db = with_filter([&](char* bits) { std::fill_n(bits, filter.bytes, '\0'); });
  expect_corruption(db->verify(), file);
  // Single gets and batches do ask it.
  uint64_t single = 0;
  std::vector<std::string> queries;
  for (const auto& [key, value] : model) {
    queries.push_back(key);
    single += db->snapshot().get(*db->open_table("t"), std::string_view(key))->has_value();
  }
  FindResult found;
  REQUIRE_OK(db->snapshot().find(*db->open_table("t"), Rows(queries).column(), &found));
  uint64_t batch = 0;
  for (size_t i = 0; i < queries.size(); ++i) batch += found.found[i];
  CHECK(single < model.size());
  CHECK(batch == single);
  // What searches no tree finds all, and a compaction writes it again.
  uint64_t rows_left = *db->snapshot().count(*db->open_table("t"));
  CHECK(rows_left == model.size());
  REQUIRE_OK(db->compact());
  REQUIRE_OK(db->verify());
  expect_equal(db->snapshot(), *db->open_table("t"), model, random_);
}

// The same bytes for any number of threads and keys of any shape.
TEST_CASE("FilterBuilderTest.BuildsWhatAddingOneByOneWould", "[FilterBuilderTest]") {
  const uint64_t rows = GENERATE(0u, 1u, 51u, 1'000u, 110'000u, 300'000u, 4'200'000u);
  const uint32_t width = GENERATE(8u, 5u);
  std::mt19937_64 random(seed());
  std::string data(rows * width, '\0');
  for (char& c : data) c = static_cast<char>(random());
  PackedColumn keys;
  keys.data = as_bytes(data).data();
  keys.data_bytes = data.size();
  keys.size = rows;
  keys.width = width;
  AlignedBytes expected;
  expected.resize(KeyFilter::bytes_for(rows));
  const std::span<std::byte> one_by_one(expected.data(), expected.size());
  for (uint64_t i = 0; i < rows; ++i) KeyFilter::add(one_by_one, hash_key(keys[i]));
  for (unsigned threads : {1u, 3u}) {
    auto backend = Backend::host(threads);
    AlignedBytes built;
    built.resize(expected.size());
    build_filter(keys, *backend, {built.data(), built.size()});
    CHECK(std::equal(built.data(), built.data() + built.size(), expected.data()));
  }
}

}  // namespace
}  // namespace stride::test
