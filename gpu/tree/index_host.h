// Indexes that are searched in host memory.
#pragma once

#include <memory>

#include "gpu/host/task_pool.h"
#include "gpu/tree/choose_strides.h"
#include "gpu/tree_index.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

// Checks all bytes of an index, before it goes where nothing checks them: keys and rows by its
// guard, and its tree.
Status check_index(const IndexView& index, const IndexRows& rows);

// As the calls of TreeIndex of the same names.
Result<std::shared_ptr<ResidentIndex>> make_resident_host(const IndexView& index);
Result<std::shared_ptr<ResidentIndex>> build_index_host(TaskPool& pool, const KeyColumn& keys,
                                                        KeyOrder order, const ChooseStrides& choose,
                                                        const TreeOptions& options);

}  // namespace stride
