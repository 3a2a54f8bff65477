// A file system whose writes to segments wait at a gate, in front of another one.
//
//   GatedFileSystem gated(fs);
//   gated.shut();
//   ... a commit that does not wait for its writes ...
//   gated.open_gate();
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "storage/file.h"

namespace stride::test {

class GatedFileSystem final : public FileSystem {
 public:
  explicit GatedFileSystem(FileSystem& below) : below_(below) {}

  // After so many more writes to segments.
  void shut(uint64_t more = 0) {
    std::lock_guard lock(mutex_);
    open_for_ = more;
    passing_ = {};
  }
  // For all threads but this one.
  void shut_for_others() {
    shut();
    std::lock_guard lock(mutex_);
    passing_ = std::this_thread::get_id();
  }
  void open_gate() {
    std::lock_guard lock(mutex_);
    open_for_ = ~uint64_t{0};
    changed_.notify_all();
  }
  void wait_for_waiting(uint64_t writes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_for_ == 0 && waiting_ >= writes; });
  }
  uint64_t max_waiting() {
    std::lock_guard lock(mutex_);
    return max_waiting_;
  }
  // All that are not past the gate, to files with this in their path. Ok: none.
  void fail_writes(std::string part, Status outcome) {
    std::lock_guard lock(mutex_);
    failing_ = std::move(part);
    outcome_ = std::move(outcome);
  }

  Result<std::unique_ptr<stride::File>> open(const std::string& path, OpenMode mode) override {
    auto file = below_.open(path, mode);
    if (!file.ok()) return file.status();
    return std::unique_ptr<stride::File>(new File(*this, std::move(*file)));
  }
  Result<bool> exists(const std::string& path) override { return below_.exists(path); }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return below_.list(directory);
  }
  Result<std::vector<std::string>> create_directory(const std::string& path) override {
    return below_.create_directory(path);
  }
  Status remove(const std::string& path) override { return below_.remove(path); }
  Status remove_directory(const std::string& path) override {
    return below_.remove_directory(path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return below_.rename(from, to);
  }
  Status sync_directory(const std::string& directory) override {
    return below_.sync_directory(directory);
  }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return below_.lock(path);
  }

 private:
  class File final : public stride::File {
   public:
    File(GatedFileSystem& gate, std::unique_ptr<stride::File> below)
        : gate_(gate), below_(std::move(below)) {}
    const std::string& path() const override { return below_->path(); }
    Status read_at(uint64_t offset, std::span<std::byte> out) override {
      return below_->read_at(offset, out);
    }
    Status write_at(uint64_t offset, Bytes data) override {
      STRIDE_TRY(gate_.pass(path()));
      return below_->write_at(offset, data);
    }
    Status allocate(uint64_t bytes) override { return below_->allocate(bytes); }
    Status truncate(uint64_t bytes) override { return below_->truncate(bytes); }
    Status sync() override { return below_->sync(); }
    Result<uint64_t> size() override { return below_->size(); }
    Result<std::shared_ptr<const Mapping>> map() override { return below_->map(); }

   private:
    GatedFileSystem& gate_;
    std::unique_ptr<stride::File> below_;
  };

  Status pass(const std::string& path) {
    std::unique_lock lock(mutex_);
    if (path.ends_with(".seg") && passing_ != std::this_thread::get_id()) {
      max_waiting_ = std::max(max_waiting_, ++waiting_);
      changed_.notify_all();
      changed_.wait(lock, [&] { return open_for_ > 0; });
      --waiting_;
      if (open_for_ != ~uint64_t{0}) --open_for_;
    }
    return path.find(failing_) != std::string::npos ? outcome_ : Status();
  }

  FileSystem& below_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t open_for_ = ~uint64_t{0}, waiting_ = 0, max_waiting_ = 0;
  std::thread::id passing_;
  Status outcome_;
  std::string failing_;
};

}  // namespace stride::test
