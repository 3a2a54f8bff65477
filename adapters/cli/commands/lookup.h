// stride get, stride match and stride join: keys of arguments or files, with the values that a
// table has for them, or addresses with their prefixes.
#pragma once

#include <string>
#include <vector>

#include "adapters/cli/commands/row_arguments.h"
#include "adapters/cli/context.h"

namespace stride::cli {

struct GetArguments {
  std::string database, table;
  std::vector<std::string> keys;
  std::string file;  // --keys
  std::string output = "tsv";
  std::string missing = "skip";
  RowArguments rows;
};

struct MatchArguments {
  std::string database, table;
  std::vector<std::string> addresses;
  std::string file;  // --keys
  std::string output = "tsv";
  std::string missing = "empty";
  bool all = false;
  RowArguments rows;
};

struct JoinArguments {
  std::string database, table, file;
  std::string missing = "empty";
  std::string value_name = "value";
  RowArguments rows;
};

void add_get(CLI::App* command, GetArguments* arguments);
void add_match(CLI::App* command, MatchArguments* arguments);
void add_join(CLI::App* command, JoinArguments* arguments);
Outcome run_get(Context* context, const GetArguments& arguments);
Outcome run_match(Context* context, const MatchArguments& arguments);
Outcome run_join(Context* context, const JoinArguments& arguments);

}  // namespace stride::cli
