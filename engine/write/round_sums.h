// The sums of the deltas of several commits that are carried out together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/write/accumulate.h"
#include "engine/write/staging.h"
#include "storage/status.h"

namespace stride {

using StagedTables = std::map<uint32_t, StagedTable>;  // by id

// What turns deltas into sums, in the order of a round's requests.
class RoundSums {
 public:
  // max_tombstones: Options::max_range_tombstones.
  RoundSums(std::shared_ptr<const Version> version, uint64_t max_tombstones)
      : version_(std::move(version)), max_tombstones_(max_tombstones) {}

  // before: what the round has staged so far, without ranges where deltas follow.
  Status resolve(const StagedTables& before, std::vector<StagedTable>* staged);

 private:
  std::shared_ptr<const Version> version_;
  uint64_t max_tombstones_;
  std::map<uint32_t, std::shared_ptr<const Version>> views_;  // by table: with its newest rows
  std::map<uint32_t, DeltaSums> sums_;                        // by table
};

}  // namespace stride
