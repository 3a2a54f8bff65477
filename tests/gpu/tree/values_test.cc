// Searches that hand over blocks, and values that are kept on a device.

#include "gpu/backend.h"
#include "tests/gpu/tree/stored_runs.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

class ValuesTest {
 protected:
  const std::string side_ = GENERATE(as<std::string>{}, "host", "cuda");
  RunsWith name_{side_};

  ValuesTest() {
    backend_ = Backend::host(2);
    if (side_ == "host") return;
    auto device = Backend::cuda({.host_threads = 3});
    if (!device.ok()) SKIP(device.status().to_string());
    backend_ = std::move(*device);
  }

  std::unique_ptr<Backend> backend_;
};

TEST_CASE_METHOD(ValuesTest, "ValuesTest.FindsTheNewestThatIsNotHidden", "[ValuesTest]") {
  Random random(seed());
  for (const KeySet& set : key_sets()) {
    for (size_t n : {0, 1, 40, smaller_under_sanitizers(3000, 800)}) {
      if (set.make == only_zeros || set.make == long_among_short) n = std::min<size_t>(n, 300);
      for (size_t count : {1, 3, 70}) {
        if (count == 70 && n > 40) continue;
        INFO(std::string(set.name) + ", " + std::to_string(n) + " keys in each of " +
             std::to_string(count) + " runs");
        Runs runs(*backend_, random, set, n, count, true, random() % 60);
        Keys queries = some_queries(random, runs, set, n * 3);
        OwnedColumn owned(queries, true);
        KeyColumn column = owned.column();
        expect_blocks(*backend_, runs, queries, column);
        if (!backend_->has_device()) continue;
        expect_values(*backend_, runs, queries, column);
        const DeviceRows rows(*backend_, column);
        const KeyColumn there = rows.column;
        expect_blocks(*backend_, runs, queries, there);
        expect_values(*backend_, runs, queries, there);
        expect_on_device(*backend_, runs, queries, there);
      }
    }
  }
}

// More than a chunk of queries, and values larger than a piece of staging memory.
TEST_CASE_METHOD(ValuesTest, "ValuesTest.GoesInPieces", "[ValuesTest]") {
  Random random(seed());
  const KeySet numbers{"numbers", random_numbers};
  for (size_t longest : {0, 5, 44}) {
    Runs runs(*backend_, random, numbers, smaller_under_sanitizers(200000, 50000), 1, true,
              longest);
    Keys queries = some_queries(random, runs, numbers, smaller_under_sanitizers(500000, 150000));
    OwnedColumn owned(queries, true);
    expect_blocks(*backend_, runs, queries, owned.column());
    if (backend_->has_device()) expect_values(*backend_, runs, queries, owned.column());
  }
  Runs runs(*backend_, random, numbers, 20, 2, true, smaller_under_sanitizers(5 << 20, 1 << 16));
  Keys queries = some_queries(random, runs, numbers, 60);
  OwnedColumn owned(queries, true);
  expect_blocks(*backend_, runs, queries, owned.column());
  if (backend_->has_device()) expect_values(*backend_, runs, queries, owned.column());
}

TEST_CASE_METHOD(ValuesTest, "ValuesTest.SaysWhereValuesAreMissing", "[ValuesTest]") {
  Random random(seed());
  Runs runs(*backend_, random, {"numbers", random_numbers}, 100, 1, false, 5);
  std::vector<uint64_t> found(1), ends(1);
  Keys query{runs.runs[0].keys[0]};
  OwnedColumn owned(query, true);
  auto values = backend_->tree_index().find_values(runs.views(), owned.column(), found, ends);
  REQUIRE_FALSE(values.ok());
  CHECK_MESSAGE(values.status().code() == StatusCode::unavailable, values.status().to_string());
}

}  // namespace
}  // namespace stride::test
