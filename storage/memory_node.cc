#include "storage/memory_node.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/memory_file_system.h"

namespace stride {

namespace {

constexpr uint64_t sector_bytes = 512;

class MemoryMapping final : public Mapping {
 public:
  explicit MemoryMapping(std::shared_ptr<const AlignedBytes> bytes) : owner_(std::move(bytes)) {
    bytes_ = {owner_->data(), owner_->size()};
  }

 private:
  std::shared_ptr<const AlignedBytes> owner_;
};

void write_to(AlignedBytes* bytes, uint64_t offset, Bytes data) {
  if (data.empty()) return;
  if (bytes->size() < offset + data.size()) bytes->resize(offset + data.size());
  std::memcpy(bytes->data() + offset, data.data(), data.size());
}

}  // namespace

MemoryNode::MemoryNode(bool crashable)
    : crashable_(crashable), now_(std::make_shared<AlignedBytes>()) {}

AlignedBytes& MemoryNode::writable() {
  if (now_.use_count() > 1) now_ = std::make_shared<AlignedBytes>(*now_);
  return *now_;
}

void MemoryNode::write(uint64_t offset, Bytes data) {
  write_to(&writable(), offset, data);
  if (crashable_) unsynced_.push_back({offset, {data.begin(), data.end()}, false});
}

void MemoryNode::resize(uint64_t bytes) {
  writable().resize(bytes);
  if (crashable_) unsynced_.push_back({bytes, {}, true});
}

void MemoryNode::apply(const Change& change, AlignedBytes* bytes) {
  if (change.resizes) {
    bytes->resize(change.offset);
  } else {
    write_to(bytes, change.offset, change.data);
  }
}

void MemoryNode::apply_torn(const Change& change, std::mt19937_64& random, AlignedBytes* bytes) {
  if (change.resizes) return random() % 2 ? apply(change, bytes) : void();
  Bytes data = change.data;
  if (random() % 2) {
    return write_to(bytes, change.offset, data.first(random() % (data.size() + 1)));
  }
  for (uint64_t at = 0; at < data.size();) {
    uint64_t sector_end = (change.offset + at) / sector_bytes * sector_bytes + sector_bytes;
    uint64_t part = std::min(data.size() - at, sector_end - change.offset - at);
    if (random() % 2) write_to(bytes, change.offset + at, data.subspan(at, part));
    at += part;
  }
}

void MemoryNode::sync() {
  for (const Change& change : unsynced_) apply(change, &stable_);
  unsynced_.clear();
}

void MemoryNode::fail_sync(std::mt19937_64& random) {
  for (const Change& change : unsynced_) {
    if (random() % 2) apply(change, &stable_);
  }
  unsynced_.clear();
}

std::shared_ptr<const Mapping> MemoryNode::map() const {
  return std::make_shared<MemoryMapping>(now_);
}

std::shared_ptr<MemoryNode> MemoryNode::crash(std::mt19937_64& random, CrashPolicy policy) const {
  auto node = std::make_shared<MemoryNode>(crashable_);
  AlignedBytes& bytes = *node->now_;
  bytes = crashable_ ? stable_ : *now_;
  enum { nothing, everything, prefix, any };
  int kept = policy == CrashPolicy::lose_unsynced   ? nothing
             : policy == CrashPolicy::keep_unsynced ? everything
                                                    : static_cast<int>(random() % 4);
  size_t whole = kept == everything ? unsynced_.size()
                 : kept == prefix   ? random() % (unsynced_.size() + 1)
                                    : 0;
  for (size_t i = 0; i < whole; ++i) apply(unsynced_[i], &bytes);
  if (kept == prefix && whole < unsynced_.size()) apply_torn(unsynced_[whole], random, &bytes);
  for (size_t i = 0; kept == any && i < unsynced_.size(); ++i) {
    switch (random() % 3) {
      case 0:
        apply(unsynced_[i], &bytes);
        break;
      case 1:
        apply_torn(unsynced_[i], random, &bytes);
        break;
      default:
        break;
    }
  }
  if (crashable_) node->stable_ = bytes;
  return node;
}

}  // namespace stride
