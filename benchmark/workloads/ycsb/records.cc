#include "benchmark/workloads/ycsb/records.h"

#include <algorithm>
#include <cstring>

#include "benchmark/harness/random_bits.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t one_under_way = 1, one_version = uint64_t{1} << 8;
constexpr uint32_t oldest_shift = 36;
constexpr uint64_t below_oldest = (uint64_t{1} << oldest_shift) - 1;

uint32_t under_way(uint64_t state) { return state & 0xFF; }
uint32_t last_begun(uint64_t state) { return state >> 8 & 0xFFFFFFF; }
uint32_t oldest_of(uint64_t state) { return static_cast<uint32_t>(state >> oldest_shift); }

// Word i of a value, from the third on.
uint64_t pattern_start(uint64_t record, uint64_t version) {
  return scramble(record * 0x9E3779B97F4A7C15ull + version);
}
constexpr uint64_t pattern_step = 0xD1B54A32D192ED03ull;

}  // namespace

YcsbRecords::YcsbRecords(const YcsbRecordsOptions& options)
    : options_(options),
      states_(new std::atomic<uint64_t>[options.capacity]()),
      next_(options.loaded),
      visible_(options.loaded) {
  if (!options.scans) return;
  sorted_.resize(options.loaded);
  for (uint64_t n = 0; n < options.loaded; ++n) sorted_[n] = hash(n);
  std::ranges::sort(sorted_);
}

uint64_t YcsbRecords::hash(uint64_t record) const {
  return scramble(record + options_.seed * 0x9E3779B97F4A7C15ull);
}

uint64_t YcsbRecords::loaded_from(uint64_t record) const {
  return static_cast<uint64_t>(sorted_.end() - std::ranges::lower_bound(sorted_, hash(record)));
}

YcsbKey YcsbRecords::key(uint64_t record) const {
  YcsbKey key;
  std::memcpy(key.text, "user", 4);
  uint64_t rest = hash(record);
  for (uint32_t i = YcsbKey::bytes; i > 4; rest /= 10)
    key.text[--i] = static_cast<char>('0' + rest % 10);
  return key;
}

void YcsbRecords::make_value(uint64_t record, uint32_t version, std::string* value) const {
  value->resize(options_.value_bytes);
  uint64_t word = pattern_start(record, version);
  const uint64_t head[2] = {record, version};
  std::memcpy(value->data(), head, sizeof(head));
  size_t at = sizeof(head);
  for (; at + sizeof(word) <= value->size(); at += sizeof(word), word += pattern_step)
    std::memcpy(value->data() + at, &word, sizeof(word));
  std::memcpy(value->data() + at, &word, value->size() - at);
}

bool YcsbRecords::is_value(uint64_t record, uint32_t version, Bytes value) const {
  const std::byte* at = value.data() + min_value_bytes;
  const std::byte* const end = value.data() + value.size();
  uint64_t word = pattern_start(record, version), differences = 0;
  for (; end - at >= 8; at += 8, word += pattern_step) {
    uint64_t found;
    std::memcpy(&found, at, sizeof(found));
    differences |= found ^ word;
  }
  return differences == 0 && std::memcmp(at, &word, static_cast<size_t>(end - at)) == 0;
}

YcsbWrite YcsbRecords::begin_write(uint64_t record) {
  const uint64_t before = states_[record].fetch_add(one_under_way + one_version);
  return {last_begun(before) + 1, under_way(before) == 0};
}

void YcsbRecords::end_write(uint64_t record, const YcsbWrite& write) {
  std::atomic<uint64_t>& state = states_[record];
  uint64_t before = state.load(), after = 0;
  do {
    after = before - one_under_way;
    if (write.alone && under_way(before) == 1 && last_begun(before) == write.version)
      after = (after & below_oldest) | uint64_t{write.version} << oldest_shift;
  } while (!state.compare_exchange_weak(before, after));
}

uint32_t YcsbRecords::oldest(uint64_t record) const { return oldest_of(states_[record].load()); }

bool YcsbRecords::check(uint64_t record, uint32_t oldest, Bytes value) const {
  if (value.size() != options_.value_bytes) return false;
  uint64_t head[2];
  std::memcpy(head, value.data(), sizeof(head));
  const uint32_t newest = last_begun(states_[record].load(std::memory_order_acquire));
  if (head[0] != record || head[1] < oldest || head[1] == 0 || head[1] > newest) return false;
  return is_value(record, static_cast<uint32_t>(head[1]), value);
}

bool YcsbRecords::check_row(Bytes row_key, Bytes value, uint64_t* record) const {
  if (value.size() != options_.value_bytes) return false;
  std::memcpy(record, value.data(), sizeof(*record));
  if (*record >= options_.capacity || as_text(row_key) != as_text(key(*record).view()))
    return false;
  return check(*record, 0, value);
}

uint64_t YcsbRecords::begin_insert() {
  const uint64_t record = next_.fetch_add(1, std::memory_order_relaxed);
  return std::min(record, options_.capacity);
}

void YcsbRecords::end_insert(uint64_t record, const YcsbWrite& write) {
  end_write(record, write);
  uint64_t first = visible_.load();
  while (first < options_.capacity && oldest(first) > 0)
    if (visible_.compare_exchange_weak(first, first + 1)) ++first;
}

}  // namespace stride::benchmark
