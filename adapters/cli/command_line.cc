#include "adapters/cli/command_line.h"

#include <algorithm>
#include <string>
#include <vector>

#include "adapters/cli/bench_program.h"
#include "adapters/cli/command_set.h"
#include "adapters/cli/context.h"

namespace stride::cli {
namespace {

ExitStatus run(const std::vector<std::string>& arguments, Context* context) {
  // Its arguments are not ours to read.
  if (!arguments.empty() && arguments[0] == "bench")
    return run_bench({arguments.begin() + 1, arguments.end()});
  return CommandSet(context).run(arguments);
}

}  // namespace

int run(int argc, const char* const* argv, const Environment& environment) {
  Context context(environment);
  const ExitStatus outcome = guarded([&] {
    return run(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), &context);
  });
  context.complain(outcome);
  return static_cast<int>(outcome.code());
}

}  // namespace stride::cli
