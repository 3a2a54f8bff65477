// A file system whose syncs take a while, as those of disks do, in front of another one: so that
// commits gather while one of them is synced.
//
//   SlowFileSystem slow(memory, std::chrono::microseconds(200));
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/forwarding_file_system.h"

namespace stride::test {

class SlowFileSystem final : public ForwardingFileSystem {
 public:
  SlowFileSystem(FileSystem& below, std::chrono::microseconds sync)
      : ForwardingFileSystem(below), sync_(sync) {}

  Status sync_directory(const std::string& directory) override {
    std::this_thread::sleep_for(sync_);
    return below().sync_directory(directory);
  }

 private:
  class SlowFile final : public ForwardingFile {
   public:
    SlowFile(std::unique_ptr<File> below, std::chrono::microseconds sync)
        : ForwardingFile(std::move(below)), sync_(sync) {}
    Status sync() override {
      std::this_thread::sleep_for(sync_);
      return ForwardingFile::sync();
    }

   private:
    const std::chrono::microseconds sync_;
  };

  std::unique_ptr<File> wrap(std::unique_ptr<File> file) override {
    return std::make_unique<SlowFile>(std::move(file), sync_);
  }

  const std::chrono::microseconds sync_;
};

}  // namespace stride::test
