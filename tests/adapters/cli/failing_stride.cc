// stride, whose allocations fail: the one that the environment's STRIDE_FAIL_ALLOCATION names, and
// with STRIDE_FAIL_ALL all that follow it. At the end it writes to the descriptor 3 whether there
// was one.
#include <unistd.h>

#include <cstdlib>

#include "adapters/cli/command_line.h"
#include "tests/support/failing_allocations.h"

int main(int argc, char** argv) {
  const char* allocation = std::getenv("STRIDE_FAIL_ALLOCATION");
  only_one = !std::getenv("STRIDE_FAIL_ALL");
  int code = 0;
  const bool failed = stride::test::fail_allocation(allocation ? std::atoll(allocation) : never,
                                                    [&] { code = stride::cli::run(argc, argv); });
  [[maybe_unused]] ssize_t ignored = write(3, failed ? "1" : "0", 1);
  return code;
}
