// An index that is too large for one device: each device has a range of its keys.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/several/device_set.h"
#include "gpu/several/replicated_index.h"
#include "gpu/tree_index.h"

namespace stride {

// Ranges of about equal size, in the order of the keys: what a device finds in its range is a rank
// of the whole once the range's first rank is added. Immutable.
class PartitionedIndex final : public SeveralIndex {
 public:
  struct Part {
    size_t device = 0;
    uint64_t first = 0, rows = 0;         // ranks of the whole
    std::unique_ptr<BackendMemory> keys;  // a copy that the index uses; null: it needs none
    std::shared_ptr<ResidentIndex> index;
  };

  // One part for each device that works. resource_exhausted: that does not fit either, or there are
  // too few keys or devices. Precondition: the index's bytes are known to be intact.
  static Result<std::shared_ptr<PartitionedIndex>> make(DeviceSet& devices, const IndexView& index,
                                                        const IndexRows& rows);
  // Likewise of ascending keys of one width, in host memory or that of any devices, which outlive
  // the result.
  static Result<std::shared_ptr<PartitionedIndex>> build(DeviceSet& devices, const KeyColumn& keys,
                                                         const TreeOptions& options);

  const std::vector<Part>& parts() const { return parts_; }
  // The first key of each part but the first.
  const std::vector<std::string>& first_keys() const { return first_keys_; }
  // Which part a key is in, or would be in.
  size_t part_of(Bytes key) const;

  bool is_partitioned() const override { return true; }
  // Its columns are null: there is no one place where they lie.
  IndexView view() const override;
  // unavailable: parts have trees of their own.
  Status copy_image(std::vector<std::byte>* image) const override;
  Status copy_keys(std::vector<std::byte>* keys, std::vector<uint64_t>* offsets) const override;
  bool on_device() const override { return true; }
  std::string placement() const override {
    return "a part on each of " + std::to_string(parts_.size()) + " devices";
  }
  bool has_values() const override { return parts_[0].index->has_values(); }
  // The one width of all values; 0: they have several, or some rows are hidden, or none are there.
  uint32_t value_width() const { return value_width_; }
  uint64_t memory_bytes() const override;

 private:
  explicit PartitionedIndex(std::vector<Part> parts) : parts_(std::move(parts)) {}

  std::vector<Part> parts_;
  std::vector<std::string> first_keys_;
  IndexView shape_;  // sizes and widths of the whole
  uint32_t value_width_ = 0;
};

}  // namespace stride
