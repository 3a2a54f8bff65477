#include "benchmark/harness/placed_memory.h"

namespace stride::benchmark {
namespace {

Status copy_to(const Placement& placement, const void* from, uint64_t bytes,
               std::unique_ptr<BackendMemory>* memory) {
  Result<std::unique_ptr<BackendMemory>> allocated = placement.allocate(bytes);
  if (!allocated.ok()) return allocated.status();
  *memory = std::move(*allocated);
  return placement.backend->copy((*memory)->data(), from, bytes);
}

}  // namespace

std::string name_of(Where where, const Backend& backend) {
  if (!backend.has_device() || where == Where::host) return "host";
  return where == Where::pinned ? "pinned" : "device";
}

// Precondition: the first row is at the start of the data.
Status PlacedColumn::place(const Placement& placement, const KeyColumn& column) {
  view_ = column;
  if (placement.where == Where::host) return {};
  STRIDE_TRY(copy_to(placement, column.data, column.bytes(), &data_));
  view_.data = data_->data();
  if (column.is_fixed()) return {};
  uint64_t bytes = (column.size + 1) * sizeof(uint64_t);
  STRIDE_TRY(copy_to(placement, column.offsets, bytes, &offsets_));
  view_.offsets = reinterpret_cast<const uint64_t*>(offsets_->data());
  return {};
}

}  // namespace stride::benchmark
