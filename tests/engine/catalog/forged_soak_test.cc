// Random edits of random files with right checksums, for as long as STRIDE_SOAK_SECONDS says.
#include "tests/support/catch.h"
#include "tests/support/forged_edits.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

TEST_CASE("ForgedSoakTest.RandomEditsOfRandomFiles", "[ForgedSoakTest]") {
  std::mt19937_64 random(seed());
  const double seconds = soak_seconds(60);
  // With few rows most bytes tell how many there are of something; more take several blocks.
  forge_at_random(ForgedDatabase(40), random, seconds / 2);
  forge_at_random(ForgedDatabase(3000), random, seconds / 2);
}

}  // namespace
}  // namespace stride::test
