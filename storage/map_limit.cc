#include "storage/map_limit.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>

namespace stride {

namespace {

constexpr uint64_t largest_on_heap = 1 << 20;

std::atomic<uint64_t> mappings{0};

uint64_t read_max_mappings() {
  uint64_t max = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> max;
  return max ? max : 65530;  // Linux's default
}

// Counts the mappings of the whole process; 0 where the system does not say.
uint64_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  using Iterator = std::istreambuf_iterator<char>;
  return static_cast<uint64_t>(std::count(Iterator(maps), Iterator(), '\n'));
}

}  // namespace

CountedMapping::CountedMapping() { mappings.fetch_add(1, std::memory_order_relaxed); }
CountedMapping::~CountedMapping() { mappings.fetch_sub(1, std::memory_order_relaxed); }

bool belongs_on_heap(uint64_t bytes) {
  static const uint64_t many = read_max_mappings() / 2;
  return bytes <= largest_on_heap && mappings.load(std::memory_order_relaxed) >= many;
}

Status no_room_for_mapping(const std::string& message) {
  uint64_t count = count_mappings(), max = read_max_mappings();
  if (count < max - max / 50) {
    return Status(StatusCode::resource_exhausted, message)
        .with_remedy("raise the limit of address space (ulimit -v), or write less at once");
  }
  return Status(StatusCode::resource_exhausted,
                message + ": the process has " + std::to_string(count) +
                    " memory mappings of the " + std::to_string(max) +
                    " that the system allows (vm.max_map_count), and each larger segment needs one")
      .with_remedy("raise that limit (sysctl vm.max_map_count=" + std::to_string(4 * max) +
                   "), and compact the database, so that it has fewer segments");
}

}  // namespace stride
