// Tables whose segments keep equal values once: the same answers as of any table, and smaller.
#include <cstring>
#include <random>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

// How values come to be.
struct Kind {
  const char* name;
  uint64_t distinct;  // 0: all differ
  uint64_t shortest, longest;
};

std::string value_of(const Kind& kind, uint64_t number) {
  std::mt19937_64 random(number);
  std::string value(kind.shortest + random() % (kind.longest - kind.shortest + 1), 'v');
  for (char& c : value) c = static_cast<char>(random());
  return value;
}

std::string random_value(const Kind& kind, std::mt19937_64& random) {
  uint64_t number = random();
  return value_of(kind, kind.distinct ? number % kind.distinct : number);
}

class ShareValuesTest {
 protected:
  const Kind kind_ =
      GENERATE(Kind{"few", 5, 0, 40}, Kind{"one", 1, 30, 30}, Kind{"distinct", 0, 10, 60},
               Kind{"empty", 1, 0, 0}, Kind{"fixed", 40, 12, 12}, Kind{"codes", 200, 2, 2},
               Kind{"mixed", 400, 0, 900}, Kind{"bytes", 250, 1, 1});
  RunsWith name_{kind_.name};

  std::string value() { return random_value(kind_, random_); }
  std::string key(uint32_t width) {
    std::string k(width ? width : random_() % 12, 'k');
    for (char& c : k) c = static_cast<char>('a' + random_() % 3);
    return k;
  }

  void commit(Database& db, const Table& table, Model* model, uint32_t width) {
    WriteTransaction t = db.begin();
    Rows keys, values;
    for (uint64_t n = random_() % 4 ? random_() % 100 : random_() % 3000; n > 0; --n) {
      std::string k = key(width), v = value();
      keys.add(k);
      values.add(v);
      (*model)[k] = v;
    }
    REQUIRE_OK(t.put(table, keys.column(), values.column()));
    if (random_() % 2) {
      Rows gone;
      for (uint64_t n = random_() % 40; n > 0; --n) {
        std::string k = key(width);
        if (!model->empty() && random_() % 2)
          k = std::next(model->begin(), random_() % model->size())->first;
        gone.add(k);
        model->erase(k);
      }
      REQUIRE_OK(t.erase(table, gone.column()));
    }
    REQUIRE_OK(t.commit(static_cast<Durability>(random_() % 3)));
  }

  std::mt19937_64 random_{seed()};
};

TEST_CASE_METHOD(ShareValuesTest, "ShareValuesTest.AnswersAsAMapDoes", "[ShareValuesTest]") {
  for (int round = 0; round < smaller_under_sanitizers(4, 2); ++round) {
    TemporaryDirectory directory;
    Options options;
    options.threads = 1 + random_() % 3;
    if (random_() % 2) options.memory_limit_bytes = 1;  // segments are mapped, not resident
    uint32_t width = random_() % 2 ? 6 : 0;
    Model model;
    for (int reopen = 0; reopen < 3; ++reopen) {
      auto db = Database::open(directory.path(), options);
      REQUIRE_OK(db);
      auto table =
          (*db)->open_or_create_table("t", {.key_width = width, .share_equal_values = true});
      REQUIRE_OK(table);
      for (int i = 0; i < 3; ++i) {
        Snapshot before = (*db)->snapshot();
        Model model_before = model;
        commit(**db, *table, &model, width);
        if (random_() % 4 == 0) REQUIRE_OK((*db)->compact());
        expect_equal((*db)->snapshot(), *table, model, random_);
        if (random_() % 3 == 0) expect_equal(before, *table, model_before, random_);
      }
      REQUIRE_OK((*db)->verify());
      if (random_() % 2) REQUIRE_OK((*db)->close());
    }
  }
}

// Batches of the same queries on a device, which has the keys and not the values.
TEST_CASE_METHOD(ShareValuesTest, "ShareValuesTest.ValuesStayOnTheHost", "[ShareValuesTest]") {
  for (ValuePlacement placement : {ValuePlacement::host, ValuePlacement::device}) {
    TemporaryDirectory directory;
    auto device = std::make_shared<FakeDevice>(uint64_t{1} << 40);
    Options options;
    options.shared_backend = device;
    options.value_placement = placement;
    auto db = Database::open(directory.path(), options);
    REQUIRE_OK(db);
    auto table = (*db)->create_table("t", {.share_equal_values = true});
    REQUIRE_OK(table);
    Model model;
    for (int i = 0; i < 3; ++i) {
      commit(**db, *table, &model, 0);
      std::vector<std::string> queries;
      for (int q = 0; q < smaller_under_sanitizers(1500, 600); ++q) queries.push_back(key(0));
      for (int again = 0; again < smaller_under_sanitizers(3, 2); ++again)
        expect_lookups((*db)->snapshot(), *table, model, queries);
    }
  }
}

TEST_CASE("ShareValuesOptionTest.ItIsKeptAndCannotBeChanged", "[ShareValuesOptionTest]") {
  MemoryFileSystem files;
  Options options{.backend = BackendKind::host, .file_system = &files};
  {
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    REQUIRE_OK((*db)->create_table("shared", {.share_equal_values = true}));
    REQUIRE_OK((*db)->create_table("plain"));
    REQUIRE_OK((*db)->create_table("routes", {.address_bits = 32, .share_equal_values = true}));
  }
  auto db = Database::open("/db", options);
  REQUIRE_OK(db);
  CHECK((*db)->open_table("shared")->share_equal_values());
  CHECK_FALSE((*db)->open_table("plain")->share_equal_values());
  CHECK((*db)->open_table("routes")->address_bits() == 32u);
  CHECK((*db)->tables()[2].share_equal_values);
  CHECK_OK((*db)->open_or_create_table("shared", {.share_equal_values = true}));
  CHECK_OK((*db)->open_or_create_table("plain"));
  Status status = (*db)->open_or_create_table("shared").status();
  CHECK(status.to_string() ==
        "invalid_argument: table 'shared' was made with share_equal_values, which cannot be "
        "changed: leave that as it is, or copy the rows into a new table");
  status = (*db)->open_or_create_table("plain", {.share_equal_values = true}).status();
  CHECK(status.code() == StatusCode::invalid_argument);
  CHECK(status.message().find("without share_equal_values") != std::string::npos);
}

TEST_CASE("SharePrefixesTest.MatchFindsSharedValues", "[SharePrefixesTest]") {
  TemporaryDirectory directory;
  auto db = Database::open(directory.path());
  auto table = (*db)->create_table("t", {.address_bits = 32, .share_equal_values = true});
  REQUIRE_OK(table);
  for (uint32_t run = 0; run < 2; ++run) {
    WriteTransaction t = (*db)->begin();
    for (uint32_t i = run; i < 4000; i += 2) {
      uint32_t address = __builtin_bswap32(i << 16);
      char key[5] = {0, 0, 0, 0, 16};
      std::memcpy(key, &address, 4);
      REQUIRE_OK(t.put(*table, std::string_view(key, 5), "a country " + std::to_string(i % 9)));
    }
    REQUIRE_OK(t.commit());
  }
  std::vector<uint32_t> addresses;
  for (uint32_t i = 0; i < 5000; ++i) addresses.push_back(__builtin_bswap32(i << 16 | i));
  MatchResult result;
  Snapshot snapshot = (*db)->snapshot();
  REQUIRE_OK(snapshot.match(*table, Column::fixed(addresses.data(), 4, addresses.size()), &result));
  for (uint32_t i = 0; i < 5000; ++i) {
    REQUIRE(result.found[i] == (i < 4000));
    if (i < 4000) REQUIRE(text(result.value(i)) == "a country " + std::to_string(i % 9));
  }
  auto one = snapshot.match(*table, Bytes(reinterpret_cast<std::byte*>(&addresses[77]), 4));
  REQUIRE((one.ok() && one->has_value()));
  CHECK(text((*one)->value) == "a country 5");
}

}  // namespace
}  // namespace stride::test
