// What an open database consists of, for tests that choose, merge and install by themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/build/run_builder.h"
#include "engine/catalog/version_set.h"
#include "engine/device/executor.h"
#include "engine/merge/compaction.h"
#include "engine/write/committer.h"
#include "storage/file.h"

namespace stride::test {

inline DatabaseContext make_context(FileSystem& fs, uint64_t memory_limit_bytes,
                                    std::function<int64_t()> clock) {
  DatabaseContext context;
  context.path = "db";
  context.identity =
      std::make_shared<const DatabaseIdentity>("db", std::make_shared<Monitor>(), std::move(clock));
  context.options.memory_limit_bytes = memory_limit_bytes;
  context.options.memtable_bytes = 0;  // each commit makes a segment
  context.options.max_range_tombstones = 0;
  context.fs = std::make_shared<ClaimedFiles>(fs, context.path);
  context.executor = *Executor::make({.threads = 1, .backend = BackendKind::host});
  context.backend = context.executor->host();
  context.io = std::make_shared<IoThreads>();
  return context;
}

// The parts of an open database, without the lock: there is one thread.
struct Parts {
  explicit Parts(FileSystem& fs, uint64_t memory_limit_bytes = 1 << 30,
                 std::function<int64_t()> clock = nullptr)
      : context(make_context(fs, memory_limit_bytes, std::move(clock))) {}

  const DatabaseContext context;
  Poison poison;
  UnsyncedFiles unsynced{*context.fs, context.path, poison};
  VersionSet versions{context, unsynced, poison};
  RunBuilder builder{context, versions, poison};
  std::mutex commit_mutex;
  Compactor compactor{context, versions, unsynced, builder};
  SmallCommits small_commits{context, versions, unsynced, poison, [] { return Status(); }};
  Committer committer{context, versions, unsynced, builder, small_commits, [](uint32_t) {}};
};

}  // namespace stride::test
