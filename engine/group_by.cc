#include "engine/group_by.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/device/executor.h"
#include "engine/snapshot_version.h"
#include "gpu/backend.h"
#include "storage/no_throw.h"
#include "storage/quoted.h"
#include "storage/work_watch.h"

namespace stride {

namespace {

// Rows are combined so many at a time, counted from the first one, however a scan cuts them: so
// float sums do not depend on that.
constexpr uint64_t block_rows = 1 << 20;
constexpr uint64_t rows_per_task = 1 << 14;

__extension__ typedef __int128 Wide;

// Calls body with a value of the type.
template <class Body>
auto with_type(NumberType type, const Body& body) {
  switch (type) {
    case NumberType::i32:
      return body(int32_t{});
    case NumberType::i64:
      return body(int64_t{});
    case NumberType::f32:
      return body(float{});
    default:
      return body(double{});
  }
}

// What min and max begin with: it comes behind, or before, all that a column may have.
template <class T>
T neutral(ScatterOperation operation) {
  bool min = operation == ScatterOperation::min;
  if constexpr (std::is_integral_v<T>) {
    return min ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
  } else {
    T nan = std::numeric_limits<T>::quiet_NaN();
    return std::copysign(nan, min ? T{1} : T{-1});
  }
}

// Whether a comes before b, as gpu/scatter_add.h orders them.
template <class T>
bool ordered_before(T a, T b) {
  if constexpr (std::is_integral_v<T>) return a < b;
  if (a < b || b < a) return a < b;
  return std::signbit(a) && !std::signbit(b);  // zeros
}

}  // namespace

// Takes rows in the order of their keys.
class GroupBuilder {
 public:
  GroupBuilder(Executor& executor, const Table& table, const GroupOptions& options)
      : executor_(executor), table_(table), options_(options), width_(width_of(options.type)) {
    rows_.resize(block_rows * width_);
    groups_.resize(block_rows);
  }

  Status add(const ScanBatch& batch);
  Status finish(GroupResult* result);

 private:
  Status add_part(const ScanBatch& batch, uint64_t first, uint64_t n);
  Status copy_values(const ScanBatch& batch, uint64_t first, uint64_t n);
  bool wants_values() const { return options_.sum || options_.min || options_.max; }
  void mark_groups(const KeyColumn& keys);
  Bytes prefix_of(Bytes key) const {
    return options_.prefix_bytes < key.size() ? key.first(options_.prefix_bytes) : key;
  }
  // The prefix of the current group. Precondition: there was a row.
  Bytes current() const {
    return Bytes(result_.key_data_).subspan(result_.key_offsets_[result_.size() - 1]);
  }
  void begin_group(Bytes prefix);

  Status combine_block();
  // Work of a block on the device, or where that fails or is not wanted, on the host.
  template <class Work>
  Status run(const Work& work) {
    if (options_.backend) return work(*options_.backend);
    auto device = executor_.insists() && used_ >= Executor::min_rows ? executor_.device() : nullptr;
    if (!device) return work(*executor_.host());
    Status status = work(*device);
    return executor_.failed(status) ? work(*executor_.host()) : status;
  }
  // A combination of the block's numbers for each of its groups.
  template <class T>
  Status scatter(const Numbers& numbers, ScatterOperation operation, T neutral, BulkVector<T>* out);
  Status add_integers();
  Status add_floats();
  template <class T>
  Status add_extremes();
  template <class T>
  Status add_extremes(ScatterOperation operation, std::vector<std::byte>* all);
  // Copies of the block's rows, changed on the way.
  template <class From, class To, class Change>
  void convert(BulkVector<To>* to, const Change& change) const;

  uint64_t block_groups() const { return result_.size() - first_group_; }
  // Precondition: open_sum_ is that of the group.
  Status check_sum(uint64_t group) const;

  Executor& executor_;
  const Table& table_;
  const GroupOptions& options_;
  const uint32_t width_;
  GroupResult result_;

  BulkVector<std::byte> rows_;   // of the block
  BulkVector<uint32_t> groups_;  // of each row, counted from first_group_
  uint64_t used_ = 0;            // rows of the block
  uint64_t first_group_ = 0;     // of the block
  bool continues_ = false;       // the block's first group has rows of blocks before
  Wide open_sum_ = 0;            // of the last group, as far as its rows are combined
};

Status GroupBuilder::add(const ScanBatch& batch) {
  for (uint64_t first = 0; first < batch.keys.size;) {
    uint64_t n = std::min(batch.keys.size - first, block_rows - used_);
    STRIDE_TRY(add_part(batch, first, n));
    first += n;
  }
  return {};
}

Status GroupBuilder::add_part(const ScanBatch& batch, uint64_t first, uint64_t n) {
  if (wants_values()) STRIDE_TRY(copy_values(batch, first, n));
  if (used_ == 0) {
    continues_ = result_.size() > 0 && std::ranges::equal(prefix_of(batch.keys[first]), current());
    first_group_ = result_.size() - (continues_ ? 1 : 0);
  }
  mark_groups(batch.keys.slice(first, n));
  used_ += n;
  return used_ < block_rows ? Status() : combine_block();
}

Status GroupBuilder::copy_values(const ScanBatch& batch, uint64_t first, uint64_t n) {
  const ValueColumn& values = batch.values;
  auto wrong = [&](uint64_t row) {
    return Status::invalid("table '" + table_.name() + "', key " + in_quotes(batch.keys[row]) +
                           ": a value of " + std::to_string(values[row].size()) +
                           " bytes, which is no " + std::string(to_string(options_.type)))
        .with_key(std::string(as_text(batch.keys[row])))
        .with_remedy("give the type that the values have");
  };
  if (values.is_fixed()) {
    if (values.width != width_) return wrong(first);
  } else {
    for (uint64_t i = first; i < first + n; ++i)
      if (values.offsets[i + 1] - values.offsets[i] != width_) return wrong(i);
  }
  // Rows of a batch lie one behind the other.
  std::memcpy(rows_.data() + used_ * width_, values.data + values.begin(first), n * width_);
  return {};
}

void GroupBuilder::begin_group(Bytes prefix) {
  result_.key_data_.insert(result_.key_data_.end(), prefix.begin(), prefix.end());
  result_.key_offsets_.push_back(result_.key_data_.size());
  result_.counts_.push_back(0);
}

void GroupBuilder::mark_groups(const KeyColumn& keys) {
  uint32_t* out = groups_.data() + used_;
  for (uint64_t row = 0; row < keys.size;) {
    Bytes prefix = prefix_of(keys[row]);
    if (result_.size() == 0 || !std::ranges::equal(prefix, current())) begin_group(prefix);
    auto same = [&](uint64_t i) { return std::ranges::equal(prefix_of(keys[i]), prefix); };
    // The rows of a group lie together: its end is in ever larger steps from here, then between.
    uint64_t inside = row, step = 1;
    while (inside + step < keys.size && same(inside + step)) {
      inside += step;
      step *= 2;
    }
    uint64_t outside = std::min(inside + step, keys.size);
    while (outside - inside > 1) {
      uint64_t middle = inside + (outside - inside) / 2;
      (same(middle) ? inside : outside) = middle;
    }
    auto group = static_cast<uint32_t>(result_.size() - 1 - first_group_);
    std::fill(out + row, out + outside, group);
    result_.counts_.back() += outside - row;
    row = outside;
  }
}

Status GroupBuilder::combine_block() {
  if (used_ == 0) return {};
  if (options_.sum) STRIDE_TRY(is_float(options_.type) ? add_floats() : add_integers());
  STRIDE_TRY(with_type(options_.type, [&](auto zero) { return add_extremes<decltype(zero)>(); }));
  used_ = 0;
  return {};
}

template <class T>
Status GroupBuilder::scatter(const Numbers& numbers, ScatterOperation operation, T neutral,
                             BulkVector<T>* out) {
  return run([&](Backend& backend) {
    out->resize(block_groups());
    std::fill(out->begin(), out->end(), neutral);
    return backend.scatter().apply(numbers, Indexes::of(std::span(groups_).first(used_)),
                                   MutableNumbers::of(std::span(*out)),
                                   {.operation = operation, .mode = ScatterMode::reproducible});
  });
}

template <class From, class To, class Change>
void GroupBuilder::convert(BulkVector<To>* to, const Change& change) const {
  to->resize(used_);
  const auto* from = reinterpret_cast<const From*>(rows_.data());
  executor_.host()->parallel_for(used_, rows_per_task, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) (*to)[i] = change(from[i]);
  });
}

Status GroupBuilder::check_sum(uint64_t group) const {
  if (open_sum_ == result_.integer_sums_[group]) return {};
  return Status::invalid("table '" + table_.name() +
                         "': the sum of the group of keys that begin with " +
                         in_quotes(result_.keys()[group]) + " does not fit into 64 bits")
      .with_key(std::string(as_text(result_.keys()[group])))
      .with_remedy("group by more bytes, or store the values as f64");
}

// Sums of a block fit: of 32-bit numbers, and of the two halves of 64-bit ones.
Status GroupBuilder::add_integers() {
  BulkVector<int64_t> numbers, low, high;
  bool halves = options_.type == NumberType::i64;
  if (halves) {
    convert<int64_t>(&numbers, [](int64_t x) { return x & 0xFFFFFFFF; });
  } else {
    convert<int32_t>(&numbers, [](int32_t x) { return int64_t{x}; });
  }
  STRIDE_TRY(scatter<int64_t>(Numbers::of(std::span<const int64_t>(numbers)), ScatterOperation::add,
                              0, &low));
  if (halves) {
    convert<int64_t>(&numbers, [](int64_t x) { return x >> 32; });
    STRIDE_TRY(scatter<int64_t>(Numbers::of(std::span<const int64_t>(numbers)),
                                ScatterOperation::add, 0, &high));
  }
  if (!continues_ && first_group_ > 0) STRIDE_TRY(check_sum(first_group_ - 1));
  result_.integer_sums_.resize(result_.size());
  for (uint64_t g = 0; g < block_groups(); ++g) {
    if (g > 0 || !continues_) open_sum_ = 0;
    open_sum_ += low[g];
    if (halves) open_sum_ += Wide{high[g]} * (Wide{1} << 32);
    result_.integer_sums_[first_group_ + g] = static_cast<int64_t>(open_sum_);
    // The last group may have more rows, which may bring its sum back into range.
    if (g + 1 < block_groups()) STRIDE_TRY(check_sum(first_group_ + g));
  }
  return {};
}

Status GroupBuilder::add_floats() {
  BulkVector<double> widened, sums;
  const auto* numbers = reinterpret_cast<const double*>(rows_.data());
  if (options_.type == NumberType::f32) {
    convert<float>(&widened, [](float x) { return double{x}; });
    numbers = widened.data();
  }
  STRIDE_TRY(
      scatter<double>(Numbers::of(std::span(numbers, used_)), ScatterOperation::add, 0, &sums));
  result_.float_sums_.resize(result_.size());
  for (uint64_t g = 0; g < sums.size(); ++g) result_.float_sums_[first_group_ + g] += sums[g];
  return {};
}

template <class T>
Status GroupBuilder::add_extremes(ScatterOperation operation, std::vector<std::byte>* all) {
  const T none = neutral<T>(operation);
  BulkVector<T> found;
  STRIDE_TRY(scatter<T>(Numbers::of(std::span(reinterpret_cast<const T*>(rows_.data()), used_)),
                        operation, none, &found));
  all->resize(result_.size() * sizeof(T));
  auto* to = reinterpret_cast<T*>(all->data()) + first_group_;
  uint64_t g = 0;
  if (continues_) {
    bool better = operation == ScatterOperation::min ? ordered_before(found[0], to[0])
                                                     : ordered_before(to[0], found[0]);
    if (better || to[0] != to[0]) to[0] = found[0];
    g = 1;
  }
  for (; g < found.size(); ++g) to[g] = found[g];
  return {};
}

template <class T>
Status GroupBuilder::add_extremes() {
  if (options_.min) STRIDE_TRY(add_extremes<T>(ScatterOperation::min, &result_.mins_));
  if (options_.max) STRIDE_TRY(add_extremes<T>(ScatterOperation::max, &result_.maxes_));
  return {};
}

Status GroupBuilder::finish(GroupResult* result) {
  STRIDE_TRY(combine_block());
  if (!result_.integer_sums_.empty()) STRIDE_TRY(check_sum(result_.size() - 1));
  *result = std::move(result_);
  return {};
}

namespace {

Status group_rows(const Snapshot& snapshot, const Table& table, ScanOptions range,
                  const GroupOptions& options, GroupResult* result) {
  range.reverse = false;
  range.batch_rows = 1 << 16;
  auto scan = snapshot.scan(table, range);
  if (!scan.ok()) return scan.status();
  GroupBuilder builder(*SnapshotVersion::of(snapshot)->executor, table, options);
  ScanBatch batch;
  while (scan->next(&batch)) {
    STRIDE_TRY(WorkWatch::check());
    STRIDE_TRY(builder.add(batch));
  }
  STRIDE_TRY(scan->status());
  return builder.finish(result);
}

}  // namespace

Result<GroupResult> group_by(const Snapshot& snapshot, const Table& table, const ScanOptions& range,
                             const GroupOptions& asked) {
  GroupOptions options = asked;
  if (options.type == NumberType::none) options.type = table.numbers();
  if (options.type == NumberType::none || options.type == NumberType::f16 ||
      options.type == NumberType::bf16)
    return Status::invalid("values of type " + std::string(to_string(options.type)) +
                           " cannot be grouped")
        .with_remedy("give i32, i64, f32 or f64, or use a table of numbers");
  GroupResult result;
  const WorkWatch::Scope watched(WorkWatch::offered());
  STRIDE_TRY(no_throw([&] { return group_rows(snapshot, table, range, options, &result); }));
  return result;
}

}  // namespace stride
