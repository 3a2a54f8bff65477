#include "benchmark/harness/arguments.h"

#include <algorithm>

namespace stride::benchmark {

Result<uint64_t> parse_count(const std::string& what, const std::string& text, uint64_t max,
                             uint64_t min) {
  size_t digits = text.find_first_not_of("0123456789");
  std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  uint64_t factor = unit.empty()                 ? 1
                    : unit == "k" || unit == "K" ? 1000
                    : unit == "m" || unit == "M" ? 1'000'000
                                                 : 0;
  std::string number = text.substr(0, digits);
  if (factor == 0 || number.empty() || number.size() > 15 || std::stoull(number) > max / factor ||
      std::stoull(number) * factor < min) {
    return Status::invalid(what + " must be a number from " + std::to_string(min) + " to " +
                           std::to_string(max) + " (10k and 1m are understood), not '" + text +
                           "'");
  }
  return std::stoull(number) * factor;
}

Result<std::vector<uint64_t>> parse_counts(const std::string& what, const std::string& list,
                                           uint64_t max) {
  std::vector<uint64_t> counts;
  for (const std::string& text : split_list(list, ',')) {
    Result<uint64_t> count = parse_count(what, text, max);
    if (!count.ok()) return count.status();
    counts.push_back(*count);
  }
  return counts;
}

std::vector<std::string> split_list(std::string_view list, char separator) {
  std::vector<std::string> items;
  while (!list.empty()) {
    items.emplace_back(list.substr(0, list.find(separator)));
    list.remove_prefix(std::min(list.size(), items.back().size() + 1));
  }
  return items;
}

std::string batch_name(uint64_t batch) {
  if (batch != 0 && batch % 1'000'000 == 0) return std::to_string(batch / 1'000'000) + "m";
  if (batch != 0 && batch % 1'000 == 0) return std::to_string(batch / 1'000) + "k";
  return std::to_string(batch);
}

}  // namespace stride::benchmark
