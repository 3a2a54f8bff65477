#include "gpu/tree_index.h"

namespace stride {

AccessCosts TreeIndex::access_costs() const {
  std::lock_guard lock(costs_mutex_);
  return costs_;
}

void TreeIndex::set_access_costs(const AccessCosts& costs) {
  std::lock_guard lock(costs_mutex_);
  costs_ = costs;
}

}  // namespace stride
