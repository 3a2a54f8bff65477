// Dedup tables whose vectors are compressed on the disk: what their rows are, what is refused, and
// what they take.
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/dedup_blocks.h"
#include "engine/dedup_table.h"
#include "storage/integer_key.h"
#include "storage/memory_file_system.h"
#include "storage/vector_block.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

using Words = std::vector<uint32_t>;

class DedupCompressedTest {
 protected:
  DedupCompressedTest() { reopen(); }
  void reopen() {
    db_.reset();
    Options options;
    options.file_system = &files_;
    options.threads = 2;
    db_ = std::move(*Database::open("/db", options));
  }
  Result<DedupTable> open(uint32_t words, bool compressed = true, const std::string& name = "t") {
    return DedupTable::open(*db_, name, {.words = words, .compressed = compressed, .threads = 2});
  }
  Status put(DedupTable* table, const Words& vectors) {
    ids_.resize(vectors.size() / table->words());
    return table->find_or_put(Column::fixed(vectors.data(), table->words() * 4, ids_.size()), ids_,
                              {});
  }
  std::map<uint64_t, std::string> rows(const std::string& name = "t") {
    std::map<uint64_t, std::string> rows;
    auto it = db_->snapshot().iterate(*db_->open_table(name));
    for (; it->valid(); it->next()) rows[u64_of_key(it->key())] = text(it->value());
    REQUIRE_OK(it->status());
    return rows;
  }
  void set_row(uint64_t id, const std::optional<std::string>& value) {
    Table table = *db_->open_table("t");
    const uint64_t key = u64_key(id);
    const Bytes bytes = std::as_bytes(std::span(&key, 1));
    WriteTransaction t = db_->begin();
    REQUIRE_OK(value ? t.put(table, bytes, as_bytes(*value)) : t.erase(table, bytes));
    REQUIRE_OK(t.commit());
  }
  void refused(const Status& s, StatusCode code, const std::string& mentions) {
    CHECK_MESSAGE(to_string(s.code()) == to_string(code), s.to_string());
    CHECK_MESSAGE(s.to_string().find(mentions) != std::string::npos, s.to_string());
  }
  // A walk: a word changes at each step, and takes one of 4 values.
  Words walk(uint32_t words, uint64_t n) {
    Words vectors(words * n), values(words * 4);
    for (uint32_t& v : values) v = static_cast<uint32_t>(random_());
    for (uint32_t w = 0; w < words; ++w) vectors[w] = values[w * 4];
    for (uint64_t i = 1; i < n; ++i) {
      std::copy_n(vectors.begin() + static_cast<int64_t>((i - 1) * words), words,
                  vectors.begin() + static_cast<int64_t>(i * words));
      const uint64_t w = random_() % words;
      vectors[i * words + w] = values[w * 4 + random_() % 4];
    }
    return vectors;
  }
  Words any(uint32_t words, uint64_t n) {
    Words vectors(words * n);
    for (uint32_t& v : vectors) v = static_cast<uint32_t>(random_());
    return vectors;
  }
  // Counts the bytes of the segments, once all rows lie in one.
  double bytes_a_vector(uint32_t words, bool compressed, const Words& vectors) {
    const std::string name = "bytes" + std::to_string(tables_++);
    auto table = open(words, compressed, name);
    REQUIRE_OK(table);
    REQUIRE_OK(put(&*table, vectors));
    REQUIRE_OK(db_->compact());
    for (const TableStatistics& t : db_->tables())
      if (t.name == name)
        return static_cast<double>(t.bytes_on_disk) / static_cast<double>(table->size());
    return 0;
  }

  std::mt19937_64 random_{seed()};
  MemoryFileSystem files_;
  std::unique_ptr<Database> db_;
  std::vector<uint64_t> ids_;
  int tables_ = 0;
};

const char* const golden_head = R"(
0000 | 53 54 52 44 44 55 50 0a                         | magic "STRDDUP\n"
0008 | 01 00 00 00                                     | version 1; a larger one is refused as unsupported_version
000c | 04 00 00 00                                     | words of a vector, 1 to 64
)";

TEST_CASE_METHOD(DedupCompressedTest, "DedupCompressedTest.RowsAreBlocksAndAHead",
                 "[DedupCompressedTest]") {
  auto table = open(4);
  REQUIRE_OK(table);
  CHECK(table->compressed());
  CHECK(rows().size() == 1u);
  expect_dump(rows().at(UINT64_MAX), golden_head);
  // However the vectors come, the rows are the same.
  const uint32_t full = vectors_of_block(4);
  const Words vectors = walk(4, 3 * full);
  REQUIRE_OK(put(&*table, vectors));
  const uint64_t size = table->size();
  const std::map<uint64_t, std::string> at_once = rows();
  CHECK(at_once.size() == (size + full - 1) / full + 1);
  for (const auto& [id, value] : at_once) CHECK((id == UINT64_MAX || id % full == 0));
  auto slowly = open(4, true, "slowly");
  for (uint64_t at = 0, n = 0; at < vectors.size(); at += n) {
    n = std::min<uint64_t>(4 * (1 + random_() % (random_() % 2 ? 5 : 500)), vectors.size() - at);
    REQUIRE_OK(put(&*slowly, Words(vectors.begin() + static_cast<int64_t>(at),
                                   vectors.begin() + static_cast<int64_t>(at + n))));
  }
  CHECK(slowly->size() == size);
  CHECK(rows("slowly") == at_once);
}

TEST_CASE_METHOD(DedupCompressedTest, "DedupCompressedTest.TheOtherOptionIsRefused",
                 "[DedupCompressedTest]") {
  const StatusCode invalid = StatusCode::invalid_argument;
  for (bool empty : {true, false}) {
    const std::string packed = empty ? "packed" : "packed rows", plain = empty ? "plain" : "rows";
    {
      auto a = open(3, true, packed), b = open(3, false, plain);
      REQUIRE_OK(a);
      REQUIRE_OK(b);
      CHECK_FALSE(b->compressed());
      if (!empty) REQUIRE_OK(put(&*a, any(3, 10)));
      if (!empty) REQUIRE_OK(put(&*b, any(3, 10)));
    }
    if (empty) reopen();
    refused(open(3, false, packed).status(), invalid, "is a compressed dedup table");
    refused(open(3, true, plain).status(), invalid, "is no compressed dedup table");
    refused(open(2, true, packed).status(), invalid, "has vectors of 3 words, not of 2");
    CHECK(open(3, true, packed)->size() == (empty ? 0u : 10u));
    CHECK(open(3, false, plain)->size() == (empty ? 0u : 10u));
  }
  refused(open(0, true, "none").status(), invalid, "0 words");
  refused(open(65, true, "none").status(), invalid, "65 words");
  REQUIRE_OK(db_->create_table("wide", {.key_width = 4}).status());
  refused(open(2, true, "wide").status(), invalid, "width 4");
  CHECK(db_->open_table("none").status().code() == StatusCode::not_found);
}

TEST_CASE_METHOD(DedupCompressedTest, "DedupCompressedTest.DamageIsCorruption",
                 "[DedupCompressedTest]") {
  const uint32_t full = vectors_of_block(16);
  { REQUIRE_OK(put(&*open(16), walk(16, 3 * full))); }
  const std::map<uint64_t, std::string> good = rows();
  auto damaged = [&](uint64_t id, const std::optional<std::string>& value,
                     const std::string& mentions) {
    INFO(mentions);
    set_row(id, value);
    refused(open(16).status(), StatusCode::corruption, mentions);
    for (uint64_t at : {id, UINT64_MAX})
      set_row(at, good.count(at) ? std::optional(good.at(at)) : std::nullopt);
    REQUIRE_OK(open(16).status());
  };
  damaged(0, good.at(0).substr(1), "id 0 is none");
  damaged(full, std::nullopt, "follows 256 vectors");
  damaged(full, good.at(0), "twice");
  damaged(full + 1, good.at(0), "id 257 follows 512 vectors");
  damaged(full, good.rbegin()->second, "id 256 is none");
  damaged(uint64_t{1} << 60, good.at(0), "follows");
  damaged(UINT64_MAX, good.at(UINT64_MAX).substr(0, 12), "cut off");
  damaged(UINT64_MAX, good.at(UINT64_MAX) + "x", "head");
  std::string newer = good.at(UINT64_MAX);
  newer[8] = 2;
  set_row(UINT64_MAX, newer);
  refused(open(16).status(), StatusCode::unsupported_version, "version 2");
  set_row(UINT64_MAX, good.at(UINT64_MAX));
  // Any bytes of a block: an error, or some vectors.
  for (int round = 0; round < 40; ++round) {
    std::string block = good.at(full);
    block[random_() % std::min<size_t>(block.size(), 300)] = static_cast<char>(random_());
    set_row(full, block);
    const Status s = open(16).status();
    CHECK_MESSAGE((s.ok() || s.code() == StatusCode::corruption), s.to_string());
  }
}

// What a call has put is there after a power loss, with its ids; of calls that did not wait for the
// disk, the first ones.
TEST_CASE_METHOD(DedupCompressedTest, "DedupCompressedTest.PowerLosses", "[DedupCompressedTest]") {
  auto fs = std::make_unique<MemoryFileSystem>();
  Words known;  // by id
  for (int life = 0; life < 30; ++life) {
    INFO("life " << life);
    uint64_t synced = 0;
    std::unique_ptr<MemoryFileSystem> after;
    {
      Options options;
      options.file_system = fs.get();
      options.threads = 2;
      auto database = std::move(*Database::open("/db", options));
      const bool waits = random_() % 2;
      auto table = DedupTable::open(*database, "t",
                                    {.words = 16,
                                     .compressed = true,
                                     .durability = waits ? Durability::sync : Durability::none,
                                     .threads = 2});
      REQUIRE_OK(table);
      REQUIRE(table->size() * 16 <= known.size());
      known.resize(table->size() * 16);
      synced = table->size();
      Words back(known.size());
      ids_.resize(table->size());
      std::iota(ids_.begin(), ids_.end(), uint64_t{0});
      REQUIRE_OK(table->get(ids_, std::as_writable_bytes(std::span(back))));
      REQUIRE(back == known);
      for (int call = 0; call < 5; ++call) {
        const Words vectors = any(16, 1 + random_() % (random_() % 2 ? 3 : 400));
        REQUIRE_OK(put(&*table, vectors));
        known.insert(known.end(), vectors.begin(), vectors.end());
        REQUIRE(ids_.back() == known.size() / 16 - 1);
      }
      if (waits) synced = table->size();
      after = fs->crash(random_(), static_cast<CrashPolicy>(random_() % 3));
    }
    fs = std::move(after);
    Options options;
    options.file_system = fs.get();
    auto database = std::move(*Database::open("/db", options));
    auto table = DedupTable::open(*database, "t", {.words = 16, .compressed = true});
    REQUIRE_OK(table);
    CHECK(table->size() >= synced);
  }
}

TEST_CASE_METHOD(DedupCompressedTest, "DedupCompressedTest.TakesFewBytes",
                 "[DedupCompressedTest]") {
  const Words states = walk(16, 60'000);
  CHECK(bytes_a_vector(16, true, states) * 8 < bytes_a_vector(16, false, states));
  for (uint32_t words : {1u, 2u, 3u, 16u, 64u}) {
    const Words random = any(words, 200'000 / words);
    CHECK(bytes_a_vector(words, true, random) < bytes_a_vector(words, false, random));
  }
}

}  // namespace
}  // namespace stride::test
