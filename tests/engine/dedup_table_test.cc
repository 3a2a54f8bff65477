// Durable ids of vectors, beside a map.
#include "engine/dedup_table.h"

#include <map>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

using Vector = std::vector<uint32_t>;

KeyColumn column(const std::vector<Vector>& vectors, Vector* memory) {
  memory->clear();
  for (const Vector& v : vectors) memory->insert(memory->end(), v.begin(), v.end());
  uint32_t bytes = vectors.empty() ? 0 : static_cast<uint32_t>(vectors[0].size() * 4);
  return Column::fixed(memory->data(), bytes, vectors.size());
}

class DedupTableTest {
 protected:
  DedupTableTest() { reopen(); }
  void reopen() {
    db_.reset();
    Options options;
    options.file_system = &files_;
    options.threads = 2;
    db_ = std::move(*Database::open("/db", options));
  }
  Result<DedupTable> open(uint32_t words, const std::string& name = "t") {
    return DedupTable::open(*db_, name, {.words = words, .compressed = compressed_, .threads = 2});
  }
  std::vector<Vector> random_vectors(uint64_t n, uint32_t words, uint32_t different) {
    std::vector<Vector> vectors(n, Vector(words));
    for (Vector& v : vectors)
      for (uint32_t& w : v) w = random_() % 3 ? 0 : static_cast<uint32_t>(random_() % different);
    return vectors;
  }
  // What is asked, and what was put, against the map.
  void expect_put(DedupTable* table, const std::vector<Vector>& vectors) {
    Vector memory;
    std::vector<uint64_t> ids(vectors.size()), was_new((vectors.size() + 63) / 64);
    REQUIRE_OK(table->find_or_put(column(vectors, &memory), ids, was_new));
    for (size_t i = 0; i < vectors.size(); ++i) {
      auto [at, fresh] = model_.emplace(vectors[i], model_.size());
      REQUIRE_MESSAGE(ids[i] == at->second, i);
      REQUIRE_MESSAGE((was_new[i / 64] >> i % 64 & 1) == fresh, i);
    }
  }
  void expect_all(const DedupTable& table, uint32_t words) {
    REQUIRE(table.size() == model_.size());
    std::vector<Vector> vectors;
    std::vector<uint64_t> ids, found(model_.size() + 1);
    for (const auto& [vector, id] : model_) {
      vectors.push_back(vector);
      ids.push_back(id);
    }
    Vector memory, back(ids.size() * words);
    REQUIRE_OK(table.get(ids, std::as_writable_bytes(std::span(back))));
    vectors.push_back(Vector(words, 0xFFFFFFFF));
    ids.push_back(DedupTable::absent);
    REQUIRE_OK(table.find(column(vectors, &memory), found));
    CHECK(found == ids);
    memory.resize(back.size());
    CHECK(back == memory);
  }

  std::mt19937_64 random_{seed()};
  MemoryFileSystem files_;
  std::unique_ptr<Database> db_;
  std::map<Vector, uint64_t> model_;
  bool compressed_ = false;
};

TEST_CASE_METHOD(DedupTableTest, "DedupTableTest.IdsStayTheSame", "[DedupTableTest]") {
  compressed_ = GENERATE(false, true);
  for (uint32_t words : {1u, 2u, 3u, 64u}) {
    std::string name = "t" + std::to_string(words);
    model_.clear();
    for (int life = 0; life < 3; ++life) {
      auto table = open(words, name);
      REQUIRE_OK(table);
      CHECK(table->words() == words);
      expect_all(*table, words);
      for (uint64_t n : {0, 1, 63, 64, 5000, 70'000 / static_cast<int>(words)}) {
        expect_put(&*table, random_vectors(n, words, 5000));
      }
      // Nothing new is nothing to write.
      uint64_t bytes = db_->size_bytes();
      expect_put(&*table, {model_.begin()->first, model_.begin()->first});
      CHECK(db_->size_bytes() == bytes);
      expect_all(*table, words);
      if (life == 1) REQUIRE_OK(db_->compact());
      { auto moved = std::move(*table); }
      reopen();
    }
    auto table = open(words, name);
    expect_all(*table, words);
    CHECK(table->memory_bytes() > model_.size() * words * 4);
  }
}

TEST_CASE_METHOD(DedupTableTest, "DedupTableTest.RowsAreIdsAndVectors", "[DedupTableTest]") {
  auto table = open(2);
  expect_put(&*table, {{1, 2}, {0x01020304, 5}, {1, 2}});
  auto it = db_->snapshot().iterate(*db_->open_table("t"));
  CHECK(text(it->key()) == std::string(8, '\0'));
  it->next();
  CHECK(text(it->key()) == std::string(7, '\0') + '\1');
  CHECK(text(it->value()) == std::string("\4\3\2\1\5\0\0\0", 8));
  it->next();
  CHECK_FALSE(it->valid());
}

TEST_CASE_METHOD(DedupTableTest, "DedupTableTest.WhatIsRefused", "[DedupTableTest]") {
  auto refused = [&](const Status& s, StatusCode code, const std::string& mentions) {
    CHECK_MESSAGE(to_string(s.code()) == to_string(code), s.to_string());
    CHECK_MESSAGE(s.to_string().find(mentions) != std::string::npos, s.to_string());
  };
  refused(open(0).status(), StatusCode::invalid_argument, "0 words");
  refused(open(65).status(), StatusCode::invalid_argument, "65 words");
  CHECK(db_->tables().empty());
  auto table = open(3);
  Vector memory;
  std::vector<uint64_t> ids(2), bits(2);
  refused(table->find_or_put(column({{1, 2}, {3, 4}}, &memory), ids, {}),
          StatusCode::invalid_argument, "8 bytes");
  KeyColumn two = column({{1, 2, 3}, {1, 2, 4}}, &memory);
  refused(table->find_or_put(two, std::span(ids).first(1), {}), StatusCode::invalid_argument, "");
  refused(table->find_or_put(two, ids, bits), StatusCode::invalid_argument, "need 1");
  CHECK(table->size() == 0u);
  expect_put(&*table, {{1, 2, 3}});
  std::vector<uint64_t> never = {1};
  Vector back(3);
  refused(table->get(never, std::as_writable_bytes(std::span(back))), StatusCode::not_found, "");
  refused(open(2).status(), StatusCode::invalid_argument, "has vectors of 3 words, not of 2");
  table = Result<DedupTable>(Status::invalid("let go"));
  refused(open(2).status(), StatusCode::invalid_argument, "row 0: has 12 bytes");
  REQUIRE_OK(db_->create_table("wide", {.key_width = 4}).status());
  refused(open(2, "wide").status(), StatusCode::invalid_argument, "width 4");
  // Rows of somebody else.
  auto put = [&](const std::string& name, const std::vector<std::string>& keys) {
    Table other = *db_->create_table(name, {.key_width = 8});
    WriteTransaction t = db_->begin();
    for (const std::string& key : keys) REQUIRE_OK(t.put(other, key, "12345678"));
    REQUIRE_OK(t.commit());
  };
  std::string zero(8, '\0'), one = zero.substr(1) + '\1', two_key = zero.substr(1) + '\2';
  put("gap", {zero, two_key});
  refused(open(2, "gap").status(), StatusCode::invalid_argument, "row 1: has id 2");
  put("twice", {zero, one});
  refused(open(2, "twice").status(), StatusCode::invalid_argument, "twice");
}

// Whichever call fails, memory has what the table has, and goes on.
TEST_CASE_METHOD(DedupTableTest, "DedupTableTest.AFailedCommitLeavesNothing", "[DedupTableTest]") {
  compressed_ = GENERATE(false, true);
  bool failed = true;
  for (uint64_t n = 1; failed; ++n) {
    REQUIRE(n < 1000u);
    std::string name = "t" + std::to_string(n);
    model_.clear();
    {
      auto table = open(2, name);
      REQUIRE_OK(table);
      expect_put(&*table, random_vectors(500, 2, 30));
      std::vector<Vector> more = random_vectors(500, 2, 300);
      Vector memory;
      std::vector<uint64_t> ids(500), bits(8);
      files_.fail_call(n, StatusCode::no_space);
      Status s = table->find_or_put(column(more, &memory), ids, bits);
      files_.fail_call(0, StatusCode::ok);
      failed = !s.ok();
      if (failed) {
        expect_all(*table, 2);
      } else {
        for (size_t i = 0; i < more.size(); ++i)
          REQUIRE(ids[i] == model_.emplace(more[i], model_.size()).first->second);
      }
      s = table->find_or_put(column(random_vectors(1, 2, 1 << 30), &memory),
                             std::span(ids).first(1), {});
      // After a failed sync the handle takes nothing more.
      CHECK_MESSAGE((s.ok() || s.code() == StatusCode::poisoned), s.to_string());
    }
    reopen();
  }
}

TEST_CASE_METHOD(DedupTableTest, "DedupTableTest.WhatCannotBeReadAgainIsRefused",
                 "[DedupTableTest]") {
  compressed_ = GENERATE(false, true);
  auto table = open(2);
  expect_put(&*table, {{1, 2}});
  REQUIRE_OK(db_->drop_table("t"));
  Vector memory, back(2);
  std::vector<uint64_t> ids(1);
  KeyColumn vector = column({{3, 4}}, &memory);
  CHECK(table->find_or_put(vector, ids, {}).code() == StatusCode::not_found);
  for (const Status& s :
       {table->find_or_put(vector, ids, {}), table->find(vector, ids),
        table->get(std::vector<uint64_t>{0}, std::as_writable_bytes(std::span(back)))}) {
    CHECK_MESSAGE(s.code() == StatusCode::closed, s.to_string());
    CHECK(s.remedy() == "open it again");
  }
  CHECK(open(2)->size() == 0u);
}

// Two that had sets of their own would give ids twice.
TEST_CASE_METHOD(DedupTableTest, "DedupTableTest.OpenedTwiceItIsOne", "[DedupTableTest]") {
  compressed_ = GENERATE(false, true);
  auto one = open(1), other = open(1);
  REQUIRE_OK(one);
  REQUIRE_OK(other);
  CHECK(open(2).status().code() == StatusCode::invalid_argument);
  {
    auto same = Database::open("/db", {.file_system = &files_});
    REQUIRE_OK(same);
    const Status s =
        DedupTable::open(**same, "t", {.words = 1, .compressed = compressed_}).status();
    CHECK_MESSAGE(s.code() == StatusCode::invalid_argument, s.to_string());
  }
  for (int i = 0; i < 50; ++i) expect_put(i % 2 ? &*one : &*other, random_vectors(40, 1, 500));
  expect_all(*one, 1);
  expect_all(*other, 1);
  one = Result<DedupTable>(Status::invalid("let go"));
  expect_put(&*other, random_vectors(40, 1, 500));
  {
    auto third = open(1);
    REQUIRE_OK(third);
    expect_all(*third, 1);
  }
  other = Result<DedupTable>(Status::invalid("let go"));
  reopen();
  auto again = open(1);
  REQUIRE_OK(again);
  expect_all(*again, 1);
}

TEST_CASE_METHOD(DedupTableTest, "DedupTableTest.ThreadsWithTablesOfTheirOwnShareIt",
                 "[DedupTableTest]") {
  constexpr uint32_t vectors = 3000;
  TestThreads threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.start([&, thread] {
      auto table = open(1);
      if (!table.ok()) return;
      for (uint32_t i = 0; i < vectors; i += 100) {
        std::vector<uint32_t> words(100);
        for (uint32_t k = 0; k < 100; ++k) words[k] = (i + k + 700 * thread) % vectors;
        std::vector<uint64_t> ids(100), was_new(2);
        if (!table->find_or_put(Column::fixed(words.data(), 4, 100), ids, was_new).ok()) return;
      }
    });
  threads.join();
  auto table = open(1);
  REQUIRE_OK(table);
  CHECK(table->size() == vectors);
}

}  // namespace
}  // namespace stride::test
