// A file system whose mapped files are not in memory until they have been fetched, and that says
// what was asked of them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/forwarding_file_system.h"

namespace stride::test {

inline constexpr uint64_t page_bytes = 4096;

// Thread-safe. Pages are told apart by their number alone: for tests of one mapped file.
class ColdLog {
 public:
  using Ranges = std::vector<FileRange>;

  bool probe(uint64_t offset) {
    std::lock_guard lock(mutex_);
    ++probes_;
    return warm_ || pages_.count(offset / page_bytes);
  }
  void hint(FileRange range) {
    std::lock_guard lock(mutex_);
    hints_.push_back(range);
  }
  Status fetch(std::span<const FileRange> ranges) {
    std::lock_guard lock(mutex_);
    fetches_.emplace_back(ranges.begin(), ranges.end());
    for (FileRange range : ranges) {
      if (fault_ && !fault_(range).ok()) return fault_(range);
      add(range);
    }
    return {};
  }

  // All pages are in memory, or none.
  void set_warm(bool warm) {
    std::lock_guard lock(mutex_);
    warm_ = warm;
    pages_.clear();
    order_.clear();
  }
  // The cache has so many pages; what is fetched first is dropped first.
  void set_capacity(uint64_t pages) { capacity_ = pages; }
  void set_fault(std::function<Status(FileRange)> fault) { fault_ = std::move(fault); }

  std::vector<Ranges> take_fetches() { return take(&fetches_); }
  Ranges take_hints() { return take(&hints_); }
  uint64_t take_probes() { return take(&probes_); }
  void add_random(int n) {
    std::lock_guard lock(mutex_);
    random_ += n;
  }
  int random() {
    std::lock_guard lock(mutex_);
    return random_;
  }
  bool has(uint64_t offset) {
    std::lock_guard lock(mutex_);
    return pages_.count(offset / page_bytes) != 0;
  }
  uint64_t pages() {
    std::lock_guard lock(mutex_);
    return pages_.size();
  }

 private:
  template <class T>
  T take(T* what) {
    std::lock_guard lock(mutex_);
    return std::exchange(*what, T());
  }
  void add(FileRange range) {
    uint64_t end = (range.offset + range.bytes + page_bytes - 1) / page_bytes;
    for (uint64_t page = range.offset / page_bytes; page < end; ++page) {
      if (pages_.insert(page).second) order_.push_back(page);
      if (pages_.size() <= capacity_) continue;
      pages_.erase(order_.front());
      order_.pop_front();
    }
  }

  std::mutex mutex_;
  bool warm_ = false;
  std::set<uint64_t> pages_;
  std::deque<uint64_t> order_;  // of their arrival
  uint64_t capacity_ = ~uint64_t{0};
  uint64_t probes_ = 0;
  int random_ = 0;
  std::vector<Ranges> fetches_;
  Ranges hints_;
  std::function<Status(FileRange)> fault_;
};

class ColdFiles final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  ColdLog& log() { return *log_; }

 private:
  class ColdMapping final : public Mapping {
   public:
    ColdMapping(std::shared_ptr<const Mapping> mapping, std::shared_ptr<ColdLog> log)
        : mapping_(std::move(mapping)), log_(std::move(log)) {
      bytes_ = mapping_->bytes();
    }
    bool in_memory(uint64_t offset) const override { return log_->probe(offset); }
    void will_need(FileRange range) const override { log_->hint(range); }
    Status fetch(std::span<const FileRange> ranges) const override { return log_->fetch(ranges); }
    void begin_random() const override { log_->add_random(1); }
    void end_random() const override { log_->add_random(-1); }

   private:
    std::shared_ptr<const Mapping> mapping_;
    std::shared_ptr<ColdLog> log_;
  };

  class ColdFile final : public ForwardingFile {
   public:
    ColdFile(std::unique_ptr<File> file, std::shared_ptr<ColdLog> log)
        : ForwardingFile(std::move(file)), log_(std::move(log)) {}
    Result<std::shared_ptr<const Mapping>> map() override {
      auto mapping = ForwardingFile::map();
      if (!mapping.ok()) return mapping.status();
      return std::shared_ptr<const Mapping>(new ColdMapping(std::move(*mapping), log_));
    }

   private:
    std::shared_ptr<ColdLog> log_;
  };

  std::unique_ptr<File> wrap(std::unique_ptr<File> file) override {
    return std::make_unique<ColdFile>(std::move(file), log_);
  }

  std::shared_ptr<ColdLog> log_ = std::make_shared<ColdLog>();
};

}  // namespace stride::test
