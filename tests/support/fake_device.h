// A backend that looks like a device and works on the host: what the engine does with a device, on
// machines that have none.
//
//   auto device = std::make_shared<FakeDevice>(/*memory=*/1 << 20);
//   options.shared_backend = device;
//   device->fail_call(3, StatusCode::io_error);   // the third from now
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "gpu/backend.h"
#include "gpu/match/match_layout.h"
#include "tests/support/catch.h"

namespace stride::test {

class FakeDevice final : public Backend {
 public:
  explicit FakeDevice(uint64_t memory) : limit_(memory) {}

  // The n-th call from now fails, and with io_error all after it, as those to a lost device do.
  void fail_call(uint64_t n, StatusCode code) {
    fault_ = code;
    calls_ = 0;
    failing_ = n;
  }
  uint64_t calls() const { return calls_; }
  uint64_t used() const { return used_; }
  uint64_t searches() const { return searches_; }  // that were done here
  uint64_t scatters() const { return scatters_; }

  std::string name() const override { return "fake device"; }
  unsigned threads() const override { return host_->threads(); }
  bool has_device() const override { return true; }

  Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) override {
    STRIDE_TRY(call());
    return host_->sort(chunks, sorted);
  }
  Status measure_keys(const PackedColumn& keys, const SampleOptions& options,
                      KeyStatistics* statistics) override {
    STRIDE_TRY(call());
    return host_->measure_keys(keys, options, statistics);
  }
  Status measure_costs(AccessCosts* costs) override {
    STRIDE_TRY(call());
    return host_->measure_costs(costs);
  }
  Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                    std::vector<std::byte>* image) override {
    STRIDE_TRY(call());
    return host_->build_tree(keys, options, image);
  }
  Status find(std::span<const IndexView> indexes, const KeyColumn& queries,
              std::span<Location> out) override {
    return find_blocks(indexes, queries, [&](uint64_t first, std::span<const Location> found) {
      std::copy(found.begin(), found.end(), out.begin() + static_cast<ptrdiff_t>(first));
      return Status();
    });
  }
  Status find_blocks(std::span<const IndexView> indexes, const KeyColumn& queries,
                     const TakeLocations& take) override {
    STRIDE_TRY(call());
    ++searches_;
    std::vector<IndexView> here = copies(indexes);
    STRIDE_TRY(host_->find_blocks(here, queries, take));
    return call();  // fails late, too
  }
  Status find_ranks(const IndexView& index, const KeyColumn& queries,
                    std::span<uint32_t> out) override {
    return host_->find_ranks(index, queries, out);
  }
  Status lower_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return host_->lower_bound(index, queries, out);
  }
  Status upper_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return host_->upper_bound(index, queries, out);
  }
  Status build_matches(const PackedColumn& prefixes, uint32_t address_bits,
                       std::vector<std::byte>* image, std::vector<uint32_t>* parents) override {
    return host_->build_matches(prefixes, address_bits, image, parents);
  }
  Status longest_match(const MatchView& matches, const KeyColumn& addresses,
                       std::span<uint32_t> out) override {
    if (matches.resident) {
      STRIDE_TRY(call());
      ++searches_;
    }
    return host_->longest_match(matches, addresses, out);
  }
  Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                         std::span<RankInterval> out) override {
    return host_->prefix_interval(index, queries, out);
  }
  Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index,
                                                       const IndexRows& rows) override {
    STRIDE_TRY(call());
    uint64_t bytes = index.keys.row_bytes() + index.tree.image_bytes;
    if (rows.values) bytes += rows.values->row_bytes();
    if (used_ + bytes > limit_) return Status(StatusCode::resource_exhausted, "no room");
    used_ += bytes;
    return std::shared_ptr<ResidentIndex>(std::make_shared<Copy>(index, rows, bytes, &used_));
  }
  Result<std::shared_ptr<ResidentMatches>> make_resident(const MatchView& matches,
                                                         const MatchRows& rows) override {
    STRIDE_TRY(call());
    if (reinterpret_cast<const MatchHeader*>(matches.image)->levels == 0)
      return Status(StatusCode::unavailable, "not on this device");
    if (used_ + matches.image_bytes > limit_)
      return Status(StatusCode::resource_exhausted, "no room");
    used_ += matches.image_bytes;
    return std::shared_ptr<ResidentMatches>(std::make_shared<MatchCopy>(matches, rows, &used_));
  }
  Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                     const TreeOptions& options) override {
    return host_->build_index(keys, order, options);
  }
  Result<std::unique_ptr<FoundValues>> find_values(std::span<const IndexView> indexes,
                                                   const KeyColumn& queries,
                                                   std::span<uint64_t> found,
                                                   std::span<uint64_t> offsets) override {
    STRIDE_TRY(call());
    ++searches_;
    auto values = std::make_unique<Values>(this);
    std::vector<IndexView> here = copies(indexes);
    std::vector<Location> locations(queries.size);
    STRIDE_TRY(host_->find(here, queries, locations));
    offsets[0] = 0;
    for (uint64_t i = 0; i < queries.size; ++i) {
      Location at = locations[i];
      if (at.found()) {
        const Copy& copy = static_cast<const Copy&>(*indexes[at.index].resident);
        CHECK_MESSAGE(copy.has_values(), "values are asked of an index without");
        if (!copy.hidden[at.rank]) {
          found[i / 64] |= uint64_t{1} << (i % 64);
          const std::string& value = copy.values[at.rank];
          values->bytes_of_all += value;
        }
      }
      offsets[i + 1] = values->bytes_of_all.size();
    }
    return std::unique_ptr<FoundValues>(std::move(values));
  }
  Status find_on_device(std::span<const IndexView> indexes, const KeyColumn& queries, Location* out,
                        void*) override {
    STRIDE_TRY(call());
    std::vector<IndexView> here = copies(indexes);
    STRIDE_TRY(host_->find(here, queries, {out, queries.size}));
    for (uint64_t i = 0; i < queries.size; ++i) {
      if (!out[i].found()) continue;
      const Copy& copy = static_cast<const Copy&>(*indexes[out[i].index].resident);
      if (copy.hidden[out[i].rank]) out[i] = {Location::absent, Location::absent};
    }
    return {};
  }
  Status get_on_device(std::span<const IndexView> indexes, const KeyColumn& queries,
                       const DeviceValues& out, void*) override {
    std::vector<uint64_t> found((queries.size + 63) / 64);
    auto values = find_values(indexes, queries, found, {out.offsets, queries.size + 1});
    if (!values.ok()) return values.status();
    std::memcpy(out.found, found.data(), (queries.size + 31) / 32 * 4);
    const std::string& all = static_cast<Values&>(**values).bytes_of_all;
    std::memcpy(out.values, all.data(), std::min<uint64_t>(out.capacity, all.size()));
    return {};
  }
  Status match_on_device(const ResidentMatches& base, uint32_t newer,
                         const ResidentMatches* changes, const KeyColumn& addresses, Location* out,
                         void*) override {
    STRIDE_TRY(call());
    const auto& under = static_cast<const MatchCopy&>(base);
    const auto* over = static_cast<const MatchCopy*>(changes);
    std::vector<uint32_t> in_base(addresses.size), in_changes(addresses.size, Location::absent);
    STRIDE_TRY(host_->longest_match(under.view(), addresses, in_base));
    if (over) STRIDE_TRY(host_->longest_match(over->view(), addresses, in_changes));
    for (uint64_t i = 0; i < addresses.size; ++i) {
      uint32_t b = in_base[i], c = in_changes[i];
      out[i] = {Location::absent, Location::absent};
      if (c != Location::absent &&
          (b == Location::absent || under.lengths[b] <= over->lengths[c])) {
        out[i] = over->rows[c];
      } else if (b != Location::absent) {
        out[i] = under.rows.empty() ? Location{0, b} : under.rows[b];
        out[i].index += newer;
      }
    }
    return {};
  }
  Result<std::unique_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options) override {
    return host_->make_vector_set(options);
  }
  Result<std::unique_ptr<ByteSet>> make_byte_set() override { return host_->make_byte_set(); }
  Result<std::unique_ptr<ScatterRoute>> make_route(const Indexes& targets, uint64_t target_count,
                                                   OutOfRange out_of_range) override {
    STRIDE_TRY(call());
    auto route = host_->make_route(targets, target_count, out_of_range);
    if (!route.ok()) return route;
    return std::unique_ptr<ScatterRoute>(std::make_unique<Route>(std::move(*route)));
  }
  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) override {
    auto memory = host_->allocate(bytes);
    if (memory.ok()) memory_.insert((*memory)->data());
    return memory;
  }
  Result<std::unique_ptr<BackendMemory>> allocate_host(uint64_t bytes) override {
    return host_->allocate_host(bytes);
  }
  bool is_on_device(const void* p) const override {
    return memory_.count(static_cast<const std::byte*>(p)) > 0;
  }
  Status copy(void* to, const void* from, uint64_t bytes) override {
    STRIDE_TRY(call());
    return host_->copy(to, from, bytes);
  }
  Status measure_limits(uint64_t table_bytes, BackendLimits* limits) override {
    return host_->measure_limits(table_bytes, limits);
  }
  void parallel_for(uint64_t n, uint64_t grain,
                    const std::function<void(uint64_t, uint64_t)>& body) override {
    host_->parallel_for(n, grain, body);
  }

 private:
  Status scatter_checked(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                         const ScatterOptions& options, ScatterReport* report) override {
    STRIDE_TRY(call());
    ++scatters_;
    ScatterOptions here = options;
    here.stream = nullptr;  // the work is done when this returns
    return host_->scatter(sources, targets, into, here, report);
  }
  struct Route final : ScatterRoute {
    explicit Route(std::unique_ptr<ScatterRoute> made)
        : ScatterRoute(made->sources(), made->targets()), here(std::move(made)) {
      report_ = here->report();
    }
    uint64_t memory_bytes() const override { return here->memory_bytes(); }
    Status apply_checked(const Numbers& sources, const MutableNumbers& into, ScatterMode mode,
                         void*) const override {
      return here->apply(sources, into, mode);
    }
    std::unique_ptr<ScatterRoute> here;
  };

  // Copies everything, as a device does.
  struct Copy final : ResidentIndex {
    Copy(const IndexView& index, const IndexRows& rows, uint64_t bytes, std::atomic<uint64_t>* used)
        : hidden(index.keys.size), with_values(rows.values), memory(bytes), total(used) {
      for (uint64_t i = 0; i < index.keys.size; ++i) {
        Bytes key = index.keys[i];
        keys.insert(keys.end(), key.begin(), key.end());
        if (i % 128 == 0) bases.push_back(ends.empty() ? 0 : ends.back());
        if (ends.empty()) ends.push_back(0);
        ends.push_back(keys.size());
        if (rows.hidden) hidden[i] = rows.hidden[i];
        if (rows.values) values.emplace_back(as_text((*rows.values)[i]));
      }
      image.assign(index.tree.image, index.tree.image + index.tree.image_bytes);
      here.keys = index.keys;
      here.keys.data = keys.data();
      here.keys.data_bytes = keys.size();
      if (!index.keys.fixed) {
        bases.assign(index.keys.size / 128 + 1, 0);
        here.keys.offsets = {bases.data(), ends.data(), 8};
      }
      here.tree = {image.data(), image.size()};
    }
    ~Copy() override { *total -= memory; }
    IndexView view() const override { return here; }
    Status copy_image(std::vector<std::byte>* to) const override {
      *to = image;
      return {};
    }
    Status copy_keys(std::vector<std::byte>*, std::vector<uint64_t>*) const override { return {}; }
    bool on_device() const override { return true; }
    bool has_values() const override { return with_values; }
    uint64_t memory_bytes() const override { return memory; }

    std::vector<std::byte> keys, image;
    std::vector<uint64_t> ends, bases;
    std::vector<uint8_t> hidden;
    std::vector<std::string> values;
    bool with_values;
    uint64_t memory;
    std::atomic<uint64_t>* total;
    IndexView here;
  };

  struct MatchCopy final : ResidentMatches {
    MatchCopy(const MatchView& matches, const MatchRows& beside, std::atomic<uint64_t>* used)
        : image(matches.image, matches.image + matches.image_bytes), total(used) {
      uint32_t n = reinterpret_cast<const MatchHeader*>(image.data())->prefixes;
      if (beside.rows) rows.assign(beside.rows, beside.rows + n);
      if (beside.lengths) lengths.assign(beside.lengths, beside.lengths + n);
    }
    ~MatchCopy() override { *total -= image.size(); }
    uint64_t memory_bytes() const override { return image.size(); }
    MatchView view() const { return {image.data(), image.size()}; }
    std::vector<std::byte> image;
    std::vector<Location> rows;
    std::vector<uint8_t> lengths;
    std::atomic<uint64_t>* total;
  };

  struct Values final : FoundValues {
    explicit Values(FakeDevice* fake) : device(fake) {}
    uint64_t bytes() const override { return bytes_of_all.size(); }
    Status copy(std::byte* to) override {
      STRIDE_TRY(device->call());
      if (!bytes_of_all.empty()) std::memcpy(to, bytes_of_all.data(), bytes_of_all.size());
      return {};
    }
    FakeDevice* device;
    std::string bytes_of_all;
  };

  std::vector<IndexView> copies(std::span<const IndexView> indexes) const {
    std::vector<IndexView> views;
    for (const IndexView& index : indexes) {
      CHECK_MESSAGE(index.resident != nullptr, "the device is asked of what it has not");
      views.push_back(index.resident->view());
    }
    return views;
  }
  Status call() {
    uint64_t n = ++calls_;
    if (failing_ == 0 || n < failing_) return {};
    if (n > failing_ && fault_ == StatusCode::resource_exhausted) return {};
    return Status(fault_, "the fake device fails");
  }

  std::unique_ptr<Backend> host_ = Backend::host(2);
  uint64_t limit_;
  std::atomic<uint64_t> used_{0}, calls_{0}, failing_{0}, searches_{0}, scatters_{0};
  std::atomic<StatusCode> fault_{StatusCode::io_error};
  std::set<const std::byte*> memory_;
};

// All that a result must not depend on: one thread, several, one that looks like a device, and a
// device where there is one.
inline std::vector<std::shared_ptr<Backend>> all_backends() {
  std::vector<std::shared_ptr<Backend>> all = {Backend::host(1), Backend::host(3),
                                               std::make_shared<FakeDevice>(1 << 30)};
  auto device = Backend::cuda({.host_threads = 2});
  if (device.ok()) all.push_back(std::move(*device));
  return all;
}

}  // namespace stride::test
