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
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "gpu/match/match_layout.h"
#include "tests/support/catch.h"
#include "tests/support/fake_tree_index.h"
#include "tests/support/forwarding_backend.h"

namespace stride::test {

class FakeSorter final : public Sorter {
 public:
  FakeSorter(Sorter& to, FakeCounters& counters) : to_(to), counters_(counters) {}
  Status sort(std::span<const KeyColumn> chunks, Sorted* sorted) override {
    STRIDE_TRY(counters_.call());
    return to_.sort(chunks, sorted);
  }

 private:
  Sorter& to_;
  FakeCounters& counters_;
};

class FakeLongestPrefix final : public LongestPrefix {
 public:
  FakeLongestPrefix(LongestPrefix& to, FakeCounters& counters) : to_(to), counters_(counters) {}

  Status build_matches(const PackedColumn& prefixes, uint32_t address_bits,
                       std::vector<std::byte>* image, std::vector<uint32_t>* parents) override {
    return to_.build_matches(prefixes, address_bits, image, parents);
  }
  Status longest_match(const MatchView& matches, const KeyColumn& addresses,
                       std::span<uint32_t> out) override {
    if (matches.resident) {
      STRIDE_TRY(counters_.call());
      ++counters_.searches;
    }
    return to_.longest_match(matches, addresses, out);
  }
  Result<std::shared_ptr<ResidentMatches>> make_resident(const MatchView& matches,
                                                         const MatchRows& rows) override {
    STRIDE_TRY(counters_.call());
    if (reinterpret_cast<const MatchHeader*>(matches.image)->levels == 0)
      return Status(StatusCode::unavailable, "not on this device");
    if (counters_.used + matches.image_bytes > counters_.limit)
      return Status(StatusCode::resource_exhausted, "no room");
    counters_.used += matches.image_bytes;
    return std::shared_ptr<ResidentMatches>(
        std::make_shared<MatchCopy>(matches, rows, &counters_.used));
  }
  Status match_on_device(const ResidentMatches& base, uint32_t newer,
                         const ResidentMatches* changes, const KeyColumn& addresses, Location* out,
                         void*) override {
    STRIDE_TRY(counters_.call());
    const auto& under = static_cast<const MatchCopy&>(base);
    const auto* over = static_cast<const MatchCopy*>(changes);
    std::vector<uint32_t> in_base(addresses.size), in_changes(addresses.size, Location::absent);
    STRIDE_TRY(to_.longest_match(under.view(), addresses, in_base));
    if (over) STRIDE_TRY(to_.longest_match(over->view(), addresses, in_changes));
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

 private:
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

  LongestPrefix& to_;
  FakeCounters& counters_;
};

class FakeScatter final : public Scatter {
 public:
  FakeScatter(Scatter& to, FakeCounters& counters) : to_(to), counters_(counters) {}

  Result<std::unique_ptr<PreparedScatter>> prepare(const Indexes& targets, uint64_t target_count,
                                                   OutOfRange out_of_range) override {
    STRIDE_TRY(counters_.call());
    auto prepared = to_.prepare(targets, target_count, out_of_range);
    if (!prepared.ok()) return prepared;
    return std::unique_ptr<PreparedScatter>(std::make_unique<Prepared>(std::move(*prepared)));
  }

 private:
  struct Prepared final : PreparedScatter {
    explicit Prepared(std::unique_ptr<PreparedScatter> made)
        : PreparedScatter(made->sources(), made->targets()), here(std::move(made)) {
      report_ = here->report();
    }
    uint64_t memory_bytes() const override { return here->memory_bytes(); }
    Status apply_checked(const Numbers& sources, const MutableNumbers& into, ScatterMode mode,
                         void*) const override {
      return here->apply(sources, into, mode);
    }
    std::unique_ptr<PreparedScatter> here;
  };

  Status apply_checked(const Numbers& sources, const Indexes& targets, const MutableNumbers& into,
                       const ScatterOptions& options, ScatterReport* report) override {
    STRIDE_TRY(counters_.call());
    ++counters_.scatters;
    ScatterOptions here = options;
    here.stream = nullptr;  // the work is done when this returns
    return to_.apply(sources, targets, into, here, report);
  }

  Scatter& to_;
  FakeCounters& counters_;
};

class FakeDevice final : public ForwardingBackend {
 public:
  explicit FakeDevice(uint64_t memory, std::string name = "fake device")
      : ForwardingBackend(Backend::host(2)), counters_(memory), name_(std::move(name)) {}

  // The n-th call from now fails, and with io_error all after it, as those to a lost device do.
  void fail_call(uint64_t n, StatusCode code) {
    counters_.fault = code;
    counters_.calls = 0;
    counters_.failing = n;
  }
  // An index of more keys does not fit.
  void set_max_keys(uint64_t keys) { counters_.max_keys = keys; }
  // Hands over found rows in pieces of so many, and says so. 0: in the host's blocks.
  void set_piece(uint64_t rows) { counters_.piece = rows; }
  uint64_t calls() const { return counters_.calls; }
  uint64_t used() const { return counters_.used; }
  uint64_t searches() const { return counters_.searches; }  // that were done here
  uint64_t scatters() const { return counters_.scatters; }

  Sorter& sorter() override { return sorter_; }
  TreeIndex& tree_index() override { return tree_index_; }
  LongestPrefix& longest_prefix() override { return longest_prefix_; }
  Scatter& scatter() override { return scatter_; }

  std::string name() const override { return name_; }
  bool has_device() const override { return true; }
  Result<std::unique_ptr<BackendMemory>> allocate(uint64_t bytes) override {
    auto memory = to_->allocate(bytes);
    if (!memory.ok()) return memory;
    return std::unique_ptr<BackendMemory>(std::make_unique<Lent>(std::move(*memory), memory_));
  }
  bool is_on_device(const void* p) const override { return memory_->has(p); }
  Status copy(void* to, const void* from, uint64_t bytes) override {
    STRIDE_TRY(counters_.call());
    return to_->copy(to, from, bytes);
  }

 private:
  // The memory that there is, and its bytes.
  class AllMemory {
   public:
    void add(const std::byte* begin, uint64_t bytes) {
      std::lock_guard lock(mutex_);
      memory_[begin] = bytes;
    }
    void remove(const std::byte* begin) {
      std::lock_guard lock(mutex_);
      memory_.erase(begin);
    }
    bool has(const void* p) const {
      const auto* at = static_cast<const std::byte*>(p);
      std::lock_guard lock(mutex_);
      auto behind = memory_.upper_bound(at);
      if (behind == memory_.begin()) return false;
      const auto& [begin, bytes] = *std::prev(behind);
      return at < begin + bytes;
    }

   private:
    mutable std::mutex mutex_;  // guards memory_
    std::map<const std::byte*, uint64_t> memory_;
  };
  class Lent final : public BackendMemory {
   public:
    Lent(std::unique_ptr<BackendMemory> memory, std::shared_ptr<AllMemory> all)
        : memory_(std::move(memory)), all_(std::move(all)) {
      data_ = memory_->data();
      size_ = memory_->size();
      all_->add(data_, size_);
    }
    ~Lent() override { all_->remove(data_); }

   private:
    std::unique_ptr<BackendMemory> memory_;
    std::shared_ptr<AllMemory> all_;
  };

  FakeCounters counters_;
  FakeSorter sorter_{to_->sorter(), counters_};
  FakeTreeIndex tree_index_{to_->tree_index(), counters_};
  FakeLongestPrefix longest_prefix_{to_->longest_prefix(), counters_};
  FakeScatter scatter_{to_->scatter(), counters_};
  const std::string name_;
  const std::shared_ptr<AllMemory> memory_ = std::make_shared<AllMemory>();
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
