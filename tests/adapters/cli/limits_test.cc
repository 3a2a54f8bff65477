// The program where the system gives it less than it wants: files of a limited size, few
// descriptors, a group of processes that is out of memory, a disk that is full, and one that
// becomes read-only.
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::cli {
namespace {

class LimitsTest : public CliFixture {
 protected:
  // The exit code of stride as a process of its own, after a command of the shell like `ulimit -n
  // 9`.
  int run_after(const std::string& limit, const std::string& arguments) {
    const std::string errors = directory_ + "/errors";
    const std::string line = "exec >/dev/null 2>" + errors + " </dev/null; " + limit + "; exec " +
                             STRIDE_PROGRAM + " " + arguments;
    const int status = std::system(("exec sh -c '" + line + "'").c_str());
    error_ = read(errors);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string rows(uint64_t n) {
    std::string text;
    for (; n > 0; --n)
      text += std::to_string(random_() % 100'000) + "\tvalue " + std::to_string(n) + "\n";
    return text;
  }
  // A load under this limit is there as a whole, or not at all. Returns its exit code.
  int load_after(const std::string& limit, const std::string& database, uint64_t n) {
    const std::string path = file("rows.tsv", rows(n));
    const std::string options = " --format tsv --on-duplicate last";
    const std::string expected_path = directory_ + "/expected";
    std::filesystem::remove_all(expected_path);
    std::filesystem::copy(database, expected_path);
    const std::string before = scan_of(database);
    const int code = run_after(limit, "load " + database + " t " + path + options);
    REQUIRE_MESSAGE(
        run({"load", expected_path, "t", path, "--format", "tsv", "--on-duplicate", "last"}) == 0,
        error_);
    const std::string told = error_;
    REQUIRE_MESSAGE(run({"verify", database}) == 0, error_);
    CHECK(scan_of(database) == (code == 0 ? scan_of(expected_path) : before));
    error_ = read(directory_ + "/errors");
    CHECK((code <= 0 || !error_.empty()));
    return code;
  }
  void load_some(const std::string& database, uint64_t n) {
    REQUIRE_MESSAGE(run({"load", database, "t", file("a.tsv", rows(n)), "--format", "tsv",
                         "--on-duplicate", "last"}) == 0,
                    error_);
  }
  std::string scan_of(const std::string& database) {
    REQUIRE_MESSAGE(run({"scan", database, "t"}) == 0, error_);
    return out_;
  }
  std::mt19937_64 random_{test::seed()};
};

TEST_CASE_METHOD(LimitsTest, "LimitsTest.FilesOfALimitedSize", "[LimitsTest]") {
  load_some(database_, 5000);
  int full = 0;
  for (int blocks = 1; blocks <= 1024; blocks *= 2) {
    const int code = load_after("ulimit -f " + std::to_string(blocks), database_, 20'000);
    full += code == 7;
    CHECK_MESSAGE((code == 0 || code == 7), blocks << ": " << code << " " << error_);
  }
  CHECK(full >= 5);
  CHECK(load_after("true", database_, 20'000) == 0);
}

TEST_CASE_METHOD(LimitsTest, "LimitsTest.FewDescriptors", "[LimitsTest]") {
  for (int i = 0; i < 4; ++i) load_some(database_, 1000);
  // Fewer than these and the loader of shared libraries ends the program before it begins.
  int fewest = 4;
  while (fewest < 20 && run_after("ulimit -n " + std::to_string(fewest), "version") != 0) ++fewest;
  int refused = 0;
  for (int descriptors = fewest; descriptors < 24; ++descriptors) {
    const int code = load_after("ulimit -n " + std::to_string(descriptors), database_, 1000);
    refused += code != 0;
    CHECK_MESSAGE((code == 0 || code == 1 || code == 7),
                  descriptors << ": " << code << " " << error_);
  }
  CHECK(refused >= 2);
  CHECK(load_after("true", database_, 1000) == 0);
}

// Processes that have so many bytes of memory together, where the user may make such a group.
class MemoryGroup {
 public:
  explicit MemoryGroup(uint64_t bytes) {
    const bool is_second = std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers");
    path_ = std::string(is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") + "/stride-test-" +
            std::to_string(getpid());
    std::error_code ignored;
    is_there_ = std::filesystem::create_directory(path_, ignored) &&
                write(is_second ? "memory.max" : "memory.limit_in_bytes", std::to_string(bytes));
    write(is_second ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
          is_second ? "0" : std::to_string(bytes));
    write("memory.oom.group", "1");
  }
  ~MemoryGroup() {
    for (int i = 0; i < 1000 && rmdir(path_.c_str()) != 0 && errno == EBUSY; ++i) {
      std::ifstream in(path_ + "/cgroup.procs");
      for (pid_t process; in >> process;) kill(process, SIGKILL);
      usleep(10'000);
    }
  }
  MemoryGroup(const MemoryGroup&) = delete;
  bool is_there() const { return is_there_; }
  // For the shell: goes into the group, as the one to be killed, beside others that fill most of
  // it.
  std::string enter() const {
    return "echo $$ > " + path_ +
           "/cgroup.procs; for i in 1 2 3; do (head -c 10M /dev/zero; "
           "sleep 2) | tail -c 10M & done; echo 1000 > /proc/self/oom_score_adj; sleep 0.3";
  }

 private:
  bool write(const std::string& name, const std::string& text) const {
    std::ofstream out(path_ + "/" + name);
    return static_cast<bool>(out << text << std::flush);
  }

  std::string path_;
  bool is_there_ = false;
};

TEST_CASE_METHOD(LimitsTest, "LimitsTest.AGroupOutOfMemory", "[LimitsTest]") {
  const MemoryGroup group(48 << 20);
  if (!group.is_there()) SKIP("this user may make no group");
  load_some(database_, 10'000);
  int killed = 0;
  for (int i = 0; i < 6; ++i) {
    const int code = load_after(group.enter(), database_, 100'000 + random_() % 200'000);
    CHECK_MESSAGE((code == 0 || code == 7 || code == -SIGKILL), code << " " << error_);
    killed += code == -SIGKILL;
  }
  CHECK(killed > 0);
}

// A disk of its own, where the user may have one.
class Disk {
 public:
  explicit Disk(std::string path, const char* size) : path_(std::move(path)) {
    std::filesystem::create_directory(path_);
    is_there_ =
        mount("tmpfs", path_.c_str(), "tmpfs", 0, (std::string("size=") + size).c_str()) == 0;
  }
  ~Disk() {
    if (is_there_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool is_there() const { return is_there_; }
  bool make_read_only() {
    return mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0;
  }

 private:
  std::string path_;
  bool is_there_;
};

TEST_CASE_METHOD(LimitsTest, "LimitsTest.AFullDisk", "[LimitsTest]") {
  const Disk disk(directory_ + "/disk", "4m");
  if (!disk.is_there()) SKIP("this user may mount nothing");
  const std::string database = directory_ + "/disk/db";
  const std::string other = directory_ + "/disk/other";
  const auto take_room = [&] { std::ofstream(other) << std::string(1 << 20, 'x'); };
  take_room();
  load_some(database, 1000);
  constexpr int enough = test::smaller_under_sanitizers(30, 1);  // loads that find it full
  int full = 0;
  for (int i = 0; i < 30 && full < enough; ++i) {
    const uint64_t fewest = test::under_sanitizer ? 10'000 : 1;
    const int code = load_after("true", database, fewest + random_() % 20'000);
    CHECK_MESSAGE((code == 0 || code == 7), code << " " << error_);
    full += code == 7;
    if (code != 7) continue;
    // Erasing rows that are in a log takes room in it. Dropping the table gives back what its
    // segments took, and may take a block of the manifest.
    const int erased = run_after("true", "delete " + database + " t --from 2");
    CHECK_MESSAGE((erased == 0 || erased == 7), erased << " " << error_);
    if (erased == 7) {
      const int dropped = run_after("true", "drop " + database + " t");
      CHECK_MESSAGE((dropped == 0 || dropped == 7), dropped << " " << error_);
      // Once there is some room, as the message asks for, all works.
      std::filesystem::remove(other);
      load_some(database, 100);
      REQUIRE_MESSAGE(run_after("true", "drop " + database + " t") == 0, error_);
      load_some(database, 100);
      REQUIRE_MESSAGE(run_after("true", "compact " + database) == 0, error_);
      take_room();
    }
    const int compacted = run_after("true", "compact " + database);
    CHECK_MESSAGE((compacted == 0 || compacted == 7), error_);
    REQUIRE_MESSAGE(run({"verify", database}) == 0, error_);
  }
  CHECK(full > 0);
}

TEST_CASE_METHOD(LimitsTest, "LimitsTest.ADiskThatBecomesReadOnly", "[LimitsTest]") {
  Disk disk(directory_ + "/disk", "8m");
  if (!disk.is_there()) SKIP("this user may mount nothing");
  const std::string database = directory_ + "/disk/db";
  load_some(database, 1000);
  const std::string before = scan_of(database);
  REQUIRE(disk.make_read_only());
  const std::string commands[] = {"put " + database + " t k v", "compact " + database,
                                  "drop " + database + " t"};
  for (const std::string& command : commands) {
    const int code = run_after("true", command);
    CHECK_MESSAGE((code == 1 || code == 5), command << ": " << code << " " << error_);
    CHECK_FALSE(error_.empty());
  }
  CHECK(scan_of(database) == before);
  CHECK(run({"verify", database}) == 0);
}

}  // namespace
}  // namespace stride::cli
