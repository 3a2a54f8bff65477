#include "gpu/set/cuda_vector_set.h"

#include "gpu/set/cuda_set_kinds.h"
#include "gpu/set/vector_set_plan.h"

namespace stride {

Status check_wide(const CudaDevice& device) {
  if (device.generation() >= 9) return {};
  return Status(StatusCode::unavailable, device.model() + " has no atomic operations of 128 bits")
      .with_remedy("use nodes of 64 bits, or the host backend");
}

Result<std::unique_ptr<VectorSet>> make_vector_set_cuda(const CudaContext& context,
                                                        VectorSetOptions options) {
  STRIDE_TRY(complete_options(&options));
  switch (options.form) {
    case VectorForm::dense:
      return make_cuda_dense_set(context, options);
    case VectorForm::slots:
      return make_cuda_slot_set(context, options);
    case VectorForm::compressed:
      return make_cuda_compressed_set(context, options);
  }
  return Status::invalid("no such form of a set");
}

}  // namespace stride
