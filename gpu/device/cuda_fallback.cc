#include "gpu/device/cuda_fallback.h"

namespace stride {

Status copy_to_host(const CudaContext& context, KeyColumn* column, std::vector<std::byte>* keys,
                    std::vector<uint64_t>* offsets) {
  CudaTransfer& transfer = context.transfer;
  uint64_t first = 0, end = column->size * column->width;
  if (!column->is_fixed()) {
    offsets->resize(column->size + 1);
    STRIDE_TRY(transfer.copy(offsets->data(), column->offsets, offsets->size() * sizeof(uint64_t)));
    first = offsets->front();
    end = offsets->back();
    column->offsets = offsets->data();
  }
  keys->resize(end - first);
  STRIDE_TRY(transfer.copy(keys->data(), column->data + first, keys->size()));
  column->data = keys->data() - first;
  return {};
}

}  // namespace stride
