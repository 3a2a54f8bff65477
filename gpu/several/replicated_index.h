// An index that lies on several devices.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/several/device_set.h"
#include "gpu/tree_index.h"

namespace stride {

// What every index that a set of devices has made resident is.
class SeveralIndex : public ResidentIndex {
 public:
  // Whether each device has a range of its keys (gpu/several/partitioned_index.h).
  virtual bool is_partitioned() const = 0;
};

// The same index on devices of a set; not on those that had failed when it was made.
class ReplicatedIndex final : public SeveralIndex {
 public:
  // One for each device of the set, null where there is none. Precondition: there is one at least.
  explicit ReplicatedIndex(std::vector<std::shared_ptr<ResidentIndex>> replicas);

  const ResidentIndex* on(size_t device) const { return replicas_[device].get(); }
  bool is_partitioned() const override { return false; }

  // As the first device sees it.
  IndexView view() const override;
  Status copy_image(std::vector<std::byte>* image) const override;
  Status copy_keys(std::vector<std::byte>* keys, std::vector<uint64_t>* offsets) const override;
  bool on_device() const override { return first_->on_device(); }
  std::string placement() const override;
  bool has_values() const override { return first_->has_values(); }
  uint64_t memory_bytes() const override;

 private:
  // What call(replica) returns of the first replica where the device does not fail.
  template <class Call>
  Status from_any(const Call& call) const;

  const std::vector<std::shared_ptr<ResidentIndex>> replicas_;
  const ResidentIndex* first_ = nullptr;
};

// The indexes of a search, as each device has them.
class ReplicatedViews {
 public:
  explicit ReplicatedViews(std::span<const IndexView> indexes) : indexes_(indexes) {}

  // Whether all of them are resident on devices.
  bool all_resident() const;
  // Whether a device has all of those that are resident.
  bool on(size_t device) const;
  std::vector<IndexView> for_device(size_t device) const;

 private:
  const std::span<const IndexView> indexes_;
};

}  // namespace stride
