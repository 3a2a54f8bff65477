// stride dump and stride restore.
#pragma once

#include <string>
#include <vector>

#include "adapters/cli/context.h"

namespace CLI {
class App;
}

namespace stride::cli {

struct DumpArguments {
  std::string database;
  std::vector<std::string> tables;
  bool zst = false;
};

struct RestoreArguments {
  std::string database, file;
  uint64_t commit_every = 0;
};

void add_dump(CLI::App* command, DumpArguments* arguments);
void add_restore(CLI::App* command, RestoreArguments* arguments);
Outcome run_dump(Context* context, const DumpArguments& arguments);
Outcome run_restore(Context* context, const RestoreArguments& arguments);

}  // namespace stride::cli
