#include <algorithm>
#include <utility>

#include "engine/read/read_ahead.h"
#include "engine/read/row_gather.h"
#include "engine/read/scan_impl.h"
#include "engine/read/scan_interval.h"
#include "storage/no_throw.h"

namespace stride {
namespace {

// Rows of a batch: few enough that what one pass over the batch has read is still in the
// second-level cache for the next.
constexpr uint32_t default_batch_rows = 4096;

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
      case 2:
        decode<uint16_t>(to, c.offsets.deltas, row, last - row, base, c.data_bytes);
        break;
      case 4:
        decode<uint32_t>(to, c.offsets.deltas, row, last - row, base, c.data_bytes);
        break;
      default:
        decode<uint64_t>(to, c.offsets.deltas, row, last - row, base, c.data_bytes);
        break;
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

constexpr uint64_t batch_bytes = 4 << 20;  // of keys and of values that are copied

// Segments without tombstones and with disjoint key ranges, forwards: slices of the stored columns,
// and copies of values that rows share.
class SliceScan final : public Scan::Impl {
 public:
  // segments: of the version. inputs: in the order of their keys.
  SliceScan(std::shared_ptr<const Version> version, const SegmentList& segments,
            std::vector<RunMerger::Input> inputs, uint32_t batch_rows)
      : version_(std::move(version)), inputs_(std::move(inputs)), batch_rows_(batch_rows) {
    for (const RunMerger::Input& input : inputs_)
      ahead_.emplace_back(input.segment->segment(), input.first, input.last, /*reverse=*/false);
    bool any_shared = std::any_of(inputs_.begin(), inputs_.end(), [](const auto& input) {
      return input.segment->values().shared();
    });
    if (any_shared) copies_.emplace(segments);
  }

  bool next(ScanBatch* batch) override {
    *batch = {};
    uint64_t n = 0;
    for (; at_ < inputs_.size(); ++at_)
      if (n = std::min<uint64_t>(batch_rows_, skip_erased()); n > 0) break;
    if (n == 0 || !status_.ok()) return false;
    RunMerger::Input& input = inputs_[at_];
    ahead_[at_].advance(input.first + n);
    status_ = input.segment->ensure_rows(input.first, input.first + n);
    if (!status_.ok()) return false;
    const ValueRows& values = input.segment->values();
    if (values.shared()) {
      batch->values = copy_shared(input, &n);
    } else {
      batch->values = slice(values.column, input.first, n, &value_offsets_);
    }
    batch->keys = slice(input.segment->keys(), input.first, n, &key_offsets_);
    input.first += n;
    return true;
  }

 private:
  // Moves the current input to its next row that is not erased, and returns how many follow
  // together.
  uint64_t skip_erased() {
    RunMerger::Input& input = inputs_[at_];
    const RowIntervals& erased = input.segment->erased();
    if (erased.empty()) return input.last - input.first;
    const uint64_t first = std::min(erased.skip(input.first), input.last);
    if (std::exchange(input.first, first) != first)
      ahead_[at_] = {input.segment->segment(), first, input.last, /*reverse=*/false};
    return erased.next(first, input.last) - first;
  }

  // The values of up to *n rows, and how many they are.
  ValueColumn copy_shared(const RunMerger::Input& input, uint64_t* n) {
    rows_.reset(*n);
    for (uint64_t i = 0; i < *n; ++i)
      rows_[i] = {input.index, static_cast<uint32_t>(input.first + i)};
    *n = copies_->fit({rows_.data(), *n}, batch_bytes);
    return copies_->copy({rows_.data(), *n});
  }

  std::shared_ptr<const Version> version_;
  std::vector<RunMerger::Input> inputs_;
  std::vector<RowReadAhead> ahead_;  // of each input
  size_t at_ = 0;
  uint32_t batch_rows_;
  std::optional<ValueGather> copies_;  // where rows share values
  ResultBuffer<Location> rows_;
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

// The read-ahead of all segments of a merge.
class MergeReadAhead {
 public:
  MergeReadAhead(size_t segments, const std::vector<RunMerger::Input>& inputs, bool reverse)
      : reverse_(reverse), ahead_(segments), next_(segments) {
    for (const RunMerger::Input& input : inputs) {
      ahead_[input.index] = {input.segment->segment(), input.first, input.last, reverse};
      ahead_[input.index].advance(reverse ? input.last : input.first);
      idle_ &= ahead_[input.index].idle();
    }
  }
  // These rows come next.
  void advance(std::span<const Location> rows) {
    if (idle_ || rows.empty()) return;
    for (Location row : rows) next_[row.index] = uint64_t{row.rank} + !reverse_;
    for (size_t i = 0; i < ahead_.size(); ++i)
      if (next_[i]) ahead_[i].advance(*next_[i]);
  }
  // And these of one segment.
  void advance(const RunMerger::Input& rows) {
    if (!idle_) ahead_[rows.index].advance(rows.last);
  }

 private:
  const bool reverse_;
  bool idle_ = true;
  std::vector<RowReadAhead> ahead_;            // by the index of a Location
  std::vector<std::optional<uint64_t>> next_;  // rank that each comes to next
};

// Any segments: batches of copied rows or, where one segment alone goes on for long, slices of it.
class MergeScan final : public Scan::Impl {
 public:
  static constexpr uint64_t max_batch_rows = 1 << 16;
  static constexpr uint64_t min_slice_rows = 512;

  MergeScan(std::shared_ptr<const Version> version, const SegmentList& segments,
            const std::vector<RunMerger::Input>& inputs, bool reverse, uint64_t shared_bytes,
            uint32_t batch_rows)
      : version_(std::move(version)),
        ahead_(segments.size(), inputs, reverse),
        merger_(inputs, reverse, shared_bytes),
        keys_(keys_of(segments), /*in_cache=*/true),
        values_(segments),
        batch_rows_(std::min<uint64_t>(batch_rows, max_batch_rows)) {
    merged_.reset(batch_rows_);
  }

  bool next(ScanBatch* batch) override {
    if (at_ == end_ && !values_.any_shared() && next_slice(batch)) return true;
    return next_copies(batch);
  }

 private:
  bool next_slice(ScanBatch* batch) {
    RunMerger::Input rows;
    if (!merger_.next_stretch(std::min(min_slice_rows, batch_rows_), batch_rows_, &rows))
      return false;
    ahead_.advance(rows);
    batch->keys = slice(rows.segment->keys(), rows.first, rows.last - rows.first, &key_offsets_);
    batch->values =
        slice(rows.segment->values().column, rows.first, rows.last - rows.first, &value_offsets_);
    return true;
  }

  bool next_copies(ScanBatch* batch) {
    *batch = {};
    if (at_ == end_) {
      at_ = 0;
      end_ = merger_.next_rows({merged_.data(), batch_rows_});
      if (end_ == 0) status_ = merger_.status();
      ahead_.advance({merged_.data(), end_});
    }
    std::span<const Location> rows(merged_.data() + at_, end_ - at_);
    if (rows.empty()) return false;
    rows = rows.first(values_.fit(rows, batch_bytes));
    rows = rows.first(keys_.fit(rows, batch_bytes));
    *batch = {keys_.copy(rows), values_.copy(rows)};
    at_ += rows.size();
    return true;
  }

  std::shared_ptr<const Version> version_;
  MergeReadAhead ahead_;  // asks before the merger reads
  RunMerger merger_;
  ColumnGather keys_;
  ValueGather values_;
  ResultBuffer<uint64_t> key_offsets_, value_offsets_;
  ResultBuffer<Location> merged_;  // [at_, end_) are still to be handed out
  uint64_t at_ = 0, end_ = 0;
  uint64_t batch_rows_;
};

// How many bytes all keys within the bounds share, as far as the bounds tell.
uint64_t shared_bytes_of(const ScanOptions& options) {
  uint64_t shared = options.prefix ? options.prefix->size() : 0;
  if (!options.from || !options.to) return shared;
  const std::string &from = *options.from, &to = *options.to;
  auto differ = std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first;
  return std::max(shared, static_cast<uint64_t>(differ - from.begin()));
}

}  // namespace

Result<Scan> make_scan(std::shared_ptr<const Version> version, const TableVersion& table,
                       const ScanOptions& options) {
  std::vector<RunMerger::Input> inputs;
  for (uint32_t i = 0; i < table.segments.size(); ++i) {
    const IndexedSegment& segment = *table.segments[i];
    STRIDE_TRY(segment.prepare());
    uint64_t first, last;
    auto rank_within = [&](const std::string& key, bool past_equal, uint64_t* rank) {
      return rank_of(segment, key, past_equal, rank);
    };
    STRIDE_TRY(scan_interval(segment.rows(), options, rank_within, &first, &last));
    if (first < last) inputs.push_back({&segment, i, first, last});
  }
  uint32_t rows = options.batch_rows ? options.batch_rows : default_batch_rows;
  bool disjoint = inputs.empty();
  if (!options.reverse) STRIDE_TRY(sort_if_disjoint(&inputs, &disjoint));
  if (disjoint)
    return Scan(
        std::make_unique<SliceScan>(std::move(version), table.segments, std::move(inputs), rows));
  return Scan(std::make_unique<MergeScan>(std::move(version), table.segments, inputs,
                                          options.reverse, shared_bytes_of(options), rows));
}

Scan::Scan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scan::Scan(Scan&&) noexcept = default;
Scan& Scan::operator=(Scan&&) noexcept = default;
Scan::~Scan() = default;
bool Scan::next(ScanBatch* batch) {
  bool more = false;
  if (status().ok()) {
    impl_->end_with(no_throw([&] {
      more = impl_->next(batch);
      return impl_->status();
    }));
  }
  if (more) impl_->count(*batch);
  if (!more) *batch = {};
  return more;
}
const Status& Scan::status() const { return impl_->status(); }

Iterator::Iterator(Scan scan) : scan_(std::move(scan)) { scan_.next(&batch_); }

void Iterator::next() {
  if (++row_ < batch_.keys.size) return;
  row_ = 0;
  if (!scan_.next(&batch_)) batch_ = {};
}

}  // namespace stride
