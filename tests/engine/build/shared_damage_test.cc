// Damaged segments that keep equal values once: the right answer, or corruption that says where.
#include <cstring>
#include <filesystem>
#include <fstream>

#include "storage/checksum.h"
#include "storage/segment_format.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

// A segment whose file is damaged in its numbers.
class SharedDamageTest {
 protected:
  // Blocks of numbers, and then of values: opening reads what is behind those.
  static constexpr uint64_t rows = 40000, distinct = 300;

  SharedDamageTest() { make_anew(); }
  void make_anew() {
    for (const auto& entry : fs::directory_iterator(directory_.path())) fs::remove(entry.path());
    auto db = Database::open(directory_.path());
    auto table = (*db)->create_table("t", {.share_equal_values = true});
    WriteTransaction t = (*db)->begin();
    Rows keys, values;
    for (uint64_t i = 0; i < rows; ++i) {
      std::string key = "key" + std::to_string(10000 + i);
      std::string value = std::to_string(i * 7 % distinct) + std::string(300, 'v');
      keys.add(key);
      values.add(value);
      model_[key] = value;
    }
    CHECK_OK(t.put(*table, keys.column(), values.column()));
    CHECK_OK(t.commit());
    for (const auto& entry : fs::directory_iterator(directory_.path()))
      if (entry.path().extension() == ".seg") file_ = entry.path();
    std::ifstream in(file_, std::ios::binary);
    good_.assign(std::istreambuf_iterator<char>(in), {});
    SegmentFooter footer = get<SegmentFooter>(good_.size() - sizeof(SegmentFooter));
    for (uint64_t i = 0; i < footer.sections; ++i) {
      auto section = get<SectionEntry>(footer.tables_offset + i * sizeof(SectionEntry));
      if (section.type == static_cast<uint32_t>(SectionType::value_numbers)) numbers_ = section;
    }
  }
  template <class T>
  T get(uint64_t offset) const {
    T value;
    std::memcpy(&value, good_.data() + offset, sizeof value);
    return value;
  }
  void write(const std::string& bytes) const {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
  }
  // Makes the block's checksums, and those of the tables and the footer, match the bytes.
  static void seal(std::string* bytes) {
    auto sum = [&](uint64_t offset, uint64_t size) {
      return checksum(as_bytes(std::string_view(*bytes).substr(offset, size)));
    };
    uint64_t at = bytes->size() - sizeof(SegmentFooter);
    SegmentFooter footer;
    std::memcpy(&footer, bytes->data() + at, sizeof footer);
    uint64_t table = footer.tables_offset + footer.sections * sizeof(SectionEntry);
    for (uint64_t block = 0; block < footer.blocks; ++block) {
      uint64_t offset = block * segment_block_bytes;
      uint64_t s = sum(offset, std::min(segment_block_bytes, footer.tables_offset - offset));
      std::memcpy(bytes->data() + table + block * 8, &s, 8);
    }
    footer.tables_checksum = sum(footer.tables_offset, at - footer.tables_offset);
    std::memcpy(bytes->data() + at, &footer, sizeof footer);
    footer.checksum = sum(at, offsetof(SegmentFooter, checksum));
    std::memcpy(bytes->data() + at, &footer, sizeof footer);
  }
  // Every way to a value: the right one, or corruption that names the file. Returns how many
  // failed.
  int read_all(const std::string& what) {
    auto db = Database::open(directory_.path());
    if (!db.ok()) {
      check(db.status());
      return 1;
    }
    int failures = 0;
    auto table = (*db)->open_table("t");
    Snapshot snapshot = (*db)->snapshot();
    Rows queries;
    for (const auto& [key, value] : model_) queries.add(key);
    auto failed = [&](const Status& s) {
      if (s.ok()) return false;
      ++failures;
      check(s);
      return true;
    };
    uint64_t i = 0;
    for (const auto& [key, value] : model_) {
      if (++i % 1000) continue;
      auto one = snapshot.get(*table, std::string_view(key));
      if (!failed(one.status())) CHECK_MESSAGE(text(**one) == value, what);
    }
    GetResult got;
    FindResult found;
    LowerBoundResult bounds;
    bool got_all = !failed(snapshot.get(*table, queries.column(), &got));
    bool found_all = !failed(snapshot.find(*table, queries.column(), &found));
    bool all_bounds = !failed(snapshot.lower_bound(*table, queries.column(), &bounds));
    i = 0;
    for (const auto& [key, value] : model_) {
      if (got_all) expect_value(got.values[i], value, what);
      if (found_all) expect_value(found.value(i), value, what);
      if (all_bounds) expect_value(bounds.values[i], value, what);
      ++i;
    }
    for (bool reverse : {false, true}) {
      auto scan = snapshot.scan(*table, {.reverse = reverse});
      if (failed(scan.status())) continue;
      for (ScanBatch batch; scan->next(&batch);)
        for (uint64_t r = 0; r < batch.keys.size; ++r)
          expect_value(batch.values[r], model_[text(batch.keys[r])], what);
      (void)failed(scan->status());
    }
    (void)failed((*db)->verify());
    // A compaction, which needs something to do.
    WriteTransaction t = (*db)->begin();
    CHECK((t.put(*table, "a", "b").ok() && t.commit().ok()));
    if (failed((*db)->compact())) {
      // Nothing of it is left.
      CHECK_MESSAGE((*db)->tables()[0].segments == 2u, what);
    }
    return failures;
  }
  // Without a copy where it is right, which it nearly always is.
  static void expect_value(Bytes found, const std::string& value, const std::string& what) {
    if (found.size() == value.size() && std::memcmp(found.data(), value.data(), value.size()) == 0)
      return;
    CHECK_MESSAGE(text(found) == value, what);
  }
  void check(const Status& s) {
    CHECK_MESSAGE(s.code() == StatusCode::corruption, s.to_string());
    CHECK_MESSAGE(s.file() == file_, s.to_string());
    CHECK_MESSAGE(s.offset().has_value(), s.to_string());
    CHECK_MESSAGE(!s.remedy().empty(), s.to_string());
    last_ = s.to_string();
  }

  TemporaryDirectory directory_;
  std::string file_, good_, last_;
  SectionEntry numbers_{};
  Model model_;
};

TEST_CASE_METHOD(SharedDamageTest, "SharedDamageTest.BytesOfTheNumbers", "[SharedDamageTest]") {
  REQUIRE(numbers_.bytes == rows * 2);
  for (uint64_t at = 0; at < numbers_.bytes; at += smaller_under_sanitizers(331, 3001)) {
    std::string bytes = good_;
    bytes[numbers_.offset + at] = static_cast<char>(bytes[numbers_.offset + at] ^ 1 << at % 8);
    write(bytes);
    auto db = Database::open(directory_.path(), {.read_only = true});
    REQUIRE_OK(db);
    auto table = (*db)->open_table("t");
    std::string key = "key" + std::to_string(10000 + at / 2);
    auto one = (*db)->snapshot().get(*table, std::string_view(key));
    REQUIRE_MESSAGE(!one.ok(), at);
    check(one.status());
    REQUIRE_MESSAGE(last_.find("value_numbers") != std::string::npos, last_);
    check((*db)->verify());
  }
}

TEST_CASE_METHOD(SharedDamageTest, "SharedDamageTest.UndamagedFilesAreReadToTheEnd",
                 "[SharedDamageTest]") {
  CHECK(read_all("undamaged") == 0);
}

TEST_CASE_METHOD(SharedDamageTest, "SharedDamageTest.ReadsGiveTheRightAnswerOrCorruption",
                 "[SharedDamageTest]") {
  std::mt19937_64 random(seed());
  for (int round = 0; round < smaller_under_sanitizers(8, 3); ++round) {
    make_anew();
    uint64_t at =
        random() % 2 ? numbers_.offset + random() % numbers_.bytes : random() % good_.size();
    std::string bytes = good_;
    bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
    write(bytes);
    bool of_numbers = at - numbers_.offset < numbers_.bytes;
    CHECK(read_all("offset " + std::to_string(at)) >= (of_numbers ? 6 : 0));
  }
}

TEST_CASE_METHOD(SharedDamageTest, "SharedDamageTest.NumbersOutOfRangeWithGoodChecksums",
                 "[SharedDamageTest]") {
  for (uint64_t row : {uint64_t{0}, uint64_t{33333}, rows - 1}) {
    for (uint16_t number : {uint16_t{distinct}, uint16_t{0xFFFF}}) {
      if (row == 33333 && number == distinct) continue;
      make_anew();
      std::string bytes = good_;
      uint64_t offset = numbers_.offset + row * 2;
      std::memcpy(bytes.data() + offset, &number, 2);
      seal(&bytes);
      write(bytes);
      CHECK(read_all("row " + std::to_string(row)) >= 6);
      CHECK_MESSAGE(last_.find("section value_numbers gives row " + std::to_string(row) +
                               " value " + std::to_string(number) + " of 300") != std::string::npos,
                    last_);
      CHECK_MESSAGE(last_.find("offset " + std::to_string(offset)) != std::string::npos, last_);
    }
  }
}

TEST_CASE_METHOD(SharedDamageTest, "SharedDamageTest.Truncations", "[SharedDamageTest]") {
  for (uint64_t keep : {numbers_.offset, numbers_.offset + 1, numbers_.offset + numbers_.bytes - 1,
                        numbers_.offset + numbers_.bytes}) {
    write(good_.substr(0, keep));
    auto db = Database::open(directory_.path(), {.read_only = true});
    REQUIRE_OK(db);
    check((*db)->snapshot().count(*(*db)->open_table("t")).status());
  }
}

}  // namespace
}  // namespace stride::test
