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

#include "tests/support/forwarding_file_system.h"

namespace stride::test {

class GatedFileSystem final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

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

 private:
  class GatedFile final : public ForwardingFile {
   public:
    GatedFile(GatedFileSystem& gate, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), gate_(gate) {}
    Status write_at(uint64_t offset, Bytes data) override {
      STRIDE_TRY(gate_.pass(path()));
      return ForwardingFile::write_at(offset, data);
    }

   private:
    GatedFileSystem& gate_;
  };

  std::unique_ptr<File> wrap(std::unique_ptr<File> file) override {
    return std::make_unique<GatedFile>(*this, std::move(file));
  }
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

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t open_for_ = ~uint64_t{0}, waiting_ = 0, max_waiting_ = 0;
  std::thread::id passing_;
  Status outcome_;
  std::string failing_;
};

}  // namespace stride::test
