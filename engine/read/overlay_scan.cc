#include "engine/read/overlay_scan.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/read/scan_impl.h"

namespace stride {
namespace {

// Rows of a batch where nobody says: few of the first one, for many readers want no more, and four
// times as many of each next one.
constexpr uint64_t first_batch_rows = 64;
constexpr uint64_t max_chosen_rows = 4096;
constexpr uint64_t max_batch_rows = 1 << 16;
constexpr uint64_t max_batch_bytes = 4 << 20;  // of keys and of values that are copied
// Neighbours are handed out where they lie if they are as many.
constexpr uint64_t min_slice_rows = 512;

// Rows that are copied one behind the other.
class CopiedRows {
 public:
  void clear() {
    offsets_.assign(1, 0);
    bytes_.clear();
    fixed_ = true;
  }
  void reserve(uint64_t rows, uint64_t bytes) {
    offsets_.reserve(rows + 1);
    bytes_.reserve(bytes);
  }
  void add(Bytes row) {
    bytes_.insert(bytes_.end(), row.begin(), row.end());
    add_end(bytes_.size());
  }
  void add(const Column& rows) {
    if (rows.size == 0) return;
    const uint64_t begin = rows.begin(0), shift = bytes_.size();
    bytes_.insert(bytes_.end(), rows.data + begin, rows.data + rows.begin(rows.size));
    for (uint64_t i = 1; i <= rows.size; ++i) add_end(rows.begin(i) - begin + shift);
  }
  uint64_t size() const { return offsets_.size() - 1; }
  uint64_t bytes() const { return bytes_.size(); }
  Column column() const {
    return fixed_ ? Column::fixed(bytes_.data(), static_cast<uint32_t>(offsets_[1]), size())
                  : Column::variable(bytes_.data(), offsets_.data(), size());
  }

 private:
  void add_end(uint64_t end) {
    offsets_.push_back(end);
    fixed_ &= end - offsets_[offsets_.size() - 2] == offsets_[1];
  }

  std::vector<std::byte> bytes_;
  std::vector<uint64_t> offsets_;
  bool fixed_ = true;  // all rows are as long as the first
};

class OverlayScan final : public Scan::Impl {
 public:
  OverlayScan(Scan older, TailMerger newer, const ScanOptions& options)
      : older_(std::move(older)),
        newer_(std::move(newer)),
        reverse_(options.reverse),
        chosen_(options.batch_rows == 0),
        batch_rows_(chosen_ ? first_batch_rows
                            : std::min<uint64_t>(options.batch_rows, max_batch_rows)) {}

  bool next(ScanBatch* batch) override {
    keys_.clear();
    values_.clear();
    while (keys_.size() < batch_rows_ && keys_.bytes() + values_.bytes() < max_batch_bytes) {
      if (!fill_older()) break;
      const TailRow* row = newer_.row();
      if (!row && older_left() == 0) break;
      const uint64_t before = row ? older_before(row->key()) : older_left();
      if (before >= min_slice_rows || (before > 0 && !row)) {
        if (keys_.size() > 0) break;
        *batch = take_older(before);
        return true;
      }
      // The next older rows may come before the newer one, too, or have its key.
      const bool all_seen = before < older_left() || older_ended_;
      if (copy_older(before) == before && all_seen && keys_.size() < batch_rows_) take_newer();
    }
    if (keys_.size() == 0) return false;
    *batch = {keys_.column(), values_.column()};
    if (chosen_) batch_rows_ = std::min(batch_rows_ * 4, max_chosen_rows);
    return true;
  }

 private:
  uint64_t older_left() const { return rows_.keys.size - at_; }

  // Makes sure that there are older rows in rows_ if there are any. False: that failed.
  bool fill_older() {
    if (older_left() > 0 || older_ended_) return older_.status().ok();
    at_ = 0;
    older_ended_ = !older_.next(&rows_);
    if (!older_.status().ok()) end_with(older_.status());
    return older_.status().ok();
  }

  // How many of the older rows come before the key; looks in steps that double.
  uint64_t older_before(Bytes key) const {
    auto is_before = [&](uint64_t i) {
      const int order = compare(rows_.keys[at_ + i], key);
      return order != 0 && (order < 0) != reverse_;
    };
    const uint64_t left = older_left();
    uint64_t low = 0, step = 1;
    while (low + step <= left && is_before(low + step - 1)) {
      low += step;
      step *= 2;
    }
    for (uint64_t high = std::min(low + step - 1, left); low < high;) {
      const uint64_t middle = (low + high) / 2;
      if (is_before(middle))
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  ScanBatch take_older(uint64_t rows) {
    const uint64_t begin = at_;
    at_ += rows;
    return {rows_.keys.slice(begin, rows), rows_.values.slice(begin, rows)};
  }

  // Copies the next older rows, as many as fit into the batch, and returns how many.
  uint64_t copy_older(uint64_t rows) {
    if (rows == 0) return 0;
    uint64_t n = std::min(rows, batch_rows_ - keys_.size());
    while (n > 1 &&
           rows_.values.slice(at_, n).bytes() + rows_.keys.slice(at_, n).bytes() > max_batch_bytes)
      n /= 2;
    const ScanBatch taken = take_older(n);
    if (keys_.size() == 0) {
      keys_.reserve(batch_rows_, 2 * taken.keys.bytes());
      values_.reserve(batch_rows_, 2 * taken.values.bytes());
    }
    keys_.add(taken.keys);
    values_.add(taken.values);
    return n;
  }

  // Adds the next newer row, which takes the place of an older one.
  void take_newer() {
    const TailRow* row = newer_.row();
    if (!row) return;
    if (older_left() > 0 && compare(rows_.keys[at_], row->key()) == 0) ++at_;
    if (!newer_.is_tombstone()) {
      keys_.add(row->key());
      values_.add(row->value());
    }
    newer_.next();
  }

  Scan older_;
  TailMerger newer_;
  const bool reverse_;
  const bool chosen_;
  uint64_t batch_rows_;
  ScanBatch rows_;  // of the older scan: from at_ on they are still to be handed out
  uint64_t at_ = 0;
  bool older_ended_ = false;
  CopiedRows keys_, values_;
};

}  // namespace

Scan overlay_scan(Scan older, TailMerger newer, const ScanOptions& options) {
  return Scan(std::make_unique<OverlayScan>(std::move(older), std::move(newer), options));
}

}  // namespace stride
