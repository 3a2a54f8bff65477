// Makes sets of vectors (gpu/vector_set.h) for programs that keep them in no database.
//
//   Result<std::shared_ptr<VectorSet>> seen = make_vector_set({.words = 4});
//   KeyColumn vectors = Column::fixed(states.data(), 16, n);
//   Status s = (*seen)->find_or_put(vectors, ids, was_new);   // n ids, (n + 63) / 64 words of bits
//
// A DedupTable (engine/dedup_table.h) keeps the vectors in a database.
#pragma once

#include <memory>

#include "engine/options.h"
#include "gpu/vector_set.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

// The set owns the threads, or the device's memory, that it needs. where: whose memory it is in;
// automatic: a CUDA device's where there is one. threads: as Options::threads. invalid_argument:
// options that do not hold. unavailable: there is no device, or it lacks atomic operations that the
// form needs. resource_exhausted: no room for so large a table. In a forked child its calls that
// return a Status are `closed`.
STRIDE_API Result<std::shared_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options,
                                                              BackendKind where = BackendKind::host,
                                                              unsigned threads = 0);

}  // namespace stride
