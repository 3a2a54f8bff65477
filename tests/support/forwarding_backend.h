// Backends that hand every call on: bases of fakes, which override what they fake alone.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/backend.h"

namespace stride::test {

class ForwardingTreeIndex : public TreeIndex {
 public:
  ForwardingTreeIndex(TreeIndex& to, const AccessCosts& typical) : TreeIndex(typical), to_(to) {}

  Status measure_keys(const PackedColumn& keys, const SampleOptions& options,
                      KeyStatistics* statistics) override {
    return to_.measure_keys(keys, options, statistics);
  }
  Status measure_costs(AccessCosts* costs) override { return to_.measure_costs(costs); }
  Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                    std::vector<std::byte>* image) override {
    return to_.build_tree(keys, options, image);
  }
  Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
              std::span<Location> out) override {
    return to_.find(indexes, queries, out);
  }
  Status find_blocks(std::span<const IndexView> indexes, const KeyColumn& queries,
                     const TakeLocations& take) override {
    return to_.find_blocks(indexes, queries, take);
  }
  Status find_ranks(const IndexView& index, const KeyColumn& queries,
                    std::span<uint32_t> out) override {
    return to_.find_ranks(index, queries, out);
  }
  Status lower_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return to_.lower_bound(index, queries, out);
  }
  Status upper_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return to_.upper_bound(index, queries, out);
  }
  Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                         std::span<RankInterval> out) override {
    return to_.prefix_interval(index, queries, out);
  }
  Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index,
                                                       const IndexRows& rows) override {
    return to_.make_resident(index, rows);
  }
  Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                     const TreeOptions& options) override {
    return to_.build_index(keys, order, options);
  }
  Result<std::unique_ptr<FoundValues>> find_values(std::span<const IndexView> indexes,
                                                   const KeyColumn& queries,
                                                   std::span<uint64_t> found,
                                                   std::span<uint64_t> ends) override {
    return to_.find_values(indexes, queries, found, ends);
  }
  Status find_on_device(std::span<const IndexView> indexes, const KeyColumn& queries, Location* out,
                        void* stream) override {
    return to_.find_on_device(indexes, queries, out, stream);
  }
  Status get_on_device(std::span<const IndexView> indexes, const KeyColumn& queries,
                       const DeviceValues& out, void* stream) override {
    return to_.get_on_device(indexes, queries, out, stream);
  }
  Status gather_on_device(std::span<const IndexView> indexes, const Location* locations,
                          uint64_t count, const GatheredRows& out, void* stream) override {
    return to_.gather_on_device(indexes, locations, count, out, stream);
  }
  Status make_keys_on_device(std::span<const DeviceKeyPart> parts, uint64_t rows, std::byte* keys,
                             void* stream) override {
    return to_.make_keys_on_device(parts, rows, keys, stream);
  }

 protected:
  TreeIndex& to_;
};

class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(std::shared_ptr<Backend> to) : to_(std::move(to)) {}

  Sorter& sorter() override { return to_->sorter(); }
  TreeIndex& tree_index() override { return to_->tree_index(); }
  LongestPrefix& longest_prefix() override { return to_->longest_prefix(); }
  Scatter& scatter() override { return to_->scatter(); }
  Sets& sets() override { return to_->sets(); }

  std::string name() const override { return to_->name(); }
  unsigned threads() const override { return to_->threads(); }
  bool has_device() const override { return to_->has_device(); }
  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) override {
    return to_->allocate(bytes);
  }
  Result<std::unique_ptr<BackendMemory>> allocate_host(uint64_t bytes) override {
    return to_->allocate_host(bytes);
  }
  bool is_on_device(const void* p) const override { return to_->is_on_device(p); }
  Status copy(void* to, const void* from, uint64_t bytes) override {
    return to_->copy(to, from, bytes);
  }
  Status measure_limits(uint64_t table_bytes, BackendLimits* limits) override {
    return to_->measure_limits(table_bytes, limits);
  }
  void parallel_for(uint64_t n, uint64_t grain,
                    const std::function<void(uint64_t, uint64_t)>& body) override {
    to_->parallel_for(n, grain, body);
  }

 protected:
  std::shared_ptr<Backend> to_;
};

}  // namespace stride::test
