#include "tests/engine/readers/killed_writer.h"

#include "tests/support/catch.h"

namespace stride::test {

TEST_CASE("KilledWriterTest.ReadersSeeWholeCommits", "[KilledWriterTest]") {
#if defined(__SANITIZE_THREAD__)
  SKIP("ThreadSanitizer knows no forks of processes with threads");
#endif
  run_beside_killed_writer(10);
}

}  // namespace stride::test
