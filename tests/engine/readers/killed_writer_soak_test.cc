// Readers beside a writer that is killed 200 times, again and again for as long as
// STRIDE_SOAK_SECONDS says.
#include "tests/engine/readers/killed_writer.h"
#include "tests/support/catch.h"
#include "tests/support/soak.h"

namespace stride::test {

TEST_CASE("KilledWriterSoakTest.ReadersSeeWholeCommits", "[KilledWriterSoakTest]") {
  Deadline deadline;
  do run_beside_killed_writer(200);
  while (!deadline.over());
}

}  // namespace stride::test
