// What every FileSystem must do, of the real one and of the one in memory.
#include <fcntl.h>
#include <gtest/gtest.h>
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
#include "tests/support/printed_seed.h"

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
class FileSystemTest : public testing::Test {
 protected:
  FileSystem& fs() { return room_.fs(); }
  std::string in_room(const std::string& name) { return room_.path() + "/" + name; }
  const std::string& room() { return room_.path(); }
  std::unique_ptr<File> make(const std::string& name, std::string_view bytes,
                             OpenMode mode = OpenMode::create) {
    auto file = fs().open(in_room(name), mode);
    EXPECT_TRUE(file.ok()) << file.status().to_string();
    EXPECT_TRUE((*file)->write_at(0, as_bytes(bytes)).ok());
    return std::move(*file);
  }
  std::string read(File& file) {
    std::string bytes(*file.size(), '\0');
    EXPECT_TRUE(file.read_at(0, std::as_writable_bytes(std::span(bytes))).ok());
    return bytes;
  }

 private:
  Room room_;
};

using Rooms = testing::Types<PosixRoom, MemoryRoom>;
TYPED_TEST_SUITE(FileSystemTest, Rooms);

TYPED_TEST(FileSystemTest, ReadsWhatWasWritten) {
  auto file = this->make("a", "hello");
  ASSERT_TRUE(file->write_at(7, as_bytes("you")).ok());
  EXPECT_EQ(this->read(*file), std::string("hello\0\0you", 10));
  EXPECT_TRUE(file->sync().ok());
  auto again = this->fs().open(this->in_room("a"), OpenMode::read);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(this->read(**again).size(), 10u);
  EXPECT_FALSE((*again)->write_at(0, as_bytes("x")).ok());
}

TYPED_TEST(FileSystemTest, ReadPastTheEndIsCorruption) {
  auto file = this->make("a", "hello");
  std::byte buffer[4];
  Status status = file->read_at(3, buffer);
  EXPECT_EQ(status.code(), StatusCode::corruption);
  EXPECT_EQ(status.offset(), 5u);
  EXPECT_EQ(status.file(), this->in_room("a"));
}

TYPED_TEST(FileSystemTest, ModesMindWhetherAFileIsThere) {
  auto code = [&](const std::string& name, OpenMode mode) {
    return this->fs().open(this->in_room(name), mode).status().code();
  };
  EXPECT_EQ(code("absent", OpenMode::read), StatusCode::not_found);
  EXPECT_EQ(code("absent", OpenMode::write), StatusCode::not_found);
  EXPECT_EQ(code("no/such/directory", OpenMode::create), StatusCode::not_found);
  this->make("there", "x");
  EXPECT_EQ(code("there", OpenMode::create), StatusCode::already_exists);
  EXPECT_EQ(code("there", OpenMode::create_direct), StatusCode::already_exists);
  EXPECT_EQ(code("there", OpenMode::write), StatusCode::ok);
}

TYPED_TEST(FileSystemTest, AllocateAndTruncateSetTheSize) {
  auto file = this->make("a", "hello");
  ASSERT_TRUE(file->allocate(8192).ok());
  EXPECT_EQ(*file->size(), 8192u);
  ASSERT_TRUE(file->truncate(4).ok());
  ASSERT_TRUE(file->truncate(6).ok());
  EXPECT_EQ(this->read(*file), std::string("hell\0\0", 6));
}

TYPED_TEST(FileSystemTest, DirectAndBufferedWritesMix) {
  auto file = this->make("a", "", OpenMode::create_direct);
  auto image = ReservedMemory::reserve(3 * 4096);
  ASSERT_TRUE(image.ok());
  std::memset(image->data(), 'd', 3 * 4096);
  ASSERT_TRUE(file->write_at(4096, {image->data(), 8192}).ok());
  ASSERT_TRUE(file->write_at(4000, {image->data(), 200}).ok());
  ASSERT_TRUE(file->write_at(0, {image->data() + 1, 100}).ok());
  ASSERT_TRUE(file->write_at(12288, {image->data(), 5}).ok());
  ASSERT_TRUE(file->sync().ok());
  std::string expected(12293, 'd');
  std::memset(expected.data() + 100, 0, 3900);
  EXPECT_EQ(this->read(*file), expected);
}

TYPED_TEST(FileSystemTest, ThreadsWriteDisjointRanges) {
  auto file = this->make("a", "", OpenMode::create_direct);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::string bytes(1000, static_cast<char>('a' + t));
      for (uint64_t i = 0; i < 8; ++i) {
        EXPECT_TRUE(
            file->write_at((i * 4 + static_cast<uint64_t>(t)) * 1000, as_bytes(bytes)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::string bytes = this->read(*file);
  ASSERT_EQ(bytes.size(), 32000u);
  for (size_t i = 0; i < bytes.size(); ++i)
    ASSERT_EQ(bytes[i], 'a' + static_cast<int>(i / 1000 % 4));
}

TYPED_TEST(FileSystemTest, AMappingOutlivesItsFile) {
  auto file = this->make("a", "hello");
  auto mapping = file->map();
  ASSERT_TRUE(mapping.ok());
  file.reset();
  ASSERT_TRUE(this->fs().remove(this->in_room("a")).ok());
  EXPECT_EQ(as_text((*mapping)->bytes()), "hello");
  auto empty = this->make("b", "");
  EXPECT_TRUE((*empty->map())->bytes().empty());
}

TYPED_TEST(FileSystemTest, ListsRenamesAndRemoves) {
  EXPECT_TRUE(this->fs().list(this->room())->empty());
  this->make("b", "1");
  this->make("a", "2");
  ASSERT_TRUE(this->fs().create_directory(this->in_room("c/d")).ok());
  ASSERT_TRUE(this->fs().create_directory(this->in_room("c/d/")).ok());
  EXPECT_EQ(*this->fs().list(this->room()), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(*this->fs().list(this->in_room("c")), (std::vector<std::string>{"d"}));
  ASSERT_TRUE(this->fs().rename(this->in_room("a"), this->in_room("b")).ok());
  EXPECT_TRUE(this->fs().sync_directory(this->room()).ok());
  EXPECT_FALSE(*this->fs().exists(this->in_room("a")));
  EXPECT_TRUE(*this->fs().exists(this->in_room("c")));
  auto file = this->fs().open(this->in_room("b"), OpenMode::read);
  EXPECT_EQ(this->read(**file), "2");
  EXPECT_TRUE(this->fs().remove(this->in_room("b")).ok());
  EXPECT_EQ(this->fs().remove(this->in_room("b")).code(), StatusCode::not_found);
  EXPECT_EQ(this->fs().list(this->in_room("absent")).status().code(), StatusCode::not_found);
  EXPECT_EQ(this->fs().rename(this->in_room("x"), this->in_room("y")).code(),
            StatusCode::not_found);
}

TYPED_TEST(FileSystemTest, AFileIsNoDirectory) {
  this->make("a", "x");
  EXPECT_EQ(this->fs().list(this->in_room("a")).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(this->fs().create_directory(this->in_room("a")).status().code(),
            StatusCode::invalid_argument);
}

TYPED_TEST(FileSystemTest, ALockExcludesOtherHandles) {
  auto held = this->fs().lock(this->in_room("LOCK"));
  ASSERT_TRUE(held.ok()) << held.status().to_string();
  EXPECT_TRUE(*this->fs().exists(this->in_room("LOCK")));
  Status status = this->fs().lock(this->in_room("LOCK")).status();
  EXPECT_EQ(status.code(), StatusCode::locked);
  EXPECT_NE(status.message().find("another handle of this process"), std::string::npos);
  EXPECT_FALSE(status.remedy().empty());
  held->reset();
  EXPECT_TRUE(this->fs().lock(this->in_room("LOCK")).ok());
}

TYPED_TEST(FileSystemTest, RemovesALockThatItMade) {
  std::string path = this->in_room("LOCK");
  auto held = this->fs().lock(path);
  ASSERT_TRUE(held.ok()) << held.status().to_string();
  (*held)->remove_if_created();
  EXPECT_FALSE(*this->fs().exists(path));
  held->reset();
  this->make("LOCK", "there before");
  held = this->fs().lock(path);
  ASSERT_TRUE(held.ok()) << held.status().to_string();
  (*held)->remove_if_created();
  EXPECT_TRUE(*this->fs().exists(path));
}

// Also where one of them removes the file that another is about to lock.
TYPED_TEST(FileSystemTest, OneHandleHoldsALockThatComesAndGoes) {
  std::string path = this->in_room("LOCK");
  std::atomic<int> holders{0}, most{0}, taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, random = std::mt19937_64(test::seed() + i)]() mutable {
      for (int round = 0; round < 300; ++round) {
        auto lock = this->fs().lock(path);
        if (!lock.ok()) {
          EXPECT_EQ(lock.status().code(), StatusCode::locked) << lock.status().to_string();
          continue;
        }
        ++taken;
        most = std::max(most.load(), ++holders);
        for (uint64_t n = random() % 3; n > 0; --n) std::this_thread::yield();
        --holders;
        if (random() % 2) (*lock)->remove_if_created();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(most, 1);
  EXPECT_GT(taken, 10);
}

TYPED_TEST(FileSystemTest, SaysWhichDirectoriesItMadeAndRemovesEmptyOnes) {
  std::string a = this->in_room("a"), b = a + "/b", c = b + "/c";
  auto made = this->fs().create_directory(b + "/");
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ(*made, (std::vector<std::string>{a, b}));
  EXPECT_EQ(*this->fs().create_directory(c), std::vector<std::string>{c});
  EXPECT_TRUE(this->fs().create_directory(c)->empty());
  EXPECT_FALSE(this->fs().remove_directory(b).ok());
  EXPECT_TRUE(this->fs().remove_directory(c).ok());
  this->make("a/b/file", "x");
  EXPECT_FALSE(this->fs().remove_directory(b).ok());
  EXPECT_TRUE(this->fs().remove(b + "/file").ok());
  EXPECT_TRUE(this->fs().remove_directory(b).ok());
  EXPECT_EQ(this->fs().remove_directory(b).code(), StatusCode::not_found);
  EXPECT_EQ(*this->fs().list(this->room()), std::vector<std::string>{"a"});
}

TEST(PosixFileSystemTest, OpensRegularFilesAlone) {
  PosixRoom room;
  ::alarm(60);  // what waits for ever ends here
  std::string fifo = room.path() + "/fifo", socket = room.path() + "/socket";
  std::string target = room.path() + "/target", link = room.path() + "/link";
  std::string directory = room.path() + "/directory", dangling = room.path() + "/dangling";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
  int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  std::ofstream(target) << "12345 and more";
  ASSERT_EQ(::symlink(target.c_str(), link.c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", dangling.c_str()), 0);
  ASSERT_EQ(::mkdir(directory.c_str(), 0700), 0);
  auto refused = [&](const Status& s, const std::string& path, const char* kind) {
    EXPECT_EQ(s.code(), StatusCode::invalid_argument) << s.to_string();
    EXPECT_NE(s.message().find(kind), std::string::npos) << s.to_string();
    EXPECT_EQ(s.file(), path);
    EXPECT_FALSE(s.remedy().empty());
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
  refused(fs.lock(link).status(), link, "symbolic link");
  refused(fs.lock(dangling).status(), dangling, "symbolic link");
  EXPECT_EQ(fs.open(link, OpenMode::create).status().code(), StatusCode::already_exists);
  auto file = fs.open(link, OpenMode::read);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  std::string text(14, '\0');
  ASSERT_TRUE((*file)->read_at(0, std::as_writable_bytes(std::span(text))).ok());
  EXPECT_EQ(text, "12345 and more");
  EXPECT_FALSE(*fs.exists(room.path() + "/nowhere"));
  ::close(listening);
  ::alarm(0);
}

TEST(PosixFileSystemTest, NamesTheProcessThatHoldsALock) {
  PosixRoom room;
  std::string path = room.path() + "/LOCK";
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto held = room.fs().lock(path);
    char byte = held.ok() ? 'y' : 'n';
    (void)!::write(ready[1], &byte, 1);
    (void)!::read(done[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  Status status = room.fs().lock(path).status();
  EXPECT_EQ(status.code(), StatusCode::locked);
  EXPECT_EQ(status.message(), "locked by process " + std::to_string(child));
  ASSERT_EQ(::write(done[1], &byte, 1), 1);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(room.fs().lock(path).ok()) << "the kernel frees the lock of a dead process";
}

// How a child process that does this ends: its exit code, or minus the signal.
template <class Steps>
int in_child(const Steps& steps) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(steps());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// What a process prints must not go into a file of the database.
TEST(PosixFileSystemTest, KeepsOffTheNumbersOfClosedStandardStreams) {
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
  EXPECT_EQ(in_child(steps), 8);
}

// The system's own answer is SIGXFSZ, which ends a process that does not expect it.
TEST(PosixFileSystemTest, AFileSizeLimitIsNoSpace) {
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
  EXPECT_EQ(in_child(steps), 10);
}

TEST(PosixFileSystemTest, SaysWhatToDoAboutPermissions) {
  PosixRoom room;
  std::string path = room.path() + "/a";
  using std::filesystem::perms;
  std::filesystem::permissions(room.path(), perms::owner_read | perms::owner_exec);
  // Root may write everywhere; anybody else will do.
  bool root = ::geteuid() == 0;
  ASSERT_EQ(root ? ::seteuid(65534) : 0, 0);
  Status status = room.fs().open(path, OpenMode::create).status();
  Status lock = room.fs().lock(path).status();
  ASSERT_EQ(root ? ::seteuid(0) : 0, 0);
  std::filesystem::permissions(room.path(), perms::owner_all);
  EXPECT_EQ(status.code(), StatusCode::permission_denied);
  EXPECT_FALSE(status.remedy().empty());
  EXPECT_EQ(status.file(), path);
  EXPECT_EQ(lock.code(), StatusCode::permission_denied);
}

TEST(PosixFileSystemTest, AFileThatMayNotGrowIsNoSpace) {
  PosixRoom room;
  auto file = room.fs().open(room.path() + "/a", OpenMode::create);
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  Status status = (*file)->write_at(0, as_bytes("x"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), StatusCode::no_space) << status.to_string();
  EXPECT_FALSE(status.remedy().empty());
}

TEST(PosixFileSystemTest, WorksWhereDirectWritesAreRefused) {
  std::string path = "/dev/shm/storage_test." + std::to_string(::getpid());
  auto file = FileSystem::posix().open(path, OpenMode::create_direct);
  if (!file.ok()) GTEST_SKIP() << file.status().to_string();
  auto image = ReservedMemory::reserve(8192);
  EXPECT_TRUE((*file)->allocate(8192).ok());
  EXPECT_TRUE((*file)->write_at(0, {image->data(), 8192}).ok());
  EXPECT_TRUE((*file)->sync().ok());
  EXPECT_TRUE(FileSystem::posix().remove(path).ok());
}

}  // namespace
}  // namespace stride
