#include "benchmark/peers/engines.h"

#include <algorithm>

#include "benchmark/peers/lmdb_peer.h"
#include "benchmark/peers/plain_peer.h"
#include "benchmark/peers/rocksdb_accumulate.h"
#include "benchmark/peers/rocksdb_peer.h"
#include "benchmark/peers/small_store.h"
#include "benchmark/peers/stride_peer.h"

namespace stride::benchmark {

#ifndef STRIDE_HAVE_ROCKSDB
std::vector<EngineConfiguration> rocksdb_configurations() { return {}; }
std::string rocksdb_build() { return {}; }
std::vector<AccumulateConfiguration> rocksdb_accumulate_configurations() { return {}; }
std::vector<SmallStoreConfiguration> rocksdb_small_stores() { return {}; }
#endif
#ifndef STRIDE_HAVE_LMDB
std::vector<EngineConfiguration> lmdb_configurations() { return {}; }
std::vector<SmallStoreConfiguration> lmdb_small_stores() { return {}; }
#endif

namespace {

struct AbsentEngine {
  std::string_view name, remedy;
};
constexpr AbsentEngine optional_engines[] = {
    {"rocksdb", "install the package librocksdb-dev, or run `make peers`, and configure again"},
    {"lmdb", "install the package liblmdb-dev and configure again"},
};

bool chosen_by(const EngineConfiguration& engine, std::string_view name) {
  return engine.engine == name || engine.name() == name;
}

Status not_known(std::string_view name) {
  std::string_view engine = name.substr(0, name.find(':'));
  bool built = std::any_of(all_engines().begin(), all_engines().end(),
                           [&](const EngineConfiguration& e) { return e.engine == engine; });
  for (const AbsentEngine& absent : optional_engines) {
    if (absent.name == engine && !built) {
      return Status::invalid("this build is without the engine '" + std::string(engine) + "'")
          .with_remedy(std::string(absent.remedy));
    }
  }
  std::string known;
  for (const EngineConfiguration& e : all_engines())
    known += (known.empty() ? "" : ", ") + e.name();
  return Status::invalid("unknown engine '" + std::string(name) + "'; known are " + known);
}

}  // namespace

const std::vector<EngineConfiguration>& all_engines() {
  static const std::vector<EngineConfiguration> engines = [] {
    std::vector<EngineConfiguration> all;
    for (auto make : {stride_configurations, rocksdb_configurations, lmdb_configurations,
                      plain_configurations}) {
      for (EngineConfiguration& engine : make()) all.push_back(std::move(engine));
    }
    return all;
  }();
  return engines;
}

Result<std::vector<EngineConfiguration>> choose_engines(std::string_view list) {
  std::vector<EngineConfiguration> chosen;
  while (!list.empty()) {
    std::string_view name = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), name.size() + 1));
    bool known = false;
    for (const EngineConfiguration& engine : all_engines()) {
      if (!chosen_by(engine, name)) continue;
      known = true;
      bool again = std::any_of(chosen.begin(), chosen.end(), [&](const EngineConfiguration& e) {
        return e.name() == engine.name();
      });
      if (!again) chosen.push_back(engine);
    }
    if (!known) return not_known(name);
  }
  if (chosen.empty()) return Status::invalid("no engine is named");
  return chosen;
}

std::string default_engines() {
  std::string names;
  for (const EngineConfiguration& engine : all_engines()) {
    bool named = names.ends_with(engine.engine);
    if (engine.is_database && !named) names += (names.empty() ? "" : ",") + engine.engine;
  }
  return names;
}

std::string fastest_engines() {
  std::string names;
  for (const char* name : {"stride", "rocksdb:ingest_merged", "lmdb:append_merged", "hash"}) {
    if (choose_engines(name).ok()) names += (names.empty() ? "" : ",") + std::string(name);
  }
  return names;
}

std::string rocksdb_note() {
  if (rocksdb_build() != "packaged") return {};
  return "RocksDB is the distribution's package, which has assertions on and no SSE4.2 and runs at "
         "about half its speed: `make peers` builds it for speed.";
}

}  // namespace stride::benchmark
