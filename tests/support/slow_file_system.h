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
#include <vector>

#include "storage/file.h"

namespace stride::test {

class SlowFileSystem final : public FileSystem {
 public:
  SlowFileSystem(FileSystem& below, std::chrono::microseconds sync) : below_(below), sync_(sync) {}

  Result<std::unique_ptr<stride::File>> open(const std::string& path, OpenMode mode) override {
    auto file = below_.open(path, mode);
    if (!file.ok()) return file.status();
    return std::unique_ptr<stride::File>(new File(std::move(*file), sync_));
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
    std::this_thread::sleep_for(sync_);
    return below_.sync_directory(directory);
  }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return below_.lock(path);
  }

 private:
  class File final : public stride::File {
   public:
    File(std::unique_ptr<stride::File> below, std::chrono::microseconds sync)
        : below_(std::move(below)), sync_(sync) {}
    const std::string& path() const override { return below_->path(); }
    Status read_at(uint64_t offset, std::span<std::byte> out) override {
      return below_->read_at(offset, out);
    }
    Status write_at(uint64_t offset, Bytes data) override { return below_->write_at(offset, data); }
    Status allocate(uint64_t bytes) override { return below_->allocate(bytes); }
    Status truncate(uint64_t bytes) override { return below_->truncate(bytes); }
    Status sync() override {
      std::this_thread::sleep_for(sync_);
      return below_->sync();
    }
    Result<uint64_t> size() override { return below_->size(); }
    Result<std::shared_ptr<const Mapping>> map() override { return below_->map(); }

   private:
    std::unique_ptr<stride::File> below_;
    const std::chrono::microseconds sync_;
  };

  FileSystem& below_;
  const std::chrono::microseconds sync_;
};

}  // namespace stride::test
