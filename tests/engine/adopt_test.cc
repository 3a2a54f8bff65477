// Rows of other databases that become a table's: which they are then, and which are refused.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "storage/prefix_key.h"
#include "tests/engine/adopt_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

class AdoptTest : protected AdoptFixture {};

std::string random_bytes(std::mt19937_64& random, uint64_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>('a' + random() % 3);
  return text;
}

// Shards of ascending ranges of keys, in no order, and some of them empty.
struct RandomShards {
  std::vector<std::string> paths;
  Model rows;  // of all of them

  RandomShards(std::mt19937_64& random, FileSystem& fs, const TableOptions& options) {
    const uint64_t shards = 1 + random() % 8;
    std::set<std::string> keys;
    for (uint64_t i = random() % 3000; i > 0; --i)
      keys.insert(random_bytes(random, options.key_width ? options.key_width : random() % 12));
    std::vector<std::string> bounds(keys.begin(), keys.end());
    std::vector<Model> parts(shards);
    uint64_t part = 0;
    for (const std::string& key : keys) {
      while (part + 1 < shards && random() % (keys.size() / shards + 1) == 0) ++part;
      const uint64_t bytes = options.numbers == NumberType::none ? random() % 40 : 8;
      rows[key] = parts[part][key] = random_bytes(random, options.share_equal_values ? 3 : bytes);
    }
    for (uint64_t i = 0; i < shards; ++i) {
      paths.push_back("/shards/" + std::to_string(i));
      make_shard(fs, paths.back(), parts[i], options);
    }
    std::shuffle(paths.begin(), paths.end(), random);
  }
};

TableOptions random_table(std::mt19937_64& random) {
  TableOptions options;
  options.key_width = random() % 2 ? 7 : 0;
  options.share_equal_values = random() % 2;
  if (!options.share_equal_values && random() % 3 == 0) options.numbers = NumberType::i64;
  return options;
}

TEST_CASE("AdoptTest.RandomShardsBecomeOneTable", "[AdoptTest]") {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 40; ++round) {
    MemoryFileSystem fs;
    const TableOptions options = random_table(random);
    const RandomShards shards(random, fs, options);
    auto db = Database::open("/db", bulk_options(fs));
    REQUIRE_OK(db);
    auto table = (*db)->create_table("t", options);
    Model before;
    for (const auto& [key, value] : shards.rows)
      if (random() % 4 == 0) before[key] = std::string(value.size(), 'x');
    if (random() % 2)
      REQUIRE_OK(put_rows(**db, *table, before));
    else
      before.clear();
    const Snapshot old = (*db)->snapshot();
    Model expected = shards.rows;
    expected.insert(before.begin(), before.end());
    const std::vector<std::string> names = files_in(fs, shards.paths[0]);
    const auto durability = static_cast<Durability>(random() % 3);
    CommitReport report;
    REQUIRE_OK(adopt_rows(**db, *table, shards.paths, {.durability = durability}, &report));
    REQUIRE((shards.rows.empty() || report.keys["t"] == shards.rows.size()));
    REQUIRE(files_in(fs, shards.paths[0]) == names);
    REQUIRE((*read_all(**db))["t"] == expected);
    REQUIRE_OK((*db)->verify());
    auto it = old.iterate(*table);
    for (const auto& [key, value] : before) {
      REQUIRE((it->valid() && text(it->key()) == key && text(it->value()) == value));
      it->next();
    }
    REQUIRE_FALSE(it->valid());
    for (const std::string& path : shards.paths)
      for (const std::string& name : files_in(fs, path)) REQUIRE_OK(fs.remove(path + "/" + name));
    if (random() % 2) {
      REQUIRE_OK((*db)->compact());
      REQUIRE((*read_all(**db))["t"] == expected);
    }
    db->reset();
    REQUIRE(tables_in(fs, "/db") == Tables{{"t", expected}});
  }
}

TEST_CASE_METHOD(AdoptTest, "AdoptTest.SegmentsOfManyPiecesAndOfOneRun", "[AdoptTest]") {
  Model rows;
  std::mt19937_64 random(seed());
  for (int shard = 0; shard < 2; ++shard) {
    Model part;
    for (int i = 0; i < 3000; ++i)
      part[std::to_string(shard) + std::to_string(100'000 + i)] =
          random_bytes(random, 5000 + random() % 3000);
    const std::string path = "/shard" + std::to_string(shard);
    Options options = bulk_options(fs_);
    options.memory_limit_bytes = 1;  // several segments of 16 MiB
    auto db = Database::open(path, options);
    REQUIRE_OK(db);
    auto table = (*db)->create_table("t");
    REQUIRE_OK(put_rows(**db, *table, part));
    REQUIRE((*db)->segments(*table)->size() > 1);
    rows.insert(part.begin(), part.end());
  }
  open();
  REQUIRE_OK(adopt({"/shard1", "/shard0"}));
  auto segments = db_->segments(table_);
  REQUIRE_OK(segments);
  CHECK(segments->size() == 4);
  for (const SegmentReport& segment : *segments) CHECK(segment.run == (*segments)[0].run);
  CHECK(rows == this->rows());
  REQUIRE_OK(db_->verify());
  CHECK(db_->metrics().operations.committed_rows == rows.size());
  CHECK(db_->metrics().work.bulk_bytes > 30'000'000);
  db_.reset();
  CHECK(tables_in(fs_, "/db") == Tables{{"t", rows}});
}

TEST_CASE_METHOD(AdoptTest, "AdoptTest.RefusesRangesThatOverlap", "[AdoptTest]") {
  make_shard(fs_, "/a", {{"k1", "1"}, {"k5", "1"}});
  make_shard(fs_, "/b", {{"k5", "2"}, {"k9", "2"}});
  make_shard(fs_, "/c", {{"k2", "3"}, {"k3", "3"}});
  open();
  REQUIRE_OK(put_rows(*db_, table_, {{"k5", "0"}}));
  const std::vector<std::string> files = files_in(fs_, "/db");
  Status s = adopt({"/b", "/a"});
  CHECK(s.code() == StatusCode::invalid_argument);
  CHECK(s.message().find("in '/a' and in '/b'") != std::string::npos);
  CHECK(s.message().find("overlap from 'k5' on") != std::string::npos);
  CHECK(s.key() == "k5");
  CHECK_FALSE(s.remedy().empty());
  s = adopt({"/a", "/c"});
  CHECK(s.message().find("overlap from 'k2' on") != std::string::npos);
  CHECK(adopt({"/c", "/c"}).code() == StatusCode::invalid_argument);
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.adopt(table_, std::vector<std::string>{"/a"}));
  CHECK(t.adopt(table_, std::vector<std::string>{"/c"}).code() == StatusCode::invalid_argument);
  t.abort();
  CHECK(rows() == Model{{"k5", "0"}});
  CHECK(files_in(fs_, "/db") == files);
  // One after the other, the later one wins.
  REQUIRE_OK(adopt({"/b", "/c"}));
  REQUIRE_OK(adopt({"/a"}));
  CHECK(rows() == Model{{"k1", "1"}, {"k2", "3"}, {"k3", "3"}, {"k5", "1"}, {"k9", "2"}});
  REQUIRE_OK(db_->verify());
}

TEST_CASE_METHOD(AdoptTest, "AdoptTest.RefusesTablesOfOtherOptions", "[AdoptTest]") {
  const Schema schema = *Schema::parse("seen timestamp?, name string");
  const std::vector<TableOptions> all = {
      {},
      {.key_width = 4},
      {.address_bits = 32},
      {.address_bits = byte_strings},
      {.share_equal_values = true},
      {.numbers = NumberType::i32},
      {.numbers = NumberType::i32, .overflow = Overflow::wrap},
      {.numbers = NumberType::f32},
      {.schema = schema},
      {.schema = *Schema::parse("seen timestamp?, name bytes")},
      {.schema = schema, .expiry_column = "seen"},
      {.schema = schema, .expiry_column = "seen", .time_to_live = 5'000'000}};
  for (size_t i = 0; i < all.size(); ++i) make_shard(fs_, "/shard" + std::to_string(i), {}, all[i]);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string path = "/db" + std::to_string(i);
    auto db = Database::open(path, bulk_options(fs_));
    REQUIRE_OK(db);
    auto table = (*db)->create_table("t", all[i]);
    REQUIRE_OK(table);
    for (size_t k = 0; k < all.size(); ++k) {
      const std::string shard = "/shard" + std::to_string(k);
      const Status s = adopt_rows(**db, *table, {shard});
      INFO(i << " adopts " << k << ": " << s.to_string());
      REQUIRE(s.ok() == (i == k));
      if (s.ok()) continue;
      REQUIRE(s.code() == StatusCode::invalid_argument);
      REQUIRE(s.file() == shard);
    }
  }
}

TEST_CASE_METHOD(AdoptTest, "AdoptTest.RefusesWhatIsNotThere", "[AdoptTest]") {
  make_shard(fs_, "/a", {{"k", "1"}});
  open();
  CHECK(adopt({"/none"}).code() == StatusCode::not_found);
  CHECK_FALSE(*fs_.exists("/none"));
  auto other = db_->create_table("other");
  const Status s = adopt_rows(*db_, *other, {"/a"});
  CHECK(s.code() == StatusCode::not_found);
  CHECK(s.file() == "/a");
  for (const char* self : {"/db", "/db/", "/x/../db"})
    CHECK(adopt({self}).code() == StatusCode::invalid_argument);
  auto typed = db_->begin();
  auto with_schema = typed.create_table("typed", {.schema = *Schema::parse("a i64")});
  REQUIRE_OK(with_schema);
  REQUIRE_OK(typed.commit());
  CHECK(adopt_rows(*db_, *db_->open_table(".stride"), {"/a"}).code() ==
        StatusCode::invalid_argument);
  CHECK(adopt_rows(*db_, Table(), {"/a"}).code() == StatusCode::invalid_argument);
  REQUIRE_OK(adopt({}));
  CHECK(rows().empty());
}

TEST_CASE_METHOD(AdoptTest, "AdoptTest.RefusesWhatIsNotCompacted", "[AdoptTest]") {
  const Model all = {{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}};
  open();
  auto refuse = [&](const std::string& path, const char* what, Options options, auto change) {
    make_shard(fs_, path, all);
    {
      auto db = Database::open(path, options);
      REQUIRE_OK(db);
      WriteTransaction t = (*db)->begin();
      REQUIRE_OK(change(t, *(*db)->open_table("t")));
      REQUIRE_OK(t.commit());
    }
    Status s = adopt({path});
    INFO(s.to_string());
    CHECK(s.code() == StatusCode::invalid_argument);
    CHECK(s.message().find(what) != std::string::npos);
    CHECK(s.remedy().find("compact()") != std::string::npos);
    CHECK(s.file() == path);
    CHECK(rows().empty());
    const Tables tables = tables_in(fs_, path);
    auto db = Database::open(path, options);
    REQUIRE_OK((*db)->compact());
    REQUIRE_OK((*db)->close());
    REQUIRE_OK(adopt({path}));
    CHECK(rows() == tables.at("t"));
    open();
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.erase_range(table_, std::nullopt, std::nullopt));
    REQUIRE_OK(t.commit());
    REQUIRE_OK(db_->compact());
  };
  Options logged = bulk_options(fs_), in_place = bulk_options(fs_);
  logged.memtable_bytes = 1 << 20;
  in_place.max_range_tombstones = 0;
  refuse("/log", "log", logged, [](auto& t, const Table& table) { return t.put(table, "e", "2"); });
  refuse("/runs", "runs", bulk_options(fs_),
         [](auto& t, const Table& table) { return t.put(table, "b", "2"); });
  refuse("/tombstones", "tombstones", bulk_options(fs_),
         [](auto& t, const Table& table) { return t.erase(table, "b"); });
  refuse("/erased", "erased", in_place, [](auto& t, const Table& table) {
    return t.erase_range(table, as_bytes("b"), as_bytes("c"));
  });
}

TEST_CASE_METHOD(AdoptTest, "AdoptTest.RunsOfDisjointKeysAreAdopted", "[AdoptTest]") {
  make_shard(fs_, "/a", {{"a", "1"}, {"b", "1"}});
  make_shard(fs_, "/a", {{"d", "1"}, {"e", "1"}});
  make_shard(fs_, "/b", {{"c", "1"}});
  open();
  REQUIRE_OK(adopt({"/a", "/b"}));
  CHECK(rows() == Model{{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}, {"e", "1"}});
  REQUIRE_OK(db_->verify());
}

TEST_CASE_METHOD(AdoptTest, "AdoptTest.TablesOfATransaction", "[AdoptTest]") {
  make_shard(fs_, "/a", {{"a", "1"}});
  make_shard(fs_, "/b", {{"b", "1"}});
  open();
  const std::vector<std::string> a = {"/a"}, b = {"/b"};
  {
    WriteTransaction t = db_->begin();
    REQUIRE_OK(t.put(table_, "x", "1"));
    CHECK(t.adopt(table_, a).code() == StatusCode::invalid_argument);
    REQUIRE_OK(t.commit());
  }
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.adopt(table_, a));
  REQUIRE_OK(t.adopt(table_, b));
  for (const Status& s :
       {t.put(table_, "y", "1"), t.erase(table_, "a"), t.erase_range(table_, {}, {}),
        t.put_if_absent(table_, Column::fixed("z", 1, 1), Column::fixed("z", 1, 1))})
    CHECK(s.code() == StatusCode::invalid_argument);
  auto other = t.create_table("other", {.key_width = 1});
  REQUIRE_OK(other);
  REQUIRE_OK(t.put(*other, "k", "v"));
  CHECK(t.staged_rows() == 3);
  REQUIRE_OK(t.commit());
  CHECK(*read_all(*db_) ==
        Tables{{"t", {{"a", "1"}, {"b", "1"}, {"x", "1"}}}, {"other", {{"k", "v"}}}});
  // A table takes the place of another one with what it has adopted.
  WriteTransaction swap = db_->begin();
  REQUIRE_OK(swap.rename_table(table_, "old"));
  auto fresh = swap.create_table("t");
  REQUIRE_OK(fresh);
  REQUIRE_OK(swap.adopt(*fresh, a));
  REQUIRE_OK(swap.put(*other, "k", "w"));
  REQUIRE_OK(swap.commit());
  const Tables all = {
      {"old", {{"a", "1"}, {"b", "1"}, {"x", "1"}}}, {"other", {{"k", "w"}}}, {"t", {{"a", "1"}}}};
  CHECK(*read_all(*db_) == all);
  db_.reset();
  CHECK(tables_in(fs_, "/db") == all);
}

TEST_CASE_METHOD(AdoptTest, "AdoptTest.IsNewerThanRowsInTheLog", "[AdoptTest]") {
  make_shard(fs_, "/a", {{"a", "adopted"}, {"b", "adopted"}});
  Options options = bulk_options(fs_);
  options.memtable_bytes = 1 << 20;
  auto db = Database::open("/db", options);
  REQUIRE_OK(db);
  auto table = (*db)->create_table("t");
  REQUIRE_OK(put_rows(**db, *table, {{"a", "before"}, {"c", "before"}}));
  REQUIRE_OK(adopt_rows(**db, *table, {"/a"}));
  REQUIRE_OK(put_rows(**db, *table, {{"b", "after"}}));
  const Model expected = {{"a", "adopted"}, {"b", "after"}, {"c", "before"}};
  CHECK((*read_all(**db))["t"] == expected);
  db->reset();
  CHECK(tables_in(fs_, "/db") == Tables{{"t", expected}});
}

TEST_CASE_METHOD(AdoptTest, "AdoptTest.NumbersPrefixesAndRowsThatEnd", "[AdoptTest]") {
  const auto number = [](int64_t n) { return std::string(reinterpret_cast<char*>(&n), 8); };
  make_shard(fs_, "/sums", {{"a", number(5)}, {"b", number(7)}}, {.numbers = NumberType::i64});
  open({.numbers = NumberType::i64});
  REQUIRE_OK(adopt({"/sums"}));
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.accumulate(table_, "a", 10));
  REQUIRE_OK(t.accumulate(table_, "c", 1));
  REQUIRE_OK(t.commit());
  CHECK(rows() == Model{{"a", number(15)}, {"b", number(7)}, {"c", number(1)}});

  const TableOptions strings = {.address_bits = byte_strings};
  make_shard(fs_, "/p1", {{"a", "1"}, {"ab", "2"}}, strings);
  make_shard(fs_, "/p2", {{"abc", "3"}, {"b", "4"}}, strings);
  auto db = Database::open("/prefixes", bulk_options(fs_));
  auto prefixes = (*db)->create_table("t", strings);
  REQUIRE_OK(put_rows(**db, *prefixes, {{"ab", "0"}}));
  REQUIRE_OK(adopt_rows(**db, *prefixes, {"/p2", "/p1"}));
  const auto matched = [&](std::string_view address) -> std::string {
    auto entry = (*db)->snapshot().match(*prefixes, as_bytes(address));
    REQUIRE_OK(entry);
    return *entry ? text((*entry)->value) : "none";
  };
  for (const auto& [address, value] :
       Model{{"abcd", "3"}, {"abd", "2"}, {"ax", "1"}, {"b", "4"}, {"c", "none"}})
    CHECK_MESSAGE(matched(address) == value, address);

  const TableOptions ending = {.schema = *Schema::parse("seen timestamp"), .expiry_column = "seen"};
  make_shard(fs_, "/ending", {{"early", number(1000)}, {"late", number(2000)}}, ending);
  int64_t now = 500;
  Options options = bulk_options(fs_);
  options.clock = [&] { return now; };
  db = Database::open("/ends", options);
  auto ends = (*db)->open_or_create_table("t", ending);
  REQUIRE_OK(ends);
  REQUIRE_OK(adopt_rows(**db, *ends, {"/ending"}));
  CHECK(*(*db)->snapshot().count(*ends) == 2);
  now = 1500;
  CHECK(*(*db)->snapshot().count(*ends) == 1);
  REQUIRE_OK((*db)->compact());
  REQUIRE_OK((*db)->verify());
  CHECK((*db)->segments(*ends)->at(0).rows == 1);
}

// A prefix table has at most 64, however they come.
TEST_CASE_METHOD(AdoptTest, "AdoptTest.RunsOfAPrefixTableStayFew", "[AdoptTest]") {
  Model all;
  open({.address_bits = byte_strings});
  for (int i = 0; i < 70; ++i) {
    const Model part = {{"p", std::to_string(i)}, {"q" + std::to_string(i), "1"}};
    const std::string path = "/shard" + std::to_string(i);
    make_shard(fs_, path, part, {.address_bits = byte_strings});
    REQUIRE_OK(adopt({path}));
    for (const auto& [key, value] : part) all[key] = value;
  }
  CHECK(db_->segments(table_)->size() <= 64);
  CHECK(rows() == all);
  auto entry = db_->snapshot().match(table_, as_bytes("px"));
  REQUIRE_OK(entry);
  CHECK(text((*entry)->value) == "69");
  REQUIRE_OK(db_->verify());
}

TEST_CASE_METHOD(AdoptTest, "AdoptTest.ConflictsWithWhatWasRead", "[AdoptTest]") {
  make_shard(fs_, "/a", {{"a", "adopted"}});
  open();
  REQUIRE_OK(put_rows(*db_, table_, {{"a", "1"}, {"b", "1"}}));
  Transaction reads_a = db_->transaction(), reads_b = db_->transaction();
  REQUIRE_OK(reads_a.get(table_, "a"));
  REQUIRE_OK(reads_b.get(table_, "b"));
  REQUIRE_OK(reads_a.put(table_, "c", "1"));
  REQUIRE_OK(reads_b.put(table_, "d", "1"));
  REQUIRE_OK(adopt({"/a"}));
  CHECK(reads_a.commit().code() == StatusCode::conflict);
  REQUIRE_OK(reads_b.commit());
  CHECK(rows() == Model{{"a", "adopted"}, {"b", "1"}, {"d", "1"}});
}

TEST_CASE_METHOD(AdoptTest, "AdoptTest.ReadersSeeAllOfItOrNothing", "[AdoptTest]") {
  make_shard(fs_, "/a", {{"a", "1"}});
  make_shard(fs_, "/b", {{"b", "1"}});
  open();
  auto reader = Database::open("/db", {.read_only = true, .file_system = &fs_});
  REQUIRE_OK(reader);
  REQUIRE_OK(adopt({"/a", "/b"}));
  CHECK(*read_all(**reader) == Tables{{"t", {}}});
  REQUIRE_OK((*reader)->refresh());
  CHECK(*read_all(**reader) == Tables{{"t", {{"a", "1"}, {"b", "1"}}}});
  auto table = (*reader)->open_table("t");
  CHECK(adopt_rows(**reader, *table, {"/a"}).code() == StatusCode::read_only);
  WriteTransaction t = db_->begin();
  REQUIRE_OK(t.adopt(table_, std::vector<std::string>{"/a"}));
  REQUIRE_OK(db_->close());
  CHECK(t.commit().code() == StatusCode::closed);
  CHECK(tables_in(fs_, "/db") == Tables{{"t", {{"a", "1"}, {"b", "1"}}}});
}

}  // namespace
}  // namespace stride::test
