// Prefix tables: the longest prefix of an address, all of them, and those inside a prefix, while
// prefixes come and go.
#include <algorithm>

#include "storage/memory_file_system.h"
#include "tests/engine/prefix/prefix_test_base.h"
#include "tests/support/catch.h"
#include "tests/support/prefix_model.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

struct Addresses {
  const char* name;
  uint32_t bits;
};

class PrefixTest : public PrefixTestBase {
 protected:
  PrefixTest()
      : PrefixTest(GENERATE(Addresses{"bits1", 1}, Addresses{"bits7", 7}, Addresses{"bits8", 8},
                            Addresses{"bits12", 12}, Addresses{"bits32", 32},
                            Addresses{"bits33", 33}, Addresses{"bits64", 64},
                            Addresses{"bits128", 128}, Addresses{"bits200", 200},
                            Addresses{"bits300", 300}, Addresses{"strings", byte_strings})) {}

 private:
  explicit PrefixTest(const Addresses& addresses)
      : PrefixTestBase(addresses.bits), name_(addresses.name) {}

  RunsWith name_;
};

// Reads between commits now and then, so that matchers follow one another, are made late, and begin
// anew after a compaction.
TEST_CASE_METHOD(PrefixTest, "PrefixTest.AgreesWithAModelWhilePrefixesComeAndGo", "[PrefixTest]") {
  expect_all();
  std::vector<std::pair<Snapshot, PrefixModel>> kept;
  for (int round = 0; round < smaller_under_sanitizers(24, 12); ++round) {
    commit(random_changes(1 + random_() % 40));
    if (round % 9 == 8) REQUIRE_OK(database_->compact());
    if (round % 11 == 10) {
      kept.clear();
      limit_ = round % 2 ? 0 : 1;  // resident, or read from the files and checked
      open();
    }
    if (round % 4 == 0) kept.emplace_back(database_->snapshot(), model_);
    if (round % 3 != 1) expect_all();
  }
  for (const auto& [snapshot, model] : kept) expect_all(snapshot, model);
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.NestsAsDeepAsAddressesAreLong", "[PrefixTest]") {
  std::string address = prefixes_.address();
  if (bits_ == byte_strings) address = std::string(100, 'x') + std::string(60, '\0');
  Changes changes;
  for (uint32_t length = 0; length <= model_.longest(address); length += model_.step())
    changes.emplace_back(model_.key(address, length), value());
  commit(changes);
  expect_all();
  expect_match_of_one(database_->snapshot(), table_, model_, address);
  // From the longest to the shortest: each step uncovers the next one.
  while (!changes.empty()) {
    size_t n = std::min(changes.size(), changes.size() / 4 + 1);
    Changes erased;
    for (; n > 0; --n, changes.pop_back()) erased.emplace_back(changes.back().first, std::nullopt);
    commit(erased);
    expect_match_of_one(database_->snapshot(), table_, model_, address);
  }
  CHECK(model_.entries().empty());
  expect_all();
}

TEST_CASE_METHOD(PrefixTest, "PrefixTest.EmptyAndDefaultOnly", "[PrefixTest]") {
  std::vector<std::string> addresses = random_addresses(model_, 50);
  expect_match(database_->snapshot(), table_, model_, addresses);
  expect_match(database_->snapshot(), table_, model_, {});
  std::string none = model_.key(addresses[0], 0);
  commit({{none, std::nullopt}});  // there never was one
  expect_all();
  commit({{none, "default"}});
  expect_all();
  Snapshot with_default = database_->snapshot();
  PrefixModel model = model_;
  commit({{none, std::nullopt}});
  expect_all();
  expect_all(with_default, model);
  open();
  expect_all();
}

// Every address is covered twice and more, by both halves of all and by all.
TEST_CASE_METHOD(PrefixTest, "PrefixTest.ErasuresUncoverWhatIsBelow", "[PrefixTest]") {
  if (bits_ == byte_strings) SKIP("prefixes of byte strings have no halves");
  std::string zeros(address_bytes(bits_), '\0'),
      ones = first_bits(std::string(zeros.size(), '\xFF'), bits_);
  commit({{model_.key(zeros, 0), "all"},
          {model_.key(zeros, 1), "low"},
          {model_.key(ones, 1), "high"},
          {model_.key(ones, bits_), "last"}});
  expect_all();
  commit({{model_.key(zeros, 1), std::nullopt}, {model_.key(ones, bits_), std::nullopt}});
  expect_all();
  commit({{model_.key(zeros, 0), std::nullopt}});
  expect_all();
  // A shorter one comes back under a longer one's erasure, and goes in the same transaction.
  commit({{model_.key(zeros, 0), "all again"}, {model_.key(ones, 1), std::nullopt}});
  expect_all();
  commit({{model_.key(zeros, bits_), "x"},
          {model_.key(zeros, bits_), std::nullopt},
          {model_.key(zeros, bits_), "y"},
          {model_.key(ones, bits_), "z"},
          {model_.key(ones, bits_), std::nullopt}});
  expect_all();
}

// Each version has a matcher with the same base and more changes than the one before; what later
// ones change is not theirs.
TEST_CASE_METHOD(PrefixTest, "PrefixTest.EachVersionKeepsItsChanges", "[PrefixTest]") {
  std::vector<std::pair<Snapshot, PrefixModel>> kept;
  auto keep = [&] {
    kept.emplace_back(database_->snapshot(), model_);
    expect_match(kept.back().first, table_, model_, random_addresses(model_, 60));
  };
  commit(random_changes(200));
  keep();
  for (int round = 0; round < smaller_under_sanitizers(30, 7); ++round) {
    commit(random_changes(1 + random_() % 20));
    if (round % 3) keep();  // else the next one has the changes of two commits
  }
  for (const auto& [snapshot, model] : kept)
    expect_match(snapshot, table_, model, random_addresses(model, 60));
}

// What was put and erased again since the base, and what was erased and put again, is as it was.
TEST_CASE_METHOD(PrefixTest, "PrefixTest.ChangesAreTakenBack", "[PrefixTest]") {
  commit(random_changes(60));
  expect_all();
  const PrefixModel before = model_;
  for (int round = 0; round < smaller_under_sanitizers(4, 2); ++round) {
    commit(random_changes(30));
    expect_all();
    Changes back;
    for (const auto& [k, v] : model_.entries())
      if (!before.entries().contains(k)) back.emplace_back(k, std::nullopt);
    for (const auto& [k, v] : before.entries()) back.emplace_back(k, v);
    commit(back);
    CHECK(model_.entries() == before.entries());
    expect_all();
  }
}

// The base has nothing, or one prefix for all addresses: all changes are in one place.
TEST_CASE_METHOD(PrefixTest, "PrefixTest.ManyChangesInOnePlace", "[PrefixTest]") {
  for (bool with_default : {false, true}) {
    Changes all;
    for (const auto& [k, v] : model_.entries()) all.emplace_back(k, std::nullopt);
    if (with_default) all.emplace_back(model_.key(prefixes_.address(), 0), "default");
    commit(all);
    REQUIRE_OK(database_->compact());
    expect_all();
    for (int round = 0; round < smaller_under_sanitizers(5, 1); ++round) {
      Changes changes = random_changes(150);
      std::vector<std::string> addresses;
      for (int i = 0; i < 150; ++i) {
        std::string address(bits_ == byte_strings ? 1 + random_() % 10 : address_bytes(bits_), 0);
        for (char& c : address) c = static_cast<char>(random_());
        if (bits_ != byte_strings) address = first_bits(address, bits_);
        auto steps = static_cast<uint32_t>(model_.longest(address) / model_.step());
        uint32_t length = steps / 4 + static_cast<uint32_t>(random_() % (steps / 2 + 1));
        changes.emplace_back(model_.key(address, length * model_.step()), value());
        addresses.push_back(address);
      }
      commit(changes);
      expect_all();
      expect_match(database_->snapshot(), table_, model_, addresses);
    }
  }
}

// Prefixes that differ only behind what is compared first, or in how many zeros they end with.
TEST_CASE_METHOD(PrefixTest, "PrefixTest.ChangesThatBeginAlike", "[PrefixTest]") {
  if (bits_ != byte_strings && bits_ <= 64) SKIP("they are compared as a whole");
  auto any = [&] {
    std::string address(bits_ == byte_strings ? random_() % 13 : address_bytes(bits_), '\0');
    for (size_t i = 0; i < address.size(); ++i)
      address[i] = static_cast<char>(i == 0 ? 'x' : i >= 7 ? random_() % 3 : 0);
    return address;
  };
  auto check = [&] {
    std::vector<std::string> addresses;
    for (int i = 0; i < 200; ++i) addresses.push_back(any());
    expect_match(database_->snapshot(), table_, model_, addresses);
  };
  for (int round = 0; round < smaller_under_sanitizers(20, 5); ++round) {
    Changes changes;
    for (int i = 0; i < 40; ++i) {
      std::string address = any();
      uint64_t steps = model_.longest(address) / model_.step();
      uint64_t length = steps - random_() % (std::min<uint64_t>(steps, 80) + 1);
      std::string key = model_.key(address, static_cast<uint32_t>(length) * model_.step());
      changes.emplace_back(key, random_() % 3 ? std::optional(value()) : std::nullopt);
    }
    commit(changes);
    check();
    if (round == smaller_under_sanitizers(6, 3)) REQUIRE_OK(database_->compact());
  }
}

// They are stored as keys of one width.
TEST_CASE("PrefixesOfStringsTest.PrefixesThatAllHaveOneLength", "[PrefixesOfStringsTest]") {
  MemoryFileSystem files;
  Options options;
  options.file_system = &files;
  for (int run = 0; run < 2; ++run) {  // as they were written, and as they are read from a file
    auto db = Database::open("/db", options);
    REQUIRE_OK(db);
    auto table = (*db)->open_or_create_table("t", {.address_bits = byte_strings});
    if (run == 0) {
      WriteTransaction t = (*db)->begin();
      for (std::string key : {"aa", "bb"}) REQUIRE_OK(t.put(*table, key, "value of " + key));
      REQUIRE_OK(t.commit());
    }
    for (std::string key : {"aa", "bb"}) {
      auto found = (*db)->snapshot().match(*table, as_bytes(key + "/more"));
      REQUIRE_OK(found);
      REQUIRE(found->has_value());
      CHECK(text((*found)->value) == "value of " + key);
      CHECK((*found)->length == 16u);
    }
    CHECK_FALSE((*db)->snapshot().match(*table, as_bytes("ab/more"))->has_value());
  }
}

}  // namespace
}  // namespace stride::test
