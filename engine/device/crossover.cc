#include "engine/device/crossover.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <vector>

namespace stride {
namespace {

// Keys of a segment at random, as queries.
struct SampledKeys {
  std::vector<std::byte> bytes;
  std::vector<uint64_t> offsets{0};

  SampledKeys(const IndexedSegment& segment, uint64_t count) {
    std::mt19937_64 random(1);
    for (uint64_t i = 0; i < count; ++i) {
      Bytes key = segment.keys()[random() % segment.rows()];
      bytes.insert(bytes.end(), key.begin(), key.end());
      offsets.push_back(bytes.size());
    }
  }
  KeyColumn column(const IndexedSegment& segment, uint64_t count) const {
    const PackedColumn& keys = segment.keys();
    return keys.fixed ? KeyColumn::fixed(bytes.data(), keys.width, count)
                      : KeyColumn::variable(bytes.data(), offsets.data(), count);
  }
};

// The shortest of some calls, in seconds.
double fastest_find(Backend& backend, const IndexView& index, const KeyColumn& queries) {
  std::vector<Location> found(queries.size);
  double fastest = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 4; ++repeat) {
    auto start = std::chrono::steady_clock::now();
    if (!backend.tree_index().find({&index, 1}, queries, found).ok()) break;
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    fastest = std::min(fastest, taken.count());
  }
  return fastest;
}

}  // namespace

// Two batch sizes on both sides give two lines; they cross at the batch size that is sought.
void Crossover::measure(Backend& host, Backend& device, const IndexedSegment& segment,
                        const ResidentIndex& resident) {
  constexpr uint64_t small = min_queries, large = 32 * small;
  std::lock_guard lock(mutex_);
  if (segment.rows() < std::max(large, 4 * measured_rows_)) return;
  SampledKeys keys(segment, large);
  IndexView here = segment.index(), there = here;
  there.resident = &resident;
  double seconds[2][2];
  for (int side = 0; side < 2; ++side) {
    Backend& backend = side == 0 ? host : device;
    const IndexView& index = side == 0 ? here : there;
    seconds[side][0] = fastest_find(backend, index, keys.column(segment, small));
    seconds[side][1] = fastest_find(backend, index, keys.column(segment, large));
  }
  double ahead = seconds[1][0] - seconds[0][0];   // the host's lead with few queries
  double behind = seconds[0][1] - seconds[1][1];  // its lag with many
  uint64_t crossover = small;
  if (ahead > 0) {
    double share = behind + ahead > 0 ? ahead / (behind + ahead) : 64;
    crossover = small + static_cast<uint64_t>(std::min(share, 64.0) * (large - small));
  }
  measured_rows_ = segment.rows();
  queries_.store(crossover, std::memory_order_relaxed);
}

}  // namespace stride
