#include "benchmark/workloads/map/placed_weights.h"

#include <cstring>

namespace stride::benchmark {

Result<PlacedWeights> PlacedWeights::make(const Weights& weights, Backend* backend) {
  PlacedWeights placed;
  placed.backend_ = backend;
  placed.type_ = weights.type;
  placed.targets_ = weights.targets();
  auto host = Backend::host(1);
  auto into = (backend ? backend : host.get())->allocate(weights.into_bytes());
  if (!into.ok()) return into.status();
  placed.into_ = std::move(*into);
  placed.from_ = weights.numbers.data();
  if (!backend) return placed;
  auto from = backend->allocate(weights.numbers.size());
  if (!from.ok()) return from.status();
  placed.weights_ = std::move(*from);
  placed.from_ = placed.weights_->data();
  Status copied =
      backend->copy(placed.weights_->data(), weights.numbers.data(), weights.numbers.size());
  if (!copied.ok()) return copied;
  return placed;
}

Status PlacedWeights::clear() const {
  if (!backend_) {
    std::memset(into_->data(), 0, into_bytes());
    return {};
  }
  std::vector<std::byte> zeros(into_bytes());
  return backend_->copy(into_->data(), zeros.data(), zeros.size());
}

Status PlacedWeights::fetch(std::vector<std::byte>* into) const {
  into->resize(into_bytes());
  if (backend_) return backend_->copy(into->data(), into_->data(), into->size());
  std::memcpy(into->data(), into_->data(), into->size());
  return {};
}

}  // namespace stride::benchmark
