// Where trees are built on host threads (tree_build.h, match_build.h), with Thrust's algorithms.
#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/cpp/execution_policy.h>
#include <thrust/system/tbb/execution_policy.h>
#include <thrust/transform_reduce.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gpu/bulk_vector.h"
#include "gpu/host/task_pool.h"
#include "storage/work_watch.h"

namespace stride {

template <class ThrustPolicy>
class HostSpace {
 public:
  static constexpr uint64_t keys_per_task = 4096;
  static constexpr uint64_t threads_in_step = 1;

  template <class T>
  using Buffer = BulkVector<T>;

  using Image = std::vector<std::byte>;

  // watch: null, or whoever may stop the passes, at the beginning of each.
  explicit HostSpace(const ThrustPolicy& policy, const WorkWatch* watch = nullptr)
      : policy_(policy), watch_(watch) {}
  const ThrustPolicy& policy() const {
    if (watch_) watch_->throw_if_stopped();
    return policy_;
  }
  template <class T>
  Buffer<T> buffer(uint64_t n) {
    return Buffer<T>(n);
  }
  void make_image(uint64_t bytes, Image* image) { image->assign(bytes, std::byte{0}); }
  std::byte* data(Image* image) { return image->data(); }
  void copy(void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); }
  void copy_in(void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); }
  void copy_out(void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); }

  void set_zero(void* to, uint64_t bytes) { std::memset(to, 0, bytes); }
  template <uint32_t bins, class Op>
  void histogram(uint64_t n, const Op& op, int64_t* counts) {
    using Bins = std::array<int64_t, bins>;
    thrust::counting_iterator<uint64_t> first(0);
    auto count = [op, n](uint64_t task) {
      Bins sum{};
      uint64_t end = std::min(n, (task + 1) * keys_per_task);
      auto add = [&](uint32_t bin, int32_t by) { sum[bin] += by; };
      for (uint64_t i = task * keys_per_task; i < end; ++i) op(i, add);
      return sum;
    };
    auto add_up = [](Bins a, const Bins& b) {
      for (uint32_t i = 0; i < bins; ++i) a[i] += b[i];
      return a;
    };
    Bins sum = thrust::transform_reduce(
        policy_, first, first + (n + keys_per_task - 1) / keys_per_task, count, Bins{}, add_up);
    std::copy(sum.begin(), sum.end(), counts);
  }

 private:
  const ThrustPolicy& policy_;
  const WorkWatch* watch_;
};

// Calls build(policy) with the policy for so many keys: on the pool's threads, or on the calling
// one where waking the others costs more than the work.
template <class Build>
void with_policy(TaskPool& pool, uint64_t keys, const Build& build) {
#if !defined(__SANITIZE_THREAD__)
  // ThreadSanitizer cannot see the order that an uninstrumented TBB keeps between tasks.
  constexpr uint64_t min_parallel_keys = 1 << 15;
  if (pool.threads() > 1 && keys >= min_parallel_keys) {
    pool.inside([&] { build(thrust::tbb::par); });
    return;
  }
#endif
  (void)pool, (void)keys;
  build(thrust::cpp::par);
}

}  // namespace stride
