// What opening does to a directory: to files that are not the database's, and where it fails.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <sstream>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/gated_file_system.h"
#include "tests/support/model.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

class OpenTest {
 protected:
  // What waits for ever ends here.
  OpenTest() { ::alarm(120); }
  ~OpenTest() { ::alarm(0); }

  std::string path() const { return directory_.file("db"); }
  std::string file(const std::string& name) const { return path() + "/" + name; }
  void put(const std::string& name, const std::string& text = "not ours") const {
    std::ofstream(file(name)) << text;
  }
  static std::string read(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(name).rdbuf();
    return text.str();
  }
  static std::set<std::string> names_in(const std::string& directory) {
    std::set<std::string> names;
    for (auto& f : fs::directory_iterator(directory)) names.insert(f.path().filename());
    return names;
  }
  // A database of one table with one row, closed.
  void make_database() const {
    auto db = Database::open(path(), {.memtable_bytes = 0});
    REQUIRE_OK(db);
    auto table = (*db)->create_table("t");
    REQUIRE_OK(table);
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*table, "a", "1"));
    REQUIRE_OK(t.commit());
    REQUIRE_OK((*db)->close());
  }

  TemporaryDirectory directory_;
};

TEST_CASE_METHOD(OpenTest, "OpenTest.RemovesNoFileThatADatabaseCannotHaveWritten", "[OpenTest]") {
  make_database();
  std::vector<std::string> foreign = {
      "movie.seg",  "12 .seg",     "0000000007.seg",  "+00012.seg", "12.seg",     ".seg",
      "000012.SEG", "000012.seg~", "99999999999.seg", " 00012.seg", "-00012.seg", "0x0012.seg"};
  for (const std::string& name : foreign) put(name);
  put("000099.seg");  // as one that was cut off
  REQUIRE_OK(Database::open(path()));
  for (const std::string& name : foreign) CHECK_MESSAGE(read(file(name)) == "not ours", name);
  CHECK_FALSE(fs::exists(file("000099.seg")));
}

TEST_CASE_METHOD(OpenTest, "OpenTest.WritesThroughNoSymbolicLink", "[OpenTest]") {
  make_database();
  std::string target = directory_.file("target");
  for (std::string name : {"LOCK", "MANIFEST-000001", "CURRENT.tmp"}) {
    std::string text = fs::exists(file(name)) ? read(file(name)) : "precious";
    std::ofstream(target) << text;
    fs::remove(file(name));
    fs::create_symlink(target, file(name));
    Status s = Database::open(path()).status();
    CHECK(s.ok() == (name == "CURRENT.tmp"));  // which is only replaced
    if (!s.ok()) CHECK(s.file() == file(name));
    CHECK_MESSAGE(read(target) == text, name);
    fs::remove(file(name));
    if (name != "LOCK") fs::rename(target, file(name));
  }
}

TEST_CASE_METHOD(OpenTest, "OpenTest.RefusesWhatIsNoRegularFile", "[OpenTest]") {
  make_database();
  std::string segment;
  for (const std::string& name : names_in(path()))
    if (name.ends_with(".seg")) segment = name;
  for (bool read_only : {false, true})
    for (const std::string& name :
         {std::string("LOCK"), std::string("CURRENT"), std::string("MANIFEST-000001")}) {
      if (read_only && name == "LOCK") continue;
      fs::rename(file(name), directory_.file("aside"));
      REQUIRE(mkfifo(file(name).c_str(), 0600) == 0);
      Status s = Database::open(path(), {.read_only = read_only}).status();
      CHECK_MESSAGE(s.code() == StatusCode::invalid_argument, s.to_string());
      CHECK_MESSAGE(s.to_string().find("FIFO") != std::string::npos, s.to_string());
      CHECK(s.file() == file(name));
      fs::rename(directory_.file("aside"), file(name));
    }
  REQUIRE(mkfifo(file("COSTS").c_str(), 0600) == 0);
  fs::remove(file(segment));
  REQUIRE(mkfifo(file(segment).c_str(), 0600) == 0);
  auto db = Database::open(path());
  REQUIRE_OK(db);
  Status s = (*db)->verify();
  CHECK_MESSAGE(s.code() == StatusCode::corruption, s.to_string());
  CHECK_MESSAGE(s.to_string().find("FIFO") != std::string::npos, s.to_string());
  CHECK(s.file() == file(segment));
}

TEST_CASE_METHOD(OpenTest, "OpenTest.LeavesAForeignDirectoryAsItWas", "[OpenTest]") {
  fs::create_directory(path());
  put("letter.txt");
  CHECK(Database::open(path()).status().code() == StatusCode::invalid_argument);
  CHECK(names_in(path()) == std::set<std::string>{"letter.txt"});
  // A LevelDB, which has files of the same names.
  put("LOCK", "its own");
  put("CURRENT", "MANIFEST-000005\n");
  put("MANIFEST-000005", "a log of LevelDB, longer than any header");
  auto before = names_in(path());
  CHECK(Database::open(path()).status().code() == StatusCode::invalid_argument);
  CHECK(names_in(path()) == before);
  CHECK(read(file("LOCK")) == "its own");
  // The same, when CURRENT is lost.
  fs::remove(file("CURRENT"));
  fs::remove(file("letter.txt"));
  before = names_in(path());
  CHECK(Database::open(path()).status().code() == StatusCode::invalid_argument);
  CHECK(names_in(path()) == before);
  CHECK(read(file("LOCK")) == "its own");
}

TEST_CASE_METHOD(OpenTest, "OpenTest.LeavesNoLockWhereThereIsNoDatabase", "[OpenTest]") {
  fs::create_directory(path());
  Options options{.create_if_missing = false};
  CHECK(Database::open(path(), options).status().code() == StatusCode::not_found);
  CHECK(names_in(path()) == std::set<std::string>{});
  make_database();
  CHECK(Database::open(path(), {.error_if_exists = true}).status().code() ==
        StatusCode::already_exists);
  CHECK(fs::exists(file("LOCK")));
}

TEST_CASE_METHOD(OpenTest, "OpenTest.ACreationThatFailsLeavesNothing", "[OpenTest]") {
  int failed = 0;
  for (uint64_t n = 1;; ++n) {
    MemoryFileSystem memory;
    memory.fail_call(n, StatusCode::io_error);
    Options options{.file_system = &memory};
    auto db = Database::open("a/b/db", options);
    if (db.ok()) break;
    ++failed;
    // Which the database is from CURRENT on.
    if (!*memory.exists("a/b/db/CURRENT")) CHECK_MESSAGE(!(*memory.exists("a")), n);
    CHECK_MESSAGE(Database::open("a/b/db", options).ok(), n);
  }
  CHECK(failed > 8);
}

// They take back directories and a lock that this one is about to use.
TEST_CASE_METHOD(OpenTest, "OpenTest.CreationsThatFailDoNotDisturbOthers", "[OpenTest]") {
  GatedFileSystem full(FileSystem::posix());
  full.fail_writes("MANIFEST-", Status(StatusCode::no_space, "full"));
  std::atomic<int> round{0};
  std::atomic<uint64_t> failed{0};
  auto deep = [&](int i) { return directory_.file(std::to_string(i) + "/a/db"); };
  TestThreads others;
  for (int i = 0; i < 2; ++i)
    others.start([&] {
      while (!others.stopping()) {
        Status s = Database::open(deep(round), {.threads = 1, .file_system = &full}).status();
        CHECK_MESSAGE((s.code() == StatusCode::no_space || s.code() == StatusCode::locked),
                      s.to_string());
        failed += s.code() == StatusCode::no_space;
      }
    });
  for (int i = 1; i <= 100; ++i) {
    round = i;
    auto db = Database::open(deep(i), {.threads = 1});
    while (db.status().code() == StatusCode::locked) db = Database::open(deep(i), {.threads = 1});
    REQUIRE_OK(db);
    CHECK(*FileSystem::posix().is_locked(deep(i) + "/LOCK"));
    auto table = (*db)->create_table("t");
    CHECK_OK(table);
  }
  others.join();
  CHECK(failed > 0u);
}

}  // namespace
}  // namespace stride::test
