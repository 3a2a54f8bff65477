#include "benchmark/workloads/tree/arguments.h"

#include <algorithm>
#include <cmath>

#include "benchmark/harness/arguments.h"

namespace stride::benchmark {
namespace {

Result<std::vector<KeyKind>> parse_kinds(const std::string& list) {
  std::vector<KeyKind> kinds;
  for (const std::string& text : split_list(list, ',')) {
    Result<KeyKind> kind = parse_key_kind(text);
    if (!kind.ok()) return kind.status();
    kinds.push_back(*kind);
  }
  if (kinds.empty()) return Status::invalid("--keys is empty");
  return kinds;
}

// "auto", "16,8,8", "flavors:16,8,8"
Result<TreeConfiguration> parse_configuration(const std::string& text, uint32_t leaf_capacity) {
  TreeConfiguration configuration{.name = text};
  configuration.options.leaf_capacity = leaf_capacity;
  if (text == "auto") return configuration;
  bool flavors = text.starts_with("flavors:");
  std::vector<uint32_t> strides;
  for (const std::string& stride :
       split_list(std::string_view(text).substr(flavors ? 8 : 0), ',')) {
    if (stride.empty() || stride.size() > 9 ||
        stride.find_first_not_of("0123456789") != std::string::npos) {
      return Status::invalid(
          "--strides: auto, numbers with commas between, or flavors:NUMBERS, "
          "not '" +
          text + "'");
    }
    strides.push_back(static_cast<uint32_t>(std::stoul(stride)));
  }
  if (strides.empty()) return Status::invalid("--strides: no strides in '" + text + "'");
  if (flavors) {
    configuration.options = TreeOptions::flavors(strides);
  } else {
    configuration.options.strides = strides;
  }
  return configuration;
}

Result<std::vector<TreeConfiguration>> parse_configurations(const TreeArguments& arguments) {
  std::vector<TreeConfiguration> configurations;
  for (const std::string& text : split_list(arguments.strides, ';')) {
    Result<TreeConfiguration> configuration = parse_configuration(text, arguments.leaf_capacity);
    if (!configuration.ok()) return configuration.status();
    Status status = configuration->options.check();
    if (!status.ok()) return Status::invalid("'" + text + "': " + status.message());
    configurations.push_back(*configuration);
  }
  if (configurations.empty()) return Status::invalid("--strides is empty");
  return configurations;
}

Result<TreeOperations> parse_operations(const std::string& list) {
  TreeOperations operations{false, false, false, false, false};
  const std::pair<const char*, bool*> names[] = {{"build", &operations.build},
                                                 {"build_sorted", &operations.build_sorted},
                                                 {"find", &operations.find},
                                                 {"lower_bound", &operations.lower_bound},
                                                 {"prefix", &operations.prefix}};
  for (const std::string& text : split_list(list, ',')) {
    auto named = std::find_if(std::begin(names), std::end(names),
                              [&](const auto& name) { return text == name.first; });
    if (named == std::end(names)) {
      return Status::invalid("unknown operation '" + text +
                             "': there are build, build_sorted, find, lower_bound and prefix");
    }
    *named->second = true;
  }
  return operations;
}

}  // namespace

Result<TreeWorkloadOptions> parse_tree(const TreeArguments& arguments) {
  TreeWorkloadOptions options;
  Result<std::vector<KeyKind>> kinds = parse_kinds(arguments.keys);
  if (!kinds.ok()) return kinds.status();
  Result<std::vector<uint64_t>> sizes = parse_counts("--n", arguments.sizes, max_index_keys);
  if (!sizes.ok()) return sizes.status();
  Result<uint64_t> queries = parse_count("--queries", arguments.queries, max_index_keys);
  if (!queries.ok()) return queries.status();
  Result<std::vector<TreeConfiguration>> configurations = parse_configurations(arguments);
  if (!configurations.ok()) return configurations.status();
  Result<TreeOperations> operations = parse_operations(arguments.operations);
  if (!operations.ok()) return operations.status();
  if (arguments.operations.empty() && arguments.latency != "yes") {
    return Status::invalid("--operations is empty, and no --latency is asked for");
  }
  if (std::isnan(arguments.hit_rate)) return Status::invalid("--hit-rate must be from 0 to 1");
  options.kinds = *kinds;
  if (!sizes->empty()) options.sizes = *sizes;
  options.configurations = *configurations;
  options.queries = *queries;
  options.hit_rate = arguments.hit_rate;
  options.sorted_queries = arguments.order == "sorted";
  options.where = arguments.where == "device"   ? Where::backend
                  : arguments.where == "pinned" ? Where::pinned
                                                : Where::host;
  options.operations = *operations;
  options.latency = arguments.latency == "yes";
  options.seed = arguments.seed;
  options.timing.repeats = arguments.common.repeats;
  options.threads = chosen_threads(arguments.common);
  return options;
}

uint64_t tree_memory(const TreeWorkloadOptions& options) {
  uint64_t keys = *std::max_element(options.sizes.begin(), options.sizes.end()), most = 0;
  for (const KeyKind& kind : options.kinds) {
    bool numbers = kind.width == 4 || kind.width == 8;
    // Shuffled, sorted, placed and as numbers; others are sorted by prefix and row, twice.
    uint64_t key_bytes = keys * (4 * uint64_t{kind.width} + (numbers ? 0 : 32));
    // Queries, prefixes, ranks and intervals, in two places each.
    uint64_t query_bytes = options.queries * 2 * (2 * uint64_t{kind.width} + 12);
    if (kind.width != 0) most = std::max(most, key_bytes + query_bytes);
  }
  return most;
}

}  // namespace stride::benchmark
