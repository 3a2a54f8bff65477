// What an application may set. The defaults are meant to be good: no option needs tuning.
#pragma once

#include <cstdint>

#include "gpu/tree_options.h"

namespace stride {

class FileSystem;

// What a commit has survived once it returned.
enum class Durability : uint8_t {
  sync,   // power loss
  flush,  // the end of this process, however it comes
  none,   // Database::close()
};

struct Options {
  bool create_if_missing = true;
  bool error_if_exists = false;
  bool read_only = false;          // another process may write meanwhile; what it commits is not seen
  Durability durability = Durability::sync;  // of commits that do not name one
  unsigned threads = 0;            // for batches; 0: one for each core
  // Recently written segments stay in memory up to this many bytes in all; what is older is read
  // through the page cache. 0: half of the machine's memory.
  uint64_t memory_limit_bytes = 0;
  TreeOptions tree;                // of segments written from now on
  FileSystem* file_system = nullptr;  // null: FileSystem::posix(). Must outlive the database.
};

struct TableOptions {
  uint32_t key_width = 0;  // every key has this many bytes (1 to 65,535); 0: any length
};

}  // namespace stride
