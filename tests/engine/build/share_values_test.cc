// Tables whose segments keep equal values once: the same answers as of any table, and smaller.

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "engine/read/cold_read.h"
#include "storage/checksum.h"
#include "storage/memory_file_system.h"
#include "storage/segment_format.h"
#include "tests/support/catch.h"
#include "tests/support/cold_files.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_rows.h"
#include "tests/support/segments.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

// How values come to be.
struct Kind {
  const char* name;
  uint64_t distinct;  // 0: all differ
  uint64_t shortest, longest;
};

std::string value_of(const Kind& kind, uint64_t number) {
  std::mt19937_64 random(number);
  std::string value(kind.shortest + random() % (kind.longest - kind.shortest + 1), 'v');
  for (char& c : value) c = static_cast<char>(random());
  return value;
}

std::string random_value(const Kind& kind, std::mt19937_64& random) {
  uint64_t number = random();
  return value_of(kind, kind.distinct ? number % kind.distinct : number);
}

class ShareValuesTest {
 protected:
  const Kind kind_ =
      GENERATE(Kind{"few", 5, 0, 40}, Kind{"one", 1, 30, 30}, Kind{"distinct", 0, 10, 60},
               Kind{"empty", 1, 0, 0}, Kind{"fixed", 40, 12, 12}, Kind{"codes", 200, 2, 2},
               Kind{"mixed", 400, 0, 900}, Kind{"bytes", 250, 1, 1});
  RunsWith name_{kind_.name};

  std::string value() { return random_value(kind_, random_); }
  std::string key(uint32_t width) {
    std::string k(width ? width : random_() % 12, 'k');
    for (char& c : k) c = static_cast<char>('a' + random_() % 3);
    return k;
  }

  void commit(Database& db, const Table& table, Model* model, uint32_t width) {
    WriteTransaction t = db.begin();
    Rows keys, values;
    for (uint64_t n = random_() % 4 ? random_() % 100 : random_() % 3000; n > 0; --n) {
      std::string k = key(width), v = value();
      keys.add(k);
      values.add(v);
      (*model)[k] = v;
    }
    REQUIRE_OK(t.put(table, keys.column(), values.column()));
    if (random_() % 2) {
      Rows gone;
      for (uint64_t n = random_() % 40; n > 0; --n) {
        std::string k = key(width);
        if (!model->empty() && random_() % 2)
          k = std::next(model->begin(), random_() % model->size())->first;
        gone.add(k);
        model->erase(k);
      }
      REQUIRE_OK(t.erase(table, gone.column()));
    }
    REQUIRE_OK(t.commit(static_cast<Durability>(random_() % 3)));
  }

  std::mt19937_64 random_{seed()};
};

TEST_CASE_METHOD(ShareValuesTest, "ShareValuesTest.AnswersAsAMapDoes", "[ShareValuesTest]") {
  for (int round = 0; round < 4; ++round) {
    TemporaryDirectory directory;
    Options options;
    options.threads = 1 + random_() % 3;
    if (random_() % 2) options.memory_limit_bytes = 1;  // segments are mapped, not resident
    uint32_t width = random_() % 2 ? 6 : 0;
    Model model;
    for (int reopen = 0; reopen < 3; ++reopen) {
      auto db = Database::open(directory.path(), options);
      REQUIRE_OK(db);
      auto table =
          (*db)->open_or_create_table("t", {.key_width = width, .share_equal_values = true});
      REQUIRE_OK(table);
      for (int i = 0; i < 3; ++i) {
        Snapshot before = (*db)->snapshot();
        Model model_before = model;
        commit(**db, *table, &model, width);
        if (random_() % 4 == 0) REQUIRE_OK((*db)->compact());
        expect_equal((*db)->snapshot(), *table, model, random_);
        if (random_() % 3 == 0) expect_equal(before, *table, model_before, random_);
      }
      REQUIRE_OK((*db)->verify());
      if (random_() % 2) REQUIRE_OK((*db)->close());
    }
  }
}

// Batches of the same queries on a device, which has the keys and not the values.
TEST_CASE_METHOD(ShareValuesTest, "ShareValuesTest.ValuesStayOnTheHost", "[ShareValuesTest]") {
  for (ValuePlacement placement : {ValuePlacement::host, ValuePlacement::device}) {
    TemporaryDirectory directory;
    auto device = std::make_shared<FakeDevice>(uint64_t{1} << 40);
    Options options;
    options.shared_backend = device;
    options.value_placement = placement;
    auto db = Database::open(directory.path(), options);
    REQUIRE_OK(db);
    auto table = (*db)->create_table("t", {.share_equal_values = true});
    REQUIRE_OK(table);
    Model model;
    for (int i = 0; i < 3; ++i) {
      commit(**db, *table, &model, 0);
      std::vector<std::string> queries;
      for (int q = 0; q < 1500; ++q) queries.push_back(key(0));
      for (int again = 0; again < 3; ++again)
        expect_lookups((*db)->snapshot(), *table, model, queries);
    }
  }
}

// Tables of 1,000,000 rows and more, in which numbers take 1, 2 and 4 bytes.
class SharedSizesTest {
 protected:
  // Keys of 8 bytes; row r has value r % distinct.
  void load(uint64_t rows, uint64_t distinct, uint64_t bytes, bool share) {
    std::vector<uint64_t> keys(rows);
    std::string values;
    values.reserve(rows * bytes);
    for (uint64_t i = 0; i < rows; ++i) {
      keys[i] = __builtin_bswap64(i * 1000);
      values += value(i % distinct, bytes);
    }
    db_.reset();
    directory_.emplace();
    auto db = Database::open(directory_->path());
    REQUIRE_OK(db);
    db_ = std::move(*db);
    auto table = db_->create_table("t", {.key_width = 8, .share_equal_values = share});
    REQUIRE_OK(table);
    table_ = *table;
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put_view(table_, Column::fixed(keys.data(), 8, rows),
                          Column::fixed(values.data(), static_cast<uint32_t>(bytes), rows)));
    REQUIRE_OK(t.commit());
  }
  static std::string value(uint64_t number, uint64_t bytes) {
    std::string v = std::to_string(number) + "-";
    v.resize(bytes, 'x');
    return v;
  }
  SegmentReport report() {
    auto segments = db_->segments(table_);
    CHECK_OK(segments);
    CHECK(segments->size() == 1u);
    return segments->front();
  }

  std::optional<TemporaryDirectory> directory_;
  std::unique_ptr<Database> db_;
  Table table_;
};

TEST_CASE_METHOD(SharedSizesTest, "SharedSizesTest.AMillionRowsOfThreeValues",
                 "[SharedSizesTest]") {
  load(1'000'000, 3, 200, /*share=*/true);
  SegmentReport shared = report();
  CHECK(shared.distinct_values == 3u);
  CHECK(shared.value_bytes == 600u);
  CHECK(shared.fixed_values);
  CHECK(shared.saved_bytes == 200'000'000u - 600 - 1'000'000);
  CHECK(shared.bytes_on_disk < 10'000'000u);
  TableStatistics table = db_->tables()[0];
  CHECK(table.share_equal_values);
  CHECK(table.rows == 1'000'000u);
  CHECK(table.stored_values == 3u);
  CHECK(table.saved_bytes == shared.saved_bytes);
  // Slices of keys, copies of values.
  auto scan = db_->snapshot().scan(table_);
  REQUIRE_OK(scan);
  uint64_t row = 0;
  for (ScanBatch batch; scan->next(&batch); row += batch.keys.size) {
    REQUIRE(batch.values.is_fixed());
    for (uint64_t i = 0; i < batch.keys.size; i += 97)
      REQUIRE(text(batch.values[i]) == value((row + i) % 3, 200));
  }
  CHECK(row == 1'000'000u);
  REQUIRE_OK(db_->verify());

  load(1'000'000, 3, 200, /*share=*/false);
  SegmentReport plain = report();
  CHECK(plain.distinct_values == 0u);
  CHECK(plain.saved_bytes == 0u);
  CHECK(db_->tables()[0].stored_values == 1'000'000u);
  // Padding to multiples of 64, and of 8 bytes a block of 64 KiB.
  CHECK_THAT(static_cast<double>(plain.bytes_on_disk - shared.bytes_on_disk),
             Catch::Matchers::WithinAbs(static_cast<double>(shared.saved_bytes), 40'000));
}

TEST_CASE_METHOD(SharedSizesTest, "SharedSizesTest.NumbersOfEveryWidth", "[SharedSizesTest]") {
  for (auto [distinct, width] : {std::pair{256, 1}, {257, 2}, {65536, 2}, {65537, 4}}) {
    load(300'000, distinct, 50, /*share=*/true);
    SegmentReport shared = report();
    CHECK(shared.distinct_values == static_cast<uint64_t>(distinct));
    CHECK(shared.saved_bytes == (300'000u - distinct) * 50 - 300'000 * width);
    std::vector<uint64_t> keys;
    for (uint64_t i = 0; i < 300'000; i += 37) keys.push_back(__builtin_bswap64(i * 1000));
    GetResult got;
    REQUIRE_OK(db_->snapshot().get(table_, Column::fixed(keys.data(), 8, keys.size()), &got));
    for (uint64_t i = 0; i < keys.size(); ++i)
      REQUIRE(text(got.values[i]) == value(i * 37 % distinct, 50));
  }
}

// The numbers would take as much as what they save.
TEST_CASE_METHOD(SharedSizesTest, "SharedSizesTest.NothingIsSharedWhereThatSavesNothing",
                 "[SharedSizesTest]") {
  for (auto [distinct, bytes] : {std::pair{60'000, 60}, {100, 1}, {48'000, 6}}) {
    load(60'000, distinct, bytes, /*share=*/true);
    SegmentReport plain = report();
    CHECK_MESSAGE(plain.distinct_values == 0u, distinct);
    CHECK(plain.saved_bytes == 0u);
    CHECK(plain.value_bytes == 60'000u * bytes);
    // Any version reads such a segment.
    for (const auto& entry : fs::directory_iterator(directory_->path())) {
      if (entry.path().extension() != ".seg") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      SegmentHeader header;
      file.read(reinterpret_cast<char*>(&header), sizeof header);
      CHECK(header.format_version == segment_version_plain);
    }
  }
}

TEST_CASE_METHOD(SharedSizesTest, "SharedSizesTest.ValuesOfSeveralRunsBecomeOne",
                 "[SharedSizesTest]") {
  load(20'000, 2, 100, /*share=*/true);
  uint64_t of_one_run = report().bytes_on_disk;
  for (int run = 1; run < 4; ++run) {
    WriteTransaction t = db_->begin();
    for (uint64_t i = 0; i < 500; ++i) {
      uint64_t k = __builtin_bswap64(i * 1000 + static_cast<uint64_t>(run));
      REQUIRE_OK(
          t.put(table_, Bytes(reinterpret_cast<std::byte*>(&k), 8), as_bytes(value(i % 3, 100))));
    }
    REQUIRE_OK(t.commit());
  }
  CHECK(db_->tables()[0].stored_values == 2u + 3 * 3);
  REQUIRE_OK(db_->compact());
  CHECK(report().distinct_values == 3u);
  CHECK(report().bytes_on_disk < of_one_run + 40'000);
}

// Where memory is short a run is cut into segments, by what they are going to have; and a batch of
// a scan holds no more than a few values.
TEST_CASE_METHOD(SharedSizesTest, "SharedSizesTest.LargeValuesOfManyRows", "[SharedSizesTest]") {
  constexpr uint64_t rows = 200, bytes = 1 << 20;
  directory_.emplace();
  Options options;
  options.memory_limit_bytes = 32 << 20;
  auto db = Database::open(directory_->path(), options);
  REQUIRE_OK(db);
  auto table = (*db)->create_table("t", {.share_equal_values = true});
  REQUIRE_OK(table);
  const std::string large(bytes, 'l');
  const Column value = Column::fixed(large.data(), bytes, 1);
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < 2 * rows; ++i) keys.push_back(std::to_string(10000 + i));
  for (uint64_t run = 0; run < 2; ++run) {
    WriteTransaction t = (*db)->begin();
    for (uint64_t i = run; i < 2 * rows; i += 2)
      REQUIRE_OK(t.put_view(*table, Column::fixed(keys[i].data(), 5, 1), value));
    REQUIRE_OK(t.commit());
  }
  uint64_t segments = (*db)->tables()[0].segments;
  CHECK(segments > 10u);  // staged rows have their values each
  CHECK((*db)->tables()[0].stored_values == segments);
  REQUIRE_OK((*db)->compact());
  CHECK((*db)->tables()[0].segments <= 3u);
  CHECK((*db)->tables()[0].bytes_on_disk <= 4 * bytes);
  auto scan = (*db)->snapshot().scan(*table);
  uint64_t seen = 0;
  for (ScanBatch batch; scan->next(&batch); seen += batch.keys.size) {
    CHECK(batch.keys.size <= 5u);
    for (uint64_t i = 0; i < batch.keys.size; ++i) REQUIRE(text(batch.values[i]) == large);
  }
  CHECK(seen == 2 * rows);
}

TEST_CASE("ShareValuesOptionTest.ItIsKeptAndCannotBeChanged", "[ShareValuesOptionTest]") {
  MemoryFileSystem files;
  Options options{.backend = BackendKind::host, .file_system = &files};
  {
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    REQUIRE_OK((*db)->create_table("shared", {.share_equal_values = true}));
    REQUIRE_OK((*db)->create_table("plain"));
    REQUIRE_OK((*db)->create_table("routes", {.address_bits = 32, .share_equal_values = true}));
  }
  auto db = Database::open("/db", options);
  REQUIRE_OK(db);
  CHECK((*db)->open_table("shared")->share_equal_values());
  CHECK_FALSE((*db)->open_table("plain")->share_equal_values());
  CHECK((*db)->open_table("routes")->address_bits() == 32u);
  CHECK((*db)->tables()[2].share_equal_values);
  CHECK_OK((*db)->open_or_create_table("shared", {.share_equal_values = true}));
  CHECK_OK((*db)->open_or_create_table("plain"));
  Status status = (*db)->open_or_create_table("shared").status();
  CHECK(status.to_string() ==
        "invalid_argument: table 'shared' was made with share_equal_values, which cannot be "
        "changed: leave that as it is, or copy the rows into a new table");
  status = (*db)->open_or_create_table("plain", {.share_equal_values = true}).status();
  CHECK(status.code() == StatusCode::invalid_argument);
  CHECK(status.message().find("without share_equal_values") != std::string::npos);
}

TEST_CASE("SharePrefixesTest.MatchFindsSharedValues", "[SharePrefixesTest]") {
  TemporaryDirectory directory;
  auto db = Database::open(directory.path());
  auto table = (*db)->create_table("t", {.address_bits = 32, .share_equal_values = true});
  REQUIRE_OK(table);
  for (uint32_t run = 0; run < 2; ++run) {
    WriteTransaction t = (*db)->begin();
    for (uint32_t i = run; i < 4000; i += 2) {
      uint32_t address = __builtin_bswap32(i << 16);
      char key[5] = {0, 0, 0, 0, 16};
      std::memcpy(key, &address, 4);
      REQUIRE_OK(t.put(*table, std::string_view(key, 5), "a country " + std::to_string(i % 9)));
    }
    REQUIRE_OK(t.commit());
  }
  std::vector<uint32_t> addresses;
  for (uint32_t i = 0; i < 5000; ++i) addresses.push_back(__builtin_bswap32(i << 16 | i));
  MatchResult result;
  Snapshot snapshot = (*db)->snapshot();
  REQUIRE_OK(snapshot.match(*table, Column::fixed(addresses.data(), 4, addresses.size()), &result));
  for (uint32_t i = 0; i < 5000; ++i) {
    REQUIRE(result.found[i] == (i < 4000));
    if (i < 4000) REQUIRE(text(result.value(i)) == "a country " + std::to_string(i % 9));
  }
  auto one = snapshot.match(*table, Bytes(reinterpret_cast<std::byte*>(&addresses[77]), 4));
  REQUIRE((one.ok() && one->has_value()));
  CHECK(text((*one)->value) == "a country 5");
}

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
  for (uint64_t at = 0; at < numbers_.bytes; at += 331) {
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
  for (int round = 0; round < 8; ++round) {
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

// What a batch needs is prefetched in three steps: numbers, where the values lie, the values.
class SharedColdReadTest {
 protected:
  const bool fixed_ = GENERATE(false, true);
  RunsWith name_{fixed_ ? "fixed" : "variable"};

  static constexpr uint64_t rows = 40000, distinct = 3000;

  SharedColdReadTest() {
    std::vector<Row> list;
    for (uint64_t i = 0; i < rows; ++i)
      list.push_back({std::to_string(100000 + i), value(i < distinct ? i : random_() % distinct)});
    SegmentOptions options{.fixed_keys = true, .fixed_values = fixed_, .delta_width = 4};
    options.keep_resident = false;
    options.share_values = true;
    CHECK_OK(write_segment(files_, "s", 1, list, options));
  }
  std::string value(uint64_t number) const {
    std::string v = std::to_string(number) + ":";
    v.resize(fixed_ ? 500 : 400 + number % 200, 'v');
    return v;
  }
  std::shared_ptr<Segment> open(bool checked) {
    auto segment = Segment::open(files_, "s", 1);
    CHECK_OK(segment);
    Bytes file = (*segment)->mapping()->bytes();
    for (uint64_t at = 0; checked && at < file.size(); at += segment_block_bytes)
      (void)(*segment)->ensure(file.data() + at, 1);
    CHECK((*segment)->intact() == checked);
    files_.log().set_warm(false);
    (void)files_.log().take_fetches();
    return *segment;
  }
  std::vector<Location> random_rows(uint64_t n) {
    std::vector<Location> list;
    for (uint64_t i = 0; i < n; ++i) list.push_back({0, static_cast<uint32_t>(random_() % rows)});
    list.push_back({Location::absent, Location::absent});
    return list;
  }
  bool there(const Segment& segment, const void* p, uint64_t bytes) {
    auto first =
        static_cast<uint64_t>(static_cast<const std::byte*>(p) - segment.mapping()->bytes().data());
    for (uint64_t at = first / page_bytes * page_bytes; at < first + bytes; at += page_bytes)
      if (!files_.log().has(at)) return false;
    return true;
  }
  bool number_there(const Segment& segment, uint64_t row) {
    const ValueRows values = segment.values();
    return there(segment, static_cast<const std::byte*>(values.numbers) + row * values.number_width,
                 values.number_width);
  }
  bool row_there(const Segment& segment, uint64_t row) {
    const ValueRows values = segment.values();
    if (!number_there(segment, row)) return false;
    uint64_t at = values.place(row);
    if (!values.column.fixed) {
      const PackedOffsets& o = values.column.offsets;
      auto* deltas = static_cast<const std::byte*>(o.deltas);
      if (!there(segment, deltas + at * o.delta_width, 2 * o.delta_width) ||
          !there(segment, o.bases + (at >> PackedOffsets::group_bits), 8))
        return false;
    }
    return there(segment, values[row].data(), values[row].size());
  }

  MemoryFileSystem memory_;
  ColdFiles files_{memory_};
  std::mt19937_64 random_{seed()};
};

TEST_CASE_METHOD(SharedColdReadTest, "SharedColdReadTest.PrefetchesAllThatRowsNeed",
                 "[SharedColdReadTest]") {
  for (uint64_t whole_bytes : {uint64_t{1}, uint64_t{1} << 30}) {
    for (bool checked : {true, false}) {
      auto segment = open(checked);
      std::vector<Location> list = random_rows(50);
      ColdReader cold({segment.get()}, {.gap_bytes = 0, .whole_bytes = whole_bytes});
      uint64_t end = 0;
      REQUIRE_OK(cold.prefetch_rows(list, 0, &end));
      REQUIRE(end == list.size());
      for (Location row : list)
        if (row.found()) REQUIRE_MESSAGE(row_there(*segment, row.rank), row.rank);
    }
  }
}

TEST_CASE_METHOD(SharedColdReadTest, "SharedColdReadTest.WindowsEndAtWholeTasks",
                 "[SharedColdReadTest]") {
  auto segment = open(/*checked=*/true);
  std::vector<Location> list = random_rows(9000);
  ColdReader cold({segment.get()},
                  {.window_bytes = 64 << 10, .gap_bytes = 0, .grain_rows = 64, .whole_bytes = 1});
  uint64_t windows = 0;
  for (uint64_t begin = 0, end = 0; begin < list.size(); begin = end, ++windows) {
    files_.log().set_warm(false);
    REQUIRE_OK(cold.prefetch_rows(list, begin, &end));
    REQUIRE(end > begin);
    REQUIRE((end == list.size() || end % 64 == 0));
    for (uint64_t i = begin; i < end; ++i)
      if (list[i].found()) REQUIRE(row_there(*segment, list[i].rank));
  }
  CHECK(windows > 1u);
}

TEST_CASE_METHOD(SharedColdReadTest, "SharedColdReadTest.PlacesAreBroughtWithoutTheValues",
                 "[SharedColdReadTest]") {
  auto segment = open(/*checked=*/true);
  std::vector<Location> list = random_rows(20);
  ColdReader cold({segment.get()}, {.gap_bytes = 0, .whole_bytes = 1});
  uint64_t end = 0;
  REQUIRE_OK(cold.prefetch_places(list, 0, &end));
  REQUIRE(end == list.size());
  for (Location row : list)
    if (row.found()) REQUIRE(number_there(*segment, row.rank));
  CHECK_FALSE(row_there(*segment, list[0].rank));
}

TEST_CASE_METHOD(SharedColdReadTest, "SharedColdReadTest.WhatCannotBeReadFails",
                 "[SharedColdReadTest]") {
  auto segment = open(/*checked=*/true);
  std::vector<Location> list = random_rows(100);
  const ValueRows values = segment->values();
  uint64_t row = list[50].rank;
  std::vector<const void*> needed = {
      static_cast<const std::byte*>(values.numbers) + row * values.number_width,
      values[row].data()};
  if (!values.column.fixed)
    needed.push_back(static_cast<const std::byte*>(values.column.offsets.deltas) +
                     values.place(row) * values.column.offsets.delta_width);
  for (const void* p : needed) {
    files_.log().set_warm(false);
    auto bad = static_cast<uint64_t>(static_cast<const std::byte*>(p) -
                                     segment->mapping()->bytes().data());
    files_.log().set_fault([=](FileRange range) {
      bool hit = range.offset <= bad && bad < range.offset + range.bytes;
      return hit ? Status(StatusCode::io_error, "on order") : Status();
    });
    ColdReader cold({segment.get()}, {.whole_bytes = 1});
    uint64_t end = 0;
    CHECK(cold.prefetch_rows(list, 0, &end).code() == StatusCode::io_error);
    files_.log().set_fault({});
  }
}

}  // namespace
}  // namespace stride::test
