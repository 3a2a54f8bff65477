// One history of operations under many options: small commits, segments and reopening make no
// difference to what is seen.

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test::small_commit_tests {
namespace {

// One history of random operations, the same for each seed, whatever the options.
class RandomHistory {
 public:
  RandomHistory(uint64_t seed, uint64_t memtable_bytes, bool reopens)
      : random_(seed), reopens_(reopens) {
    options_.file_system = &fs_;
    options_.threads = 2;
    options_.backend = BackendKind::host;
    options_.memtable_bytes = memtable_bytes;
    open();
    bytes_ = *db_->create_table("bytes");
    sums_ = *db_->create_table("sums", {.numbers = NumberType::i64});
    prefixes_ = *db_->create_table("prefixes", {.address_bits = byte_strings});
  }

  // What the operations have answered, and what has been read now and then.
  std::vector<std::string> run(int operations) {
    for (int i = 0; i < operations; ++i) {
      change();
      if (random_() % 4 == 0) observe(db_->snapshot());
      if (random_() % 10 == 0) kept_.push_back(db_->snapshot());
      if (!kept_.empty() && random_() % 10 == 0) observe(kept_[random_() % kept_.size()]);
      const bool reopen = random_() % 12 == 0;
      if (reopen) kept_.clear();
      if (reopen && reopens_) open();
    }
    observe(db_->snapshot());
    REQUIRE_OK(db_->verify());
    return std::move(answers_);
  }

 private:
  void open() {
    db_.reset();
    auto opened = Database::open("/db", options_);
    REQUIRE_OK(opened);
    db_ = std::move(*opened);
    if (auto table = db_->open_table("bytes"); table.ok()) {
      bytes_ = *table;
      sums_ = *db_->open_table("sums");
      prefixes_ = *db_->open_table("prefixes");
    }
  }
  std::string key() { return "k" + std::to_string(random_() % 150); }
  void answer(const std::string& text) { answers_.push_back(text); }
  void commit(WriteTransaction& t) {
    const auto durability = static_cast<Durability>(random_() % 3);
    answer(to_string(t.commit(durability).code()).data());
  }

  void change() {
    const uint64_t which = random_() % 20;
    if (which == 18) return REQUIRE_OK(db_->compact());
    if (which == 19) return REQUIRE_OK(db_->sync());
    WriteTransaction t = db_->begin();
    if (which < 9) put_some(t);
    if (which == 9 || which == 10) add_some(t);
    if (which == 11 || which == 12) return put_if_absent(t);
    if (which == 13) put_many(t);
    if (which == 14) REQUIRE_OK(t.erase_range(bytes_, as_bytes(range_), as_bytes(range_ + "5")));
    if (which == 15) REQUIRE_OK(t.put(prefixes_, key(), "prefix"));
    if (which == 16) {
      add_some(t);
      put_some(t);
    }
    range_ = key();
    commit(t);
  }

  void put_some(WriteTransaction& t) {
    for (uint64_t n = 1 + random_() % 4; n > 0; --n) {
      std::string k = key(), value(random_() % 100, static_cast<char>('a' + random_() % 26));
      REQUIRE_OK(random_() % 4 == 0 ? t.erase(bytes_, k) : t.put(bytes_, k, value));
    }
  }
  void add_some(WriteTransaction& t) {
    for (uint64_t n = 1 + random_() % 3; n > 0; --n)
      REQUIRE_OK(t.accumulate(sums_, key(), static_cast<int64_t>(random_() % 1000)));
    if (random_() % 5 == 0) REQUIRE_OK(t.erase(sums_, key()));
  }
  void put_if_absent(WriteTransaction& t) {
    Rows keys, values;
    for (int i = 0; i < 5; ++i) {
      keys.add(key());
      values.add(std::to_string(random_() % 1000));
    }
    uint64_t bits = 0;
    REQUIRE_OK(t.put_if_absent(bytes_, keys.column(), values.column(), {&bits, 1}));
    commit(t);
    answer("new " + std::to_string(bits));
  }
  // Too many for a small commit where the memtable is small.
  void put_many(WriteTransaction& t) {
    Rows keys, values;
    for (int i = 0; i < 300; ++i) {
      keys.add(key());
      values.add(std::string(50, static_cast<char>('a' + i % 26)));
    }
    REQUIRE_OK(t.put(bytes_, keys.column(), values.column()));
  }

  void observe(const Snapshot& snapshot) {
    std::string seen;
    for (const Table& table : {bytes_, sums_, prefixes_}) {
      seen += std::to_string(*snapshot.count(table)) + ";";
      auto it = snapshot.iterate(table);
      REQUIRE_OK(it.status());
      for (; it->valid(); it->next()) seen += text(it->key()) + "=" + text(it->value()) + ";";
    }
    Rows queries;
    for (int i = 0; i < 20; ++i) queries.add(key());
    GetResult got;
    LowerBoundResult bounds;
    REQUIRE_OK(snapshot.get(bytes_, queries.column(), &got));
    REQUIRE_OK(snapshot.lower_bound(bytes_, queries.column(), &bounds));
    for (uint64_t i = 0; i < 20; ++i) {
      auto one = snapshot.get(bytes_, queries.column()[i]);
      REQUIRE_OK(one.status());
      REQUIRE(one->has_value() == got.found[i]);
      if (got.found[i]) REQUIRE(text(**one) == text(got.values[i]));
      if (bounds.found[i]) seen += text(bounds.keys[i]) + ">" + text(bounds.values[i]) + ";";
    }
    MatchResult matched;
    REQUIRE_OK(snapshot.match(prefixes_, queries.column(), &matched));
    for (uint64_t i = 0; i < 20; ++i) seen += matched.found[i] ? "+" : "-";
    answer(seen);
  }

  std::mt19937_64 random_;
  const bool reopens_;
  MemoryFileSystem fs_;
  Options options_;
  std::unique_ptr<Database> db_;
  Table bytes_, sums_, prefixes_;
  std::vector<Snapshot> kept_;
  std::string range_ = "k1";
  std::vector<std::string> answers_;
};

TEST_CASE("SmallCommitsTest.OneHistoryHasTheSameAnswersUnderAllOptions", "[SmallCommitsTest]") {
  std::mt19937_64 random(seed());
  for (int round = 0; round < smaller_under_sanitizers(12, 3); ++round) {
    const uint64_t chosen = random();
    const int operations = 150;
    std::vector<std::string> expected = RandomHistory(chosen, 0, false).run(operations);
    for (uint64_t bytes : {1 << 12, 1 << 15, 1 << 26})
      for (bool reopens : {false, true}) {
        std::vector<std::string> answers = RandomHistory(chosen, bytes, reopens).run(operations);
        REQUIRE(answers.size() == expected.size());
        for (size_t i = 0; i < answers.size(); ++i)
          REQUIRE_MESSAGE(answers[i] == expected[i],
                          "seed " << chosen << ", memtable " << bytes << ", reopens " << reopens);
      }
  }
}

}  // namespace
}  // namespace stride::test::small_commit_tests
