// Lower and upper bounds and previous entries of batches, beside a std::map.
#include <string>
#include <vector>

#include "tests/engine/read/ordered_reads.h"
#include "tests/support/fake_device.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

TEST_CASE("KeyBoundsTest.BatchesFindWhatAMapFinds", "[KeyBoundsTest]") {
  Random random(seed());
  for (uint32_t key_width : {0u, 8u, 3u})
    for (uint64_t memtable_bytes : {uint64_t{0}, uint64_t{32} << 10, uint64_t{4} << 20}) {
      RandomOrderedTable rows(random, memtable_bytes, key_width);
      std::vector<std::pair<Snapshot, Model>> kept;
      const int steps = smaller_under_sanitizers(120, 30);
      for (int i = 0; i < steps; ++i) {
        const Snapshot now = rows.db().snapshot();
        // More of them make segments of the memtable's rows.
        const uint64_t count = i % 8 == 0 ? 1500 : random() % 60;
        expect_bounds(now, rows.table(), rows.model(), rows.queries(count));
        if (i % 10 == 0) kept.emplace_back(now, rows.model());
        const auto& [then, model] = kept[random() % kept.size()];
        expect_bounds(then, rows.table(), model, rows.queries(random() % 60));
        rows.change();
      }
    }
}

TEST_CASE("KeyBoundsTest.QueriesOfOneWidthFindWhatOthersDo", "[KeyBoundsTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 64 << 10, 4);
  for (int i = 0; i < 60; ++i) rows.change();
  const Snapshot now = rows.db().snapshot();
  for (uint32_t width : {0u, 1u, 3u, 4u, 9u}) {
    std::vector<std::string> queries;
    std::string bytes;
    for (int i = 0; i < 300; ++i) {
      queries.push_back((rows.key() + rows.key() + rows.key()).substr(0, width));
      bytes += queries.back();
    }
    const KeyColumn column = Column::fixed(bytes.data(), width, queries.size());
    const Model& model = rows.model();
    LowerBoundResult result;
    REQUIRE_OK(now.lower_bound(rows.table(), column, &result));
    expect_entries(result, model, queries, [&](const auto& q) { return model.lower_bound(q); });
    REQUIRE_OK(now.previous(rows.table(), column, &result));
    expect_entries(result, model, queries, [&](const auto& q) { return previous_of(model, q); });
  }
}

// A run of more bytes than may be in memory at once has several segments.
TEST_CASE("KeyBoundsTest.RunsOfSeveralSegments", "[KeyBoundsTest]") {
  Random random(seed());
  MemoryFileSystem files;
  Options options;
  options.file_system = &files;
  options.backend = BackendKind::host;
  options.memory_limit_bytes = 16 << 20;
  auto opened = Database::open("/db", options);
  REQUIRE_OK(opened.status());
  Database& db = **opened;
  const Table table = *db.create_table("t");
  Model model;
  auto name = [&] { return std::to_string(random() % 1'000'000); };
  for (int run = 0; run < 2; ++run) {
    const std::string value(2000, static_cast<char>('a' + run));
    WriteTransaction t = db.begin();
    for (int i = 0; i < 20'000; ++i) {
      const std::string key = name();
      REQUIRE_OK(t.put(table, key, value));
      model[key] = value;
    }
    REQUIRE_OK(t.commit(Durability::none));
  }
  CHECK(db.segments(table)->size() > 2u);
  for (bool erased : {false, true}) {
    const Snapshot now = db.snapshot();
    std::vector<std::string> queries{"", "~"};
    for (int i = 0; i < 3000; ++i) queries.push_back(name());
    expect_bounds(now, table, model, queries);
    std::sort(queries.begin(), queries.end());
    expect_bounds(now, table, model, queries);
    // All keys that are there, the first and the last one of each segment among them.
    queries.clear();
    for (const auto& [key, value] : model) queries.push_back(key);
    expect_bounds(now, table, model, queries);
    if (erased) break;
    WriteTransaction t = db.begin();
    REQUIRE_OK(t.erase_range(table, as_bytes("3"), as_bytes("7")));
    REQUIRE_OK(t.commit(Durability::none));
    model.erase(model.lower_bound("3"), model.lower_bound("7"));
  }
}

TEST_CASE("KeyBoundsTest.ADeviceChangesNothing", "[KeyBoundsTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 0, 8, std::make_shared<FakeDevice>(1 << 20));
  for (int i = 0; i < 40; ++i) {
    rows.change();
    const Snapshot now = rows.db().snapshot();
    expect_bounds(now, rows.table(), rows.model(), rows.queries(200));
  }
}

TEST_CASE("KeyBoundsTest.EmptyTablesAndBatches", "[KeyBoundsTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 1 << 20, 0);
  const Snapshot empty = rows.db().snapshot();
  expect_bounds(empty, rows.table(), {}, {"", "a", std::string(9, '\xFF')});
  for (int i = 0; i < 10; ++i) rows.change();
  const Snapshot now = rows.db().snapshot();
  expect_bounds(now, rows.table(), rows.model(), {});
  expect_bounds(empty, rows.table(), {}, rows.queries(2000));
}

TEST_CASE("KeyBoundsTest.WrongTablesAreRefused", "[KeyBoundsTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 1 << 20, 0), others(random, 1 << 20, 0);
  const Snapshot now = rows.db().snapshot();
  const Rows queries({"a"});
  LowerBoundResult result;
  for (const Table& table : {others.table(), Table()}) {
    for (const Status& s : {now.lower_bound(table, queries.column(), &result),
                            now.upper_bound(table, queries.column(), &result),
                            now.previous(table, queries.column(), &result)})
      CHECK_MESSAGE(s.code() == StatusCode::invalid_argument, s.to_string());
  }
  const Table later = *rows.db().create_table("later");
  CHECK(now.previous(later, queries.column(), &result).code() == StatusCode::not_found);
}

}  // namespace
}  // namespace stride::test
