// What happens where a process has as many memory mappings as it may.
#include "storage/map_limit.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "storage/file.h"
#include "storage/reserved_memory.h"
#include "tests/support/catch.h"

namespace stride {
namespace {

uint64_t max_mappings() {
  uint64_t max = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> max;
  return max;
}

uint64_t mappings_now() {
  std::ifstream maps("/proc/self/maps");
  using Iterator = std::istreambuf_iterator<char>;
  return static_cast<uint64_t>(std::count(Iterator(maps), Iterator(), '\n'));
}

TEST_CASE("MapLimitTest.SmallFilesLeaveHalfOfTheMappings", "[MapLimitTest]") {
  const uint64_t max = max_mappings();
  if (max == 0 || max > 200'000) SKIP("the limit is " << max << " here");
  std::string path =
      std::filesystem::temp_directory_path() / ("map_limit_test." + std::to_string(::getpid()));
  auto file = FileSystem::posix().open(path, OpenMode::create);
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->write_at(0, as_bytes("twelve bytes")));
  std::vector<std::shared_ptr<const Mapping>> mappings;
  for (uint64_t i = 0; i < max / 2 + 1000; ++i) {
    auto mapping = (*file)->map();
    REQUIRE_MESSAGE(mapping.ok(), i << ": " << mapping.status().to_string());
    REQUIRE(as_text((*mapping)->bytes()) == "twelve bytes");
    mappings.push_back(std::move(*mapping));
  }
  CHECK(mappings_now() < max / 2 + 500);
  CHECK_OK(mappings.back()->fetch(std::vector<FileRange>{{0, 12}}));
  CHECK(reinterpret_cast<uintptr_t>(mappings.back()->bytes().data()) % 64 == 0u);
  mappings.clear();
  CHECK(mappings_now() < max / 10);
  CHECK_OK(FileSystem::posix().remove(path));
}

TEST_CASE("MapLimitTest.SaysThatMappingsAreUsedUp", "[MapLimitTest]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  SKIP("a sanitizer needs mappings of its own");
#endif
  const uint64_t max = max_mappings();
  if (max == 0 || max > 200'000) SKIP("the limit is " << max << " here");
  std::vector<void*> used;
  used.reserve(max);
  Status room = ReservedMemory::reserve(1 << 20).status();
  // Neighbours of different protection are not joined.
  for (int protection = PROT_READ;; protection ^= PROT_READ) {
    void* p = ::mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) break;
    used.push_back(p);
  }
  Status none = ReservedMemory::reserve(1 << 20).status();
  for (void* p : used) ::munmap(p, 4096);
  CHECK_OK(room);
  CHECK_MESSAGE(none.code() == StatusCode::resource_exhausted, none.to_string());
  CHECK_MESSAGE(none.message().find("vm.max_map_count") != std::string::npos, none.to_string());
  CHECK_MESSAGE(none.message().find(std::to_string(max)) != std::string::npos, none.to_string());
  CHECK_MESSAGE(none.remedy().find("compact") != std::string::npos, none.to_string());
}

TEST_CASE("MapLimitTest.SaysThatAddressSpaceIsUsedUp", "[MapLimitTest]") {
  Status s = ReservedMemory::reserve(uint64_t{1} << 62).status();
  CHECK(s.code() == StatusCode::resource_exhausted);
  CHECK_MESSAGE(s.remedy().find("ulimit -v") != std::string::npos, s.to_string());
}

}  // namespace
}  // namespace stride
