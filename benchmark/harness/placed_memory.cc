#include "benchmark/harness/placed_memory.h"

namespace stride::benchmark {
namespace {

Status copy_to(Backend* backend, const void* from, uint64_t bytes,
               std::unique_ptr<BackendMemory>* memory) {
  Result<std::unique_ptr<BackendMemory>> allocated = backend->allocate(bytes);
  if (!allocated.ok()) return allocated.status();
  *memory = std::move(*allocated);
  return backend->copy((*memory)->data(), from, bytes);
}

}  // namespace

// Precondition: the first row is at the start of the data.
Status PlacedColumn::place(const Placement& placement, const KeyColumn& column) {
  view_ = column;
  if (!placement.in_backend) return {};
  STRIDE_TRY(copy_to(placement.backend, column.data, column.bytes(), &data_));
  view_.data = data_->data();
  if (column.is_fixed()) return {};
  uint64_t bytes = (column.size + 1) * sizeof(uint64_t);
  STRIDE_TRY(copy_to(placement.backend, column.offsets, bytes, &offsets_));
  view_.offsets = reinterpret_cast<const uint64_t*>(offsets_->data());
  return {};
}

}  // namespace stride::benchmark
