#include "gpu/several/partitioned_index.h"

#include <algorithm>

#include "gpu/sorter.h"

namespace stride {

namespace {

// Parts begin at groups of packed offsets, so that those of a part are a part of the whole's.
constexpr uint64_t rows_per_group = uint64_t{1} << PackedOffsets::group_bits;

// Rows of a stored column, as a column of their own.
class ColumnPart {
 public:
  ColumnPart(const PackedColumn& whole, uint64_t first, uint64_t rows) : column_(whole) {
    column_.size = rows;
    if (whole.fixed) {
      column_.data = whole.data + first * whole.width;
      column_.data_bytes = rows * whole.width;
      return;
    }
    const uint64_t begin = whole.offsets[first], end = whole.offsets[first + rows];
    for (uint64_t group = 0; group <= rows / rows_per_group; ++group)
      bases_.push_back(whole.offsets.bases[first / rows_per_group + group] - begin);
    column_.data = whole.data + begin;
    column_.data_bytes = end - begin;
    column_.offsets.bases = bases_.data();
    column_.offsets.deltas =
        static_cast<const std::byte*>(whole.offsets.deltas) + first * whole.offsets.delta_width;
  }
  ColumnPart(const ColumnPart&) = delete;
  const PackedColumn& column() const { return column_; }

 private:
  PackedColumn column_;
  std::vector<uint64_t> bases_;
};

Status too_few(const std::string& what) {
  return Status(StatusCode::resource_exhausted, "an index does not fit on a device, and " + what)
      .with_remedy("raise the devices' memory limit, or let the host search it");
}

// Makes a part resident on its device.
Status make_part(DeviceSet& devices, const IndexView& index, const IndexRows& rows,
                 PartitionedIndex::Part* part) {
  TreeIndex& trees = devices[part->device].tree_index();
  const ColumnPart keys(index.keys, part->first, part->rows);
  std::vector<std::byte> image;
  STRIDE_TRY(trees.build_tree(keys.column(), {}, &image));
  const IndexView view{keys.column(), {image.data(), image.size()}};
  IndexRows of_part{nullptr, rows.hidden ? rows.hidden + part->first : nullptr};
  std::unique_ptr<ColumnPart> values;
  if (rows.values) {
    values = std::make_unique<ColumnPart>(*rows.values, part->first, part->rows);
    of_part.values = &values->column();
  }
  auto made = trees.make_resident(view, of_part);
  if (!made.ok()) return made.status();
  part->index = std::move(*made);
  return {};
}

// Builds the index of a part on its device, whose memory has its keys then.
Status build_part(DeviceSet& devices, const KeyColumn& keys, const TreeOptions& options,
                  PartitionedIndex::Part* part) {
  Backend& device = devices[part->device];
  KeyColumn mine = keys.slice(part->first, part->rows);
  if (devices.home_of(keys.data) != no_device_number && !device.is_on_device(mine.data)) {
    auto memory = device.allocate(mine.bytes());
    if (!memory.ok()) return memory.status();
    part->keys = std::move(*memory);
    STRIDE_TRY(device.copy(part->keys->data(), mine.data, mine.bytes()));
    mine.data = part->keys->data();
  }
  auto made = device.tree_index().build_index(mine, KeyOrder::ascending, options);
  if (!made.ok()) return made.status();
  if (!(*made)->on_device())
    return Status(StatusCode::resource_exhausted, "a device has no room for its part of an index");
  part->index = std::move(*made);
  return {};
}

// Makes parts of n rows, each by make_one(part) on a device of its own, all at once; again without
// the devices that fail.
template <class MakeOne>
Result<std::vector<PartitionedIndex::Part>> make_parts(DeviceSet& devices, uint64_t n,
                                                       const MakeOne& make_one) {
  for (;;) {
    const std::vector<size_t> working = devices.working();
    if (working.size() < 2) return too_few("there is no other one");
    const uint64_t groups = n / rows_per_group;
    if (groups < working.size()) return too_few("has too few keys for parts");
    std::vector<PartitionedIndex::Part> parts(working.size());
    auto edge = [&](uint64_t i) {
      return i == working.size() ? n : groups * i / working.size() * rows_per_group;
    };
    for (uint64_t i = 0; i < parts.size(); ++i) {
      parts[i].device = working[i];
      parts[i].first = edge(i);
      parts[i].rows = edge(i + 1) - edge(i);
    }
    std::vector<Status> made(parts.size());
    STRIDE_TRY(devices.run_each(parts.size(), [&](uint64_t i) {
      made[i] = devices.with_all_room(parts[i].device, [&] { return make_one(&parts[i]); });
      return Status();
    }));
    bool again = false;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (made[i].ok()) continue;
      if (!is_loss(made[i])) return made[i];
      devices.lose(parts[i].device, made[i]);
      again = true;
    }
    if (!again) return parts;
  }
}

}  // namespace

Result<std::shared_ptr<PartitionedIndex>> PartitionedIndex::make(DeviceSet& devices,
                                                                 const IndexView& index,
                                                                 const IndexRows& rows) {
  auto parts = make_parts(devices, index.keys.size,
                          [&](Part* part) { return make_part(devices, index, rows, part); });
  if (!parts.ok()) return parts.status();
  std::shared_ptr<PartitionedIndex> made(new PartitionedIndex(std::move(*parts)));
  for (size_t i = 1; i < made->parts_.size(); ++i)
    made->first_keys_.emplace_back(as_text(index.keys[made->parts_[i].first]));
  made->shape_.keys.size = index.keys.size;
  made->shape_.keys.width = index.keys.width;
  made->shape_.keys.fixed = index.keys.fixed;
  if (rows.values && rows.values->fixed && !rows.hidden) made->value_width_ = rows.values->width;
  return made;
}

Result<std::shared_ptr<PartitionedIndex>> PartitionedIndex::build(DeviceSet& devices,
                                                                  const KeyColumn& keys,
                                                                  const TreeOptions& options) {
  auto parts = make_parts(devices, keys.size,
                          [&](Part* part) { return build_part(devices, keys, options, part); });
  if (!parts.ok()) return parts.status();
  std::shared_ptr<PartitionedIndex> made(new PartitionedIndex(std::move(*parts)));
  for (size_t i = 1; i < made->parts_.size(); ++i) {
    const Part& part = made->parts_[i];
    std::string& key = made->first_keys_.emplace_back(keys.width, '\0');
    const std::byte* first = keys.data + part.first * keys.width;
    STRIDE_TRY(devices.run_on_first(part.device, [&](size_t device) {
      return devices[device].copy(key.data(), first, keys.width);
    }));
  }
  made->shape_.keys.size = keys.size;
  made->shape_.keys.width = keys.width;
  made->shape_.keys.fixed = true;
  return made;
}

size_t PartitionedIndex::part_of(Bytes key) const {
  auto above =
      std::upper_bound(first_keys_.begin(), first_keys_.end(), key,
                       [](Bytes a, const std::string& b) { return compare(a, as_bytes(b)) < 0; });
  return static_cast<size_t>(above - first_keys_.begin());
}

IndexView PartitionedIndex::view() const {
  IndexView view = shape_;
  view.resident = this;
  return view;
}

Status PartitionedIndex::copy_image(std::vector<std::byte>*) const {
  return Status(StatusCode::unavailable, "an index in parts has a tree for each part")
      .with_remedy("build the tree of all keys");
}

Status PartitionedIndex::copy_keys(std::vector<std::byte>* keys,
                                   std::vector<uint64_t>* offsets) const {
  keys->clear();
  offsets->assign(1, 0);
  for (const Part& part : parts_) {
    std::vector<std::byte> of_part;
    std::vector<uint64_t> ends;
    STRIDE_TRY(part.index->copy_keys(&of_part, &ends));
    const uint64_t base = keys->size();
    keys->insert(keys->end(), of_part.begin(), of_part.end());
    for (size_t i = 1; i < ends.size(); ++i) offsets->push_back(base + ends[i]);
  }
  return {};
}

uint64_t PartitionedIndex::memory_bytes() const {
  uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.index->memory_bytes();
  return bytes;
}

}  // namespace stride
