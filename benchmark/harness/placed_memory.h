// Queries, keys and results where a search finds them: in memory of a backend, or of the host.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gpu/backend.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

enum class Where : uint8_t {
  host,     // left where the host has it
  pinned,   // copied to host memory that a device reads and writes itself
  backend,  // copied to the backend's memory
};

// "device", "pinned" or "host".
std::string name_of(Where where, const Backend& backend);

struct Placement {
  Backend* backend = nullptr;
  Where where = Where::host;

  // Precondition: not Where::host.
  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) const {
    return where == Where::pinned ? backend->allocate_host(bytes) : backend->allocate(bytes);
  }
};

// Kinds of memory where a device finds what it is asked and leaves its answers.
struct Side {
  const char* name;
  Result<std::unique_ptr<BackendMemory>> (*allocate)(Backend& device, Backend& host,
                                                     uint64_t bytes);
};
inline constexpr Side sides[] = {
    {"device memory", [](Backend& device, Backend&, uint64_t n) { return device.allocate(n); }},
    {"pinned memory",
     [](Backend& device, Backend&, uint64_t n) { return device.allocate_host(n); }},
    {"host memory", [](Backend&, Backend& host, uint64_t n) { return host.allocate(n); }},
};

class PlacedColumn {
 public:
  // Where the column is not copied it must outlive this. resource_exhausted: no room for it.
  Status place(const Placement& placement, const KeyColumn& column);
  const KeyColumn& view() const { return view_; }

 private:
  KeyColumn view_;
  std::unique_ptr<BackendMemory> data_, offsets_;
};

template <class T>
class PlacedResults {
 public:
  Status reserve(const Placement& placement, uint64_t n) {
    backend_ = placement.backend;
    size_ = n;
    host_.resize(n);
    if (placement.where == Where::host) return {};
    Result<std::unique_ptr<BackendMemory>> memory = placement.allocate(n * sizeof(T));
    if (!memory.ok()) return memory.status();
    memory_ = std::move(*memory);
    return {};
  }
  // For a search to write to.
  std::span<T> all() {
    return {memory_ ? reinterpret_cast<T*>(memory_->data()) : host_.data(), size_};
  }
  // The first n of them, on the host. Valid until the next call.
  Status fetch(uint64_t n, std::span<const T>* results) {
    if (memory_) STRIDE_TRY(backend_->copy(host_.data(), memory_->data(), n * sizeof(T)));
    *results = {host_.data(), n};
    return {};
  }

 private:
  Backend* backend_ = nullptr;
  uint64_t size_ = 0;
  BulkVector<T> host_;
  std::unique_ptr<BackendMemory> memory_;
};

}  // namespace stride::benchmark
