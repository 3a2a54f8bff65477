#include "gpu/several/part_values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "gpu/bulk_vector.h"
#include "gpu/several/partitioned_index.h"
#include "gpu/several/routed_search.h"
#include "gpu/several/split_values.h"

namespace stride {

namespace {

class PartValues final : public FoundValues {
 public:
  PartValues(DeviceSet& devices, const IndexView& index, const KeyColumn& queries,
             std::span<uint64_t> found, std::span<uint64_t> ends)
      : devices_(devices),
        index_(index),
        width_(parts_of(index).value_width()),
        queries_(queries),
        found_(found),
        ends_(ends),
        begins_((queries.size + queries_per_task - 1) / queries_per_task) {}

  Status find(TreeIndex& trees);
  uint64_t bytes() const override { return count_ * width_; }
  bool have_width(uint64_t width) const override { return width == width_; }
  Status copy(std::byte* values, uint64_t begin) override;

 private:
  // Rows that are brought to the host together, where some are left out.
  static constexpr uint64_t block_bytes = uint64_t{1} << 28;

  bool is_found(uint64_t i) const { return found_[i / 64] >> (i % 64) & 1; }
  // Copies the values of queries [first, end), which begin at a task, one behind the other.
  Status copy_block(uint64_t first, uint64_t end, std::byte* values, std::span<std::byte> rows);

  DeviceSet& devices_;
  const IndexView index_;
  const uint32_t width_;
  const KeyColumn queries_;
  const std::span<uint64_t> found_, ends_;
  std::vector<uint64_t> begins_;  // values before each task
  uint64_t count_ = 0;            // values
};

Status PartValues::find(TreeIndex& trees) {
  BulkVector<uint32_t> ranks(queries_.size);
  STRIDE_TRY(trees.find_ranks(index_, queries_, ranks));
  static_assert(queries_per_task % 64 == 0);
  each_task(devices_[0], queries_.size, [&](uint64_t task, uint64_t first, uint64_t end) {
    set_bits(found_, first, end - first,
             [&](uint64_t i) { return ranks[first + i] != Location::absent; });
    for (uint64_t word = first / 64; word < (end + 63) / 64; ++word)
      begins_[task] += static_cast<uint64_t>(std::popcount(found_[word]));
  });
  for (uint64_t& of_task : begins_) count_ += std::exchange(of_task, count_);
  return {};
}

Status PartValues::copy(std::byte* values, uint64_t begin) {
  each_task(devices_[0], queries_.size, [&](uint64_t task, uint64_t i, uint64_t end) {
    uint64_t at = begin + begins_[task] * width_;
    for (; i < end; ++i) ends_[i] = at += is_found(i) ? width_ : 0;
  });
  if (count_ == queries_.size)
    return get_split(devices_, index_, queries_, {.values = values, .width = width_});
  const uint64_t rows =
      std::max(block_bytes / width_ / queries_per_task, uint64_t{1}) * queries_per_task;
  BulkVector<std::byte> block(std::min(rows, queries_.size) * width_);
  for (uint64_t first = 0; first < queries_.size; first += rows)
    STRIDE_TRY(copy_block(first, std::min(queries_.size, first + rows), values, block));
  return {};
}

Status PartValues::copy_block(uint64_t first, uint64_t end, std::byte* values,
                              std::span<std::byte> rows) {
  STRIDE_TRY(get_split(devices_, index_, queries_.slice(first, end - first),
                       {.values = rows.data(), .width = width_}));
  each_task(devices_[0], end - first, [&](uint64_t task, uint64_t i, uint64_t last) {
    std::byte* to = values + begins_[first / queries_per_task + task] * width_;
    while (i < last) {
      // Those that lie side by side, at once.
      uint64_t next = i;
      while (next < last && is_found(first + next)) ++next;
      std::memcpy(to, rows.data() + i * width_, (next - i) * width_);
      to += (next - i) * width_;
      for (i = next; i < last && !is_found(first + i);) ++i;
    }
  });
  return {};
}

}  // namespace

Result<std::unique_ptr<FoundValues>> find_part_values(DeviceSet& devices, TreeIndex& trees,
                                                      const IndexView& index,
                                                      const KeyColumn& queries,
                                                      std::span<uint64_t> found,
                                                      std::span<uint64_t> ends) {
  auto values = std::make_unique<PartValues>(devices, index, queries, found, ends);
  STRIDE_TRY(values->find(trees));
  return std::unique_ptr<FoundValues>(std::move(values));
}

}  // namespace stride
