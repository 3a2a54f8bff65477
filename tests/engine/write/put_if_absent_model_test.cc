// Rows that are put where their key is not there, beside a model that takes them one by one.
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/write/write_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_rows.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

// All kinds of changes in one transaction, several commits, reopening, compactions.
class PutIfAbsentModelTest {
 protected:
  const Shape shape_ = GENERATE(Shape{"short", 0, 4, 4, 20}, Shape{"dense", 0, 2, 9, 5},
                                Shape{"long", 0, 3, 300, 700}, Shape{"wide", 8, 26, 8, 44},
                                Shape{"clustered", 8, 3, 8, 44}, Shape{"narrow", 3, 26, 3, 0},
                                Shape{"fixed20", 20, 3, 20, 3});
  RunsWith name_{shape_.name};

  void commit(Database& db, const Table& table, Model* model) {
    struct Call {
      Keys keys, values;
      Bits bits;
    };
    std::vector<Call> calls;
    calls.reserve(8);
    WriteTransaction t = db.begin();
    for (uint64_t part = random_() % 6; part > 0; --part) {
      Rows keys, values;
      Call call;
      for (uint64_t n = random_() % 90; n > 0; --n) {
        call.keys.push_back(key(*model));
        call.values.push_back(rows_.value());
        keys.add(call.keys.back());
        values.add(call.values.back());
      }
      switch (random_() % 6) {
        case 0:
          REQUIRE_OK(t.put(table, keys.column(), values.column()));
          for (size_t i = 0; i < call.keys.size(); ++i) (*model)[call.keys[i]] = call.values[i];
          break;
        case 1:
          REQUIRE_OK(t.erase(table, keys.column()));
          for (const std::string& k : call.keys) model->erase(k);
          break;
        case 2: {
          std::string from = rows_.key(), to = rows_.key();
          REQUIRE_OK(t.erase_range(table, as_bytes(from), as_bytes(to)));
          if (from < to) model->erase(model->lower_bound(from), model->lower_bound(to));
          break;
        }
        default:
          call.bits = bits_for(call.keys.size());
          calls.push_back(std::move(call));
          REQUIRE_OK(t.put_if_absent(table, keys.column(), values.column(), calls.back().bits));
      }
    }
    REQUIRE_OK(t.commit(static_cast<Durability>(random_() % 3)));
    for (const Call& call : calls)
      for (size_t i = 0; i < call.keys.size(); ++i)
        REQUIRE_MESSAGE(is_set(call.bits, i) == model->emplace(call.keys[i], call.values[i]).second,
                        i);
  }
  std::string key(const Model& model) {
    if (model.empty() || random_() % 2) return rows_.key();
    return std::next(model.begin(), static_cast<ptrdiff_t>(random_() % model.size()))->first;
  }

  std::mt19937_64 random_{seed()};
  RandomRows rows_{shape_, random_};
};

TEST_CASE_METHOD(PutIfAbsentModelTest, "PutIfAbsentModelTest.AnswersAsAMapDoes",
                 "[PutIfAbsentModelTest]") {
  for (int round = 0; round < smaller_under_sanitizers(4, 2); ++round) {
    MemoryFileSystem files;
    Options options;
    options.file_system = &files;
    options.threads = 1 + random_() % 3;
    if (random_() % 2) options.memory_limit_bytes = 1;
    Model model;
    for (int reopen = 0; reopen < 3; ++reopen) {
      auto db = std::move(*Database::open("/db", options));
      auto table = db->open_or_create_table("t", {.key_width = shape_.key_width});
      REQUIRE_OK(table);
      for (int i = 0; i < 8; ++i) {
        commit(*db, *table, &model);
        if (random_() % 6 == 0) REQUIRE_OK(db->compact());
      }
      expect_equal(db->snapshot(), *table, model, random_);
      REQUIRE_OK(db->verify());
      REQUIRE_OK(db->close());
    }
  }
}

}  // namespace
}  // namespace stride::test
