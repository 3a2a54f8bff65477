#include "benchmark/harness/expected.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace stride::benchmark {
namespace {

constexpr uint64_t min_part = 16384;

uint64_t load_number(const std::byte* p) {
  uint64_t number;
  std::memcpy(&number, p, 8);
  return std::endian::native == std::endian::little ? __builtin_bswap64(number) : number;
}

Status wrong(std::string message) {
  return Status(StatusCode::corruption, "wrong answer: " + std::move(message));
}

}  // namespace

std::string describe(Bytes bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string text = "0x";
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 32); ++i) {
    text += digits[static_cast<uint8_t>(bytes[i]) >> 4];
    text += digits[static_cast<uint8_t>(bytes[i]) & 15];
  }
  return text + (bytes.size() > 32 ? "... (" : " (") + std::to_string(bytes.size()) + " bytes)";
}

void ReadCheck::batch(const KeyColumn& keys, const ValueColumn& values) {
  if (keys.size == 0) return;
  ascends_ &= keys.size == values.size;
  if (keys_are_numbers_ && keys.is_fixed() && keys.width == 8) {
    // No branch in the loop, so that it can run on several keys at a time.
    uint64_t first = load_number(keys.data);
    uint64_t descents = records_ != 0 && first <= last_number_;
    for (uint64_t i = 1; i < keys.size; ++i) {
      descents += load_number(keys.data + 8 * i) <= load_number(keys.data + 8 * i - 8);
    }
    last_number_ = load_number(keys.data + 8 * (keys.size - 1));
    ascends_ &= descents == 0;
  } else {
    ascends_ &= records_ == 0 || compare(as_bytes(last_key_), keys[0]) < 0;
    for (uint64_t i = 1; i < keys.size; ++i) ascends_ &= compare(keys[i - 1], keys[i]) < 0;
    last_key_.assign(as_text(keys[keys.size - 1]));
  }
  records_ += keys.size;
  byte_sum_ += benchmark::byte_sum(values.data + values.begin(0), values.bytes());
}

Expected::Expected(const Records* records, Parallel* parallel) : records_(records) {
  ResultBuffer<SortedRow> rows;
  sort_rows(*records, parallel, &rows);
  order_.reset(rows.size());
  for (uint64_t i = 0; i < rows.size(); ++i) order_[i] = rows[i].row;
  find_groups();
  sum_values(parallel);
}

void Expected::find_groups() {
  uint64_t n = order_.size();
  ends_.reset(n);
  uint64_t groups = 0;
  for (uint64_t i = 1; i <= n; ++i) {
    if (i == n || compare(records_->key(order_[i - 1]), records_->key(order_[i])) != 0) {
      ends_[groups++] = static_cast<uint32_t>(i);
    }
  }
  if (groups == n) {
    ends_ = {};
    return;
  }
  ResultBuffer<uint32_t> fitting;
  fitting.reset(groups);
  std::copy_n(ends_.data(), groups, fitting.data());
  std::swap(ends_, fitting);
}

void Expected::sum_values(Parallel* parallel) {
  std::atomic<uint64_t> bytes{0}, smallest{0}, largest{0};
  parallel->for_parts(size(), min_part, [&](unsigned, uint64_t begin, uint64_t end) {
    uint64_t part_bytes = 0, low_sum = 0, high_sum = 0;
    for (uint64_t rank = begin; rank < end; ++rank) {
      uint64_t low = ~uint64_t{0}, high = 0;
      uint64_t first = group_begin(rank), last = group_end(rank) - 1;
      for (uint64_t i = first; i <= last; ++i) {
        bool replaced =
            i < last && records_->flow_of(order_[i]) == records_->flow_of(order_[i + 1]);
        if (replaced) continue;
        Bytes value = records_->value(order_[i]);
        uint64_t sum = benchmark::byte_sum(value.data(), value.size());
        low = std::min(low, sum);
        high = std::max(high, sum);
      }
      low_sum += low;
      high_sum += high;
      part_bytes += records_->key(order_[last]).size() + records_->value(order_[last]).size();
    }
    bytes += part_bytes;
    smallest += low_sum;
    largest += high_sum;
  });
  bytes_ = bytes;
  min_sum_ = smallest;
  max_sum_ = largest;
}

bool Expected::has_value(uint64_t rank, Bytes value) const {
  uint64_t last = group_end(rank) - 1;
  for (uint64_t i = group_begin(rank); i <= last; ++i) {
    bool replaced = i < last && records_->flow_of(order_[i]) == records_->flow_of(order_[i + 1]);
    if (!replaced && compare(records_->value(order_[i]), value) == 0) return true;
  }
  return false;
}

uint64_t Expected::lower_bound(Bytes key) const {
  uint64_t first = 0, count = size();
  while (count > 0) {
    uint64_t half = count / 2;
    if (compare(this->key(first + half), key) < 0) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

Status Expected::check(const ReadCheck& read) const {
  if (!read.ascends()) return wrong("the keys of an ordered read do not ascend");
  if (read.records() != size()) {
    return wrong("an ordered read gave " + std::to_string(read.records()) + " records instead of " +
                 std::to_string(size()));
  }
  if (read.byte_sum() < min_sum_ || read.byte_sum() > max_sum_) {
    return wrong("an ordered read gave changed values: their bytes add up to " +
                 std::to_string(read.byte_sum()) + " instead of " + std::to_string(max_sum_));
  }
  return {};
}

void FullCheck::record(Bytes key, Bytes value) {
  uint64_t rank = next_++;
  if (!problem_.empty() || rank >= expected_->size()) return;
  if (Bytes wanted = expected_->key(rank); compare(wanted, key) != 0) {
    problem_ = "record " + std::to_string(rank) + " has the key " + describe(key) + " instead of " +
               describe(wanted);
  } else if (!expected_->has_value(rank, value)) {
    problem_ = "record " + std::to_string(rank) + " with the key " + describe(key) +
               " has the value " + describe(value) + ", which was not its last";
  }
}

void FullCheck::record(uint64_t key, Bytes value) {
  std::byte bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(key >> (56 - 8 * i));
  record(Bytes(bytes), value);
}

Status FullCheck::finish() const {
  if (!problem_.empty()) return wrong(problem_);
  if (next_ != expected_->size()) {
    return wrong("the database holds " + std::to_string(next_) + " records instead of " +
                 std::to_string(expected_->size()));
  }
  return {};
}

}  // namespace stride::benchmark
