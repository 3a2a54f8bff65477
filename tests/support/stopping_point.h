// Holds a commit that is watched at the n-th call that it makes of its file system or backend,
// until somebody stops it.
//
//   StoppingPoint point;
//   StoppableFiles files(below, point);
//   options.file_system = &files;
//   options.shared_backend = std::make_shared<StoppableBackend>(2, point);
//   point.hold_at(17);
//   Status s = t.commit({.progress = [&](const CommitProgress&) { return !point.is_reached(); }});
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "storage/work_watch.h"
#include "tests/support/forwarding_backend.h"
#include "tests/support/forwarding_file_system.h"

namespace stride::test {

class StoppingPoint {
 public:
  // The n-th call from now; 0: none, and one that is held goes on. Until a commit begins, calls do
  // not count.
  void hold_at(uint64_t n) {
    std::lock_guard lock(mutex_);
    watch_.reset();
    left_ = n;
    reached_ = false;
    ++orders_;
  }
  bool is_reached() const { return reached_; }

  void pass() {
    std::shared_ptr<WorkWatch> watch;
    uint64_t order;
    {
      std::lock_guard lock(mutex_);
      // Threads that write files come behind the one that is watched.
      if (WorkWatch* here = WorkWatch::current()) watch_ = here->shared_from_this();
      if (!watch_ || left_ == 0 || --left_ > 0) return;
      watch = watch_;
      order = orders_;
      reached_ = true;
    }
    while (!watch->is_stopped() && orders_ == order)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

 private:
  std::atomic<bool> reached_{false};
  std::atomic<uint64_t> orders_{0};
  std::mutex mutex_;  // guards what follows
  std::shared_ptr<WorkWatch> watch_;
  uint64_t left_ = 0;
};

class StoppableFiles final : public ForwardingFileSystem {
 public:
  StoppableFiles(FileSystem& below, StoppingPoint& point)
      : ForwardingFileSystem(below), point_(point) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    point_.pass();
    return ForwardingFileSystem::open(path, mode);
  }
  Status sync_directory(const std::string& directory) override {
    point_.pass();
    return ForwardingFileSystem::sync_directory(directory);
  }

 private:
  class StoppableFile final : public ForwardingFile {
   public:
    StoppableFile(std::unique_ptr<File> below, StoppingPoint& point)
        : ForwardingFile(std::move(below)), point_(point) {}
    Status write_at(uint64_t offset, Bytes data) override {
      point_.pass();
      return ForwardingFile::write_at(offset, data);
    }
    Status allocate(uint64_t bytes) override {
      point_.pass();
      return ForwardingFile::allocate(bytes);
    }
    Status sync() override {
      point_.pass();
      return ForwardingFile::sync();
    }

   private:
    StoppingPoint& point_;
  };

  std::unique_ptr<File> wrap(std::unique_ptr<File> file) override {
    return std::make_unique<StoppableFile>(std::move(file), point_);
  }

  StoppingPoint& point_;
};

class StoppableBackend final : public ForwardingBackend {
 public:
  StoppableBackend(unsigned threads, StoppingPoint& point)
      : ForwardingBackend(Backend::host(threads)),
        point_(point),
        sorter_(to_->sorter(), point),
        tree_index_(to_->tree_index(), point) {}

  Sorter& sorter() override { return sorter_; }
  TreeIndex& tree_index() override { return tree_index_; }
  void parallel_for(uint64_t n, uint64_t grain,
                    const std::function<void(uint64_t, uint64_t)>& body) override {
    point_.pass();
    to_->parallel_for(n, grain, body);
  }

 private:
  class StoppableSorter final : public Sorter {
   public:
    StoppableSorter(Sorter& to, StoppingPoint& point) : to_(to), point_(point) {}
    Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) override {
      point_.pass();
      return to_.sort(chunks, sorted);
    }

   private:
    Sorter& to_;
    StoppingPoint& point_;
  };
  class StoppableTreeIndex final : public ForwardingTreeIndex {
   public:
    StoppableTreeIndex(TreeIndex& to, StoppingPoint& point)
        : ForwardingTreeIndex(to, to.access_costs()), point_(point) {}
    Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                      std::vector<std::byte>* image) override {
      point_.pass();
      return to_.build_tree(keys, options, image);
    }
    Status find_blocks(std::span<const IndexView> indexes, const KeyColumn& queries,
                       const TakeLocations& take) override {
      point_.pass();
      return to_.find_blocks(indexes, queries, take);
    }

   private:
    StoppingPoint& point_;
  };

  StoppingPoint& point_;
  StoppableSorter sorter_;
  StoppableTreeIndex tree_index_;
};

}  // namespace stride::test
