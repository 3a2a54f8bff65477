#include "engine/analytics/scatter_targets.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>

#include "storage/quoted.h"

namespace stride {

namespace {

constexpr uint64_t rows_per_task = 1 << 14;
// Rows that are looked up at once, and what their values may take.
constexpr uint64_t first_rows = 1 << 16, max_rows = 1 << 20, max_value_bytes = 64 << 20;

// Rows that are read at once: sources, or rows of the mapping table.
struct TargetRows {
  uint64_t first = 0;             // of them, among all sources
  const Bitmap* found = nullptr;  // null: all
  ValueColumn values;
  const KeyColumn* keys = nullptr;  // null: they are not in host memory

  bool has(uint64_t i) const { return !found || (*found)[i]; }
};

template <class Index>
constexpr Index none = std::numeric_limits<Index>::max();

// What was found among some rows.
struct Found {
  ScatterReport unmapped;
  uint64_t limit = 0;                 // one more than the largest number
  uint64_t wrong_width = UINT64_MAX;  // the first row
  bool needs_wide = false;

  void add(const Found& other) {
    unmapped.out_of_range += other.unmapped.out_of_range;
    unmapped.first_out_of_range =
        std::min(unmapped.first_out_of_range, other.unmapped.first_out_of_range);
    limit = std::max(limit, other.limit);
    wrong_width = std::min(wrong_width, other.wrong_width);
    needs_wide |= other.needs_wide;
  }
  void lacks(uint64_t source) {
    ++unmapped.out_of_range;
    unmapped.first_out_of_range = std::min(unmapped.first_out_of_range, source);
  }
};

class TargetReader {
 public:
  TargetReader(const Snapshot& snapshot, const Table& mapping, const ScatterPlanOptions& options,
               Backend& host, ScatterTargets* result)
      : snapshot_(snapshot), mapping_(mapping), options_(options), host_(host), result_(*result) {}

  Status look_up(const KeyColumn& sources, bool on_host);
  Status scan();
  Status finish();

 private:
  Status consume(const TargetRows& rows);
  Status consume_numbers(const TargetRows& rows);
  template <class Number, class Index>
  Found read_numbers(const TargetRows& rows, uint64_t begin, uint64_t end, Index* out) const;
  template <class Index>
  Found read_rows(const TargetRows& rows, Index* out) const;
  Status consume_keys(const TargetRows& rows);
  Status number_keys();

  std::string position_of(const TargetRows& rows, uint64_t row) const;
  static Status with_key(const TargetRows& rows, uint64_t row, Status status);
  Status check_mapped(const TargetRows& rows, const Found& found) const;

  const Snapshot& snapshot_;
  const Table& mapping_;
  const ScatterPlanOptions& options_;
  Backend& host_;
  ScatterTargets& result_;
  uint32_t width_ = 0;  // of the numbers; 0: not known yet
  // Names in the order of first occurrence.
  std::unique_ptr<ByteSet> names_;
  std::vector<std::byte> name_data_;
  std::vector<uint64_t> name_offsets_{0};
  std::vector<uint64_t> ids_, offsets_, was_new_;
};

Status TargetReader::look_up(const KeyColumn& sources, bool on_host) {
  GetResult batch;
  if (sources.size == 0) return snapshot_.get(mapping_, sources, &batch);
  result_.targets.resize(sources.size);
  uint64_t rows = first_rows;
  for (uint64_t first = 0; first < sources.size;) {
    uint64_t n = std::min(rows, sources.size - first);
    KeyColumn keys = sources.slice(first, n);
    STRIDE_TRY(snapshot_.get(mapping_, keys, &batch));
    STRIDE_TRY(consume({first, &batch.found, batch.values, on_host ? &keys : nullptr}));
    first += n;
    uint64_t row_bytes = std::max<uint64_t>(batch.values.bytes() / n, 1);
    rows = std::clamp<uint64_t>(max_value_bytes / row_bytes, 1, max_rows);
  }
  return {};
}

Status TargetReader::scan() {
  auto scan = snapshot_.scan(mapping_, {.batch_rows = 1 << 16});
  if (!scan.ok()) return scan.status();
  ScanBatch batch;
  while (scan->next(&batch)) {
    uint64_t first = result_.targets.size();
    result_.targets.resize(first + batch.keys.size);
    STRIDE_TRY(consume({first, nullptr, batch.values, &batch.keys}));
  }
  return scan->status();
}

Status TargetReader::finish() {
  if (options_.values == ScatterPlanTargets::keys) return number_keys();
  if (options_.targets) result_.target_count = options_.targets;
  return {};
}

Status TargetReader::consume(const TargetRows& rows) {
  return options_.values == ScatterPlanTargets::keys ? consume_keys(rows) : consume_numbers(rows);
}

// "table 'bridge': source 7 ('link 7')"
std::string TargetReader::position_of(const TargetRows& rows, uint64_t row) const {
  std::string text = "table '" + mapping_.name() + "': source " + std::to_string(rows.first + row);
  return rows.keys ? text + " (key " + in_quotes((*rows.keys)[row]) + ")" : text;
}

Status TargetReader::with_key(const TargetRows& rows, uint64_t row, Status status) {
  if (!rows.keys) return status;
  return std::move(status).with_key(std::string(as_text((*rows.keys)[row])));
}

Status TargetReader::check_mapped(const TargetRows& rows, const Found& found) const {
  if (options_.unmapped == Unmapped::count || found.unmapped.out_of_range == 0) return {};
  uint64_t row = found.unmapped.first_out_of_range - rows.first;
  if (!rows.has(row))
    return with_key(rows, row,
                    Status(StatusCode::not_found, position_of(rows, row) + " is not there")
                        .with_remedy("add it, or count what has no target"));
  uint64_t number = 0;
  Bytes value = rows.values[row];
  std::memcpy(&number, value.data(), std::min(value.size(), sizeof number));
  uint64_t targets = options_.targets ? options_.targets : max_scatter_plan_targets;
  return with_key(
      rows, row,
      Status::invalid(position_of(rows, row) + " has the target " + std::to_string(number) +
                      ", and there are " + std::to_string(targets))
          .with_remedy("give a larger number of targets, or count what has no target"));
}

// Rows [begin, end).
template <class Number, class Index>
Found TargetReader::read_numbers(const TargetRows& rows, uint64_t begin, uint64_t end,
                                 Index* out) const {
  const uint64_t limit = options_.targets ? options_.targets : max_scatter_plan_targets;
  const ValueColumn values = rows.values;
  Found found;
  uint64_t at = values.begin(begin);
  for (uint64_t i = begin; i < end; ++i) {
    uint64_t next = values.begin(i + 1);
    Index target = none<Index>;
    if (next - at == sizeof(Number)) {
      Number number;
      std::memcpy(&number, values.data + at, sizeof number);
      if (number < limit) {
        found.limit = std::max<uint64_t>(found.limit, uint64_t{number} + 1);
        target = static_cast<Index>(number);
      } else {
        found.lacks(rows.first + i);
      }
    } else if (rows.has(i)) {
      found.wrong_width = std::min(found.wrong_width, i);
    } else {
      found.lacks(rows.first + i);
    }
    out[i] = target;
    at = next;
  }
  found.needs_wide = sizeof(Index) == 4 && found.limit > none<uint32_t>;
  return found;
}

template <class Index>
Found TargetReader::read_rows(const TargetRows& rows, Index* out) const {
  Found all;
  std::mutex mutex;
  host_.parallel_for(rows.values.size, rows_per_task, [&](uint64_t begin, uint64_t end) {
    Found found = width_ == 4 ? read_numbers<uint32_t>(rows, begin, end, out)
                              : read_numbers<uint64_t>(rows, begin, end, out);
    std::lock_guard lock(mutex);
    all.add(found);
  });
  return all;
}

Status TargetReader::consume_numbers(const TargetRows& rows) {
  const uint64_t n = rows.values.size;
  // The first value says how wide all are.
  for (uint64_t i = 0; i < n && width_ == 0; ++i)
    if (rows.has(i)) width_ = rows.values[i].size() == 4 ? 4 : 8;
  if (options_.targets > none<uint32_t>) result_.targets.widen(host_);
  Found found;
  for (;;) {
    result_.targets.visit([&](auto* targets) { found = read_rows(rows, targets + rows.first); });
    if (!found.needs_wide) break;
    result_.targets.widen(host_);
  }
  if (found.wrong_width != UINT64_MAX)
    return with_key(
        rows, found.wrong_width,
        Status::invalid(position_of(rows, found.wrong_width) + " has a value of " +
                        std::to_string(rows.values[found.wrong_width].size()) +
                        " bytes, which is no number of " + std::to_string(width_) + " bytes")
            .with_remedy("make all values 4 bytes or all 8, or use ScatterPlanTargets::keys"));
  STRIDE_TRY(check_mapped(rows, found));
  result_.report.out_of_range += found.unmapped.out_of_range;
  result_.report.first_out_of_range =
      std::min(result_.report.first_out_of_range, found.unmapped.first_out_of_range);
  result_.target_count = std::max(result_.target_count, found.limit);
  return {};
}

// Numbers names in the order of first occurrence.
Status TargetReader::consume_keys(const TargetRows& rows) {
  if (!names_) {
    auto made = host_.sets().make_byte_set();
    if (!made.ok()) return made.status();
    names_ = std::move(*made);
  }
  const uint64_t n = rows.values.size;
  Found found;
  ValueColumn names = rows.values;
  if (rows.found) {
    // The rows that are there lie one behind the other: those that are not take no bytes.
    offsets_.clear();
    for (uint64_t i = 0; i < n; ++i) {
      if (rows.has(i)) {
        offsets_.push_back(rows.values.begin(i));
      } else {
        found.lacks(rows.first + i);
      }
    }
    offsets_.push_back(rows.values.begin(n));
    names = Column::variable(rows.values.data, offsets_.data(), offsets_.size() - 1);
  }
  STRIDE_TRY(check_mapped(rows, found));
  ids_.resize(names.size);
  was_new_.assign((names.size + 63) / 64, 0);
  STRIDE_TRY(names_->find_or_put(names, ids_, was_new_));
  for (uint64_t i = 0; i < names.size; ++i) {
    if (!(was_new_[i / 64] >> i % 64 & 1)) continue;
    Bytes name = names[i];
    name_data_.insert(name_data_.end(), name.begin(), name.end());
    name_offsets_.push_back(name_data_.size());
  }
  if (names_->size() > max_index_keys)
    return Status(StatusCode::resource_exhausted, "table '" + mapping_.name() + "' has more than " +
                                                      std::to_string(max_index_keys) +
                                                      " different targets")
        .with_remedy("give targets numbers");
  result_.targets.visit([&](auto* targets) {
    using Index = std::remove_pointer_t<decltype(targets)>;
    for (uint64_t i = 0, at = 0; i < n; ++i)
      targets[rows.first + i] = rows.has(i) ? static_cast<Index>(ids_[at++]) : none<Index>;
  });
  result_.report.out_of_range += found.unmapped.out_of_range;
  result_.report.first_out_of_range =
      std::min(result_.report.first_out_of_range, found.unmapped.first_out_of_range);
  return {};
}

// Puts the names into their order, and gives each source its target's place there.
Status TargetReader::number_keys() {
  const KeyColumn names =
      Column::variable(name_data_.data(), name_offsets_.data(), name_offsets_.size() - 1);
  result_.target_count = names.size;
  result_.key_offsets.reserve(names.size + 1);
  result_.key_offsets.push_back(0);
  result_.key_data.reserve(name_data_.size());
  if (names.size == 0) return {};
  // Row ids count rows through chunks of the largest size.
  constexpr uint64_t chunk_rows = uint64_t{1} << row_bits;
  std::vector<KeyColumn> chunks;
  for (uint64_t first = 0; first < names.size; first += chunk_rows)
    chunks.push_back(names.slice(first, std::min(chunk_rows, names.size - first)));
  Sorted sorted;
  STRIDE_TRY(host_.sorter().sort(chunks, &sorted));
  BulkVector<uint32_t> places(names.size);
  for (uint64_t i = 0; i < names.size; ++i) {
    places[sorted.order[i]] = static_cast<uint32_t>(i);
    Bytes name = names[sorted.order[i]];
    result_.key_data.insert(result_.key_data.end(), name.begin(), name.end());
    result_.key_offsets.push_back(result_.key_data.size());
  }
  result_.targets.visit([&](auto* targets) {
    using Index = std::remove_pointer_t<decltype(targets)>;
    host_.parallel_for(result_.targets.size(), rows_per_task, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i)
        if (targets[i] != none<Index>) targets[i] = places[targets[i]];
    });
  });
  return {};
}

}  // namespace

void NumberList::widen(Backend& host) {
  if (is_wide_) return;
  wide_.resize(narrow_.size());
  host.parallel_for(narrow_.size(), rows_per_task, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i)
      wide_[i] = narrow_[i] == none<uint32_t> ? none<uint64_t> : narrow_[i];
  });
  narrow_ = {};
  is_wide_ = true;
}

Status read_scatter_targets(const Snapshot& snapshot, const Table& mapping,
                            const KeyColumn* sources, bool on_host,
                            const ScatterPlanOptions& options, Backend& host,
                            ScatterTargets* result) {
  TargetReader reader(snapshot, mapping, options, host, result);
  STRIDE_TRY(sources ? reader.look_up(*sources, on_host) : reader.scan());
  return reader.finish();
}

}  // namespace stride
