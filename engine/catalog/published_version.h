// The current version, which many threads take at once and which is replaced rarely.
//
//   PublishedVersion published(first);
//   std::shared_ptr<const Version> version = published.get(&commit);   // any thread
//   published.set(next);                                               // from now on it is got
//
// One pointer for all would let every thread wait for the same cache lines: those of its lock and
// of its count of references. Therefore there are several shards, each with a lock and a count of
// its own, and a thread always uses the same one. set() holds the locks of all shards while it
// replaces the version: once a thread has got the new version, no thread gets the old one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/catalog/version.h"

namespace stride {

// Thread-safe.
class PublishedVersion {
 public:
  explicit PublishedVersion(std::shared_ptr<const Version> version) noexcept
      : version_(std::move(version)) {}

  std::shared_ptr<const Version> get() const noexcept;
  // The same, and the last commit of its memtable that readers may see; 0: there is none. Both are
  // of one moment: what is published in the memtable after a later version is not part of it.
  std::shared_ptr<const Version> get(uint32_t* commit) const noexcept;
  void set(std::shared_ptr<const Version> version) noexcept {
    set(std::move(version), [] {});
  }
  // The same, and calls publish(), which may publish commits of its memtable, at the same moment.
  template <class Publish>
  void set(std::shared_ptr<const Version> version, const Publish& publish) noexcept {
    // Released after the locks: they may be the last pins of files.
    std::array<std::shared_ptr<const Version>, shard_count> old;
    for (Shard& shard : shards_) shard.mutex.lock();
    {
      std::lock_guard guard(mutex_);
      version_.swap(version);
      publish();
    }
    for (size_t i = 0; i < shard_count; ++i) old[i].swap(shards_[i].version);
    for (Shard& shard : shards_) shard.mutex.unlock();
  }

 private:
  static constexpr size_t shard_count = 16;
  struct alignas(64) Shard {
    std::mutex mutex;  // held only to copy or replace the pointer
    // The version, with a count of references of its own. Null: nobody has asked for it here.
    std::shared_ptr<const Version> version;
  };
  Shard& shard_of_this_thread() const noexcept;
  // Requires the shard's lock.
  std::shared_ptr<const Version> take(Shard& shard) const noexcept;

  mutable std::mutex mutex_;  // guards version_; after a shard's
  std::shared_ptr<const Version> version_;
  mutable std::array<Shard, shard_count> shards_;
};

}  // namespace stride
