#include "gpu/scatter_add.h"

#include <string>

#include "gpu/scatter.h"
#include "storage/status.h"

namespace stride {

namespace {

Status check_column(const char* what, const void* data, uint64_t size, uint32_t width) {
  if (reinterpret_cast<uintptr_t>(data) % width == 0 && (data != nullptr || size == 0)) return {};
  return Status::invalid(std::string(what) + ": a column at an address that is " +
                         (data ? "not a multiple of " + std::to_string(width) : "null"))
      .with_remedy("align columns to the width of an entry");
}

bool go_together(NumberType source, NumberType target) {
  return source == target ||
         (target == NumberType::f32 && (source == NumberType::f16 || source == NumberType::bf16));
}

}  // namespace

Status check_targets(const Indexes& targets) {
  if (targets.width != 4 && targets.width != 8)
    return Status::invalid("targets of " + std::to_string(targets.width) + " bytes")
        .with_remedy("use 32-bit or 64-bit unsigned integers");
  return check_column("targets", targets.data, targets.size, targets.width);
}

Status check_scatter(const Numbers& sources, uint64_t indexes, const MutableNumbers& into,
                     const ScatterOptions& options) {
  if (sources.size != indexes)
    return Status::invalid(std::to_string(sources.size) + " sources with " +
                           std::to_string(indexes) + " targets")
        .with_remedy("give one target for each source");
  if (into.type == NumberType::none || into.type == NumberType::f16 ||
      into.type == NumberType::bf16 || !go_together(sources.type, into.type))
    return Status::invalid("sources of type " + std::string(to_string(sources.type)) +
                           " cannot be combined into " + std::string(to_string(into.type)))
        .with_remedy("use i32, i64, f32 or f64 for both, or f16 or bf16 into f32");
  if (sources.data != nullptr)
    STRIDE_TRY(check_column("sources", sources.data, sources.size, width_of(sources.type)));
  STRIDE_TRY(check_column("T", into.data, into.size, width_of(into.type)));
  if (options.stream != nullptr && options.out_of_range == OutOfRange::error)
    return Status::invalid("OutOfRange::error on a stream")
        .with_remedy("give no stream, or count what is out of range");
  return {};
}

Status Scatter::apply(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                      const ScatterOptions& options, ScatterReport* report) {
  STRIDE_TRY(check_scatter(sources, targets.size, into, options));
  STRIDE_TRY(check_targets(targets));
  ScatterReport unused;
  if (!report) report = &unused;
  *report = {};
  if (sources.size == 0) return {};
  if (into.size == 0 && options.out_of_range == OutOfRange::count) {
    if (!options.stream) *report = {sources.size, 0};
    return {};
  }
  return apply_checked(sources, targets, into, options, report);
}

Status PreparedScatter::apply(const Numbers& sources, const MutableNumbers& into, ScatterMode mode,
                              void* stream) const {
  STRIDE_TRY(check_scatter(sources, sources_, into, {.mode = mode, .stream = stream}));
  if (into.size != targets_)
    return Status::invalid("a T of " + std::to_string(into.size) +
                           " numbers, for prepared targets of " + std::to_string(targets_))
        .with_remedy("give room for one number for each target");
  if (sources_ == 0 || targets_ == 0) return {};
  return apply_checked(sources, into, mode, stream);
}

Status out_of_range_error(const ScatterReport& report, uint64_t target, uint64_t targets) {
  return Status::invalid("the target of source " + std::to_string(report.first_out_of_range) +
                         " is " + std::to_string(target) + ", and T has " +
                         std::to_string(targets) + " numbers (" +
                         std::to_string(report.out_of_range) + " sources are out of range)")
      .with_remedy("give a larger T, or count what is out of range");
}

}  // namespace stride
