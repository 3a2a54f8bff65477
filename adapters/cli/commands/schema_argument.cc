#include "adapters/cli/commands/schema_argument.h"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <iterator>

namespace stride::cli {

ExitStatus read_schema_argument(const std::string& argument, Schema* schema) {
  struct stat info {};
  const bool is_file = stat(argument.c_str(), &info) == 0;
  // A field has a name and a type.
  if (!is_file && argument.find(' ') == std::string::npos)
    return ExitStatus::from_errno(ENOENT, argument, "open the schema");
  std::string text = argument;
  if (is_file) {
    std::ifstream in(argument);
    text.assign(std::istreambuf_iterator<char>(in), {});
    if (in.bad() || !in.is_open()) return ExitStatus::from_errno(errno, argument, "read");
  }
  Result<Schema> parsed = Schema::parse(text);
  const std::string of = is_file ? argument + ": " : "--schema: ";
  const ExitCode code = is_file ? ExitCode::bad_input : ExitCode::usage;
  if (!parsed.ok())
    return ExitStatus(code, of + parsed.status().message() + ": " + parsed.status().remedy());
  if (!parsed->key().empty())
    return ExitStatus(code, of + "a key column: --key and --key-type say what the key is");
  if (parsed->empty())
    return ExitStatus(code,
                      of + "no value column: give names and types, as 'name string, age i32?'");
  *schema = std::move(*parsed);
  return {};
}

std::string columns_text(const Schema& schema) {
  return Schema::make(schema.values())->to_string();
}

}  // namespace stride::cli
