// Bad input and failing files: a Status that says what, where and what to do, and nothing lost.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

class ErrorsTest {
 protected:
  Result<std::unique_ptr<Database>> open(Options options = {}) {
    options.memtable_bytes = 0;  // each commit makes a segment
    return Database::open(path(), options);
  }
  std::string path() const { return directory_.file("db"); }

  // A database with one table of 10,000 rows in one segment, closed.
  void make_database() {
    auto db = open();
    REQUIRE_OK(db);
    auto table = (*db)->create_table("t");
    REQUIRE_OK(table);
    Rows keys, values;
    for (int i = 0; i < 10'000; ++i) {
      std::string key = "key" + std::to_string(i);
      keys.add(key);
      values.add(std::string(50, char('a' + i % 26)) + key);
      model_[key] = std::string(50, char('a' + i % 26)) + key;
    }
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*table, keys.column(), values.column()));
    REQUIRE_OK(t.commit());
    REQUIRE_OK((*db)->close());
  }
  std::string file_with(const std::string& part) const {
    for (auto& f : fs::directory_iterator(path()))
      if (f.path().filename().string().find(part) != std::string::npos) return f.path();
    return "";
  }
  // The Status of opening the database and reading its table.
  Status read_status() {
    auto db = open();
    if (!db.ok()) return db.status();
    auto table = (*db)->open_table("t");
    return table.ok() ? (*db)->snapshot().count(*table).status() : table.status();
  }
  static void flip(const std::string& file, uint64_t offset) {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(static_cast<std::streamoff>(offset));
    char c = static_cast<char>(f.get());
    f.seekp(static_cast<std::streamoff>(offset));
    f.put(static_cast<char>(c ^ 0x10));
  }
  // Code, and that the text names the file and is more than a word.
  static void expect_status(const Status& s, StatusCode code, const std::string& mentions) {
    CHECK_MESSAGE(to_string(s.code()) == to_string(code), s.to_string());
    CHECK_MESSAGE(s.to_string().find(mentions) != std::string::npos, s.to_string());
  }

  TemporaryDirectory directory_;
  Model model_;
};

TEST_CASE_METHOD(ErrorsTest, "ErrorsTest.KeysAndValuesThatDoNotFit", "[ErrorsTest]") {
  auto db = open();
  REQUIRE_OK(db);
  auto any = (*db)->create_table("any");
  auto wide = (*db)->create_table("wide", {.key_width = 8});
  WriteTransaction t = (*db)->begin();
  std::string long_key(max_key_bytes + 1, 'k');
  expect_status(t.put(*any, long_key, "v"), StatusCode::invalid_argument, "65535");
  expect_status(t.erase(*any, long_key), StatusCode::invalid_argument, "65535");
  expect_status(t.put(*any, Rows({"ok", long_key}).column(), Rows({"1", "2"}).column()),
                StatusCode::invalid_argument, "row 1");
  expect_status(t.put(*wide, "short", "v"), StatusCode::invalid_argument, "8");
  expect_status(t.put(*wide, Rows({"12345678", "123"}).column(), Rows({"1", "2"}).column()),
                StatusCode::invalid_argument, "row 1");
  expect_status(t.put(*any, Rows({"a", "b"}).column(), Rows({"1"}).column()),
                StatusCode::invalid_argument, "2 rows");
  uint64_t offsets[] = {0, uint64_t{5} << 30};
  char byte = 0;
  expect_status(t.put(*any, Rows({"a"}).column(), Column::variable(&byte, offsets, 1)),
                StatusCode::invalid_argument, "4294967295");
  uint64_t descending[] = {5, 3};
  expect_status(t.put(*any, Rows({"a"}).column(), Column::variable(&byte, descending, 1)),
                StatusCode::invalid_argument, "descend");
  expect_status(t.put(Table(), "a", "b"), StatusCode::invalid_argument, "table");
  CHECK(t.staged_rows() == 0u);
  REQUIRE_OK(t.put(*any, std::string(max_key_bytes, 'k'), "fits"));
  REQUIRE_OK(t.commit());
  auto count = (*db)->snapshot().count(*any);
  REQUIRE_OK(count);
  CHECK(*count == 1u);
}

TEST_CASE_METHOD(ErrorsTest, "ErrorsTest.Tables", "[ErrorsTest]") {
  auto db = open();
  REQUIRE_OK(db);
  expect_status((*db)->open_table("none").status(), StatusCode::not_found, "none");
  expect_status((*db)->drop_table("none"), StatusCode::not_found, "none");
  expect_status((*db)->create_table("").status(), StatusCode::invalid_argument, "255");
  expect_status((*db)->create_table("x", {.key_width = 70000}).status(),
                StatusCode::invalid_argument, "65535");
  auto table = (*db)->create_table("t");
  REQUIRE_OK(table);
  expect_status((*db)->create_table("t").status(), StatusCode::already_exists, "'t'");
  expect_status((*db)->open_or_create_table("t", {.key_width = 4}).status(),
                StatusCode::invalid_argument, "width");
  Snapshot before = (*db)->snapshot();
  WriteTransaction t = (*db)->begin();
  REQUIRE_OK(t.put(*table, "a", "b"));
  REQUIRE_OK((*db)->drop_table("t"));
  expect_status(t.commit(), StatusCode::not_found, "'t'");
  CHECK_OK(before.get(*table, "a"));
  expect_status((*db)->snapshot().get(*table, "a").status(), StatusCode::not_found, "'t'");
  expect_status((*db)->snapshot().scan(*table).status(), StatusCode::not_found, "'t'");
  auto again = (*db)->create_table("t");
  REQUIRE_OK(again);
  CHECK(again->id() != table->id());
}

TEST_CASE_METHOD(ErrorsTest, "ErrorsTest.Paths", "[ErrorsTest]") {
  for (bool is_there : {false, true}) {
    if (is_there) fs::create_directory(path());
    for (const Options& options : {Options{.create_if_missing = false}, Options{.read_only = true}})
      expect_status(open(options).status(), StatusCode::not_found, "no database here (" + path());
  }
  std::ofstream(path() + "/holiday.jpg") << "not ours";
  expect_status(open().status(), StatusCode::invalid_argument, path());
  CHECK(fs::exists(path() + "/holiday.jpg"));
  fs::remove_all(path());
  std::ofstream(path()) << "a file";
  CHECK_FALSE(open().ok());
  fs::remove(path());
  make_database();
  expect_status(open({.error_if_exists = true}).status(), StatusCode::already_exists, path());
}

TEST_CASE_METHOD(ErrorsTest, "ErrorsTest.DirectoryNotWritable", "[ErrorsTest]") {
  if (geteuid() == 0) SKIP("root may write anywhere");
  fs::create_directory(path());
  chmod(path().c_str(), 0500);
  expect_status(open().status(), StatusCode::permission_denied, path());
}

TEST_CASE_METHOD(ErrorsTest, "ErrorsTest.LockedByAnotherProcess", "[ErrorsTest]") {
  make_database();
  auto db = open();
  REQUIRE_OK(db);
  pid_t child = fork();
  if (child == 0) {
    Status s = Database::open(path(), {}).status();
    bool named = s.to_string().find(std::to_string(getppid())) != std::string::npos;
    bool reads = false;
    if (auto reader = Database::open(path(), {.read_only = true}); reader.ok()) {
      auto table = (*reader)->open_table("t");
      auto value = (*reader)->snapshot().get(*table, "key17");
      reads = value.ok() && value->has_value() && text(**value) == model_["key17"];
    }
    _exit(s.code() == StatusCode::locked && named && reads ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE_METHOD(ErrorsTest, "ErrorsTest.ReadOnly", "[ErrorsTest]") {
  make_database();
  auto db = open({.read_only = true});
  REQUIRE_OK(db);
  auto table = (*db)->open_table("t");
  REQUIRE_OK(table);
  WriteTransaction t = (*db)->begin();
  REQUIRE_OK(t.put(*table, "a", "b"));
  expect_status(t.commit(), StatusCode::read_only, path());
  expect_status((*db)->create_table("u").status(), StatusCode::read_only, path());
  expect_status((*db)->compact(), StatusCode::read_only, path());
  std::mt19937_64 random(seed());
  expect_equal((*db)->snapshot(), *table, model_, random);
}

TEST_CASE_METHOD(ErrorsTest, "ErrorsTest.ClosedDatabase", "[ErrorsTest]") {
  auto db = open();
  auto table = (*db)->create_table("t");
  WriteTransaction t = (*db)->begin();
  REQUIRE_OK(t.put(*table, "a", "b"));
  REQUIRE_OK((*db)->close());
  expect_status(t.commit(), StatusCode::closed, path());
  expect_status((*db)->create_table("u").status(), StatusCode::closed, path());
}

TEST_CASE_METHOD(ErrorsTest, "ErrorsTest.MissingFiles", "[ErrorsTest]") {
  make_database();
  std::string segment = file_with(".seg"), aside = directory_.file("aside");
  fs::rename(segment, aside);
  expect_status(read_status(), StatusCode::corruption, segment);
  fs::rename(aside, segment);
  std::string current = path() + "/CURRENT";
  fs::rename(current, aside);
  expect_status(open().status(), StatusCode::corruption, "CURRENT");
  fs::rename(aside, current);
  std::string manifest = file_with("MANIFEST");
  fs::rename(manifest, aside);
  Status missing = open().status();
  CHECK_FALSE(missing.ok());
  CHECK_MESSAGE(missing.to_string().find("MANIFEST") != std::string::npos, missing.to_string());
  fs::rename(aside, manifest);
  CHECK_OK(open());
}

// Reads either give the right answer or Corruption that names the file.
class DamagedSegment : public ErrorsTest {
 protected:
  DamagedSegment() {
    make_database();
    segment_ = file_with(".seg");
    fs::copy_file(segment_, good_);
    for (const auto& [key, value] : model_) {
      keys_.push_back(key);
      queries_.add(key);
    }
  }
  // Flips one bit of what was good.
  void damage() {
    fs::copy_file(good_, segment_, fs::copy_options::overwrite_existing);
    flip(segment_, random_() % fs::file_size(good_));
  }
  void expect_single_gets(const Snapshot& snapshot, const Table& table) {
    for (int i = 0; i < 50; ++i) {
      const std::string& key = keys_[random_() % keys_.size()];
      auto value = snapshot.get(table, std::string_view(key));
      if (value.ok()) {
        REQUIRE(value->has_value());
        REQUIRE(text(**value) == model_[key]);
      } else {
        expect_status(value.status(), StatusCode::corruption, segment_);
      }
    }
  }
  Status expect_gets(const Snapshot& snapshot, const Table& table) {
    GetResult got;
    Status s = snapshot.get(table, queries_.column(), &got);
    if (s.ok()) {
      for (size_t i = 0; i < keys_.size(); ++i) REQUIRE(text(got.values[i]) == model_[keys_[i]]);
    } else {
      expect_status(s, StatusCode::corruption, segment_);
    }
    return s;
  }
  void expect_scan(const Snapshot& snapshot, const Table& table) {
    auto scan = snapshot.scan(table);
    if (!scan.ok()) return;
    uint64_t rows = 0;
    ScanBatch batch;
    while (scan->next(&batch))
      for (uint64_t i = 0; i < batch.keys.size; ++i, ++rows)
        REQUIRE(text(batch.values[i]) == model_[text(batch.keys[i])]);
    if (scan->status().ok()) REQUIRE(rows == model_.size());
  }

  std::mt19937_64 random_{seed()};
  std::string segment_, good_ = directory_.file("good");
  std::vector<std::string> keys_;
  Rows queries_;
};

TEST_CASE_METHOD(DamagedSegment, "ErrorsTest.DamagedSegmentNeverGivesAWrongAnswer",
                 "[ErrorsTest]") {
  int noticed = 0;
  for (int round = 0; round < 60; ++round) {
    damage();
    auto db = open();
    if (!db.ok()) {
      expect_status(db.status(), StatusCode::corruption, segment_);
      ++noticed;
      continue;
    }
    auto table = (*db)->open_table("t");
    Snapshot snapshot = (*db)->snapshot();
    expect_single_gets(snapshot, *table);
    Status s = expect_gets(snapshot, *table);
    expect_scan(snapshot, *table);
    Status verified = (*db)->verify();
    if (!verified.ok()) {
      ++noticed;
      expect_status(verified, StatusCode::corruption, segment_);
      CHECK(verified.offset().has_value());
    } else {
      // The flip hit padding.
      CHECK_OK(s);
    }
  }
  CHECK(noticed > 30);
}

TEST_CASE_METHOD(ErrorsTest, "ErrorsTest.TruncatedFiles", "[ErrorsTest]") {
  make_database();
  std::string segment = file_with(".seg");
  uint64_t size = fs::file_size(segment);
  for (uint64_t keep :
       {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{4096}, size / 2, size - 1}) {
    fs::copy_file(segment, directory_.file("good"), fs::copy_options::overwrite_existing);
    fs::resize_file(segment, keep);
    expect_status(read_status(), StatusCode::corruption, segment);
    fs::copy_file(directory_.file("good"), segment, fs::copy_options::overwrite_existing);
  }
  std::string current = path() + "/CURRENT";
  fs::copy_file(current, directory_.file("current"));
  fs::resize_file(current, 3);
  expect_status(open().status(), StatusCode::corruption, "CURRENT");
  fs::copy_file(directory_.file("current"), current, fs::copy_options::overwrite_existing);
  CHECK_OK(open());
}

TEST_CASE_METHOD(ErrorsTest, "ErrorsTest.LeftoversOfAnUnfinishedCommitAreRemoved", "[ErrorsTest]") {
  make_database();
  std::ofstream(path() + "/999999.seg") << "half a segment";
  REQUIRE_OK(open());
  CHECK_FALSE(fs::exists(path() + "/999999.seg"));
}

}  // namespace
}  // namespace stride::test
