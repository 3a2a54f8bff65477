#include "gpu/tree/tree_build_host.h"

#include <string>
#include <type_traits>

#include "gpu/host/host_space.h"
#include "gpu/keys/key_sample.h"
#include "gpu/tree/tree_build.h"
#include "gpu/tree_index.h"

namespace stride {

namespace {

void sample(TaskPool& pool, const PackedColumn& keys, const SampleOptions& options,
            KeyStatistics* statistics) {
  with_policy(pool, keys.size / 4, [&](const auto& policy) {
    HostSpace space(policy);
    with_keys(keys,
              [&](const auto& typed) { sample_keys(space, keys, typed, options, statistics); });
  });
}

template <class ThrustPolicy>
Status build(const ThrustPolicy& policy, const PackedColumn& keys, const TreeOptions& options,
             const WorkWatch* watch, std::vector<std::byte>* image) {
  HostSpace<ThrustPolicy> space(policy, watch);
  auto size = static_cast<uint32_t>(keys.size);
  return with_keys(keys, [&](const auto& typed) {
    using Keys = std::decay_t<decltype(typed)>;
    TreeBuilder<HostSpace<ThrustPolicy>, Keys> builder(space, typed, size, keys.row_bytes(),
                                                       options);
    return builder.build(image);
  });
}

}  // namespace

Status check_key_count(uint64_t keys) {
  if (keys <= max_index_keys) return {};
  return Status::invalid("an index of " + std::to_string(keys) + " keys: at most " +
                         std::to_string(max_index_keys))
      .with_remedy("make several indexes of the keys");
}

Status build_tree_host(TaskPool& pool, const PackedColumn& keys, const ChooseStrides& choose,
                       const TreeOptions& options, std::vector<std::byte>* image) {
  STRIDE_TRY(options.check());
  STRIDE_TRY(check_key_count(keys.size));
  TreeOptions planned = options;
  if (options.strides.empty()) {
    KeyStatistics statistics;
    sample(pool, keys, {}, &statistics);
    planned = choose(statistics, options);
  }
  const WorkWatch* watch = WorkWatch::current();
  Status status;
  with_policy(pool, keys.size,
              [&](const auto& policy) { status = build(policy, keys, planned, watch, image); });
  return status;
}

Status measure_keys_host(TaskPool& pool, const PackedColumn& keys, const SampleOptions& options,
                         KeyStatistics* statistics) {
  STRIDE_TRY(check_key_count(keys.size));
  sample(pool, keys, options, statistics);
  return {};
}

}  // namespace stride
