// Sets of vectors and of byte strings on host threads.
#pragma once

#include <memory>

#include "gpu/host/task_pool.h"
#include "gpu/sets.h"
#include "storage/status.h"

namespace stride {

// As Sets::make_vector_set() and make_byte_set(); throw std::bad_alloc.
Result<std::unique_ptr<VectorSet>> make_vector_set_host(TaskPool& pool, VectorSetOptions options);
std::unique_ptr<ByteSet> make_byte_set_host(TaskPool& pool);

}  // namespace stride
