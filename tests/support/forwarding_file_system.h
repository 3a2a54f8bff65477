// The bases of file systems for tests that stand in front of another one and change some calls.
//
//   class Slow final : public ForwardingFileSystem {
//     using ForwardingFileSystem::ForwardingFileSystem;
//     Status remove(const std::string& path) override { pause(); return below().remove(path); }
//   };
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "storage/file.h"

namespace stride::test {

class ForwardingFile : public File {
 public:
  explicit ForwardingFile(std::unique_ptr<File> below) : below_(std::move(below)) {}

  const std::string& path() const override { return below_->path(); }
  Status read_at(uint64_t offset, std::span<std::byte> out) override {
    return below_->read_at(offset, out);
  }
  Status write_at(uint64_t offset, Bytes data) override { return below_->write_at(offset, data); }
  Status allocate(uint64_t bytes) override { return below_->allocate(bytes); }
  Status truncate(uint64_t bytes) override { return below_->truncate(bytes); }
  Status sync() override { return below_->sync(); }
  Result<uint64_t> size() override { return below_->size(); }
  Result<std::shared_ptr<const Mapping>> map() override { return below_->map(); }
  bool is_in_place() const override { return below_->is_in_place(); }

 private:
  std::unique_ptr<File> below_;
};

class ForwardingFileSystem : public FileSystem {
 public:
  // below: must outlive this.
  explicit ForwardingFileSystem(FileSystem& below) : below_(below) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    auto file = below_.open(path, mode);
    if (!file.ok()) return file.status();
    return wrap(std::move(*file));
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
  Status link(const std::string& from, const std::string& to) override {
    return below_.link(from, to);
  }
  Status sync_directory(const std::string& directory) override {
    return below_.sync_directory(directory);
  }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    return below_.lock(path);
  }
  Result<bool> is_locked(const std::string& path) override { return below_.is_locked(path); }

 protected:
  FileSystem& below() const { return below_; }
  // What callers get in place of a file that was opened.
  virtual std::unique_ptr<File> wrap(std::unique_ptr<File> file) { return file; }

 private:
  FileSystem& below_;
};

}  // namespace stride::test
