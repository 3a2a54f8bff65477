#include <algorithm>

#include "benchmark/harness/arguments.h"
#include "benchmark/peers/engines.h"
#include "benchmark/peers/small_store.h"

namespace stride::benchmark {

const std::vector<SmallStoreConfiguration>& small_stores() {
  static const std::vector<SmallStoreConfiguration> stores = [] {
    std::vector<SmallStoreConfiguration> all;
    for (auto* list : {stride_small_stores, rocksdb_small_stores, lmdb_small_stores})
      for (SmallStoreConfiguration& store : list()) all.push_back(std::move(store));
    return all;
  }();
  return stores;
}

Result<std::vector<SmallStoreConfiguration>> choose_small_stores(const std::string& option,
                                                                 const std::string& list) {
  std::vector<SmallStoreConfiguration> chosen;
  std::string known_names;
  for (const SmallStoreConfiguration& store : small_stores())
    known_names += (known_names.empty() ? "" : ", ") + store.name();
  for (const std::string& name : split_list(list, ',')) {
    bool known = false;
    for (const SmallStoreConfiguration& store : small_stores()) {
      if (name != "all" && name != store.engine && name != store.name()) continue;
      known = true;
      if (std::ranges::find(chosen, store.name(), &SmallStoreConfiguration::name) == chosen.end())
        chosen.push_back(store);
    }
    if (known) continue;
    // A build without an engine says how to have it.
    if (name == "rocksdb" || name == "lmdb") STRIDE_TRY(choose_engines(name).status());
    return Status::invalid(option + ": unknown engine '" + name + "'; known are " + known_names);
  }
  if (chosen.empty()) return Status::invalid(option + " is empty: " + known_names);
  return chosen;
}

std::string small_stores_help() {
  std::string help = "What is compared, with commas between [all]:";
  for (const SmallStoreConfiguration& store : small_stores())
    help += "\n  " + store.name() + ": " + store.description;
  return help;
}

}  // namespace stride::benchmark
