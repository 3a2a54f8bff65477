// Power losses, failing calls and full disks: a commit is there whole or not at all, and one that
// was synced is there.
#include "storage/memory_file_system.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_tables.h"

namespace stride::test {
namespace {

class CrashTest : public ::testing::Test {
 protected:
  static Options options(MemoryFileSystem& fs) {
    Options o;
    o.file_system = &fs;
    o.threads = 2;
    return o;
  }

  std::mt19937_64 random_{seed()};
  RandomTables tables_{random_};
};

TEST_F(CrashTest, PowerLossLeavesAPrefixWithAllSyncedCommits) {
  for (int round = 0; round < 150; ++round) {
    MemoryFileSystem fs;
    std::vector<Tables> states(1);
    size_t synced = 0;  // states[synced] and all before it are safe
    {
      auto db = Database::open("/db", options(fs));
      ASSERT_TRUE(db.ok()) << db.status().to_string();
      fs.fail_call(1 + random_() % 150, StatusCode::io_error, /*forever=*/true);
      for (int i = 0; i < 25; ++i) {
        Durability durability = random_() % 2 ? Durability::sync : Durability::flush;
        Tables after = states.back();
        Status s = tables_.change(**db, durability, &after);
        bool changed = after != states.back();
        states.push_back(after);
        if (!s.ok()) break;
        // What changes nothing writes nothing, and so syncs nothing.
        if (changed && durability == Durability::sync) synced = states.size() - 1;
      }
      auto after = fs.crash(random_(), static_cast<CrashPolicy>(random_() % 3));
      auto again = Database::open("/db", options(*after));
      ASSERT_TRUE(again.ok()) << again.status().to_string();
      auto found = read_all(**again);
      ASSERT_TRUE(found.has_value());
      size_t i = synced;
      while (i < states.size() && states[i] != *found) ++i;
      ASSERT_LT(i, states.size()) << "round " << round << ": no state from " << synced << " on";
      STRIDE_ASSERT_OK((*again)->verify());
      Tables next = *found;
      STRIDE_ASSERT_OK(tables_.create(**again, &next));
      STRIDE_ASSERT_OK(tables_.commit(**again, Durability::sync, &next));
      auto read = read_all(**again);
      ASSERT_TRUE(read.has_value());
      ASSERT_EQ(*read, next);
      again->reset();
      fs.fail_call(0, StatusCode::ok);
    }
  }
}

// Whichever call fails: the change fails whole, reads go on, and the database can be opened again.
TEST_F(CrashTest, EveryCallMayFail) {
  for (bool forever : {false, true}) {
    for (uint64_t n = 1;; ++n) {
      MemoryFileSystem fs;
      Tables before;
      bool failed = false;
      {
        auto db = Database::open("/db", options(fs));
        ASSERT_TRUE(db.ok());
        STRIDE_ASSERT_OK(tables_.create(**db, &before));
        STRIDE_ASSERT_OK(tables_.commit(**db, Durability::sync, &before));
        fs.fail_call(n, StatusCode::io_error, forever);
        Tables after = before;
        for (int i = 0; i < 3 && !failed; ++i) {
          before = after;
          failed = !(i == 2 ? (*db)->compact() : tables_.commit(**db, Durability::sync, &after)).ok();
        }
        auto seen = read_all(**db);
        ASSERT_TRUE(seen.has_value());
        ASSERT_EQ(*seen, failed ? before : after) << "call " << n;
        fs.fail_call(0, StatusCode::ok);
        if (!failed) before = after;
        db->reset();
        auto again = Database::open("/db", options(fs));
        ASSERT_TRUE(again.ok()) << again.status().to_string();
        seen = read_all(**again);
        ASSERT_TRUE(seen.has_value());
        // A failed sync of the manifest may have reached the disk all the same.
        ASSERT_TRUE(*seen == before || *seen == after) << "call " << n;
        again->reset();
      }
      if (!failed) break;
      ASSERT_LT(n, 1000u);
    }
  }
}

TEST_F(CrashTest, FailedSyncPoisonsTheHandle) {
  MemoryFileSystem fs;
  auto db = Database::open("/db", options(fs));
  ASSERT_TRUE(db.ok());
  Tables tables;
  STRIDE_ASSERT_OK((*db)->create_table("t").status());
  tables["t"];
  STRIDE_ASSERT_OK(tables_.commit(**db, Durability::sync, &tables));
  fs.fail_sync(1, StatusCode::io_error);
  Tables lost = tables;
  auto table = (*db)->open_table("t");
  WriteTransaction t = (*db)->begin();
  STRIDE_ASSERT_OK(t.put(*table, "k", "lost"));
  Status s = t.commit();
  EXPECT_FALSE(s.ok());
  WriteTransaction next = (*db)->begin();
  STRIDE_ASSERT_OK(next.put(*table, "k", "refused"));
  s = next.commit();
  EXPECT_EQ(to_string(s.code()), to_string(StatusCode::poisoned)) << s.to_string();
  EXPECT_FALSE(s.remedy().empty());
  EXPECT_EQ((*db)->compact().code(), StatusCode::poisoned);
  EXPECT_EQ((*db)->create_table("u").status().code(), StatusCode::poisoned);
  EXPECT_EQ(*read_all(**db), tables);
  db->reset();
  db = Database::open("/db", options(fs));
  ASSERT_TRUE(db.ok()) << db.status().to_string();
  EXPECT_EQ(*read_all(**db), tables);
  STRIDE_ASSERT_OK(tables_.commit(**db, Durability::sync, &tables));
  EXPECT_EQ(*read_all(**db), tables);
}

TEST_F(CrashTest, FullDiskFailsTheCommitWholeAndRecovers) {
  MemoryFileSystem fs;
  auto db = Database::open("/db", options(fs));
  ASSERT_TRUE(db.ok());
  Tables tables;
  STRIDE_ASSERT_OK((*db)->create_table("t").status());
  tables["t"];
  STRIDE_ASSERT_OK(tables_.commit(**db, Durability::sync, &tables));
  auto table = (*db)->open_table("t");
  for (uint64_t room : {0, 100, 5000, 9000, 20000}) {
    fs.set_capacity(fs.used_bytes() + room);
    WriteTransaction t = (*db)->begin();
    STRIDE_ASSERT_OK(t.put(*table, "large", std::string(100'000, 'x')));
    Status s = t.commit();
    EXPECT_EQ(to_string(s.code()), to_string(StatusCode::no_space)) << s.to_string();
    EXPECT_FALSE(s.remedy().empty());
    EXPECT_EQ(*read_all(**db), tables);
  }
  fs.set_capacity(uint64_t{1} << 40);
  WriteTransaction t = (*db)->begin();
  STRIDE_ASSERT_OK(t.put(*table, "large", std::string(100'000, 'x')));
  STRIDE_ASSERT_OK(t.commit());
  tables["t"]["large"] = std::string(100'000, 'x');
  EXPECT_EQ(*read_all(**db), tables);
  db->reset();
  db = Database::open("/db", options(fs));
  ASSERT_TRUE(db.ok());
  EXPECT_EQ(*read_all(**db), tables);
}

TEST_F(CrashTest, CloseMakesUnsyncedCommitsDurable) {
  MemoryFileSystem fs;
  Tables tables;
  {
    auto db = Database::open("/db", options(fs));
    ASSERT_TRUE(db.ok());
    STRIDE_ASSERT_OK((*db)->create_table("t").status());
    tables["t"];
    for (int i = 0; i < 5; ++i) STRIDE_ASSERT_OK(tables_.commit(**db, Durability::none, &tables));
    STRIDE_ASSERT_OK((*db)->close());
  }
  auto after = fs.crash(random_(), CrashPolicy::lose_unsynced);
  auto db = Database::open("/db", options(*after));
  ASSERT_TRUE(db.ok());
  EXPECT_EQ(*read_all(**db), tables);
}

}  // namespace
}  // namespace stride::test
