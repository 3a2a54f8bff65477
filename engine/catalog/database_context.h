// What the parts of an open database share.
#pragma once

#include <memory>
#include <string>

#include "engine/catalog/claimed_files.h"
#include "engine/catalog/version.h"
#include "engine/options.h"
#include "storage/io_threads.h"
#include "storage/log_format.h"
#include "storage/manifest_format.h"

namespace stride {

// Stays as it is while the database is open. The parts refer to it, and it outlives them.
struct DatabaseContext {
  std::string path;
  std::shared_ptr<const DatabaseIdentity> identity;
  Options options;  // memory_limit_bytes is not 0
  std::shared_ptr<ClaimedFiles> fs;
  bool takes_lease = false;  // ReaderLease
  std::shared_ptr<Executor> executor;
  std::shared_ptr<Backend> backend;  // the host's
  std::shared_ptr<IoThreads> io;     // write files in the background

  std::string segment_path(uint64_t id) const { return path + "/" + segment_name(id); }
  std::string log_path(uint64_t number) const { return path + "/" + log_name(number); }
};

}  // namespace stride
