#include "engine/catalog/published_version.h"

#include <new>
#include <utility>

#include "engine/memtable/memtable.h"
#include "engine/monitoring/thread_number.h"

namespace stride {

PublishedVersion::Shard& PublishedVersion::shard_of_this_thread() const noexcept {
  return shards_[thread_number() % shard_count];
}

std::shared_ptr<const Version> PublishedVersion::take(Shard& shard) const noexcept {
  if (shard.version) return shard.version;
  std::lock_guard guard(mutex_);
  try {
    auto pin = std::make_shared<std::shared_ptr<const Version>>(version_);
    shard.version = std::shared_ptr<const Version>(std::move(pin), version_.get());
  } catch (const std::bad_alloc&) {
    return version_;
  }
  return shard.version;
}

std::shared_ptr<const Version> PublishedVersion::get() const noexcept {
  Shard& shard = shard_of_this_thread();
  std::lock_guard guard(shard.mutex);
  return take(shard);
}

std::shared_ptr<const Version> PublishedVersion::get(uint32_t* commit) const noexcept {
  Shard& shard = shard_of_this_thread();
  std::lock_guard guard(shard.mutex);
  std::shared_ptr<const Version> version = take(shard);
  *commit = version->memtable ? version->memtable->visible() : 0;
  return version;
}

}  // namespace stride
