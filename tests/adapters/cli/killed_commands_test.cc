#include "tests/adapters/cli/killed_commands.h"

#include "tests/support/catch.h"
#include "tests/support/sanitizers.h"

namespace stride::cli {

TEST_CASE("KilledCommandsTest.EachLeavesAWholeCommit", "[KilledCommandsTest]") {
  run_killed_commands(test::smaller_under_sanitizers(50, 15));
}

}  // namespace stride::cli
