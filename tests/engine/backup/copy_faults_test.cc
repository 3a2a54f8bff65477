// Every call to the file system fails once while a database is copied, and then the power: the
// database is whole, and the copy whole or known not to be.
#include <functional>
#include <memory>
#include <string>

#include "tests/engine/backup/copy_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

// What may be said of a copy that is not whole.
bool says_not_there(const Status& s) {
  return s.code() == StatusCode::not_found || s.code() == StatusCode::invalid_argument;
}

// The copy is what it should be, or is not there.
bool is_whole_or_not_there(FileSystem& fs, const std::string& path, const Tables& expected) {
  const Status s = open_status(fs, path);
  if (!s.ok()) {
    REQUIRE_MESSAGE(says_not_there(s), s.to_string());
    return false;
  }
  REQUIRE(tables_at(fs, path) == expected);
  return true;
}

// A database with a segment of each of two tables, a sealed log and one that is not.
Tables make_database(FileSystem& fs, uint64_t rows) {
  Tables model;
  auto db = Database::open("/db", {.background_work = false, .file_system = &fs});
  REQUIRE_OK(db);
  for (const char* name : {"a", "b"}) {
    auto table = (*db)->create_table(name);
    REQUIRE_OK(table);
    for (uint64_t i = 0; i < rows; ++i) {
      WriteTransaction t = (*db)->begin();
      const std::string key = std::to_string(i), value(50, 'v');
      REQUIRE_OK(t.put(*table, key, value));
      REQUIRE_OK(t.commit());
      model[name][key] = value;
    }
    if (name == std::string("a")) REQUIRE_OK((*db)->compact());
  }
  return model;
}

struct Faults {
  StatusCode code;
  CrashPolicy policy;
};
const Faults all_faults[] = {{StatusCode::io_error, CrashPolicy::random},
                             {StatusCode::no_space, CrashPolicy::random},
                             {StatusCode::io_error, CrashPolicy::lose_unsynced}};

TEST_CASE("CopyFaultsTest.CheckpointIsWholeOrNotThere", "[CopyFaultsTest]") {
  std::mt19937_64 random(seed());
  for (bool links : {true, false}) {
    for (const Faults& faults : all_faults) {
      bool done = false;
      for (uint64_t n = 1; !done; ++n) {
        MemoryFileSystem fs;
        LinklessFiles linkless(fs);
        const Tables model = make_database(fs, 8);
        auto db = Database::open(
            "/db", {.background_work = false,
                    .file_system = links ? static_cast<FileSystem*>(&fs) : &linkless});
        REQUIRE_OK(db);
        fs.fail_call(n, faults.code);
        const Status s = (*db)->checkpoint("/copies/one");
        fs.fail_call(0, StatusCode::ok);
        done = s.ok() && n > 20;
        INFO("call " << n << ": " << s.to_string());
        const bool there = is_whole_or_not_there(fs, "/copies/one", model);
        REQUIRE((there || !s.ok()));
        REQUIRE(read_all(**db) == model);
        auto after = fs.crash(random(), faults.policy);
        const bool kept = is_whole_or_not_there(*after, "/copies/one", model);
        REQUIRE((kept || !s.ok()));
        REQUIRE(tables_at(*after, "/db") == model);
        db->reset();
        REQUIRE(tables_at(fs, "/db") == model);
      }
    }
  }
}

// It comes in the midst of a call, so that nothing is cleaned up.
TEST_CASE("CopyFaultsTest.APowerLossLeavesACheckpointWholeOrNotThere", "[CopyFaultsTest]") {
  constexpr int crashes = 16;  // which names are kept is a matter of luck
  std::mt19937_64 random(seed());
  bool done = false;
  for (uint64_t n = 1; !done; ++n) {
    MemoryFileSystem fs;
    const Tables model = make_database(fs, 8);
    auto db = Database::open("/db", {.background_work = false, .file_system = &fs});
    REQUIRE_OK(db);
    fs.fail_call(n, StatusCode::io_error, /*forever=*/true);
    const Status s = (*db)->checkpoint("/copies/one");
    done = s.ok();
    INFO("call " << n << ": " << s.to_string());
    for (int i = 0; i < crashes; ++i) {
      auto after = fs.crash(random(), CrashPolicy::random);
      const bool kept = is_whole_or_not_there(*after, "/copies/one", model);
      REQUIRE((kept || !s.ok()));
      REQUIRE(tables_at(*after, "/db") == model);
    }
    fs.fail_call(0, StatusCode::ok);
  }
}

// The backup before stays, until the new one is there.
TEST_CASE("CopyFaultsTest.BackupIsTheOldOneOrTheNewOne", "[CopyFaultsTest]") {
  std::mt19937_64 random(seed());
  for (bool has_old : {true, false}) {
    for (const Faults& faults : all_faults) {
      bool done = false;
      for (uint64_t n = 1; !done; ++n) {
        MemoryFileSystem fs;
        Tables before, model = make_database(fs, 8);
        auto db = Database::open("/db", {.background_work = false, .file_system = &fs});
        REQUIRE_OK(db);
        before = model;
        if (has_old) {
          REQUIRE_OK((*db)->backup("/copies/backup"));
          auto b = (*db)->open_table("b");
          WriteTransaction t = (*db)->begin();
          REQUIRE_OK(t.put(*b, "new", "1"));
          REQUIRE_OK(t.commit());
          model["b"]["new"] = "1";
          REQUIRE_OK((*db)->compact());
        }
        fs.fail_call(n, faults.code);
        const Status s = (*db)->backup("/copies/backup");
        fs.fail_call(0, StatusCode::ok);
        done = s.ok() && n > 20;
        INFO("call " << n << ": " << s.to_string());
        auto check = [&](FileSystem& files, const std::string& to) {
          const Status restored = restore("/copies/backup", to, {}, nullptr, &files);
          if (!restored.ok()) {
            REQUIRE_MESSAGE(restored.code() == StatusCode::not_found, restored.to_string());
            REQUIRE((!s.ok() && !has_old));
            return;
          }
          const Tables found = tables_at(files, to);
          REQUIRE((found == model || (!s.ok() && found == before)));
        };
        check(fs, "/restored");
        auto after = fs.crash(random(), faults.policy);
        check(*after, "/restored_after");
        REQUIRE(tables_at(*after, "/db") == model);
        // It is gone on with, also after the power loss.
        db->reset();
        for (MemoryFileSystem* files : {&fs, after.get()}) {
          auto again = Database::open("/db", {.file_system = files});
          REQUIRE_OK(again);
          REQUIRE_OK((*again)->backup("/copies/backup"));
          REQUIRE_OK(restore("/copies/backup", "/again", {}, nullptr, files));
          REQUIRE(tables_at(*files, "/again") == model);
          for (const std::string& name : names_in(*files, "/copies/backup"))
            REQUIRE_FALSE(name.ends_with(".tmp"));
        }
      }
    }
  }
}

TEST_CASE("CopyFaultsTest.RestoredDatabaseIsWholeOrNotThere", "[CopyFaultsTest]") {
  std::mt19937_64 random(seed());
  for (const Faults& faults : all_faults) {
    bool done = false;
    for (uint64_t n = 1; !done; ++n) {
      MemoryFileSystem fs;
      const Tables model = make_database(fs, 8);
      {
        auto db = Database::open("/db", {.file_system = &fs});
        REQUIRE_OK(db);
        REQUIRE_OK((*db)->backup("/backup"));
      }
      fs.fail_call(n, faults.code);
      const Status s = restore("/backup", "/restored/one", {}, nullptr, &fs);
      fs.fail_call(0, StatusCode::ok);
      done = s.ok() && n > 20;
      INFO("call " << n << ": " << s.to_string());
      REQUIRE((is_whole_or_not_there(fs, "/restored/one", model) || !s.ok()));
      auto after = fs.crash(random(), faults.policy);
      REQUIRE((is_whole_or_not_there(*after, "/restored/one", model) || !s.ok()));
      REQUIRE_OK(restore("/backup", "/again", {}, nullptr, after.get()));
      REQUIRE(tables_at(*after, "/again") == model);
    }
  }
}

TEST_CASE("CopyFaultsTest.AFullDiskIsTold", "[CopyFaultsTest]") {
  MemoryFileSystem fs;
  const Tables model = make_database(fs, 300);
  LinklessFiles linkless(fs);
  auto db = Database::open("/db", {.file_system = &linkless});
  REQUIRE_OK(db);
  const uint64_t used = fs.used_bytes();
  bool checkpoint = false, backup = false, restored = false;
  for (uint64_t room = 0; !restored; room += 20'000) {
    fs.set_capacity(used + room);
    auto try_it = [&](bool* done, const std::function<Status()>& call) {
      if (*done) return;
      const Status s = call();
      REQUIRE_MESSAGE((s.ok() || s.code() == StatusCode::no_space), s.to_string());
      *done = s.ok();
    };
    try_it(&checkpoint, [&] { return (*db)->checkpoint("/checkpoint"); });
    try_it(&backup, [&] { return (*db)->backup("/backup"); });
    if (backup)
      try_it(&restored, [&] { return restore("/backup", "/restored", {}, nullptr, &fs); });
    REQUIRE(*fs.exists("/checkpoint") == checkpoint);
    REQUIRE(read_all(**db) == model);
  }
  fs.set_capacity(~uint64_t{0});
  for (const char* path : {"/checkpoint", "/restored"}) CHECK(tables_at(fs, path) == model);
}

}  // namespace
}  // namespace stride::test
