// A table that a transaction gives another name.
#pragma once

#include <memory>

#include "storage/manifest.h"

namespace stride {

// `to` is `from` but for the name.
struct TableRenaming {
  std::shared_ptr<const TableRecord> from, to;
};

}  // namespace stride
