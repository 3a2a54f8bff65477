#include "storage/system_memory.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/catch.h"

namespace stride::test {
namespace {

namespace fs = std::filesystem;

class SystemMemoryTest {
 protected:
  SystemMemoryTest() {
    std::string name = (fs::temp_directory_path() / "stride_memory_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root_ = name;
  }
  ~SystemMemoryTest() { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  uint64_t limit() const { return cgroup_memory_limit(root_ / "self", root_ / "mount"); }

  static constexpr uint64_t none = ~uint64_t{0};
  fs::path root_;
};

}  // namespace

TEST_CASE_METHOD(SystemMemoryTest, "SystemMemoryTest.TheSmallestLimitOfAllGroupsAroundCounts",
                 "[SystemMemoryTest]") {
  CHECK(limit() == none);  // there is no such system
  write("self", "0::/a/b/c\n");
  CHECK(limit() == none);
  write("mount/a/b/c/memory.max", "max\n");
  CHECK(limit() == none);
  write("mount/a/b/memory.max", "3000000\n");
  CHECK(limit() == 3'000'000);
  write("mount/a/memory.max", "2000000\n");
  CHECK(limit() == 2'000'000);
  write("mount/a/b/c/memory.max", "4000000\n");
  CHECK(limit() == 2'000'000);
  write("mount/a/b/c/memory.max", "1000000\n");
  CHECK(limit() == 1'000'000);
}

TEST_CASE_METHOD(SystemMemoryTest, "SystemMemoryTest.AContainerSeesItsOwnGroupAtTheMount",
                 "[SystemMemoryTest]") {
  write("self", "0::/\n");
  write("mount/memory.max", "5000000\n");
  CHECK(limit() == 5'000'000);
  write("self", "0::/docker/elsewhere\n");
  CHECK(limit() == 5'000'000);
}

TEST_CASE_METHOD(SystemMemoryTest, "SystemMemoryTest.VersionOneHasAFolderForEachController",
                 "[SystemMemoryTest]") {
  write("self", "12:cpu,cpuacct:/x\n4:memory:/job/1\n1:name=systemd:/\n0::/\n");
  write("mount/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(limit() == 9'223'372'036'854'771'712U);
  write("mount/memory/job/memory.limit_in_bytes", "7000000\n");
  CHECK(limit() == 7'000'000);
  write("mount/cpu/x/memory.limit_in_bytes", "1\n");
  CHECK(limit() == 7'000'000);
  write("self", "4:hugetlb,memory:/job/1\n");
  CHECK(limit() == 7'000'000);
  write("self", "4:hugetlb:/job/1\nnonsense\n:\n::\n5:memory\n");
  CHECK(limit() == none);
}

TEST_CASE("SystemMemoryTest.ItIsNoMoreThanTheMachineHas", "[SystemMemoryTest]") {
  const auto machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  CHECK(system_memory_bytes() <= machine);
  CHECK(system_memory_bytes() > 1 << 20);
}

}  // namespace stride::test
