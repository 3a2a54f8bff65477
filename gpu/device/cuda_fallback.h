// What a device cannot do, the host does: with everything brought to where the host can read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpu/device/cuda_transfer.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride {

inline StatusCode code_of(const Status& status) { return status.code(); }
template <class T>
StatusCode code_of(const Result<T>& result) {
  return result.status().code();
}

// Returns what on_device() returns or, where the device's memory did not suffice, on_host().
template <class OnDevice, class OnHost>
auto device_or_host(const OnDevice& on_device, const OnHost& on_host) -> decltype(on_host()) {
  decltype(on_host()) result = cuda_guarded(on_device);
  if (code_of(result) != StatusCode::resource_exhausted) return result;
  return on_host();
}

// invalid_argument: there is not one result for each query.
inline Status check_room(uint64_t queries, uint64_t results) {
  if (results == queries) return {};
  return Status::invalid("room for " + std::to_string(results) + " results of " +
                         std::to_string(queries) + " queries")
      .with_remedy("give one result for each query");
}

// Copies a column of the device's to host memory, where `keys` and `offsets` keep it.
Status copy_to_host(const CudaContext& context, KeyColumn* column, std::vector<std::byte>* keys,
                    std::vector<uint64_t>* offsets);

// Calls host(queries, out) with both in host memory, wherever they lie. Throws std::bad_alloc.
template <class T, class Host>
Status search_on_host(const CudaContext& context, KeyColumn queries, std::span<T> out,
                      const Host& host) {
  std::vector<std::byte> keys;
  std::vector<uint64_t> offsets;
  if (queries.size > 0 && context.is_of_device(queries))
    STRIDE_TRY(copy_to_host(context, &queries, &keys, &offsets));
  if (out.empty() || !context.is_of_device(out.data())) return host(queries, out);
  std::vector<T> results(out.size());
  STRIDE_TRY(host(queries, std::span<T>(results)));
  return context.transfer.copy(out.data(), results.data(), out.size_bytes());
}

}  // namespace stride
