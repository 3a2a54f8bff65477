// 1,000 commands are killed, again and again for as long as STRIDE_SOAK_SECONDS says.
#include "tests/adapters/cli/killed_commands.h"
#include "tests/support/catch.h"
#include "tests/support/soak.h"

namespace stride::cli {

TEST_CASE("KilledCommandsSoakTest.EachLeavesAWholeCommit", "[KilledCommandsSoakTest]") {
  test::Deadline deadline;
  do run_killed_commands(1000);
  while (!deadline.over());
}

}  // namespace stride::cli
