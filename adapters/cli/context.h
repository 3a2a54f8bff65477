// What every command has at hand.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "adapters/cli/environment.h"
#include "adapters/cli/exit_status.h"
#include "adapters/cli/output/output.h"
#include "engine/database.h"

namespace stride::cli {

inline constexpr const char* all_done = "all that was asked for is done";

struct Context {
  explicit Context(const Environment& surroundings)
      : environment(surroundings), out(surroundings.out, "standard output") {}

  Environment environment;
  Output out;         // data, and nothing else
  bool json = false;  // --json: data as JSON
  // What the command has done for good, such as all_done: to be told where memory is too short for
  // its report. Null: nothing.
  const char* done = nullptr;

  // A line to the standard error.
  void note(std::string_view line) const;
  // What has gone wrong, if anything has. Nothing is said of a reader that has gone.
  void complain(const ExitStatus& outcome) const;
};

enum class Access : uint8_t { read, write, create };  // create: where there is no database

// threads: of the calls that read and write; 0: one for each core.
ExitStatus open_database(const Context& context, const std::string& path, Access access,
                         unsigned threads, std::unique_ptr<Database>* database);

}  // namespace stride::cli
