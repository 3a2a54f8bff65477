// S and T in the memory where they are mapped.
#pragma once

#include <memory>
#include <vector>

#include "benchmark/workloads/map/weights.h"
#include "gpu/backend.h"

namespace stride::benchmark {

class PlacedWeights {
 public:
  // backend: copies S to its memory, and makes T there; null: both lie in the host's memory, and S
  // stays where it is. The weights must outlive this.
  static Result<PlacedWeights> make(const Weights& weights, Backend* backend);

  Backend* backend() const { return backend_; }
  Numbers sources(uint64_t n) const { return {type_, from_, n}; }
  MutableNumbers into() const { return {type_, into_->data(), targets_}; }
  Status clear() const;
  // Copies T to the host.
  Status fetch(std::vector<std::byte>* into) const;

 private:
  uint64_t into_bytes() const { return targets_ * width_of(type_); }

  Backend* backend_ = nullptr;
  NumberType type_ = NumberType::f32;
  uint64_t targets_ = 0;
  std::unique_ptr<BackendMemory> weights_, into_;
  const std::byte* from_ = nullptr;
};

}  // namespace stride::benchmark
