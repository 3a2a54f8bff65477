#include "engine/device/costs_file.h"

#include <sstream>

#include "storage/current_file.h"

namespace stride {

namespace {

constexpr uint64_t max_costs_bytes = 1 << 20;

}  // namespace

BackendCosts read_costs(FileSystem& fs, const std::string& directory) {
  BackendCosts costs;
  Result<std::string> text = read_file(fs, directory + "/COSTS", max_costs_bytes);
  if (!text.ok()) return costs;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    Result<AccessCosts> parsed = AccessCosts::parse(line.substr(tab + 1));
    if (parsed.ok()) costs[line.substr(0, tab)] = *parsed;
  }
  return costs;
}

Status write_costs(FileSystem& fs, const std::string& directory, const BackendCosts& costs) {
  std::string text;
  for (const auto& [backend, known] : costs) text += backend + "\t" + known.to_text() + "\n";
  return replace_file(fs, directory, "COSTS", text).status;
}

}  // namespace stride
