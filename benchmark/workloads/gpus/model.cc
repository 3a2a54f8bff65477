#include "benchmark/workloads/gpus/model.h"

#include <algorithm>
#include <limits>
#include <string>

#include "benchmark/workloads/gpus/data.h"

namespace stride::benchmark {
namespace {

class GpusModel {
 public:
  GpusModel(const GpusOptions& options, const GpusMachine& machine, std::span<const ResultRow> rows)
      : options_(options),
        limits_(machine.limits()),
        gpus_(options.one_gpu ? 1.0 : static_cast<double>(machine.devices())),
        rows_(rows) {}

  // phase: an operation and where its columns lie. 0: the model says nothing.
  double limit_of(const std::string& phase) const {
    const size_t cut = phase.rfind('_');
    const std::string name = phase.substr(0, cut), where = phase.substr(cut + 1);
    if (name == "get" && where == "host")
      return std::min(gpus_ * one_device_rate("find_devices"),
                      limits_.bus_out_bytes_per_second / (options_.value_bytes + sizeof(uint64_t)));
    const double done = std::min(gpus_ * one_device_rate(name + "_devices"), between_parts(name));
    const double query_bytes = bytes_in(name);
    if (where == "devices") return done;
    if (where == "pinned" || where == "host")
      return std::min(done, limits_.bus_both_bytes_per_second / query_bytes);
    if (where == "first" && gpus_ > 1)
      return std::min(done, gpus_ / (gpus_ - 1) * limits_.link_bytes_per_second / query_bytes);
    return where == "first" ? done : 0;
  }

 private:
  // The best of the rounds.
  double one_device_rate(const std::string& phase) const {
    double rate = 0;
    for (const ResultRow& row : rows_)
      if (row.phase == phase && row.number_of("devices") == 1)
        rate = std::max(rate, row.records_per_second());
    return rate;
  }
  // What goes in for each query: itself; for a source, its target and number.
  static double bytes_in(const std::string& name) {
    return name == "match" ? 4 : name == "put" ? 4 * set_words : 8;
  }
  // A device sends what belongs to other parts there, and the answers come back.
  double between_parts(const std::string& name) const {
    const bool has_parts = name == "put" || (options_.cut.in_parts && name != "scatter");
    if (gpus_ == 1 || !has_parts || name == "build") return std::numeric_limits<double>::infinity();
    const double answer_bytes = name == "get"   ? options_.value_bytes
                                : name == "put" ? sizeof(uint64_t)
                                                : sizeof(uint32_t);
    return gpus_ * gpus_ / (gpus_ - 1) * limits_.link_bytes_per_second /
           (bytes_in(name) + answer_bytes);
  }

  const GpusOptions& options_;
  const GpusLimits& limits_;
  const double gpus_;
  const std::span<const ResultRow> rows_;
};

}  // namespace

void set_gpus_limits(const GpusOptions& options, const GpusMachine& machine,
                     std::span<ResultRow> rows) {
  const GpusModel model(options, machine, rows);
  for (ResultRow& row : rows)
    if (row.configuration == machine.name())
      if (const double limit = model.limit_of(row.phase); limit > 0)
        row.numbers["limit_per_second"] = limit;
}

}  // namespace stride::benchmark
