// A fresh directory for one database, removed with all that is in it.
#pragma once

#include <cstdint>
#include <string>

#include "storage/status.h"

namespace stride::benchmark {

class ScratchDirectory {
 public:
  // Makes parent (if it is not there) and a new directory in it. Waits until what earlier work left
  // unwritten in that file system is on the disk.
  static Result<ScratchDirectory> create(const std::string& parent, const std::string& name);
  ScratchDirectory(ScratchDirectory&& other) noexcept;
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  const std::string& path() const { return path_; }
  // Adds up all files: the blocks that they take, or their length where that is less.
  uint64_t bytes() const;

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace stride::benchmark
