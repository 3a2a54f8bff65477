// The devices of a backend over several, and how a batch is shared out among them.
//
//   DeviceSet devices(backends, SeveralOptions());
//   Status s = devices.run({.size = queries.size}, [&](size_t device, Share share) {
//     return devices[device].tree_index().find(..., queries.slice(share.first, share.count), ...);
//   });
//
// Shares are equal, and begin at multiples of 64 queries, so that none writes to another one's word
// of a bitmap. What fails on a device because the device does is done again on another one, and the
// device is left out from then on. Where a device has no room, its work is done again without the
// memory that is kept for later chunks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu/backend.h"
#include "gpu/several/helpers.h"
#include "gpu/several/room_cache.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

inline constexpr size_t no_device_number = SIZE_MAX;

// What of a batch one device does.
struct Share {
  uint64_t first = 0, count = 0;
};

// A batch, as far as it matters who does what of it.
struct SharedBatch {
  uint64_t size = 0;
  bool divisible = true;
  // The device in whose memory queries or results lie; no_device_number: the host's.
  size_t home = no_device_number;
  // The devices that have what is searched. Null: all have.
  std::function<bool(size_t device)> has = nullptr;
};

// What a device does of a batch. It may be called again for the same share, with another device.
using ShareWork = std::function<Status(size_t device, Share share)>;

// Whether a status says that the device it comes from has failed.
inline bool is_loss(const Status& status) { return status.code() == StatusCode::io_error; }

// Thread-safe.
class DeviceSet {
 public:
  DeviceSet(std::vector<std::shared_ptr<Backend>> devices, const SeveralOptions& options);

  size_t size() const { return devices_.size(); }
  Backend& operator[](size_t device) const { return *devices_[device]; }
  bool works(size_t device) const {
    std::lock_guard lock(mutex_);
    return lost_[device].ok();
  }
  std::vector<size_t> working() const;
  const SeveralOptions& options() const { return options_; }
  // Memory of a device for chunks of batches.
  RoomCache& rooms(size_t device) const { return *rooms_[device]; }
  // The first that works, or that ever did.
  size_t first() const;
  std::vector<DeviceState> states() const;
  uint64_t lost() const { return losses_.load(std::memory_order_acquire); }

  // The device whose memory a pointer is to, one that works if there is one; no_device_number: the
  // host's.
  size_t home_of(const void* p) const;
  size_t home_of(const KeyColumn& keys) const {
    return keys.size == 0    ? no_device_number
           : keys.is_fixed() ? home_of(keys.data)
                             : home_of(keys.offsets);
  }

  // Whether a pointer is to the memory of one device alone.
  bool is_on_one(const void* p) const;

  // Leaves a device out from now on.
  void lose(size_t device, const Status& why);

  // How many shares run() makes of a batch, as long as no further device fails.
  uint64_t shares(const SharedBatch& batch) const {
    const size_t devices = candidates(batch).size();
    return devices == 0 ? 0 : cut(batch, devices).size();
  }
  // Shares a batch out, and returns when all is done, with the first failure. Where no device is
  // left that could do a share: with what the last one failed with.
  Status run(const SharedBatch& batch, const ShareWork& work);
  // Calls work(device) for all devices that work, all at once, and leaves out those that fail.
  // Returns the first failure that is none of a device, or, where all devices fail, one of these.
  Status run_on_all(const std::function<Status(size_t device)>& work);
  // Calls work(i) for each i below n, all at once, and returns the first failure.
  Status run_each(uint64_t n, const std::function<Status(uint64_t)>& work);
  // Calls work(device) for one device: `home` if it works, else the first, and the next one where
  // that fails.
  Status run_on_first(size_t home, const std::function<Status(size_t device)>& work);
  // The same for what make(backend) makes, a Result of a pointer.
  template <class Make>
  auto make_on_first(const Make& make) {
    std::invoke_result_t<const Make&, Backend&> made = Status();
    const Status status = run_on_first(no_device_number, [&](size_t device) {
      made = make((*this)[device]);
      return made.status();
    });
    if (!status.ok()) made = status;
    return made;
  }
  // Frees what all devices keep. False: there is nothing.
  bool drop_rooms() const {
    bool has_some = false;
    for (const auto& rooms : rooms_) has_some |= rooms->drop();
    return has_some;
  }
  // Calls work(), which needs memory of a device, again where rooms that are kept leave none.
  template <class Work>
  Status with_all_room(size_t device, const Work& work) const {
    Status status = work();
    if (status.code() == StatusCode::resource_exhausted && rooms(device).drop()) return work();
    return status;
  }

 private:
  // Those that work and have what is searched.
  std::vector<size_t> candidates(const SharedBatch& batch) const;
  std::vector<Share> cut(const SharedBatch& batch, size_t devices) const;
  // Does a share on one device after another, until one does not fail.
  Status run_share(const SharedBatch& batch, size_t device, Share share, const ShareWork& work);
  Status no_device_left() const;

  const std::vector<std::shared_ptr<Backend>> devices_;
  const SeveralOptions options_;
  std::vector<std::unique_ptr<RoomCache>> rooms_;  // of each device
  std::atomic<uint64_t> turn_{0};                  // of small batches
  mutable std::mutex mutex_;                       // guards lost_
  std::vector<Status> lost_;                       // ok: the device works
  std::atomic<uint64_t> losses_{0};
  Helpers helpers_;
};

}  // namespace stride
