#include "adapters/cli/input/repeated_keys.h"

#include <functional>
#include <string_view>

namespace stride::cli {
namespace {

constexpr uint32_t slot_count = 1 << 16;
constexpr uint32_t max_keys = slot_count / 2;
// After so many rows it is clear whether keys are repeated.
constexpr uint64_t sampled_rows = 1 << 13;

}  // namespace

bool RepeatedKeys::count(const KeyColumn& keys) {
  slots_.assign(slot_count, {});
  rows_.clear();
  times_.clear();
  for (uint64_t row = 0; row < keys.size; ++row) {
    const std::string_view key = as_text(keys[row]);
    const auto hash = static_cast<uint32_t>(std::hash<std::string_view>()(key));
    uint32_t at = hash % slot_count;
    while (slots_[at].place != 0 &&
           (slots_[at].hash != hash || as_text(keys[rows_[slots_[at].place - 1]]) != key))
      at = (at + 1) % slot_count;
    if (slots_[at].place != 0) {
      ++times_[slots_[at].place - 1];
      continue;
    }
    if (rows_.size() == max_keys) return false;
    rows_.push_back(static_cast<uint32_t>(row));
    times_.push_back(1);
    slots_[at] = {hash, static_cast<uint32_t>(rows_.size())};
    if (rows_.size() > sampled_rows / 2 && row < sampled_rows) return false;
  }
  return rows_.size() <= keys.size / 2;
}

}  // namespace stride::cli
