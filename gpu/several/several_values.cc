#include "gpu/several/several_values.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/several/replicated_index.h"

namespace stride {

namespace {

// The values of one share, and the device that has found them.
struct ValuesOfShare {
  Share share;
  size_t device = 0;
  std::unique_ptr<FoundValues> values;
};

class SeveralValues final : public FoundValues {
 public:
  SeveralValues(DeviceSet& devices, std::span<const IndexView> indexes, const KeyColumn& queries,
                std::span<uint64_t> found, std::span<uint64_t> ends)
      : devices_(devices),
        indexes_(indexes.begin(), indexes.end()),
        queries_(queries),
        found_(found),
        ends_(ends) {}

  Status find();
  uint64_t bytes() const override;
  bool have_width(uint64_t width) const override {
    return std::all_of(shares_.begin(), shares_.end(),
                       [&](const ValuesOfShare& share) { return share.values->have_width(width); });
  }
  Status copy(std::byte* values, uint64_t begin) override;

 private:
  Status find_share(size_t device, Share share, ValuesOfShare* out);
  // Copies the values of a share, which begin at `begin` of all. Where the device that has found
  // them fails, another one finds them again.
  Status copy_share(ValuesOfShare* share, std::byte* values, uint64_t begin);
  SharedBatch batch() const;

  DeviceSet& devices_;
  const std::vector<IndexView> indexes_;
  const ReplicatedViews views_{indexes_};
  const KeyColumn queries_;
  const std::span<uint64_t> found_, ends_;
  std::vector<ValuesOfShare> shares_;  // in the order of the queries
};

SharedBatch SeveralValues::batch() const {
  const size_t home = devices_.home_of(queries_);
  return {.size = queries_.size,
          .divisible = home == no_device_number || queries_.is_fixed(),
          .home = home,
          .has = [this](size_t device) { return views_.on(device); }};
}

Status SeveralValues::find_share(size_t device, Share share, ValuesOfShare* out) {
  const std::vector<IndexView> here = views_.for_device(device);
  auto values = devices_[device].tree_index().find_values(
      here, queries_.slice(share.first, share.count),
      found_.subspan(share.first / 64, (share.count + 63) / 64),
      ends_.subspan(share.first, share.count));
  if (!values.ok()) return values.status();
  *out = {share, device, std::move(*values)};
  return {};
}

Status SeveralValues::find() {
  std::mutex mutex;
  const Status status = devices_.run(batch(), [&](size_t device, Share share) {
    ValuesOfShare one;
    STRIDE_TRY(find_share(device, share, &one));
    std::lock_guard lock(mutex);
    shares_.push_back(std::move(one));
    return Status();
  });
  if (!status.ok()) return status;
  std::sort(shares_.begin(), shares_.end(), [](const ValuesOfShare& a, const ValuesOfShare& b) {
    return a.share.first < b.share.first;
  });
  return {};
}

uint64_t SeveralValues::bytes() const {
  uint64_t bytes = 0;
  for (const ValuesOfShare& share : shares_) bytes += share.values->bytes();
  return bytes;
}

Status SeveralValues::copy_share(ValuesOfShare* share, std::byte* values, uint64_t begin) {
  for (;;) {
    Status status = share->values->copy(values, begin);
    if (!is_loss(status)) return status;
    devices_.lose(share->device, status);
    share->values.reset();
    SharedBatch again = batch();
    again.size = share->share.count;
    again.divisible = false;
    STRIDE_TRY(devices_.run(
        again, [&](size_t device, Share) { return find_share(device, share->share, share); }));
  }
}

Status SeveralValues::copy(std::byte* values, uint64_t begin) {
  std::vector<uint64_t> begins;
  for (const ValuesOfShare& share : shares_) {
    begins.push_back(begin);
    begin += share.values->bytes();
  }
  const uint64_t first = begins.empty() ? 0 : begins[0];
  return devices_.run_each(shares_.size(), [&](uint64_t i) {
    return copy_share(&shares_[i], values + (begins[i] - first), begins[i]);
  });
}

}  // namespace

Result<std::unique_ptr<FoundValues>> find_values_on_several(DeviceSet& devices,
                                                            std::span<const IndexView> indexes,
                                                            const KeyColumn& queries,
                                                            std::span<uint64_t> found,
                                                            std::span<uint64_t> ends) {
  auto values = std::make_unique<SeveralValues>(devices, indexes, queries, found, ends);
  STRIDE_TRY(values->find());
  return std::unique_ptr<FoundValues>(std::move(values));
}

}  // namespace stride
