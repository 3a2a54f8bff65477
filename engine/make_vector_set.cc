#include "engine/make_vector_set.h"

#include <span>
#include <utility>

#include "gpu/backend.h"
#include "storage/no_throw.h"
#include "storage/process.h"

namespace stride {
namespace {

// A set and what it needs, which a forked child has no threads of.
class OwnedVectorSet : public VectorSet {
 public:
  OwnedVectorSet(uint32_t words, std::shared_ptr<Backend> backend, std::unique_ptr<VectorSet> set)
      : VectorSet(words), backend_(std::move(backend)), set_(std::move(set)) {}
  uint64_t size() const override { return set_->size(); }
  uint64_t id_limit() const override { return set_->id_limit(); }
  uint64_t nodes() const override { return set_->nodes(); }
  uint64_t memory_bytes() const override { return set_->memory_bytes(); }

 private:
  Status usable() const {
    if (made_in_.is_here()) return {};
    return Status(StatusCode::closed, "the set was made before this process was forked off")
        .with_remedy("make another one after fork()");
  }
  // The set's own status says how many did not fit.
  Result<uint64_t> put_vectors(const KeyColumn& vectors, uint64_t* ids,
                               uint64_t* was_new) override {
    STRIDE_TRY(usable());
    std::span<uint64_t> numbers, bits;
    if (ids) numbers = {ids, vectors.size};
    if (was_new) bits = {was_new, (vectors.size + 63) / 64};
    STRIDE_TRY(set_->find_or_put(vectors, numbers, bits));
    return uint64_t{0};
  }
  Status find_vectors(const KeyColumn& vectors, uint64_t* ids) override {
    STRIDE_TRY(usable());
    return set_->find(vectors, {ids, vectors.size});
  }
  Result<uint64_t> get_vectors(std::span<const uint64_t> ids, std::byte* vectors) override {
    STRIDE_TRY(usable());
    STRIDE_TRY(set_->get(ids, {vectors, ids.size() * words() * 4}));
    return absent;
  }
  Status clear_vectors() override {
    STRIDE_TRY(usable());
    return set_->clear();
  }

  std::shared_ptr<Backend> backend_;  // outlives the set
  std::unique_ptr<VectorSet> set_;
  ProcessMark made_in_;
};

Result<std::shared_ptr<Backend>> make_backend(BackendKind where, unsigned threads) {
  if (where == BackendKind::host) return std::shared_ptr<Backend>(Backend::host(threads));
  if (where == BackendKind::automatic) return std::shared_ptr<Backend>(Backend::automatic(threads));
  auto device = Backend::cuda({.host_threads = threads});
  if (!device.ok()) return device.status();
  return std::shared_ptr<Backend>(std::move(*device));
}

}  // namespace

Result<std::shared_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options,
                                                   BackendKind where, unsigned threads) {
  return no_throw([&]() -> Result<std::shared_ptr<VectorSet>> {
    auto backend = make_backend(where, threads);
    if (!backend.ok()) return backend.status();
    auto set = (*backend)->sets().make_vector_set(options);
    if (!set.ok()) return set.status();
    // A forked child lacks the threads that would have to end.
    return std::shared_ptr<VectorSet>(
        make_shared_here<OwnedVectorSet>(options.words, std::move(*backend), std::move(*set)));
  });
}

}  // namespace stride
