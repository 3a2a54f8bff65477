#include "engine/background/pace.h"

#include <algorithm>
#include <thread>

#include "engine/merge/tiers.h"

namespace stride {
namespace {

constexpr double min_sleep_s = 0.001, max_sleep_s = 0.02;
constexpr double max_free_merge_s = 1;

}  // namespace

double memtable_pace(uint64_t bytes, uint64_t seal_above_bytes, double flush_rate) {
  const double half = static_cast<double>(seal_above_bytes) / 2;
  const double full = std::clamp(static_cast<double>(bytes) / half - 1, 0.0, 1.0);
  return full == 0 ? unpaced : std::max(flush_rate * 2 * (1 - full), flush_rate / 16);
}

double merge_pace(const MergeDebt& debt, double merge_rate, double flush_rate) {
  if (merge_rate <= 0 || debt.bottom == 0) return unpaced;
  const auto bottom = static_cast<double>(debt.bottom);
  const auto written = static_cast<double>(debt.written);
  const double from = 2 * TierOptions().bottom_share;
  const double over = std::clamp((written / bottom - from) / (1 - from), 0.0, 1.0);
  const double takes_s = (bottom + written) / merge_rate;
  const double counts = std::clamp(takes_s - max_free_merge_s, 0.0, 1.0);
  if (over * counts == 0) return unpaced;
  // With as much above as in the bottom run, half of what is merged is new.
  const double slowest = std::min(merge_rate / 4, flush_rate);
  return flush_rate + over * counts * (slowest - flush_rate);
}

void Pacer::pace(uint64_t total, double bytes_per_s) {
  const auto now = Clock::now();
  const double passed = std::chrono::duration<double>(now - at_).count();
  const auto grown = static_cast<double>(total - total_);
  // Where it was not called lately, what came since is not counted.
  owed_s_ = passed > 0.1 ? 0 : std::max(0.0, owed_s_ + grown / bytes_per_s - passed);
  total_ = total;
  at_ = now;
  if (owed_s_ > min_sleep_s)
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(owed_s_, max_sleep_s)));
}

}  // namespace stride
