// What every FileSystem must do, of the real one and of the one in memory.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "storage/file.h"
#include "storage/memory_file_system.h"
#include "storage/reserved_memory.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/test_threads.h"

namespace stride {
namespace {

class PosixRoom {
 public:
  PosixRoom() {
    std::string pattern = (std::filesystem::temp_directory_path() / "storage_test.XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~PosixRoom() { std::filesystem::remove_all(path_); }
  FileSystem& fs() { return FileSystem::posix(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class MemoryRoom {
 public:
  MemoryRoom() { (void)fs_.create_directory(path_); }
  FileSystem& fs() { return fs_; }
  const std::string& path() const { return path_; }

 private:
  MemoryFileSystem fs_;
  std::string path_ = "room";
};

template <class Room>
class FileSystemTest {
 protected:
  FileSystem& fs() { return room_.fs(); }
  std::string in_room(const std::string& name) { return room_.path() + "/" + name; }
  const std::string& room() { return room_.path(); }
  std::unique_ptr<File> make(const std::string& name, std::string_view bytes,
                             OpenMode mode = OpenMode::create) {
    auto file = fs().open(in_room(name), mode);
    CHECK_OK(file);
    CHECK_OK((*file)->write_at(0, as_bytes(bytes)));
    return std::move(*file);
  }
  std::string read(File& file) {
    std::string bytes(*file.size(), '\0');
    CHECK_OK(file.read_at(0, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }

 private:
  Room room_;
};

TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.ReadsWhatWasWritten", "[FileSystemTest]",
                          PosixRoom, MemoryRoom) {
  auto file = this->make("a", "hello");
  REQUIRE_OK(file->write_at(7, as_bytes("you")));
  CHECK(this->read(*file) == std::string("hello\0\0you", 10));
  CHECK_OK(file->sync());
  auto again = this->fs().open(this->in_room("a"), OpenMode::read);
  REQUIRE_OK(again);
  CHECK(this->read(**again).size() == 10u);
  CHECK_FALSE((*again)->write_at(0, as_bytes("x")).ok());
}

TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.ReadPastTheEndIsCorruption",
                          "[FileSystemTest]", PosixRoom, MemoryRoom) {
  auto file = this->make("a", "hello");
  std::byte buffer[4];
  Status status = file->read_at(3, buffer);
  CHECK(status.code() == StatusCode::corruption);
  CHECK(status.offset() == 5u);
  CHECK(status.file() == this->in_room("a"));
}

TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.ModesMindWhetherAFileIsThere",
                          "[FileSystemTest]", PosixRoom, MemoryRoom) {
  auto code = [&](const std::string& name, OpenMode mode) {
    return this->fs().open(this->in_room(name), mode).status().code();
  };
  CHECK(code("absent", OpenMode::read) == StatusCode::not_found);
  CHECK(code("absent", OpenMode::write) == StatusCode::not_found);
  CHECK(code("no/such/directory", OpenMode::create) == StatusCode::not_found);
  this->make("there", "x");
  CHECK(code("there", OpenMode::create) == StatusCode::already_exists);
  CHECK(code("there", OpenMode::create_direct) == StatusCode::already_exists);
  CHECK(code("there", OpenMode::write) == StatusCode::ok);
}

TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.AllocateAndTruncateSetTheSize",
                          "[FileSystemTest]", PosixRoom, MemoryRoom) {
  auto file = this->make("a", "hello");
  REQUIRE_OK(file->allocate(8192));
  CHECK(*file->size() == 8192u);
  REQUIRE_OK(file->truncate(4));
  REQUIRE_OK(file->truncate(6));
  CHECK(this->read(*file) == std::string("hell\0\0", 6));
}

TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.DirectAndBufferedWritesMix",
                          "[FileSystemTest]", PosixRoom, MemoryRoom) {
  auto file = this->make("a", "", OpenMode::create_direct);
  auto image = ReservedMemory::reserve(3 * 4096);
  REQUIRE_OK(image);
  std::memset(image->data(), 'd', 3 * 4096);
  REQUIRE_OK(file->write_at(4096, {image->data(), 8192}));
  REQUIRE_OK(file->write_at(4000, {image->data(), 200}));
  REQUIRE_OK(file->write_at(0, {image->data() + 1, 100}));
  REQUIRE_OK(file->write_at(12288, {image->data(), 5}));
  REQUIRE_OK(file->sync());
  std::string expected(12293, 'd');
  std::memset(expected.data() + 100, 0, 3900);
  CHECK(this->read(*file) == expected);
}

TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.ThreadsWriteDisjointRanges",
                          "[FileSystemTest]", PosixRoom, MemoryRoom) {
  auto file = this->make("a", "", OpenMode::create_direct);
  test::TestThreads threads;
  for (int t = 0; t < 4; ++t) {
    threads.start([&, t] {
      std::string bytes(1000, static_cast<char>('a' + t));
      for (uint64_t i = 0; i < 8; ++i) {
        CHECK_OK(file->write_at((i * 4 + static_cast<uint64_t>(t)) * 1000, as_bytes(bytes)));
      }
    });
  }
  threads.join();
  std::string bytes = this->read(*file);
  REQUIRE(bytes.size() == 32000u);
  for (size_t i = 0; i < bytes.size(); ++i)
    REQUIRE(bytes[i] == 'a' + static_cast<int>(i / 1000 % 4));
}

TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.AMappingOutlivesItsFile",
                          "[FileSystemTest]", PosixRoom, MemoryRoom) {
  auto file = this->make("a", "hello");
  auto mapping = file->map();
  REQUIRE_OK(mapping);
  file.reset();
  REQUIRE_OK(this->fs().remove(this->in_room("a")));
  CHECK(as_text((*mapping)->bytes()) == "hello");
  auto empty = this->make("b", "");
  CHECK((*empty->map())->bytes().empty());
}

TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.ListsRenamesAndRemoves",
                          "[FileSystemTest]", PosixRoom, MemoryRoom) {
  CHECK(this->fs().list(this->room())->empty());
  this->make("b", "1");
  this->make("a", "2");
  REQUIRE_OK(this->fs().create_directory(this->in_room("c/d")));
  REQUIRE_OK(this->fs().create_directory(this->in_room("c/d/")));
  CHECK(*this->fs().list(this->room()) == (std::vector<std::string>{"a", "b", "c"}));
  CHECK(*this->fs().list(this->in_room("c")) == (std::vector<std::string>{"d"}));
  REQUIRE_OK(this->fs().rename(this->in_room("a"), this->in_room("b")));
  CHECK_OK(this->fs().sync_directory(this->room()));
  CHECK_FALSE(*this->fs().exists(this->in_room("a")));
  CHECK(*this->fs().exists(this->in_room("c")));
  auto file = this->fs().open(this->in_room("b"), OpenMode::read);
  CHECK(this->read(**file) == "2");
  CHECK_OK(this->fs().remove(this->in_room("b")));
  CHECK(this->fs().remove(this->in_room("b")).code() == StatusCode::not_found);
  CHECK(this->fs().list(this->in_room("absent")).status().code() == StatusCode::not_found);
  CHECK(this->fs().rename(this->in_room("x"), this->in_room("y")).code() == StatusCode::not_found);
}

TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.AFileIsNoDirectory", "[FileSystemTest]",
                          PosixRoom, MemoryRoom) {
  this->make("a", "x");
  CHECK(this->fs().list(this->in_room("a")).status().code() == StatusCode::invalid_argument);
  CHECK(this->fs().create_directory(this->in_room("a")).status().code() ==
        StatusCode::invalid_argument);
}

TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.ALockExcludesOtherHandles",
                          "[FileSystemTest]", PosixRoom, MemoryRoom) {
  auto held = this->fs().lock(this->in_room("LOCK"));
  REQUIRE_OK(held);
  CHECK(*this->fs().exists(this->in_room("LOCK")));
  Status status = this->fs().lock(this->in_room("LOCK")).status();
  CHECK(status.code() == StatusCode::locked);
  CHECK(status.message().find("another handle of this process") != std::string::npos);
  CHECK_FALSE(status.remedy().empty());
  held->reset();
  CHECK_OK(this->fs().lock(this->in_room("LOCK")));
}

TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.RemovesALockThatItMade",
                          "[FileSystemTest]", PosixRoom, MemoryRoom) {
  std::string path = this->in_room("LOCK");
  auto held = this->fs().lock(path);
  REQUIRE_OK(held);
  (*held)->remove_if_created();
  CHECK_FALSE(*this->fs().exists(path));
  held->reset();
  this->make("LOCK", "there before");
  held = this->fs().lock(path);
  REQUIRE_OK(held);
  (*held)->remove_if_created();
  CHECK(*this->fs().exists(path));
}

// Also where one of them removes the file that another is about to lock.
TEMPLATE_TEST_CASE_METHOD(FileSystemTest, "FileSystemTest.OneHandleHoldsALockThatComesAndGoes",
                          "[FileSystemTest]", PosixRoom, MemoryRoom) {
  std::string path = this->in_room("LOCK");
  std::atomic<int> holders{0}, max_holders{0}, taken{0};
  test::TestThreads threads;
  for (int i = 0; i < 4; ++i) {
    threads.start([&, random = std::mt19937_64(test::seed() + i)]() mutable {
      for (int round = 0; round < 300; ++round) {
        auto lock = this->fs().lock(path);
        if (!lock.ok()) {
          CHECK_MESSAGE(lock.status().code() == StatusCode::locked, lock.status().to_string());
          continue;
        }
        ++taken;
        max_holders = std::max(max_holders.load(), ++holders);
        for (uint64_t n = random() % 3; n > 0; --n) std::this_thread::yield();
        --holders;
        if (random() % 2) (*lock)->remove_if_created();
      }
    });
  }
  threads.join();
  CHECK(max_holders == 1);
  CHECK(taken > 10);
}

TEMPLATE_TEST_CASE_METHOD(FileSystemTest,
                          "FileSystemTest.SaysWhichDirectoriesItMadeAndRemovesEmptyOnes",
                          "[FileSystemTest]", PosixRoom, MemoryRoom) {
  std::string a = this->in_room("a"), b = a + "/b", c = b + "/c";
  auto made = this->fs().create_directory(b + "/");
  REQUIRE_OK(made);
  CHECK(*made == (std::vector<std::string>{a, b}));
  CHECK(*this->fs().create_directory(c) == std::vector<std::string>{c});
  CHECK(this->fs().create_directory(c)->empty());
  CHECK_FALSE(this->fs().remove_directory(b).ok());
  CHECK_OK(this->fs().remove_directory(c));
  this->make("a/b/file", "x");
  CHECK_FALSE(this->fs().remove_directory(b).ok());
  CHECK_OK(this->fs().remove(b + "/file"));
  CHECK_OK(this->fs().remove_directory(b));
  CHECK(this->fs().remove_directory(b).code() == StatusCode::not_found);
  CHECK(*this->fs().list(this->room()) == std::vector<std::string>{"a"});
}

TEST_CASE("PosixFileSystemTest.OpensRegularFilesAlone", "[PosixFileSystemTest]") {
  PosixRoom room;
  ::alarm(60);  // what waits for ever ends here
  std::string fifo = room.path() + "/fifo", socket = room.path() + "/socket";
  std::string target = room.path() + "/target", link = room.path() + "/link";
  std::string directory = room.path() + "/directory", dangling = room.path() + "/dangling";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
  int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  std::ofstream(target) << "12345 and more";
  REQUIRE(::symlink(target.c_str(), link.c_str()) == 0);
  REQUIRE(::symlink("nowhere", dangling.c_str()) == 0);
  REQUIRE(::mkdir(directory.c_str(), 0700) == 0);
  auto refused = [&](const Status& s, const std::string& path, const char* kind) {
    CHECK_MESSAGE(s.code() == StatusCode::invalid_argument, s.to_string());
    CHECK_MESSAGE(s.message().find(kind) != std::string::npos, s.to_string());
    CHECK(s.file() == path);
    CHECK_FALSE(s.remedy().empty());
  };
  FileSystem& fs = room.fs();
  std::pair<std::string, const char*> strange[] = {
      {fifo, "FIFO"}, {socket, "socket"}, {directory, "directory"}, {"/dev/null", "device"}};
  for (auto& [path, kind] : strange) {
    refused(fs.open(path, OpenMode::read).status(), path, kind);
    refused(fs.open(path, OpenMode::write).status(), path, kind);
    refused(fs.lock(path).status(), path, kind);
  }
  refused(fs.open(link, OpenMode::write).status(), link, "symbolic link");
  refused(fs.open(link, OpenMode::read).status(), link, "symbolic link");
  refused(fs.lock(link).status(), link, "symbolic link");
  refused(fs.lock(dangling).status(), dangling, "symbolic link");
  CHECK(fs.open(link, OpenMode::create).status().code() == StatusCode::already_exists);
  CHECK_FALSE(*fs.exists(room.path() + "/nowhere"));
  ::close(listening);
  ::alarm(0);
}

TEST_CASE("PosixFileSystemTest.WhatIsMadeIsForItsUserUnlessTheDirectoryIsForMore",
          "[PosixFileSystemTest]") {
  PosixRoom room;
  FileSystem& fs = room.fs();
  auto mode_of = [](const std::string& path) {
    struct stat st;
    REQUIRE(::stat(path.c_str(), &st) == 0);
    return st.st_mode & 07777;
  };
  const mode_t umask = ::umask(022);
  const std::string directory = room.path() + "/above/database";
  REQUIRE_OK(fs.create_directory(directory));
  CHECK(mode_of(directory) == 0700);
  CHECK(mode_of(room.path() + "/above") == 0755);
  ::umask(0);
  int number = 0;
  for (auto [of_directory, of_file] : {std::pair<mode_t, mode_t>{0700, 0600},
                                       {0750, 0640},
                                       {0770, 0660},
                                       {0755, 0644},
                                       {0777, 0666},
                                       {02770, 0660}}) {
    REQUIRE(::chmod(directory.c_str(), of_directory) == 0);
    const std::string file = directory + "/" + std::to_string(number++);
    REQUIRE_OK(fs.open(file, OpenMode::create));
    CHECK(mode_of(file) == of_file);
    REQUIRE_OK(fs.open(file + ".direct", OpenMode::create_direct));
    CHECK(mode_of(file + ".direct") == of_file);
    REQUIRE_OK(fs.lock(file + ".lock"));
    CHECK(mode_of(file + ".lock") == of_file);
  }
  ::umask(umask);
}

TEST_CASE("PosixFileSystemTest.NamesTheProcessThatHoldsALock", "[PosixFileSystemTest]") {
  PosixRoom room;
  std::string path = room.path() + "/LOCK";
  int ready[2], done[2];
  REQUIRE(::pipe(ready) == 0);
  REQUIRE(::pipe(done) == 0);
  pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto held = room.fs().lock(path);
    char byte = held.ok() ? 'y' : 'n';
    (void)!::write(ready[1], &byte, 1);
    (void)!::read(done[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  REQUIRE(byte == 'y');
  Status status = room.fs().lock(path).status();
  CHECK(status.code() == StatusCode::locked);
  CHECK(status.message() == "locked by process " + std::to_string(child));
  REQUIRE(::write(done[1], &byte, 1) == 1);
  ::waitpid(child, nullptr, 0);
  CHECK_MESSAGE(room.fs().lock(path).ok(), "the kernel frees the lock of a dead process");
}

// How a child process that does this ends: its exit code, or minus the signal.
template <class Steps>
int in_child(const Steps& steps) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(steps());
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// What a process prints must not go into a file of the database.
TEST_CASE("PosixFileSystemTest.KeepsOffTheNumbersOfClosedStandardStreams",
          "[PosixFileSystemTest]") {
  PosixRoom room;
  auto free_numbers = [] {
    int count = 0;
    for (int fd : {0, 1, 2}) count += ::fcntl(fd, F_GETFD) < 0;
    return count;
  };
  // The exit code: how many of the steps were as they should be.
  auto steps = [&] {
    FileSystem& fs = room.fs();
    for (int fd : {0, 1, 2}) ::close(fd);
    auto made = fs.open(room.path() + "/made", OpenMode::create);
    if (!made.ok() || free_numbers() != 3) return 0;
    auto direct = fs.open(room.path() + "/direct", OpenMode::create_direct);
    if (!direct.ok() || free_numbers() != 3) return 1;
    if (!(*made)->write_at(0, as_bytes("hello")).ok()) return 2;
    auto mapping = (*made)->map();
    if (!mapping.ok() || free_numbers() != 3) return 3;
    auto lock = fs.lock(room.path() + "/LOCK");
    if (!lock.ok() || free_numbers() != 3) return 4;
    auto read = fs.open(room.path() + "/made", OpenMode::read);
    if (!read.ok() || free_numbers() != 3) return 5;
    if (!fs.list(room.path()).ok() || !fs.sync_directory(room.path()).ok()) return 6;
    for (int fd : {0, 1, 2}) (void)!::write(fd, "printed", 7);
    return as_text((*mapping)->bytes()) == "hello" ? 8 : 7;
  };
  CHECK(in_child(steps) == 8);
}

// The system's own answer is SIGXFSZ, which ends a process that does not expect it.
TEST_CASE("PosixFileSystemTest.AFileSizeLimitIsNoSpace", "[PosixFileSystemTest]") {
  PosixRoom room;
  // The exit code: how many of the steps were as they should be.
  auto steps = [&] {
    auto file = room.fs().open(room.path() + "/a", OpenMode::create_direct);
    if (!file.ok() || !(*file)->write_at(0, as_bytes(std::string(6000, 'x'))).ok()) return 0;
    auto image = ReservedMemory::reserve(8192);
    std::memset(image->data(), 'y', 8192);
    struct rlimit limit = {4096, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    auto refused = [](const Status& status) {
      return status.code() == StatusCode::no_space &&
             status.remedy().find("ulimit -f") != std::string::npos;
    };
    if (!refused((*file)->write_at(4000, as_bytes(std::string(97, 'z'))))) return 2;
    if (!refused((*file)->write_at(0, {image->data(), 8192}))) return 3;
    if (!refused((*file)->allocate(8192))) return 4;
    if (!refused((*file)->truncate(8192))) return 5;
    if (!(*file)->truncate(5000).ok()) return 6;
    if (!(*file)->write_at(4000, as_bytes(std::string(96, 'z'))).ok()) return 7;
    limit.rlim_cur = 0;
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 8;
    return refused(room.fs().lock(room.path() + "/LOCK").status()) ? 10 : 9;
  };
  CHECK(in_child(steps) == 10);
}

TEST_CASE("PosixFileSystemTest.SaysWhatToDoAboutPermissions", "[PosixFileSystemTest]") {
  PosixRoom room;
  std::string path = room.path() + "/a";
  using std::filesystem::perms;
  std::filesystem::permissions(room.path(), perms::owner_read | perms::owner_exec);
  // Root may write everywhere; anybody else will do.
  bool root = ::geteuid() == 0;
  REQUIRE((root ? ::seteuid(65534) : 0) == 0);
  Status status = room.fs().open(path, OpenMode::create).status();
  Status lock = room.fs().lock(path).status();
  REQUIRE((root ? ::seteuid(0) : 0) == 0);
  std::filesystem::permissions(room.path(), perms::owner_all);
  CHECK(status.code() == StatusCode::permission_denied);
  CHECK_FALSE(status.remedy().empty());
  CHECK(status.file() == path);
  CHECK(lock.code() == StatusCode::permission_denied);
}

TEST_CASE("PosixFileSystemTest.AFileThatMayNotGrowIsNoSpace", "[PosixFileSystemTest]") {
  PosixRoom room;
  auto file = room.fs().open(room.path() + "/a", OpenMode::create);
  REQUIRE_OK(file);
  struct rlimit before;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit none {
    0, before.rlim_max
  };
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  Status status = (*file)->write_at(0, as_bytes("x"));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK_MESSAGE(status.code() == StatusCode::no_space, status.to_string());
  CHECK_FALSE(status.remedy().empty());
}

TEST_CASE("PosixFileSystemTest.WorksWhereDirectWritesAreRefused", "[PosixFileSystemTest]") {
  std::string path = "/dev/shm/storage_test." + std::to_string(::getpid());
  auto file = FileSystem::posix().open(path, OpenMode::create_direct);
  if (!file.ok()) SKIP(file.status().to_string());
  auto image = ReservedMemory::reserve(8192);
  CHECK_OK((*file)->allocate(8192));
  CHECK_OK((*file)->write_at(0, {image->data(), 8192}));
  CHECK_OK((*file)->sync());
  CHECK_OK(FileSystem::posix().remove(path));
}

}  // namespace
}  // namespace stride
