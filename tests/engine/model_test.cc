// Every operation against a std::map, on random data, through many option sets and reopens.
#include "tests/support/model.h"

#include <deque>

#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_rows.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

class ModelTest {
 protected:
  const Shape shape_ = GENERATE(Shape{"short", 0, 4, 4, 20}, Shape{"dense", 0, 2, 9, 5},
                                Shape{"long", 0, 3, 300, 700}, Shape{"wide", 8, 26, 8, 44},
                                Shape{"clustered", 8, 3, 8, 44}, Shape{"narrow", 3, 26, 3, 0},
                                Shape{"fixed20", 20, 3, 20, 3});
  RunsWith name_{shape_.name};

  std::string key() { return rows_.key(); }
  std::string value() { return rows_.value(); }

  void random_commit(Database& db, const Table& table, Model* model) {
    std::deque<std::pair<Rows, Rows>> kept;  // what is staged by reference
    WriteTransaction t = db.begin();
    for (int part = random_() % 4; part >= 0; --part) {
      Rows keys, values;
      bool erase = random_() % 3 == 0;
      for (int n = random_() % 60; n > 0; --n) {
        std::string k = key(), v = value();
        if (erase && !model->empty() && random_() % 2)
          k = std::next(model->begin(), random_() % model->size())->first;
        keys.add(k);
        values.add(v);
        if (erase) {
          model->erase(k);
        } else {
          (*model)[k] = v;
        }
      }
      if (!erase && random_() % 2) {
        auto& [k, v] = kept.emplace_back(std::move(keys), std::move(values));
        REQUIRE_OK(t.put_view(table, k.column(), v.column()));
      } else {
        REQUIRE_OK(erase ? t.erase(table, keys.column())
                         : t.put(table, keys.column(), values.column()));
      }
      std::string k = key(), v = value();
      if (random_() % 2) {
        REQUIRE_OK(t.put(table, k, v));
        (*model)[k] = v;
      } else {
        REQUIRE_OK(t.erase(table, k));
        model->erase(k);
      }
    }
    REQUIRE_OK(t.commit(static_cast<Durability>(random_() % 3)));
  }

  std::mt19937_64 random_{seed()};
  RandomRows rows_{shape_, random_};
};

TEST_CASE_METHOD(ModelTest, "ModelTest.AnswersAsAMapDoes", "[ModelTest]") {
  for (int round = 0; round < smaller_under_sanitizers(6, 3); ++round) {
    TemporaryDirectory directory;
    Options options;
    options.threads = 1 + random_() % 4;
    if (random_() % 2) options.memory_limit_bytes = 1;  // segments are mapped, not resident
    // Every commit makes a segment; or some do; or they all stay in the log and in memory.
    const uint64_t memtables[] = {0, 1 << 14, 1 << 17, options.memtable_bytes};
    options.memtable_bytes = memtables[random_() % 4];
    if (random_() % 2) options.tree.strides = {1 + uint32_t(random_() % 12), 4, 8, 3};
    if (random_() % 2) options.tree.leaf_capacity = 1 + random_() % 9;
    Model model, other;
    for (int reopen = 0; reopen < 3; ++reopen) {
      auto db = Database::open(directory.path(), options);
      REQUIRE_OK(db);
      auto table = (*db)->open_or_create_table("t", {.key_width = shape_.key_width});
      auto second = (*db)->open_or_create_table("u");
      REQUIRE((table.ok() && second.ok()));
      for (int commit = 0; commit < 5; ++commit) {
        Snapshot before = (*db)->snapshot();
        Model model_before = model;
        random_commit(**db, *table, &model);
        if (random_() % 5 == 0) REQUIRE_OK((*db)->compact());
        expect_equal((*db)->snapshot(), *table, model, random_);
        if (random_() % 4 == 0) expect_equal(before, *table, model_before, random_);
      }
      expect_equal((*db)->snapshot(), *second, other, random_);
      REQUIRE_OK((*db)->verify());
      if (random_() % 2) REQUIRE_OK((*db)->close());
    }
  }
}

}  // namespace
}  // namespace stride::test
