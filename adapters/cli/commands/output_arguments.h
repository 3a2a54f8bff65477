// The options that say how rows are printed, of every command that prints some.
#pragma once

#include <string>
#include <vector>

#include "adapters/cli/context.h"
#include "adapters/cli/input/row_plan.h"
#include "adapters/cli/output/key_text.h"
#include "engine/table.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stride::cli {

struct OutputArguments {
  std::string format = "tsv";
  std::vector<std::string> columns;  // of the table's schema; none: all
  bool header = false, no_header = false;
};

// first: what a row begins with, for the help. raw, columnar: these formats are offered, too.
void add_output_options(CLI::App* command, OutputArguments* arguments, const std::string& first,
                        bool raw, bool columnar = false);
// An option that names columns with commas between; names with commas are in quotes, as in CSV.
CLI::Option* add_names(CLI::App* command, const std::string& option,
                       std::vector<std::string>* names, const std::string& help,
                       const std::string& type);
// --columns alone.
void add_columns(CLI::App* command, std::vector<std::string>* columns);

// What --format and --json ask for.
Format output_format(const Context& context, const OutputArguments& arguments);
// Whether the first line names the columns: in csv of a table with columns, unless it is said.
bool wants_header(const OutputArguments& arguments, Format format, const Table& table);
// How the keys of a table are printed.
KeyText key_text(const Table& table, const KeyForm& form);

}  // namespace stride::cli
