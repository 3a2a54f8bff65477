#include "benchmark/harness/engine_under_test.h"

#include <thread>

namespace stride::benchmark {

Status write_flows(const Records& records, const std::function<Status(const Flow&)>& write) {
  const std::vector<Flow>& flows = records.flows();
  std::vector<Status> results(flows.size());
  std::vector<std::thread> threads;
  for (size_t f = 1; f < flows.size(); ++f) {
    threads.emplace_back([&, f] { results[f] = write(flows[f]); });
  }
  if (!flows.empty()) results[0] = write(flows[0]);
  for (std::thread& thread : threads) thread.join();
  for (Status& result : results) STRIDE_TRY(std::move(result));
  return {};
}

}  // namespace stride::benchmark
