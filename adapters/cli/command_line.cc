#include "adapters/cli/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
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
  ExitCode code = ExitCode::no_room;
  Context context(environment);
  try {
    const ExitStatus outcome = guarded(&context, [&] {
      return run(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), &context);
    });
    code = outcome.code();
    context.complain(outcome);
  } catch (const std::bad_alloc&) {  // even of the memory to say something else
    const std::string_view done = context.done ? context.done : "";
    const std::string_view texts[] = {"stride: out of memory", done.empty() ? "" : ": ", done, "\n"};
    for (std::string_view text : texts)
      [[maybe_unused]] ssize_t ignored = ::write(environment.err, text.data(), text.size());
  }
  return static_cast<int>(code);
}

}  // namespace stride::cli
