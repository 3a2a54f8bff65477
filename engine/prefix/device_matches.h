// Prefixes that a device searches beside the host (Backend::make_resident()).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "engine/device/executor.h"
#include "gpu/backend.h"
#include "storage/status.h"

namespace stride {

// The copy of what Backend::build_matches() made on a device, made when it is first needed there.
// All calls are about the same matches. Thread-safe.
class DeviceMatches {
 public:
  // Finds ranks where that pays: where a device was asked for, or where the first large batch was
  // found there sooner than on the host. False: the host has to find them.
  bool find(Executor& executor, const MatchView& matches, const MatchRows& rows,
            const KeyColumn& addresses, std::span<uint32_t> ranks);
  // For calls that stay on the device.
  Result<std::shared_ptr<ResidentMatches>> copy(const std::shared_ptr<Backend>& device,
                                                const MatchView& matches, const MatchRows& rows);

 private:
  enum class Use { unknown, yes, no };

  Use decide(Executor& executor, const MatchView& matches, const MatchRows& rows,
             const KeyColumn& addresses, std::span<uint32_t> ranks);
  Status make(const std::shared_ptr<Backend>& device, const MatchView& matches,
              const MatchRows& rows);

  std::atomic<Use> use_{Use::unknown};
  std::mutex mutex_;                 // guards the copy; held while it is made
  std::shared_ptr<Backend> device_;  // goes after what it has made
  std::shared_ptr<ResidentMatches> copy_;
};

}  // namespace stride
