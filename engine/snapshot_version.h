// What a snapshot holds, for those inside that take one.
#pragma once

#include <memory>

#include "engine/catalog/version.h"
#include "engine/snapshot.h"

namespace stride {

struct SnapshotVersion {
  static const std::shared_ptr<const Version>& of(const Snapshot& snapshot) {
    return snapshot.version();
  }
  // now: as ExpiryClock::now().
  static Snapshot make(std::shared_ptr<const Version> version, uint32_t commit,
                       int64_t now) noexcept {
    return Snapshot(std::move(version), commit, now);
  }
};

}  // namespace stride
