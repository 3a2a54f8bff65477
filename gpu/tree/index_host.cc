#include "gpu/tree/index_host.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "gpu/keys/key_store.h"
#include "gpu/sort/host_sort.h"
#include "gpu/tree/tree_build_host.h"
#include "storage/block_guard.h"
#include "storage/column.h"
#include "storage/no_throw.h"
#include "storage/status.h"

namespace stride {

namespace {

// The rows of a column, one after the other, and where each begins and the last ends.
void copy_rows(const PackedColumn& column, std::vector<std::byte>* keys,
               std::vector<uint64_t>* offsets) {
  keys->clear();
  offsets->assign(1, 0);
  for (uint64_t i = 0; i < column.size; ++i) {
    Bytes key = column[i];
    keys->insert(keys->end(), key.begin(), key.end());
    offsets->push_back(keys->size());
  }
}

class HostIndex final : public ResidentIndex {
 public:
  explicit HostIndex(const IndexView& view) : view_(view) {}
  HostIndex(BulkVector<uint64_t> numbers, std::unique_ptr<KeyStore> store,
            const PackedColumn& column, std::vector<std::byte> image)
      : numbers_(std::move(numbers)), store_(std::move(store)), image_(std::move(image)) {
    view_.keys = column;
    view_.tree = {image_.data(), image_.size()};
  }

  IndexView view() const override {
    IndexView view = view_;
    view.resident = this;
    return view;
  }
  bool on_device() const override { return false; }
  bool has_values() const override { return false; }
  Status copy_image(std::vector<std::byte>* image) const override {
    return no_throw([&] {
      image->assign(view_.tree.image, view_.tree.image + view_.tree.image_bytes);
      return Status();
    });
  }
  Status copy_keys(std::vector<std::byte>* keys, std::vector<uint64_t>* offsets) const override {
    return no_throw([&] {
      copy_rows(view_.keys, keys, offsets);
      return Status();
    });
  }
  uint64_t memory_bytes() const override {
    uint64_t keys = store_ ? store_->bytes() : view_.keys.data_bytes;
    return keys + view_.tree.image_bytes;
  }

 private:
  BulkVector<uint64_t> numbers_;
  std::unique_ptr<KeyStore> store_;
  std::vector<std::byte> image_;
  IndexView view_;
};

PackedColumn as_packed(const KeyColumn& keys) {
  PackedColumn column;
  column.data = keys.data;
  column.data_bytes = keys.bytes();
  column.size = keys.size;
  column.width = keys.width;
  return column;
}

PackedColumn as_packed(const BulkVector<uint64_t>& numbers) {
  return as_packed(KeyColumn::fixed(numbers.data(), 8, numbers.size()));
}

// The chunks of a column that Sorter::sort() takes; a row's id is its number.
std::vector<KeyColumn> chunks_of(const KeyColumn& keys) {
  constexpr uint64_t rows = uint64_t{1} << row_bits;
  std::vector<KeyColumn> chunks;
  for (uint64_t first = 0; first < keys.size; first += rows) {
    chunks.push_back(keys.slice(first, std::min(rows, keys.size - first)));
  }
  return chunks;
}

bool ensure_column(BlockGuard& guard, const PackedColumn& column) {
  if (!guard.ensure(column.data, column.row_bytes())) return false;
  if (column.fixed) return true;
  uint64_t groups = (column.size >> PackedOffsets::group_bits) + 1;
  return guard.ensure(column.offsets.bases, groups * sizeof(uint64_t)) &&
         guard.ensure(column.offsets.deltas, (column.size + 1) * column.offsets.delta_width);
}

}  // namespace

Status check_index(const IndexView& index, const IndexRows& rows) {
  if (BlockGuard* guard = index.guard) {
    bool intact = ensure_column(*guard, index.keys) &&
                  (!rows.values || ensure_column(*guard, *rows.values)) &&
                  (!rows.hidden || guard->ensure(rows.hidden, index.keys.size));
    if (!intact) return guard->failure();
  }
  if (!index.tree.image) return {};
  return check_tree({index.tree.image, index.tree.image_bytes}, index.keys.size);
}

Result<std::shared_ptr<ResidentIndex>> make_resident_host(const IndexView& index) {
  return std::shared_ptr<ResidentIndex>(std::make_shared<HostIndex>(index));
}

Result<std::shared_ptr<ResidentIndex>> build_index_host(TaskPool& pool, const KeyColumn& keys,
                                                        KeyOrder order, const ChooseStrides& choose,
                                                        const TreeOptions& options) {
  STRIDE_TRY(options.check());
  STRIDE_TRY(check_key_count(keys.size));
  BulkVector<uint64_t> numbers;
  std::unique_ptr<KeyStore> store;
  PackedColumn column;
  if (order == KeyOrder::any) {
    Sorted sorted;
    STRIDE_TRY(sort_host(pool, chunks_of(keys), &sorted));
    numbers = std::move(sorted.keys8);
    if (numbers.empty() && keys.size > 0) {
      store = std::make_unique<KeyStore>(pool, keys, sorted.order);
    }
    column = store ? store->column() : as_packed(numbers);
    if (keys.is_fixed()) column.width = keys.width;
  } else if (keys.is_fixed()) {
    column = as_packed(keys);
  } else {
    store = std::make_unique<KeyStore>(pool, keys, std::span<const uint32_t>());
    column = store->column();
  }
  std::vector<std::byte> image;
  STRIDE_TRY(build_tree_host(pool, column, choose, options, &image));
  return std::shared_ptr<ResidentIndex>(
      std::make_shared<HostIndex>(std::move(numbers), std::move(store), column, std::move(image)));
}

}  // namespace stride
