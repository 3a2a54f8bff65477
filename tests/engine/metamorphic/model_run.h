// What a database must answer to operations, from maps alone.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/engine/metamorphic/operation.h"
#include "tests/support/model.h"

namespace stride::test::metamorphic {

class ModelRun {
 public:
  ModelRun();
  // As DatabaseRun::apply().
  std::string apply(const Operation& operation);
  // All that is there.
  std::string contents() const;

 private:
  // Shared with the snapshots until somebody changes it.
  using Catalog = std::map<int, std::shared_ptr<const Model>>;
  class Transaction;

  std::string commit(const Operation& operation);
  std::string drop_before_commit(const Operation& operation);
  std::string read(const Reading& reading) const;

  Catalog catalog_;
  std::vector<Catalog> kept_{kept_snapshots};
};

// The rows that a scan goes over.
std::string rows_within(const Model& rows, const ScanOptions& scan);

}  // namespace stride::test::metamorphic
