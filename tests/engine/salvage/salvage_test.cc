// What salvage() makes of tables of all kinds, and of a source that lacks more than some blocks.
#include "engine/salvage.h"

#include <algorithm>

#include "engine/prefixes.h"
#include "engine/row_columns.h"
#include "tests/engine/salvage/small_database.h"
#include "tests/support/catch.h"
#include "tests/support/forwarding_file_system.h"

namespace stride::test {
namespace {

// A disk that cannot read a page of a file any more.
class LostPage final : public ForwardingFileSystem {
 public:
  LostPage(FileSystem& below, std::string path, uint64_t offset)
      : ForwardingFileSystem(below), path_(std::move(path)), offset_(offset) {}

 private:
  class LossyFile final : public ForwardingFile {
   public:
    LossyFile(std::unique_ptr<File> below, uint64_t offset)
        : ForwardingFile(std::move(below)), offset_(offset) {}
    Status read_at(uint64_t offset, std::span<std::byte> out) override {
      if (offset < offset_ + 4096 && offset + out.size() > offset_)
        return Status(StatusCode::io_error, "read: Input/output error").with_file(path());
      return ForwardingFile::read_at(offset, out);
    }

   private:
    const uint64_t offset_;
  };
  std::unique_ptr<File> wrap(std::unique_ptr<File> file) override {
    if (file->path() != path_) return file;
    return std::make_unique<LossyFile>(std::move(file), offset_);
  }

  const std::string path_;
  const uint64_t offset_;
};

class SalvageTest {
 protected:
  std::map<std::string, std::string> contents() {
    std::map<std::string, std::string> all;
    for (const std::string& name : small_.files()) all[name] = small_.read(name);
    return all;
  }
  std::unique_ptr<Database> open(const std::string& directory, bool segments_alone = true) {
    Options options = small_.options_for_new();
    options.create_if_missing = directory == "db";
    options.max_range_tombstones = 0;
    if (segments_alone) options.memtable_bytes = 0;
    auto db = Database::open(directory, options);
    REQUIRE_OK(db);
    return std::move(*db);
  }
  SalvageReport salvage_it() {
    const auto before = contents();
    SalvageReport report;
    REQUIRE_OK(salvage("db", "new", {}, &report, &small_.fs()));
    CHECK(contents() == before);
    return report;
  }
  std::string largest_segment() {
    std::string largest;
    for (const auto& [name, bytes] : contents())
      if (segment_number(name) && (largest.empty() || bytes.size() > small_.read(largest).size()))
        largest = name;
    return largest;
  }

  SmallDatabase small_;
};

TEST_CASE_METHOD(SalvageTest, "SalvageTest.TablesStayWhatTheyAre", "[SalvageTest]") {
  {
    auto db = open("db");
    auto counts = db->create_table("counts", {.numbers = NumberType::i64});
    REQUIRE_OK(counts);
    auto shared = db->create_table("shared", {.share_equal_values = true});
    REQUIRE_OK(shared);
    auto routes = db->create_table("routes", {.address_bits = 32});
    REQUIRE_OK(routes);
    TableOptions rows;
    rows.schema = *Schema::parse("id u64 key, name string, until timestamp?");
    rows.key_width = 8;
    rows.expiry_column = "until";
    REQUIRE_OK(db->create_table("rows", rows));
    WriteTransaction t = db->begin();
    for (int i = 0; i < 500; ++i) {
      REQUIRE_OK(t.accumulate(*counts, numbered("count", i), i));
      REQUIRE_OK(t.put(*shared, numbered("key", i), i % 2 ? "odd" : "even"));
    }
    REQUIRE_OK(t.put(*routes, *parse_prefix("10.0.0.0/8", 32), "hop"));
    REQUIRE_OK(t.commit());
    WriteTransaction erase = db->begin();
    REQUIRE_OK(erase.erase_range(*shared, as_bytes("key1100"), as_bytes("key1400")));
    REQUIRE_OK(erase.commit());
    REQUIRE_OK(db->close());
  }
  VerifyReport intact;
  REQUIRE_OK(verify_files("db", &intact, &small_.fs()));
  CHECK(intact.files >= 3);
  const SalvageReport report = salvage_it();
  CHECK(report.is_complete());
  CHECK(report.damage.empty());
  CHECK(report.rebuilt_files == 0);
  auto db = open("new");
  REQUIRE_OK(db->verify());
  CHECK(db->open_table("counts")->numbers() == NumberType::i64);
  CHECK(db->open_table("shared")->share_equal_values());
  CHECK(db->open_table("routes")->address_bits() == 32);
  CHECK(db->open_table("rows")->expiry_column() == "until");
  CHECK(db->open_table("rows")->schema().to_string() ==
        "id u64 key, name string, until timestamp?");
  auto count = db->snapshot().count(*db->open_table("shared"));
  REQUIRE_OK(count);
  CHECK(*count == 200);
  REQUIRE_OK(db->compact());
}

// Those of a damaged segment neither.
TEST_CASE_METHOD(SalvageTest, "SalvageTest.ErasedRowsDoNotComeBack", "[SalvageTest]") {
  constexpr int rows = 20'000;
  {
    auto db = open("db");
    auto table = db->create_table("t");
    REQUIRE_OK(table);
    WriteTransaction t = db->begin();
    for (int i = 0; i < rows; ++i)
      REQUIRE_OK(t.put(*table, std::to_string(100'000 + i), std::string(30, 'v')));
    REQUIRE_OK(t.commit());
    WriteTransaction erase = db->begin();
    REQUIRE_OK(erase.erase_range(*table, as_bytes("105000"), as_bytes("115000")));
    REQUIRE_OK(erase.commit());
    REQUIRE_OK(db->close());
  }
  const std::string segment = largest_segment();
  std::string bytes = small_.read(segment);
  bytes[4096 + 6 * 100] ^= 1;  // of the first keys
  small_.write(segment, bytes);
  const SalvageReport report = salvage_it();
  CHECK_FALSE(report.is_complete());
  REQUIRE(report.tables.size() == 1);
  auto db = open("new");
  REQUIRE_OK(db->verify());
  auto got = read_table(db.get(), "t");
  REQUIRE_OK(got);
  CHECK(got->size() == rows - 10'000 - report.tables[0].lost_rows);
  CHECK(report.tables[0].rows == got->size());
  for (const auto& [key, value] : *got) {
    const bool is_erased = key >= "105000" && key < "115000";
    CHECK_MESSAGE(!is_erased, key);
  }
}

TEST_CASE_METHOD(SalvageTest, "SalvageTest.WithoutAManifest", "[SalvageTest]") {
  {
    auto db = open("db");
    REQUIRE_OK(db->create_table("words"));
    small_.commit(db.get(), "words", {{"a", "one"}, {"b", "two"}});
    small_.commit(db.get(), "words", {{"a", "three"}, {"b", std::nullopt}});
    REQUIRE_OK(db->close());
    db = open("db", /*segments_alone=*/false);
    small_.commit(db.get(), "words", {{"c", "four"}});
    REQUIRE_OK(db->close());
  }
  const std::string current = small_.read("CURRENT");
  small_.remove("CURRENT");
  CHECK(salvage_it().is_complete());  // the manifest is there
  small_.drop_directory("new");
  for (const std::string& name : small_.files())
    if (name.starts_with("MANIFEST")) small_.remove(name);
  for (const bool has_current : {false, true}) {
    if (has_current) small_.write("CURRENT", current);
    const SalvageReport report = salvage_it();
    CHECK_FALSE(report.is_complete());
    REQUIRE(report.tables.size() == 3);
    auto db = open("new");
    REQUIRE_OK(db->verify());
    CHECK(*read_table(db.get(), report.tables[0].name) == Model{{"c", "four"}});
    CHECK(report.tables[0].name.starts_with("log-of-table-"));
    CHECK(*read_table(db.get(), report.tables[1].name) == Model{{"a", "one"}, {"b", "two"}});
    CHECK(report.tables[1].name.starts_with("segment-"));
    CHECK(*read_table(db.get(), report.tables[2].name) == Model{{"a", "three"}});
    for (const SalvagedTable& table : report.tables) CHECK(table.is_unnamed);
    db->close().ok();
    db.reset();
    small_.drop_directory("new");
  }
}

// What the disk cannot read is damaged as what it reads wrong.
TEST_CASE_METHOD(SalvageTest, "SalvageTest.APageThatCannotBeRead", "[SalvageTest]") {
  constexpr uint64_t rows = 20'000;
  {
    auto db = open("db");
    auto table = db->create_table("t");
    REQUIRE_OK(table);
    WriteTransaction t = db->begin();
    for (uint64_t i = 0; i < rows; ++i)
      REQUIRE_OK(t.put(*table, std::to_string(100'000 + i), std::string(30, 'v')));
    REQUIRE_OK(t.commit());
    REQUIRE_OK(db->close());
  }
  const std::string segment = largest_segment();
  const uint64_t size = small_.read(segment).size();
  for (const uint64_t page : {uint64_t{0}, uint64_t{81'920}, size / 8192 * 4096, size - 4096}) {
    INFO("page at " << page << " of " << size);
    LostPage disk(small_.fs(), "db/" + segment, page);
    SalvageReport report;
    Status s = salvage("db", "new", {}, &report, &disk);
    REQUIRE_OK(s);
    CHECK_FALSE(report.damage.empty());
    auto db = open("new");
    REQUIRE_OK(db->verify());
    REQUIRE(report.tables.size() == 1);
    CHECK(read_table(db.get(), "t")->size() == rows - report.tables[0].lost_rows);
    // The last page has all checksums: nothing vouches for a row without them.
    CHECK((report.tables[0].lost_rows == rows) == (page == size - 4096));
    REQUIRE_OK(db->close());
    db.reset();
    small_.drop_directory("new");
  }
}

// A database is made whole or not at all, and the source stays as it is.
TEST_CASE_METHOD(SalvageTest, "SalvageTest.EachCallFails", "[SalvageTest]") {
  {
    auto db = open("db");
    REQUIRE_OK(db->create_table("words"));
    small_.commit(db.get(), "words", {{"a", "one"}, {"b", "two"}});
    small_.commit(db.get(), "words", {{"c", "three"}});
    REQUIRE_OK(db->close());
  }
  const std::string segment = small_.commits()[0].file;
  std::string bytes = small_.read(segment);
  bytes[bytes.size() - 100] ^= 1;  // between the tables and the footer: it is built again
  small_.write(segment, bytes);
  const auto before = contents();
  for (uint64_t n = 1;; ++n) {
    small_.fs().fail_call(n, n % 2 ? StatusCode::no_space : StatusCode::io_error);
    SalvageReport report;
    Status s = salvage("db", "new", {}, &report, &small_.fs());
    small_.fs().fail_call(0, StatusCode::ok);
    CHECK(contents() == before);
    if (s.ok()) {
      CHECK(report.is_complete());
      CHECK(report.rebuilt_files == 1);
      REQUIRE(n > 5);
      auto db = open("new");
      CHECK(*read_table(db.get(), "words") == small_.now().at("words"));
      break;
    }
    auto there = Database::open("new", small_.options_for_new());
    if (there.ok()) {
      CHECK(*read_table(there->get(), "words") == small_.now().at("words"));
      there->reset();
    }
    small_.drop_directory("new");
  }
}

TEST_CASE_METHOD(SalvageTest, "SalvageTest.ItCanBeCancelled", "[SalvageTest]") {
  {
    auto db = open("db");
    REQUIRE_OK(db->create_table("words"));
    small_.commit(db.get(), "words", {{"a", "one"}});
    REQUIRE_OK(db->close());
  }
  CopyOptions options;
  options.progress = [](const CopyProgress&) { return false; };
  CHECK(salvage("db", "new", options, nullptr, &small_.fs()).code() == StatusCode::cancelled);
  CHECK_FALSE(*small_.fs().exists("new"));
  int calls = 0;
  options.progress = [&](const CopyProgress&) { return ++calls > 0; };
  REQUIRE_OK(salvage("db", "new", options, nullptr, &small_.fs()));
  CHECK(calls > 0);
  CHECK(salvage("db", "db/new", {}, nullptr, &small_.fs()).code() == StatusCode::invalid_argument);
  CHECK(salvage("none", "other", {}, nullptr, &small_.fs()).code() == StatusCode::not_found);
}

}  // namespace
}  // namespace stride::test
