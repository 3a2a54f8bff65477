// What opening does to a directory: to files that are not the database's, and where it fails.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "storage/memory_file_system.h"
#include "tests/support/gated_file_system.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

class OpenTest : public ::testing::Test {
 protected:
  // What waits for ever ends here.
  OpenTest() { ::alarm(120); }
  ~OpenTest() override { ::alarm(0); }

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
    auto db = Database::open(path());
    ASSERT_TRUE(db.ok()) << db.status().to_string();
    auto table = (*db)->create_table("t");
    ASSERT_TRUE(table.ok());
    WriteTransaction t = (*db)->begin();
    STRIDE_ASSERT_OK(t.put(*table, "a", "1"));
    STRIDE_ASSERT_OK(t.commit());
    STRIDE_ASSERT_OK((*db)->close());
  }

  TemporaryDirectory directory_;
};

TEST_F(OpenTest, RemovesNoFileThatADatabaseCannotHaveWritten) {
  make_database();
  std::vector<std::string> foreign = {"movie.seg",      "12 .seg",  "0000000007.seg", "+00012.seg",
                                      "12.seg",         ".seg",     "000012.SEG",     "000012.seg~",
                                      "99999999999.seg", " 00012.seg", "-00012.seg", "0x0012.seg"};
  for (const std::string& name : foreign) put(name);
  put("000099.seg");  // as one that was cut off
  ASSERT_TRUE(Database::open(path()).ok());
  for (const std::string& name : foreign) EXPECT_EQ(read(file(name)), "not ours") << name;
  EXPECT_FALSE(fs::exists(file("000099.seg")));
}

TEST_F(OpenTest, WritesThroughNoSymbolicLink) {
  make_database();
  std::string target = directory_.file("target");
  for (std::string name : {"LOCK", "MANIFEST-000001", "CURRENT.tmp"}) {
    std::string text = fs::exists(file(name)) ? read(file(name)) : "precious";
    std::ofstream(target) << text;
    fs::remove(file(name));
    fs::create_symlink(target, file(name));
    Status s = Database::open(path()).status();
    EXPECT_EQ(s.ok(), name == "CURRENT.tmp");  // which is only replaced
    if (!s.ok()) EXPECT_EQ(s.file(), file(name));
    EXPECT_EQ(read(target), text) << name;
    fs::remove(file(name));
    if (name != "LOCK") fs::rename(target, file(name));
  }
}

TEST_F(OpenTest, RefusesWhatIsNoRegularFile) {
  make_database();
  std::string segment;
  for (const std::string& name : names_in(path()))
    if (name.ends_with(".seg")) segment = name;
  for (bool read_only : {false, true})
    for (const std::string& name : {std::string("LOCK"), std::string("CURRENT"),
                                    std::string("MANIFEST-000001")}) {
      if (read_only && name == "LOCK") continue;
      fs::rename(file(name), directory_.file("aside"));
      ASSERT_EQ(mkfifo(file(name).c_str(), 0600), 0);
      Status s = Database::open(path(), {.read_only = read_only}).status();
      EXPECT_EQ(s.code(), StatusCode::invalid_argument) << s.to_string();
      EXPECT_NE(s.to_string().find("FIFO"), std::string::npos) << s.to_string();
      EXPECT_EQ(s.file(), file(name));
      fs::rename(directory_.file("aside"), file(name));
    }
  ASSERT_EQ(mkfifo(file("COSTS").c_str(), 0600), 0);
  fs::remove(file(segment));
  ASSERT_EQ(mkfifo(file(segment).c_str(), 0600), 0);
  auto db = Database::open(path());
  ASSERT_TRUE(db.ok()) << db.status().to_string();
  Status s = (*db)->verify();
  EXPECT_EQ(s.code(), StatusCode::corruption) << s.to_string();
  EXPECT_NE(s.to_string().find("FIFO"), std::string::npos) << s.to_string();
  EXPECT_EQ(s.file(), file(segment));
}

TEST_F(OpenTest, LeavesAForeignDirectoryAsItWas) {
  fs::create_directory(path());
  put("letter.txt");
  EXPECT_EQ(Database::open(path()).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(names_in(path()), std::set<std::string>{"letter.txt"});
  // A LevelDB, which has files of the same names.
  put("LOCK", "its own");
  put("CURRENT", "MANIFEST-000005\n");
  put("MANIFEST-000005", "a log of LevelDB, longer than any header");
  auto before = names_in(path());
  EXPECT_EQ(Database::open(path()).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(names_in(path()), before);
  EXPECT_EQ(read(file("LOCK")), "its own");
  // The same, when CURRENT is lost.
  fs::remove(file("CURRENT"));
  fs::remove(file("letter.txt"));
  before = names_in(path());
  EXPECT_EQ(Database::open(path()).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(names_in(path()), before);
  EXPECT_EQ(read(file("LOCK")), "its own");
}

TEST_F(OpenTest, LeavesNoLockWhereThereIsNoDatabase) {
  fs::create_directory(path());
  Options options{.create_if_missing = false};
  EXPECT_EQ(Database::open(path(), options).status().code(), StatusCode::not_found);
  EXPECT_EQ(names_in(path()), std::set<std::string>{});
  make_database();
  EXPECT_EQ(Database::open(path(), {.error_if_exists = true}).status().code(),
            StatusCode::already_exists);
  EXPECT_TRUE(fs::exists(file("LOCK")));
}

TEST_F(OpenTest, ACreationThatFailsLeavesNothing) {
  int failed = 0;
  for (uint64_t n = 1;; ++n) {
    MemoryFileSystem memory;
    memory.fail_call(n, StatusCode::io_error);
    Options options{.file_system = &memory};
    auto db = Database::open("a/b/db", options);
    if (db.ok()) break;
    ++failed;
    // Which the database is from CURRENT on.
    if (!*memory.exists("a/b/db/CURRENT")) EXPECT_FALSE(*memory.exists("a")) << n;
    EXPECT_TRUE(Database::open("a/b/db", options).ok()) << n;
  }
  EXPECT_GT(failed, 8);
}

// They take back directories and a lock that this one is about to use.
TEST_F(OpenTest, CreationsThatFailDoNotDisturbOthers) {
  GatedFileSystem full(FileSystem::posix());
  full.fail_writes("MANIFEST-", Status(StatusCode::no_space, "full"));
  std::atomic<int> round{0};
  std::atomic<bool> done{false};
  std::atomic<uint64_t> failed{0};
  auto deep = [&](int i) { return directory_.file(std::to_string(i) + "/a/db"); };
  std::vector<std::jthread> others;
  struct Ends {
    std::atomic<bool>& done;
    ~Ends() { done = true; }
  } ends{done};
  for (int i = 0; i < 2; ++i)
    others.emplace_back([&] {
      while (!done) {
        Status s = Database::open(deep(round), {.threads = 1, .file_system = &full}).status();
        EXPECT_TRUE(s.code() == StatusCode::no_space || s.code() == StatusCode::locked)
            << s.to_string();
        failed += s.code() == StatusCode::no_space;
      }
    });
  for (int i = 1; i <= 100; ++i) {
    round = i;
    auto db = Database::open(deep(i), {.threads = 1});
    while (db.status().code() == StatusCode::locked) db = Database::open(deep(i), {.threads = 1});
    ASSERT_TRUE(db.ok()) << db.status().to_string();
    EXPECT_EQ(Database::open(deep(i), {.threads = 1}).status().code(), StatusCode::locked);
    auto table = (*db)->create_table("t");
    EXPECT_TRUE(table.ok()) << table.status().to_string();
  }
  done = true;
  others.clear();
  EXPECT_GT(failed, 0u);
}

}  // namespace
}  // namespace stride::test
