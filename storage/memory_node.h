// One file of a MemoryFileSystem: its bytes, and which of them are on stable storage. Internal to
// storage; the file system's mutex guards it.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "storage/column.h"
#include "storage/file.h"

namespace stride {

enum class CrashPolicy : uint8_t;

// Bytes that start at a multiple of 64, so that columns in them are aligned as in a mapped file.
class AlignedBytes {
 public:
  uint64_t size() const { return size_; }
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(lines_.data()); }
  void resize(uint64_t bytes);  // zeros where it grows

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  uint64_t size_ = 0;
};

class MemoryNode {
 public:
  explicit MemoryNode(bool crashable);

  uint64_t size() const { return now_->size(); }
  Bytes bytes() const { return {now_->data(), now_->size()}; }
  void write(uint64_t offset, Bytes data);
  void resize(uint64_t bytes);
  void sync();
  // Some changes get to stable storage, the others never will.
  void fail_sync(std::mt19937_64& random);
  std::shared_ptr<const Mapping> map() const;
  // What is on stable storage after a power loss, as a new file.
  std::shared_ptr<MemoryNode> crash(std::mt19937_64& random, CrashPolicy policy) const;

 private:
  struct Change {
    uint64_t offset;
    std::vector<std::byte> data;
    bool resizes;  // to `offset` bytes
  };
  static void apply(const Change& change, AlignedBytes* bytes);
  static void apply_torn(const Change& change, std::mt19937_64& random, AlignedBytes* bytes);
  AlignedBytes& writable();

  bool crashable_;
  std::shared_ptr<AlignedBytes> now_;  // shared with mappings, and copied before a change then
  AlignedBytes stable_;                // where crashable
  std::vector<Change> unsynced_;
};

}  // namespace stride
