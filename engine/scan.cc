#include <algorithm>
#include <cstring>

#include "engine/scan_impl.h"

namespace stride {
namespace {

// Rows of a batch: few enough that what one pass over the batch has read is still in the
// second-level cache for the next.
constexpr uint32_t default_batch_rows = 4096;

// The smallest byte string above every string with this prefix; none where it is all 0xFF.
std::optional<std::string> prefix_end(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFF) prefix.pop_back();
  if (prefix.empty()) return std::nullopt;
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

// How many keys are smaller than `key` (or, if past_equal, not larger).
Status rank_of(const IndexedSegment& segment, const std::string& key, bool past_equal,
               uint64_t* rank) {
  uint32_t smaller;
  STRIDE_TRY(lower_bound_one(segment.index(), as_bytes(key), &smaller));
  *rank = smaller;
  if (past_equal && *rank < segment.rows()) {
    Bytes at;
    STRIDE_TRY(segment.key(*rank, &at));
    if (compare(at, as_bytes(key)) == 0) ++*rank;
  }
  return {};
}

// Adds a base to 16-, 32- or 64-bit deltas; a loop that the compiler vectorises.
template <class Delta>
void decode(uint64_t* out, const void* deltas, uint64_t first, uint64_t n, uint64_t base,
            uint64_t limit) {
  const Delta* d = static_cast<const Delta*>(deltas) + first;
  for (uint64_t i = 0; i < n; ++i) out[i] = std::min<uint64_t>(base + d[i], limit);
}

// Offsets of rows [first, first + n], n + 1 of them.
void decode_offsets(uint64_t* out, const PackedColumn& c, uint64_t first, uint64_t n) {
  constexpr uint64_t group = uint64_t{1} << PackedOffsets::group_bits;
  for (uint64_t row = first; row <= first + n;) {
    uint64_t last = std::min(first + n + 1, (row / group + 1) * group);
    uint64_t base = c.offsets.bases[row / group];
    uint64_t* to = out + (row - first);
    switch (c.offsets.delta_width) {
      case 2: decode<uint16_t>(to, c.offsets.deltas, row, last - row, base, c.data_bytes); break;
      case 4: decode<uint32_t>(to, c.offsets.deltas, row, last - row, base, c.data_bytes); break;
      default: decode<uint64_t>(to, c.offsets.deltas, row, last - row, base, c.data_bytes); break;
    }
    row = last;
  }
}

Column slice(const PackedColumn& c, uint64_t first, uint64_t n, ResultBuffer<uint64_t>* offsets) {
  if (c.fixed) return Column::fixed(c.data + first * c.width, c.width, n);
  offsets->reset(n + 1);
  decode_offsets(offsets->data(), c, first, n);
  return Column::variable(c.data, offsets->data(), n);
}

// Segments without tombstones and with disjoint key ranges, forwards: slices of the stored columns.
class SliceScan final : public Scan::Impl {
 public:
  // inputs: in the order of their keys.
  SliceScan(std::shared_ptr<const Version> version, std::vector<RunMerger::Input> inputs,
            uint32_t batch_rows)
      : version_(std::move(version)), inputs_(std::move(inputs)), batch_rows_(batch_rows) {}

  bool next(ScanBatch* batch) override {
    *batch = {};
    while (at_ < inputs_.size() && inputs_[at_].first == inputs_[at_].last) ++at_;
    if (at_ == inputs_.size() || !status_.ok()) return false;
    RunMerger::Input& input = inputs_[at_];
    uint64_t n = std::min<uint64_t>(batch_rows_, input.last - input.first);
    status_ = input.segment->ensure_rows(input.first, input.first + n);
    if (!status_.ok()) return false;
    batch->keys = slice(input.segment->keys(), input.first, n, &key_offsets_);
    batch->values = slice(input.segment->values(), input.first, n, &value_offsets_);
    input.first += n;
    return true;
  }

 private:
  std::shared_ptr<const Version> version_;
  std::vector<RunMerger::Input> inputs_;
  size_t at_ = 0;
  uint32_t batch_rows_;
  ResultBuffer<uint64_t> key_offsets_, value_offsets_;
};

// Sorts the inputs by key where no two of them overlap and none has tombstones.
Status sort_if_disjoint(std::vector<RunMerger::Input>* inputs, bool* disjoint) {
  *disjoint = false;
  struct Range {
    Bytes first, last;
    RunMerger::Input input;
  };
  for (const RunMerger::Input& input : *inputs)
    if (input.segment->has_tombstones()) return {};
  // A lone input needs no look at its keys, which would read a block at its far end.
  if (inputs->size() == 1) {
    *disjoint = true;
    return {};
  }
  std::vector<Range> ranges;
  for (const RunMerger::Input& input : *inputs) {
    ranges.push_back({{}, {}, input});
    STRIDE_TRY(input.segment->key(input.first, &ranges.back().first));
    STRIDE_TRY(input.segment->key(input.last - 1, &ranges.back().last));
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return compare(a.first, b.first) < 0; });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (compare(ranges[i - 1].last, ranges[i].first) >= 0) return {};
  for (size_t i = 0; i < ranges.size(); ++i) (*inputs)[i] = ranges[i].input;
  *disjoint = true;
  return {};
}

// Rows copied one after another.
class ColumnBuilder {
 public:
  void clear() {
    data_.clear();
    offsets_.assign(1, 0);
  }
  void add(Bytes row) {
    data_.insert(data_.end(), row.begin(), row.end());
    offsets_.push_back(data_.size());
  }
  Column column() const {
    return Column::variable(data_.data(), offsets_.data(), offsets_.size() - 1);
  }
  uint64_t bytes() const { return data_.size(); }

 private:
  std::vector<std::byte> data_;
  std::vector<uint64_t> offsets_;
};

class MergeScan final : public Scan::Impl {
 public:
  static constexpr uint64_t batch_bytes = 4 << 20;

  MergeScan(std::shared_ptr<const Version> version, const SegmentList& segments,
            std::vector<RunMerger::Input> inputs, bool reverse, uint32_t batch_rows)
      : version_(std::move(version)),
        segments_(segments),
        merger_(std::move(inputs), reverse),
        batch_rows_(batch_rows) {}

  bool next(ScanBatch* batch) override {
    keys_.clear();
    values_.clear();
    Location at;
    uint64_t rows = 0;
    while (rows < batch_rows_ && values_.bytes() < batch_bytes && merger_.next(&at)) {
      const IndexedSegment& segment = *segments_[at.index];
      if (segment.kind(at.rank) == EntryKind::tombstone) continue;
      keys_.add(segment.keys()[at.rank]);
      values_.add(segment.values()[at.rank]);
      ++rows;
    }
    if (!merger_.status().ok()) status_ = merger_.status();
    *batch = {keys_.column(), values_.column()};
    return rows > 0;
  }

 private:
  std::shared_ptr<const Version> version_;
  const SegmentList& segments_;  // in version_
  RunMerger merger_;
  ColumnBuilder keys_, values_;
  uint32_t batch_rows_;
};

}  // namespace

Status scan_interval(const IndexedSegment& segment, const ScanOptions& options, uint64_t* first,
                     uint64_t* last) {
  *first = 0;
  *last = segment.rows();
  uint64_t rank;
  if (options.from) {
    STRIDE_TRY(rank_of(segment, *options.from, !options.from_inclusive, &rank));
    *first = std::max(*first, rank);
  }
  if (options.to) {
    STRIDE_TRY(rank_of(segment, *options.to, options.to_inclusive, &rank));
    *last = std::min(*last, rank);
  }
  if (options.prefix) {
    STRIDE_TRY(rank_of(segment, *options.prefix, false, &rank));
    *first = std::max(*first, rank);
    if (auto end = prefix_end(*options.prefix)) {
      STRIDE_TRY(rank_of(segment, *end, false, &rank));
      *last = std::min(*last, rank);
    }
  }
  *last = std::max(*first, *last);
  return {};
}

Result<Scan> make_scan(std::shared_ptr<const Version> version, const TableVersion& table,
                       const ScanOptions& options) {
  std::vector<RunMerger::Input> inputs;
  for (uint32_t i = 0; i < table.segments.size(); ++i) {
    const IndexedSegment& segment = *table.segments[i];
    STRIDE_TRY(segment.prepare());
    uint64_t first, last;
    STRIDE_TRY(scan_interval(segment, options, &first, &last));
    if (first < last) inputs.push_back({&segment, i, first, last});
  }
  uint32_t rows = options.batch_rows ? options.batch_rows : default_batch_rows;
  bool disjoint = false;
  if (!options.reverse) STRIDE_TRY(sort_if_disjoint(&inputs, &disjoint));
  if (disjoint)
    return Scan(std::make_unique<SliceScan>(std::move(version), std::move(inputs), rows));
  return Scan(std::make_unique<MergeScan>(std::move(version), table.segments, std::move(inputs),
                                          options.reverse, rows));
}

Scan::Scan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scan::Scan(Scan&&) noexcept = default;
Scan& Scan::operator=(Scan&&) noexcept = default;
Scan::~Scan() = default;
bool Scan::next(ScanBatch* batch) { return impl_->next(batch); }
const Status& Scan::status() const { return impl_->status(); }

Iterator::Iterator(Scan scan) : scan_(std::move(scan)) { scan_.next(&batch_); }

void Iterator::next() {
  if (++row_ < batch_.keys.size) return;
  row_ = 0;
  if (!scan_.next(&batch_)) batch_ = {};
}

}  // namespace stride
