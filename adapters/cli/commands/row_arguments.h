// The options that say how rows of files are read, of every command that reads some.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/cli/input/row_plan.h"

namespace CLI {
class App;
}

namespace stride::cli {

struct RowArguments {
  std::string keys;    // the file of --keys; empty: there is none
  std::string format;  // empty: by the first file's name
  std::string delimiter;
  bool header = false, no_header = false;
  bool sniffs = false;  // what no option says is told by the first rows
  std::string line_ends = "auto";
  std::string compressed = "auto";
  std::string key;
  std::string key_type;
  std::vector<std::string> values;
  uint32_t key_width = 0;
  bool allow_empty_key = false;
  uint32_t key_bytes = 0, value_bytes = 0;
  uint64_t block_bytes = 4 << 20;
  uint64_t max_row_bytes = 64 << 20;
  std::string rejects;
  std::optional<uint64_t> max_rejects;
  bool row_options = false;  // of add_row_options(), which the command has
  unsigned threads = 0;
};

// formats: those that the command can read.
void add_row_options(CLI::App* command, RowArguments* arguments, const std::string& formats);
// --keys, and how that file's rows are read. what: "a key"
void add_keys_options(CLI::App* command, RowArguments* arguments, const std::string& what);
void add_key_type(CLI::App* command, std::string* key_type);
// Numbers with k, m or g behind them.
void add_count(CLI::App* command, const std::string& name, uint64_t* count,
               const std::string& help);
void add_count(CLI::App* command, const std::string& name, std::optional<uint64_t>* count,
               const std::string& help);
// --block-bytes, hidden, for tests: many small blocks behave like a large file.
void add_block_bytes(CLI::App* command, RowArguments* arguments);

// unavailable: parquet and arrow, in a build without them. file: for the message.
ExitStatus find_format(const std::string& name, const std::string& file, Format* format);
// All but key type and width.
ExitStatus parse_row_options(const RowArguments& arguments, const std::string& first_file,
                             RowOptions* options);
unsigned chosen_threads(const RowArguments& arguments);
// How many bad rows are fine.
uint64_t rejects_allowed(const RowArguments& arguments);

}  // namespace stride::cli
