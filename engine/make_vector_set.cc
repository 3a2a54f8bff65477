#include "engine/make_vector_set.h"

#include <utility>

#include "gpu/backend.h"
#include "storage/no_throw.h"
#include "storage/process.h"

namespace stride {
namespace {

struct OwnedSet {
  std::shared_ptr<Backend> backend;  // outlives the set
  std::unique_ptr<VectorSet> set;
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
    // A forked child lacks the threads that would have to end.
    auto owned = make_shared_here<OwnedSet>();
    auto backend = make_backend(where, threads);
    if (!backend.ok()) return backend.status();
    owned->backend = std::move(*backend);
    auto set = owned->backend->sets().make_vector_set(options);
    if (!set.ok()) return set.status();
    owned->set = std::move(*set);
    return std::shared_ptr<VectorSet>(owned, owned->set.get());
  });
}

}  // namespace stride
