#include "benchmark/workloads/random_arguments.h"

#include <CLI/CLI.hpp>

#include "benchmark/harness/arguments.h"
#include "benchmark/workloads/common_arguments.h"
#include "gpu/backend.h"

namespace stride::benchmark {
namespace {

// As far as the length of a value fits into what every engine stores it in.
constexpr uint64_t max_value_bytes = 65535;
// What a workload keeps of each record besides the record: its place in the order of the keys, and
// for some time what that is sorted by, twice.
constexpr uint64_t order_bytes = 36;

}  // namespace

void add_random(CLI::App* command, RandomArguments* random) {
  command->add_option("--n", random->n, "Records, with random distinct keys of 8 bytes")
      ->capture_default_str();
  command->add_option("--value-bytes", random->value_bytes, "Of every value; 0: keys alone")
      ->capture_default_str();
  command->add_option("--seed", random->seed, "Equal seeds give equal records and lookups")
      ->capture_default_str();
}

Result<RandomRecordsOptions> parse_random(const RandomArguments& random) {
  Result<uint64_t> n = parse_count("--n", random.n, max_index_keys);
  if (!n.ok()) return n.status();
  Result<uint64_t> value_bytes =
      parse_count("--value-bytes", random.value_bytes, max_value_bytes, 0);
  if (!value_bytes.ok()) return value_bytes.status();
  STRIDE_TRY(check_memory(*n * (8 + *value_bytes + order_bytes),
                          with_commas(*n) + " records, before any engine runs,",
                          "lower --n or --value-bytes"));
  return RandomRecordsOptions{
      .records = *n, .value_bytes = static_cast<uint32_t>(*value_bytes), .seed = random.seed};
}

std::string random_title(const RandomRecordsOptions& options) {
  return with_commas(options.records) + " keys of 8 bytes, values of " +
         with_commas(options.value_bytes) + " bytes, seed " + std::to_string(options.seed);
}

}  // namespace stride::benchmark
