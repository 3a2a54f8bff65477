// Counts of ranges, beside a std::map.
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/read/ordered_reads.h"
#include "tests/support/fake_device.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

void expect_count(const Snapshot& snapshot, const Table& table, const Model& model,
                  const std::optional<std::string>& from, const std::optional<std::string>& to) {
  auto bound = [](const std::optional<std::string>& key) {
    return key ? std::optional(as_bytes(*key)) : std::nullopt;
  };
  auto counted = snapshot.count(table, bound(from), bound(to));
  REQUIRE_OK(counted);
  REQUIRE(*counted == count_between(model, from, to));
}

void expect_counts(const Snapshot& snapshot, const Table& table, const Model& model,
                   const std::vector<std::string>& from, const std::vector<std::string>& to) {
  const Rows first(from), end(to);
  std::vector<uint64_t> counts(from.size());
  REQUIRE_OK(snapshot.count(table, first.column(), end.column(), counts));
  for (size_t i = 0; i < from.size(); ++i)
    REQUIRE_MESSAGE(counts[i] == count_between(model, from[i], to[i]), "range " << i);
}

TEST_CASE("RangeCountTest.CountsWhatAMapHas", "[RangeCountTest]") {
  Random random(seed());
  for (uint32_t key_width : {0u, 3u})
    for (uint64_t memtable_bytes : {uint64_t{0}, uint64_t{32} << 10, uint64_t{4} << 20}) {
      RandomOrderedTable rows(random, memtable_bytes, key_width);
      std::vector<std::pair<Snapshot, Model>> kept;
      const int steps = smaller_under_sanitizers(100, 25);
      for (int i = 0; i < steps; ++i) {
        const Snapshot now = rows.db().snapshot();
        if (i % 10 == 0) kept.emplace_back(now, rows.model());
        expect_count(now, rows.table(), rows.model(), std::nullopt, std::nullopt);
        expect_count(now, rows.table(), rows.model(), rows.query(), std::nullopt);
        expect_count(now, rows.table(), rows.model(), std::nullopt, rows.query());
        for (int range = 0; range < 10; ++range)
          expect_count(now, rows.table(), rows.model(), rows.query(), rows.query());
        const uint64_t ranges = i % 10 == 0 ? 1500 : random() % 60;
        const auto& [then, model] = kept[random() % kept.size()];
        expect_counts(then, rows.table(), model, rows.queries(ranges), rows.queries(ranges));
        rows.change();
      }
    }
}

// Few newer rows are looked for in the oldest run, and many are merged with it, in pieces.
TEST_CASE("RangeCountTest.FewAndManyNewerRows", "[RangeCountTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 0, 8);
  const Table table = rows.table();
  Model model;
  const uint64_t keys = smaller_under_sanitizers(200'000, 40'000);
  auto change = [&](uint64_t changed, uint64_t erased_of_8) {
    Rows put, values, erased;
    for (uint64_t i = 0; i < changed; ++i) {
      const std::string key = big_endian(random() % keys);
      if (random() % 8 < erased_of_8) {
        erased.add(key);
      } else {
        put.add(key);
        values.add("v");
      }
    }
    WriteTransaction t = rows.db().begin();
    REQUIRE_OK(t.put(table, put.column(), values.column()));
    REQUIRE_OK(t.erase(table, erased.column()));
    REQUIRE_OK(t.commit());
    for (uint64_t i = 0; i < put.column().size; ++i) model[text(put.column()[i])] = "v";
    for (uint64_t i = 0; i < erased.column().size; ++i) model.erase(text(erased.column()[i]));
  };
  for (uint64_t newer : {keys, keys / 100, keys / 2}) {
    change(newer, newer == keys ? 0 : 3);
    const Snapshot now = rows.db().snapshot();
    expect_count(now, table, model, std::string(), std::nullopt);
    for (int range = 0; range < 20; ++range)
      expect_count(now, table, model, big_endian(random() % keys), big_endian(random() % keys));
  }
}

TEST_CASE("RangeCountTest.ADeviceChangesNothing", "[RangeCountTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 0, 8, std::make_shared<FakeDevice>(1 << 20));
  for (int i = 0; i < 20; ++i) {
    rows.change();
    const Snapshot now = rows.db().snapshot();
    expect_counts(now, rows.table(), rows.model(), rows.queries(50), rows.queries(50));
  }
}

TEST_CASE("RangeCountTest.WrongUses", "[RangeCountTest]") {
  Random random(seed());
  RandomOrderedTable rows(random, 1 << 20, 0), others(random, 1 << 20, 0);
  const Snapshot now = rows.db().snapshot();
  const Rows one({"a"}), two({"a", "b"});
  std::vector<uint64_t> counts(2);
  for (const Table& table : {others.table(), Table()}) {
    CHECK(now.count(table, as_bytes("a"), std::nullopt).status().code() ==
          StatusCode::invalid_argument);
    CHECK(now.count(table, two.column(), two.column(), counts).code() ==
          StatusCode::invalid_argument);
  }
  const Status s = now.count(rows.table(), one.column(), two.column(), counts);
  CHECK(s.code() == StatusCode::invalid_argument);
  CHECK_MESSAGE(s.message().find("1 ranges end at 2 keys") != std::string::npos, s.to_string());
  CHECK_OK(now.count(rows.table(), {}, {}, {}));
}

}  // namespace
}  // namespace stride::test
