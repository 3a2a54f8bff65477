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

}  // namespace

Result<std::shared_ptr<PartitionedIndex>> PartitionedIndex::make(DeviceSet& devices,
                                                                 const IndexView& index,
                                                                 const IndexRows& rows) {
  for (;;) {
    const std::vector<size_t> working = devices.working();
    if (working.size() < 2) return too_few("there is no other one");
    const uint64_t n = index.keys.size, groups = n / rows_per_group;
    if (groups < working.size()) return too_few("has too few keys for parts");
    std::vector<Part> parts(working.size());
    auto edge = [&](uint64_t i) {
      return i == working.size() ? n : groups * i / working.size() * rows_per_group;
    };
    for (uint64_t i = 0; i < parts.size(); ++i)
      parts[i] = {working[i], edge(i), edge(i + 1) - edge(i), nullptr};
    std::vector<Status> made(parts.size());
    STRIDE_TRY(devices.run_each(parts.size(), [&](uint64_t i) {
      made[i] = make_part(devices, index, rows, &parts[i]);
      return Status();
    }));
    bool again = false;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (made[i].ok()) continue;
      if (!is_loss(made[i])) return made[i];
      devices.lose(parts[i].device, made[i]);
      again = true;
    }
    if (!again)
      return std::shared_ptr<PartitionedIndex>(new PartitionedIndex(std::move(parts), index.keys));
  }
}

PartitionedIndex::PartitionedIndex(std::vector<Part> parts, const PackedColumn& keys)
    : parts_(std::move(parts)) {
  for (size_t i = 1; i < parts_.size(); ++i)
    first_keys_.emplace_back(as_text(keys[parts_[i].first]));
  shape_.keys.size = keys.size;
  shape_.keys.width = keys.width;
  shape_.keys.fixed = keys.fixed;
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
