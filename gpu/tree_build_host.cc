#include "gpu/tree_build_host.h"

#include <thrust/system/cpp/execution_policy.h>
#include <thrust/system/tbb/execution_policy.h>

#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

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

  using Image = std::vector<std::byte>;

  explicit HostSpace(const ThrustPolicy& policy) : policy_(policy) {}
  const ThrustPolicy& policy() const { return policy_; }
  template <class T>
  Buffer<T> buffer(uint64_t n) {
    return Buffer<T>(n);
  }
  void make_image(uint64_t bytes, Image* image) { image->assign(bytes, std::byte{0}); }
  std::byte* data(Image* image) { return image->data(); }
  void copy(void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); }
  void copy_in(void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); }

  template <class Keys>
  SharedBitsHistogram shared_bits(const Keys& keys, uint64_t size, uint32_t prefix_bits) {
    thrust::counting_iterator<uint64_t> first(0);
    uint64_t tasks = (size - 1 + keys_per_task - 1) / keys_per_task;
    return thrust::transform_reduce(policy_, first, first + tasks,
                                    CountSharedBits<Keys>{keys, size, keys_per_task, prefix_bits},
                                    SharedBitsHistogram{}, AddHistograms());
  }

 private:
  const ThrustPolicy& policy_;
};

template <class ThrustPolicy>
Status build(const ThrustPolicy& policy, const PackedColumn& keys, const TreeOptions& options,
             std::vector<std::byte>* image) {
  HostSpace<ThrustPolicy> space(policy);
  auto size = static_cast<uint32_t>(keys.size);
  return with_keys(keys, [&](const auto& typed) {
    using Keys = std::decay_t<decltype(typed)>;
    TreeBuilder<HostSpace<ThrustPolicy>, Keys> builder(space, typed, size, keys.row_bytes(),
                                                       options);
    return builder.build(image);
  });
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

Status check_key_count(uint64_t keys) {
  if (keys <= max_index_keys) return {};
  return Status::invalid("an index of " + std::to_string(keys) + " keys: at most " +
                         std::to_string(max_index_keys))
      .with_remedy("make several indexes of the keys");
}

Status build_tree_host(TaskPool& pool, const PackedColumn& keys, const TreeOptions& options,
                       std::vector<std::byte>* image) {
  STRIDE_TRY(options.check());
  STRIDE_TRY(check_key_count(keys.size));
  if (run_here(pool, keys.size)) return build(thrust::cpp::par, keys, options, image);
  Status status;
  pool.inside([&] { status = build(thrust::tbb::par, keys, options, image); });
  return status;
}

}  // namespace stride
