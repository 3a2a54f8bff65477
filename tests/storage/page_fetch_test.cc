// Bringing ranges of a file into the page cache, by io_uring and by threads.
#include "storage/page_fetch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
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
#include "tests/support/printed_seed.h"

namespace stride {
namespace {

constexpr uint64_t page = 4096;

class PageFetchTest : public testing::TestWithParam<FetchBy> {
 protected:
  static constexpr uint64_t pages = 4096;

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "fetch_test.XXXXXX").string();
    room_ = ::mkdtemp(pattern.data());
    path_ = room_ + "/a";
    std::string bytes(pages * page, 'x');
    auto file = FileSystem::posix().open(path_, OpenMode::create);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->write_at(0, as_bytes(bytes)).ok());
    ASSERT_TRUE((*file)->sync().ok());
    fd_ = ::open(path_.c_str(), O_RDWR);
    auto mapping = (*file)->map();
    ASSERT_TRUE(mapping.ok());
    mapping_ = *mapping;
  }
  void TearDown() override {
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
      if (HasFatalFailure()) return false;
      if (seen()) return true;
    }
    return false;
  }

  std::string room_, path_;
  int fd_ = -1;
  std::shared_ptr<const Mapping> mapping_;
};

TEST_P(PageFetchTest, BringsTheRangesAndNothingElse) {
  std::mt19937_64 random(test::seed());
  for (uint64_t n : {1, 3, 100, 1000}) {
    evict();
    if (in_memory() != 0) GTEST_SKIP() << "pages cannot be evicted here, or not told apart";
    std::set<uint64_t> chosen;
    while (chosen.size() < n) chosen.insert(random() % pages);
    std::vector<FileRange> ranges;
    for (uint64_t p : chosen) ranges.push_back({p * page, page});
    auto fetch = [&] {
      Status s = fetch_pages(fd_, path_, ranges, GetParam());
      ASSERT_TRUE(s.ok()) << s.to_string();
    };
    EXPECT_TRUE(brings(fetch, [&] {
      for (uint64_t p : chosen)
        if (!mapping_->in_memory(p * page)) return false;
      return in_memory() <= n + n / 10 + 1;
    })) << n;
  }
}

TEST_P(PageFetchTest, ReadsLargeRangesWhole) {
  FileRange ranges[] = {{100, 3 * fetch_piece_bytes + 1},
                        {fetch_piece_bytes * 8, fetch_piece_bytes * 100},
                        {pages * page - 1, 1},
                        {0, 0}};
  auto fetch = [&] {
    Status s = fetch_pages(fd_, path_, ranges, GetParam());
    ASSERT_TRUE(s.ok()) << s.to_string();
  };
  EXPECT_TRUE(brings(fetch, [&] {
    for (FileRange range : ranges)
      for (uint64_t at = range.offset; at < range.offset + range.bytes; at += page)
        if (!mapping_->in_memory(at)) return false;
    return true;
  }));
}

TEST_P(PageFetchTest, NoRangesNeedNoRead) {
  EXPECT_TRUE(fetch_pages(-1, "a", {}, GetParam()).ok());
}

TEST_P(PageFetchTest, AFileThatEndsEarlyIsCorruption) {
  std::vector<FileRange> ranges;
  for (uint64_t p = 0; p < pages; p += 16) ranges.push_back({p * page, page});
  ASSERT_EQ(::ftruncate(fd_, (pages - 8) * page), 0);
  EXPECT_TRUE(fetch_pages(fd_, path_, ranges, GetParam()).ok());
  ASSERT_EQ(::ftruncate(fd_, (pages / 2) * page), 0);
  Status s = fetch_pages(fd_, path_, ranges, GetParam());
  EXPECT_EQ(s.code(), StatusCode::corruption);
  EXPECT_EQ(s.file(), path_);
  EXPECT_GE(*s.offset(), pages / 2 * page);
}

TEST_P(PageFetchTest, ADescriptorThatCannotBeReadIsAnError) {
  std::vector<FileRange> ranges(200, FileRange{0, page});
  Status s = fetch_pages(-1, "a", ranges, GetParam());
  EXPECT_EQ(s.code(), StatusCode::io_error) << s.to_string();
  int folder = ::open(room_.c_str(), O_RDONLY | O_DIRECTORY);
  EXPECT_FALSE(fetch_pages(folder, room_, ranges, GetParam()).ok());
  ::close(folder);
}

TEST_P(PageFetchTest, ManyThreadsFetchAtOnce) {
  auto fetch = [&] {
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::vector<FileRange> ranges;
        for (uint64_t p = t; p < pages; p += 3) ranges.push_back({p * page, page});
        EXPECT_TRUE(fetch_pages(fd_, path_, ranges, GetParam()).ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  EXPECT_TRUE(brings(fetch, [&] { return in_memory() == pages; }));
}

TEST_P(PageFetchTest, AMappingFetchesWhatLiesInsideIt) {
  FileRange ranges[] = {{3 * page, page},
                        {(pages - 2) * page, uint64_t{1} << 62},
                        {uint64_t{1} << 63, uint64_t{1} << 63},
                        {pages * page, 5}};
  EXPECT_TRUE(brings([&] { EXPECT_TRUE(mapping_->fetch(ranges).ok()); },
                     [&] {
                       return mapping_->in_memory(3 * page) &&
                              mapping_->in_memory((pages - 2) * page) &&
                              mapping_->in_memory((pages - 1) * page);
                     }));
  EXPECT_TRUE(mapping_->in_memory(uint64_t{1} << 63));
  for (FileRange range : ranges) mapping_->will_need(range);
}

TEST_P(PageFetchTest, HintsReadInTheBackground) {
  evict();
  if (in_memory() != 0) GTEST_SKIP() << "pages cannot be evicted here, or not told apart";
  EXPECT_TRUE(brings(
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

INSTANTIATE_TEST_SUITE_P(Ways, PageFetchTest, testing::Values(FetchBy::anything, FetchBy::threads),
                         [](const auto& way) {
                           return way.param == FetchBy::threads ? "threads" : "anything";
                         });

TEST(MappingTest, WithoutADescriptorFetchesAreHints) {
  std::string path = (std::filesystem::temp_directory_path() / "fetch_test.few.").string() +
                     std::to_string(::getpid());
  auto file = FileSystem::posix().open(path, OpenMode::create);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->write_at(0, as_bytes(std::string(page * 4, 'x'))).ok());
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit few = before;
  few.rlim_cur = 8;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  auto mapping = (*file)->map();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(mapping.ok());
  FileRange all{0, page * 4};
  EXPECT_TRUE((*mapping)->fetch({&all, 1}).ok());
  EXPECT_EQ((*mapping)->bytes()[page * 4 - 1], std::byte{'x'});
  EXPECT_TRUE(FileSystem::posix().remove(path).ok());
}

TEST(MappingTest, AFileInMemoryIsAlwaysThere) {
  MemoryFileSystem fs;
  auto file = fs.open("a", OpenMode::create);
  ASSERT_TRUE((*file)->write_at(0, as_bytes("hello")).ok());
  auto mapping = (*file)->map();
  EXPECT_TRUE((*mapping)->in_memory(0));
  FileRange all{0, 5};
  (*mapping)->will_need(all);
  EXPECT_TRUE((*mapping)->fetch({&all, 1}).ok());
}

}  // namespace
}  // namespace stride
