// Ranges that erase stored rows in place beside flushes and merges of other threads.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/write/erase_in_place_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/test_threads.h"

namespace stride::test::erase_in_place_tests {
namespace {

// Writers with keys of their own, ranges over them, merges and readers at once: what a writer reads
// of its keys after its commit is what it has written.
TEST_CASE_METHOD(EraseInPlaceTest, "EraseInPlaceTest.GoesOnBesideFlushesAndMerges",
                 "[EraseInPlaceTest]") {
  open({.threads = 2, .memtable_bytes = 1 << 15, .max_range_tombstones = 0});
  Table table = *db_->create_table("t", {.key_width = 8});
  const uint64_t first_seed = seed();
  constexpr uint64_t writers = 2, rounds = 60, lane_keys = 2000;
  std::vector<Model> models(writers);
  std::atomic<uint64_t> left{writers};
  TestThreads threads;
  for (uint64_t lane = 0; lane < writers; ++lane) {
    threads.start([&, lane] {
      std::mt19937_64 random(first_seed + lane);
      Model& model = models[lane];
      for (uint64_t round = 0; round < rounds; ++round) {
        WriteTransaction t = db_->begin();
        const uint64_t begin = lane * lane_keys;
        if (random() % 2) {
          const std::string from = key_of(begin + random() % lane_keys);
          const std::string to = key_of(begin + random() % lane_keys);
          CHECK_OK(t.erase_range(table, as_bytes(from), as_bytes(to)));
          if (from < to) model.erase(model.lower_bound(from), model.lower_bound(to));
        }
        for (uint64_t n = random() % 3 ? random() % 20 : 500; n > 0; --n) {
          const std::string key = key_of(begin + random() % lane_keys);
          const std::string value = std::to_string(random() % 1000);
          CHECK_OK(t.put(table, key, value));
          model[key] = value;
        }
        CHECK_OK(t.commit(Durability::none));
        if (round % 10 != 0) continue;
        ScanOptions scan{.from = key_of(begin), .to = key_of(begin + lane_keys)};
        scan.reverse = random() % 2;
        Model seen;
        auto it = db_->snapshot().iterate(table, scan);
        for (; it->valid(); it->next()) seen[text(it->key())] = text(it->value());
        CHECK_MESSAGE(seen == model, "lane " << lane << ", round " << round);
      }
      --left;
    });
  }
  threads.start([&] {
    while (left > 0) {
      CHECK_OK(db_->compact());
      Snapshot snapshot = db_->snapshot();
      uint64_t rows = 0;
      for (auto it = snapshot.iterate(table); it->valid(); it->next()) ++rows;
      CHECK_MESSAGE(*snapshot.count(table) == rows, rows << " rows");
    }
  });
  threads.join();
  Model all;
  for (const Model& model : models) all.insert(model.begin(), model.end());
  expect_scan(db_->snapshot(), table, all, {});
  REQUIRE_OK(db_->verify());
  open();
  expect_scan(db_->snapshot(), *db_->open_table("t"), all, {});
}

// A merge whose inputs lose rows on the way is still of use: none has to wait for a pause.
TEST_CASE_METHOD(EraseInPlaceTest, "EraseInPlaceTest.CompactingEndsBesideRanges",
                 "[EraseInPlaceTest]") {
  open({.threads = 2,
        .memtable_bytes = small_memtable,
        .max_range_tombstones = 0,
        .background_work = false});
  Table table = *db_->create_table("t", {.key_width = 8});
  load(table, 0, 200'000);
  load(table, 0, 200'000, 3);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> erased{0};
  TestThreads threads;
  threads.start([&] {
    while (!stop && erased < 200'000) {
      WriteTransaction t = db_->begin();
      CHECK_OK(t.erase_range(table, as_bytes(key_of(erased)), as_bytes(key_of(erased + 10))));
      CHECK_OK(t.commit(Durability::none));
      erased += 10;
    }
  });
  for (int i = 0; i < 3; ++i) {
    CHECK_OK(db_->compact());
    CHECK(statistics().runs == 1u);
  }
  stop = true;
  threads.join();
  CHECK(*db_->snapshot().count(table) == 200'000 - erased);
  REQUIRE_OK(db_->compact());
  CHECK(statistics().rows == 200'000 - erased);
}

// A merge goes on in steps where memory is short, and what ranges take of any of them is gone.
TEST_CASE_METHOD(EraseInPlaceTest, "EraseInPlaceTest.MergesInStepsBesideRangesOfAllKeys",
                 "[EraseInPlaceTest]") {
  std::mt19937_64 random(seed());
  open({.threads = 2,
        .memory_limit_bytes = 8 << 20,
        .memtable_bytes = small_memtable,
        .max_range_tombstones = 0,
        .background_work = false});
  Table table = *db_->create_table("t", {.key_width = 8});
  constexpr uint64_t rows = 500'000;
  load(table, 0, rows);
  load(table, 0, rows, 3, "thirdrow");
  std::vector<char> expected(rows, 1);  // of each key: what its row is, '\0' where there is none
  for (uint64_t i = 0; i < rows; i += 3) expected[i] = 3;
  std::atomic<bool> done{false};
  TestThreads threads;
  threads.start([&] {
    for (int round = 0; round < 2; ++round) CHECK_OK(db_->compact());
    done = true;
  });
  for (int ranges = 0; ranges < 5 || (!done && ranges < 500); ++ranges) {
    const uint64_t from = random() % rows, to = std::min(rows, from + random() % 500);
    erase(table, from, to, Durability::none);
    for (uint64_t i = from; i < to; ++i) expected[i] = 0;
    if (random() % 4 == 0) {
      const uint64_t key = random() % rows;
      load(table, key, key + 1, 1, "newerrow");
      expected[key] = 5;
    }
  }
  threads.join();
  auto check = [&] {
    uint64_t live = 0, wrong = 0;
    auto scan = db_->snapshot().scan(table, {});
    REQUIRE_OK(scan.status());
    std::vector<char> found(rows);
    ScanBatch batch;
    while (scan->next(&batch)) {
      for (uint64_t i = 0; i < batch.keys.size; ++i) {
        uint64_t key;
        std::memcpy(&key, batch.keys[i].data(), 8);
        const auto first = static_cast<char>(batch.values[i][0]);
        found[__builtin_bswap64(key)] = first == '1' ? 1 : first == 't' ? 3 : 5;
      }
    }
    REQUIRE_OK(scan->status());
    for (uint64_t i = 0; i < rows; ++i) {
      live += expected[i] != 0;
      wrong += expected[i] != found[i];
    }
    CHECK(wrong == 0);
    CHECK(*db_->snapshot().count(table) == live);
  };
  check();
  REQUIRE_OK(db_->compact());
  CHECK(statistics().segments > 2);  // steps
  check();
  REQUIRE_OK(db_->verify());
  open();
  table = *db_->open_table("t");
  check();
}

}  // namespace
}  // namespace stride::test::erase_in_place_tests
