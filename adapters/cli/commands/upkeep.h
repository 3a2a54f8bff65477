// stride stats, explain, verify and compact.
#pragma once

#include <string>

#include "adapters/cli/context.h"

namespace CLI {
class App;
}

namespace stride::cli {

struct UpkeepArguments {
  std::string database, table;
};

void add_stats(CLI::App* command, UpkeepArguments* arguments);
void add_explain(CLI::App* command, UpkeepArguments* arguments);
void add_verify(CLI::App* command, UpkeepArguments* arguments);
void add_compact(CLI::App* command, UpkeepArguments* arguments);
void add_calibrate(CLI::App* command, UpkeepArguments* arguments);
Outcome run_stats(Context* context, const UpkeepArguments& arguments);
Outcome run_explain(Context* context, const UpkeepArguments& arguments);
Outcome run_verify(Context* context, const UpkeepArguments& arguments);
Outcome run_compact(Context* context, const UpkeepArguments& arguments);
Outcome run_calibrate(Context* context, const UpkeepArguments& arguments);

}  // namespace stride::cli
