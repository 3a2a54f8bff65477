#include "gpu/tree_build_host.h"

#include <thrust/system/cpp/execution_policy.h>
#include <thrust/system/tbb/execution_policy.h>

#include <cstring>
#include <memory>
#include <string>

#include "gpu/backend.h"
#include "gpu/tree_build.h"

namespace stride {

namespace {

template <class ThrustPolicy>
class HostSpace {
 public:
  static constexpr uint64_t keys_per_task = 4096;

  template <class T>
  class Buffer {
   public:
    Buffer() = default;
    explicit Buffer(uint64_t n) : data_(new T[n]), size_(n) {}
    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    uint64_t size() const { return data_ ? size_ : 0; }

   private:
    std::unique_ptr<T[]> data_;
    uint64_t size_ = 0;
  };

  explicit HostSpace(const ThrustPolicy& policy) : policy_(policy) {}
  const ThrustPolicy& policy() const { return policy_; }
  void copy_out(void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); }
  void copy_in(void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); }

 private:
  const ThrustPolicy& policy_;
};

template <class ThrustPolicy>
Status build(const ThrustPolicy& policy, const PackedColumn& keys, const TreeOptions& options,
             std::vector<std::byte>* image) {
  HostSpace<ThrustPolicy> space(policy);
  auto size = static_cast<uint32_t>(keys.size);
  if (keys.fixed && keys.width == 8) {
    return TreeBuilder<HostSpace<ThrustPolicy>, NumberKeys>(space, NumberKeys{keys.data}, size,
                                                            keys.size * 8, options)
        .build(image);
  }
  uint64_t key_bytes = keys.fixed ? keys.size * keys.width : keys.data_bytes;
  return TreeBuilder<HostSpace<ThrustPolicy>, ByteKeys>(space, ByteKeys{keys}, size, key_bytes,
                                                        options)
      .build(image);
}

// Whether a tree is built on the calling thread.
bool run_here(const TaskPool& pool, uint64_t keys) {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer cannot see the order that an uninstrumented TBB keeps between tasks.
  (void)pool, (void)keys;
  return true;
#else
  // Waking the threads costs more than a small tree.
  constexpr uint64_t fewest_parallel_keys = 1 << 15;
  return pool.threads() == 1 || keys < fewest_parallel_keys;
#endif
}

}  // namespace

Status build_tree_host(TaskPool& pool, const PackedColumn& keys, const TreeOptions& options,
                       std::vector<std::byte>* image) {
  STRIDE_TRY(options.check());
  if (keys.size > max_index_keys) {
    return Status::invalid("a tree over " + std::to_string(keys.size) + " keys: at most " +
                           std::to_string(max_index_keys))
        .with_remedy("split the keys into several segments");
  }
  if (run_here(pool, keys.size)) return build(thrust::cpp::par, keys, options, image);
  Status status;
  pool.inside([&] { status = build(thrust::tbb::par, keys, options, image); });
  return status;
}

}  // namespace stride
