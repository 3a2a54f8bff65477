#include "gpu/set/cuda_sets.h"

#include "gpu/set/cuda_vector_set.h"

namespace stride {

namespace {

class CudaSets final : public Sets {
 public:
  CudaSets(const CudaContext& context, Sets& host) : context_(context), host_(host) {}

  Result<std::unique_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options) override {
    return cuda_guarded([&] { return make_vector_set_cuda(context_, options); });
  }
  Result<std::unique_ptr<ByteSet>> make_byte_set() override { return host_.make_byte_set(); }

 private:
  CudaContext context_;
  Sets& host_;
};

}  // namespace

std::unique_ptr<Sets> make_cuda_sets(const CudaContext& context, Sets& host) {
  return std::make_unique<CudaSets>(context, host);
}

}  // namespace stride
