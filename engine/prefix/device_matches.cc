#include "engine/prefix/device_matches.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace stride {
namespace {

// A batch that goes to a device has so many addresses: one that was asked for, one that is
// measured.
constexpr uint64_t asked_addresses = 1 << 16;
constexpr uint64_t measured_addresses = 1 << 20;

// The shorter of two calls, in seconds; infinite where one fails.
double time_match(Backend& backend, const MatchView& matches, const KeyColumn& addresses,
                  std::span<uint32_t> ranks) {
  double min_seconds = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 2; ++repeat) {
    auto start = std::chrono::steady_clock::now();
    if (!backend.longest_prefix().longest_match(matches, addresses, ranks).ok())
      return std::numeric_limits<double>::infinity();
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    min_seconds = std::min(min_seconds, taken.count());
  }
  return min_seconds;
}

}  // namespace

Status DeviceMatches::make(const std::shared_ptr<Backend>& device, const MatchView& matches,
                           const MatchRows& rows) {
  if (copy_) return {};
  auto made = device->longest_prefix().make_resident(matches, rows);
  if (!made.ok()) return made.status();
  device_ = device;
  copy_ = std::move(*made);
  return {};
}

Result<std::shared_ptr<ResidentMatches>> DeviceMatches::copy(const std::shared_ptr<Backend>& device,
                                                             const MatchView& matches,
                                                             const MatchRows& rows) {
  std::lock_guard lock(mutex_);
  STRIDE_TRY(make(device, matches, rows));
  return copy_;
}

DeviceMatches::Use DeviceMatches::decide(Executor& executor, const MatchView& matches,
                                         const MatchRows& rows, const KeyColumn& addresses,
                                         std::span<uint32_t> ranks) {
  auto device = executor.device_for_batch(addresses.size);
  if (!device) return Use::unknown;  // not yet worth to bring one up, or none
  if (Status s = make(device, matches, rows); !s.ok()) {
    (void)executor.failed(s);
    return Use::no;
  }
  if (executor.insists()) return Use::yes;
  KeyColumn sample = addresses.slice(0, measured_addresses);
  ranks = ranks.first(sample.size);
  MatchView there = matches;
  there.resident = copy_.get();
  if (time_match(*device, there, sample, ranks) <
      time_match(*executor.host(), matches, sample, ranks))
    return Use::yes;
  copy_.reset();
  return Use::no;
}

bool DeviceMatches::find(Executor& executor, const MatchView& matches, const MatchRows& rows,
                         const KeyColumn& addresses, std::span<uint32_t> ranks) {
  uint64_t min_addresses = executor.insists() ? asked_addresses : measured_addresses;
  if (addresses.size < min_addresses || use_ == Use::no) return false;
  MatchView there = matches;
  std::shared_ptr<ResidentMatches> copy;
  {
    // Others that come while it is made do not wait: they go to the host.
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    if (use_ == Use::unknown) use_ = decide(executor, matches, rows, addresses, ranks);
    if (use_ != Use::yes) return false;
    copy = copy_;
  }
  there.resident = copy.get();
  Status s = device_->longest_prefix().longest_match(there, addresses, ranks);
  if (s.ok()) {
    executor.count_device_keys(addresses.size);
    return true;
  }
  if (executor.failed(s) && s.code() != StatusCode::resource_exhausted) use_ = Use::no;
  return false;
}

}  // namespace stride
