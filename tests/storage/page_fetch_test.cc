// Bringing ranges of a file into the page cache, by io_uring and by threads.
#include "storage/page_fetch.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/test_threads.h"

namespace stride {
namespace {

constexpr uint64_t page = 4096;

class PageFetchTest {
 protected:
  const FetchBy way_ = GENERATE(FetchBy::anything, FetchBy::threads);
  test::RunsWith name_{way_ == FetchBy::threads ? "threads" : "anything"};

  static constexpr uint64_t pages = 4096;

  PageFetchTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fetch_test.XXXXXX").string();
    room_ = ::mkdtemp(pattern.data());
    path_ = room_ + "/a";
    std::string bytes(pages * page, 'x');
    auto file = FileSystem::posix().open(path_, OpenMode::create);
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->write_at(0, as_bytes(bytes)));
    REQUIRE_OK((*file)->sync());
    fd_ = ::open(path_.c_str(), O_RDWR);
    auto mapping = (*file)->map();
    REQUIRE_OK(mapping);
    mapping_ = *mapping;
  }
  ~PageFetchTest() {
    ::close(fd_);
    std::filesystem::remove_all(room_);
  }
  void evict() { ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED); }
  uint64_t in_memory() {
    uint64_t n = 0;
    for (uint64_t p = 0; p < pages; ++p) n += mapping_->in_memory(p * page);
    return n;
  }

  // The kernel may take any page back at any time, so one try of several must do.
  bool brings(const std::function<void()>& fetch, const std::function<bool()>& seen) {
    for (int attempt = 0; attempt < 10; ++attempt) {
      evict();
      fetch();
      if (seen()) return true;
    }
    return false;
  }

  std::string room_, path_;
  int fd_ = -1;
  std::shared_ptr<const Mapping> mapping_;
};

TEST_CASE_METHOD(PageFetchTest, "PageFetchTest.BringsTheRangesAndNothingElse", "[PageFetchTest]") {
  std::mt19937_64 random(test::seed());
  for (uint64_t n : {1, 3, 100, 1000}) {
    evict();
    if (in_memory() != 0) SKIP("pages cannot be evicted here, or not told apart");
    std::set<uint64_t> chosen;
    while (chosen.size() < n) chosen.insert(random() % pages);
    std::vector<FileRange> ranges;
    for (uint64_t p : chosen) ranges.push_back({p * page, page});
    auto fetch = [&] {
      Status s = fetch_pages(fd_, path_, ranges, way_);
      REQUIRE_OK(s);
    };
    CHECK_MESSAGE(brings(fetch,
                         [&] {
                           for (uint64_t p : chosen)
                             if (!mapping_->in_memory(p * page)) return false;
                           return in_memory() <= n + n / 10 + 1;
                         }),
                  n);
  }
}

TEST_CASE_METHOD(PageFetchTest, "PageFetchTest.ReadsLargeRangesWhole", "[PageFetchTest]") {
  FileRange ranges[] = {{100, 3 * fetch_piece_bytes + 1},
                        {fetch_piece_bytes * 8, fetch_piece_bytes * 100},
                        {pages * page - 1, 1},
                        {0, 0}};
  auto fetch = [&] {
    Status s = fetch_pages(fd_, path_, ranges, way_);
    REQUIRE_OK(s);
  };
  CHECK(brings(fetch, [&] {
    for (FileRange range : ranges)
      for (uint64_t at = range.offset; at < range.offset + range.bytes; at += page)
        if (!mapping_->in_memory(at)) return false;
    return true;
  }));
}

TEST_CASE_METHOD(PageFetchTest, "PageFetchTest.NoRangesNeedNoRead", "[PageFetchTest]") {
  CHECK_OK(fetch_pages(-1, "a", {}, way_));
}

TEST_CASE_METHOD(PageFetchTest, "PageFetchTest.AFileThatEndsEarlyIsCorruption", "[PageFetchTest]") {
  std::vector<FileRange> ranges;
  for (uint64_t p = 0; p < pages; p += 16) ranges.push_back({p * page, page});
  REQUIRE(::ftruncate(fd_, (pages - 8) * page) == 0);
  CHECK_OK(fetch_pages(fd_, path_, ranges, way_));
  REQUIRE(::ftruncate(fd_, (pages / 2) * page) == 0);
  Status s = fetch_pages(fd_, path_, ranges, way_);
  CHECK(s.code() == StatusCode::corruption);
  CHECK(s.file() == path_);
  CHECK(*s.offset() == pages / 2 * page);
  const FileRange whole{0, pages * page};
  REQUIRE(whole.bytes >= long_range_bytes);
  for (int again = 0; again < 20; ++again) {  // whichever of the threads comes first
    s = fetch_pages(fd_, path_, {&whole, 1}, way_);
    CHECK(s.code() == StatusCode::corruption);
    CHECK(*s.offset() == pages / 2 * page);
  }
}

TEST_CASE_METHOD(PageFetchTest, "PageFetchTest.ADescriptorThatCannotBeReadIsAnError",
                 "[PageFetchTest]") {
  std::vector<FileRange> ranges(200, FileRange{0, page});
  Status s = fetch_pages(-1, "a", ranges, way_);
  CHECK_MESSAGE(s.code() == StatusCode::io_error, s.to_string());
  const FileRange whole{0, pages * page};
  s = fetch_pages(-1, "a", {&whole, 1}, way_);
  CHECK_MESSAGE(s.code() == StatusCode::io_error, s.to_string());
  int folder = ::open(room_.c_str(), O_RDONLY | O_DIRECTORY);
  CHECK_FALSE(fetch_pages(folder, room_, {&whole, 1}, way_).ok());
  CHECK_FALSE(fetch_pages(folder, room_, ranges, way_).ok());
  ::close(folder);
}

TEST_CASE_METHOD(PageFetchTest, "PageFetchTest.ManyThreadsFetchAtOnce", "[PageFetchTest]") {
  auto fetch = [&] {
    test::TestThreads threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.start([&, t] {
        std::vector<FileRange> ranges;
        for (uint64_t p = t; p < pages; p += 3) ranges.push_back({p * page, page});
        CHECK_OK(fetch_pages(fd_, path_, ranges, way_));
      });
    }
    threads.join();
  };
  CHECK(brings(fetch, [&] { return in_memory() == pages; }));
}

TEST_CASE_METHOD(PageFetchTest, "PageFetchTest.AMappingFetchesWhatLiesInsideIt",
                 "[PageFetchTest]") {
  FileRange ranges[] = {{3 * page, page},
                        {(pages - 2) * page, uint64_t{1} << 62},
                        {uint64_t{1} << 63, uint64_t{1} << 63},
                        {pages * page, 5}};
  CHECK(brings([&] { CHECK_OK(mapping_->fetch(ranges)); },
               [&] {
                 return mapping_->in_memory(3 * page) && mapping_->in_memory((pages - 2) * page) &&
                        mapping_->in_memory((pages - 1) * page);
               }));
  CHECK(mapping_->in_memory(uint64_t{1} << 63));
  for (FileRange range : ranges) mapping_->will_need(range);
}

TEST_CASE_METHOD(PageFetchTest, "PageFetchTest.HintsReadInTheBackground", "[PageFetchTest]") {
  evict();
  if (in_memory() != 0) SKIP("pages cannot be evicted here, or not told apart");
  CHECK(brings(
      [&] {
        mapping_->will_need({page + 1, 300 * page});
      },
      [&] {
        uint64_t n = 0;
        for (int wait = 0; wait < 100 && n < 301; ++wait) {
          n = 0;
          for (uint64_t p = 1; p <= 301; ++p) n += mapping_->in_memory(p * page);
          if (n < 301) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return n == 301;
      }));
}

TEST_CASE("MappingTest.WithoutADescriptorFetchesAreHints", "[MappingTest]") {
  std::string path = (std::filesystem::temp_directory_path() / "fetch_test.few.").string() +
                     std::to_string(::getpid());
  auto file = FileSystem::posix().open(path, OpenMode::create);
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->write_at(0, as_bytes(std::string(page * 4, 'x'))));
  struct rlimit before;
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  struct rlimit few = before;
  few.rlim_cur = 8;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  auto mapping = (*file)->map();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE_OK(mapping);
  FileRange all{0, page * 4};
  CHECK_OK((*mapping)->fetch({&all, 1}));
  CHECK((*mapping)->bytes()[page * 4 - 1] == std::byte{'x'});
  CHECK_OK(FileSystem::posix().remove(path));
}

TEST_CASE("MappingTest.AFileInMemoryIsAlwaysThere", "[MappingTest]") {
  MemoryFileSystem fs;
  auto file = fs.open("a", OpenMode::create);
  REQUIRE_OK((*file)->write_at(0, as_bytes("hello")));
  auto mapping = (*file)->map();
  CHECK((*mapping)->in_memory(0));
  FileRange all{0, 5};
  (*mapping)->will_need(all);
  CHECK_OK((*mapping)->fetch({&all, 1}));
}

}  // namespace
}  // namespace stride
