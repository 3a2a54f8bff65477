#include "storage/segment_verify.h"

#include <algorithm>
#include <utility>

#include "storage/work_watch.h"

namespace stride {

namespace {

// Of whether the caller has asked for an end.
constexpr uint64_t rows_between_checks = 1 << 16;

class RowVerifier {
 public:
  RowVerifier(const std::string& path, const SegmentLayout& layout)
      : path_(path), layout_(layout) {}

  Status check_offsets(const PackedColumn& column, SectionType data, SectionType deltas) const {
    if (column.fixed) return {};
    uint64_t before = column.offsets[0];
    bool ascends = before == 0;
    for (uint64_t row = 1; row <= column.size && ascends; ++row) {
      uint64_t now = column.offsets[row];
      ascends = before <= now;
      before = now;
    }
    if (ascends && before == column.data_bytes) return {};
    return damaged(deltas, "does not divide section " + std::string(to_string(data)));
  }

  Status check_keys(Bytes first_key, Bytes last_key) const {
    const PackedColumn& keys = layout_.keys;
    if (keys.size == 0) return {};
    for (uint64_t row = 1; row < keys.size; ++row) {
      if (row % rows_between_checks == 0) STRIDE_TRY(WorkWatch::check());
      if (compare(keys[row - 1], keys[row]) >= 0) {
        return damaged(SectionType::key_data, "does not ascend at row " + std::to_string(row));
      }
    }
    if (compare(keys[0], first_key) != 0 || compare(keys[keys.size - 1], last_key) != 0) {
      return damaged(SectionType::statistics, "names other first and last keys");
    }
    return {};
  }

  // Kinds that are unknown have been found with their blocks.
  Status check_tombstones() const {
    Bytes kinds = layout_.section(SectionType::kinds);
    auto count = std::count(kinds.begin(), kinds.end(),
                            std::byte{static_cast<uint8_t>(EntryKind::tombstone)});
    if (static_cast<uint64_t>(count) == layout_.header.tombstones) return {};
    return damaged(SectionType::kinds, "holds another number of tombstones than the header says");
  }

 private:
  Status damaged(SectionType type, const std::string& what) const {
    uint64_t offset = layout_.sections[static_cast<uint32_t>(type)].offset;
    return Status::corruption(path_, offset, "section " + std::string(to_string(type)) + " " + what)
        .with_remedy("restore the file from a backup");
  }

  const std::string& path_;
  const SegmentLayout& layout_;
};

}  // namespace

Status verify_rows(const std::string& path, const SegmentLayout& layout, Bytes first_key,
                   Bytes last_key) {
  RowVerifier verifier(path, layout);
  using enum SectionType;
  STRIDE_TRY(verifier.check_offsets(layout.keys, key_data, key_deltas));
  STRIDE_TRY(verifier.check_offsets(layout.values.column, value_data, value_deltas));
  STRIDE_TRY(verifier.check_tombstones());
  return verifier.check_keys(first_key, last_key);
}

}  // namespace stride
