// stride scan, count and tables.
#pragma once

#include <optional>
#include <string>

#include "adapters/cli/context.h"
#include "adapters/cli/text/scan_bounds.h"

namespace CLI {
class App;
}

namespace stride::cli {

struct ScanArguments {
  std::string database, table;
  std::string key_type;
  std::string format = "tsv";
  BoundArguments bounds;
  bool reverse = false;
  bool keys_only = false;
  std::optional<uint64_t> limit;
};

struct TableArguments {
  std::string database, table;
  bool all = false;
};

void add_scan(CLI::App* command, ScanArguments* arguments);
void add_count(CLI::App* command, TableArguments* arguments);
void add_tables(CLI::App* command, TableArguments* arguments);
Outcome run_scan(Context* context, const ScanArguments& arguments);
Outcome run_count(Context* context, const TableArguments& arguments);
Outcome run_tables(Context* context, const TableArguments& arguments);

}  // namespace stride::cli
