// One file of a MemoryFileSystem: its bytes, and which of them are on stable storage. Internal to
// storage; the file system's mutex guards it.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "storage/aligned_bytes.h"
#include "storage/column.h"
#include "storage/file.h"

namespace stride {

enum class CrashPolicy : uint8_t;

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
