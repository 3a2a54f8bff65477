#include "gpu/sort/cuda_sorter.h"

#include "gpu/device/cuda_fallback.h"
#include "gpu/sort/cuda_sort.h"

namespace stride {

namespace {

class CudaSorter final : public Sorter {
 public:
  CudaSorter(const CudaContext& context, Sorter& host) : context_(context), host_(host) {}

  Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) override {
    return device_or_host([&] { return sort_chunks_cuda(context_, chunks, sorted); },
                          [&] { return host_.sort(chunks, sorted); });
  }

 private:
  CudaContext context_;
  Sorter& host_;
};

}  // namespace

std::unique_ptr<Sorter> make_cuda_sorter(const CudaContext& context, Sorter& host) {
  return std::make_unique<CudaSorter>(context, host);
}

}  // namespace stride
