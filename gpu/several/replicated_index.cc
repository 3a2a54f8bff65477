#include "gpu/several/replicated_index.h"

#include <algorithm>

namespace stride {

namespace {

// Every resident index that a set of devices is given is one of its own. Null: it is in parts, or
// not resident.
const ReplicatedIndex* replicated(const IndexView& index) {
  const auto* resident = static_cast<const SeveralIndex*>(index.resident);
  if (!resident || resident->is_partitioned()) return nullptr;
  return static_cast<const ReplicatedIndex*>(resident);
}

}  // namespace

ReplicatedIndex::ReplicatedIndex(std::vector<std::shared_ptr<ResidentIndex>> replicas)
    : replicas_(std::move(replicas)) {
  auto there = std::find_if(replicas_.begin(), replicas_.end(),
                            [](const auto& replica) { return replica != nullptr; });
  first_ = there->get();
}

IndexView ReplicatedIndex::view() const {
  IndexView view = first_->view();
  view.resident = this;
  return view;
}

template <class Call>
Status ReplicatedIndex::from_any(const Call& call) const {
  Status status;
  for (const auto& replica : replicas_) {
    if (!replica) continue;
    status = call(*replica);
    if (!is_loss(status)) return status;
  }
  return status;
}

Status ReplicatedIndex::copy_image(std::vector<std::byte>* image) const {
  return from_any([&](const ResidentIndex& replica) { return replica.copy_image(image); });
}

Status ReplicatedIndex::copy_keys(std::vector<std::byte>* keys,
                                  std::vector<uint64_t>* offsets) const {
  return from_any([&](const ResidentIndex& replica) { return replica.copy_keys(keys, offsets); });
}

std::string ReplicatedIndex::placement() const {
  const auto copies = std::count_if(replicas_.begin(), replicas_.end(),
                                    [](const auto& replica) { return replica != nullptr; });
  return copies < 2 ? std::string() : "a copy on each of " + std::to_string(copies) + " devices";
}

uint64_t ReplicatedIndex::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& replica : replicas_)
    if (replica) bytes += replica->memory_bytes();
  return bytes;
}

bool ReplicatedViews::all_resident() const {
  return !indexes_.empty() &&
         std::all_of(indexes_.begin(), indexes_.end(), [](const IndexView& index) {
           return index.resident != nullptr && index.resident->on_device();
         });
}

bool ReplicatedViews::on(size_t device) const {
  return std::all_of(indexes_.begin(), indexes_.end(), [&](const IndexView& index) {
    if (index.resident == nullptr) return true;
    const ReplicatedIndex* all = replicated(index);
    return all != nullptr && all->on(device) != nullptr;
  });
}

std::vector<IndexView> ReplicatedViews::for_device(size_t device) const {
  std::vector<IndexView> views;
  views.reserve(indexes_.size());
  for (const IndexView& index : indexes_) {
    IndexView view = index;
    if (const ReplicatedIndex* all = replicated(index)) {
      const ResidentIndex* here = all->on(device);
      // The pointers of a view are those of the first device, unless they are the caller's.
      if (view.keys.data == all->view().keys.data) view = here->view();
      view.resident = here;
      view.guard = index.guard;
      view.filter = index.filter;
    }
    views.push_back(view);
  }
  return views;
}

}  // namespace stride
