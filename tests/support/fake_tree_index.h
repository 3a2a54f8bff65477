// The searches of a fake device (fake_device.h), with copies of all that is made resident.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "storage/first_failure.h"
#include "tests/support/catch.h"
#include "tests/support/forwarding_backend.h"

namespace stride::test {

// What the parts of a fake device share.
struct FakeCounters {
  explicit FakeCounters(uint64_t memory) : limit(memory) {}

  // Counts a call to the device: the one that was asked to fails.
  Status call() {
    uint64_t n = ++calls;
    if (failing == 0 || n < failing) return {};
    if (n > failing && fault == StatusCode::resource_exhausted) return {};
    return Status(fault, "the fake device fails");
  }

  const uint64_t limit;
  std::atomic<uint64_t> used{0}, calls{0}, failing{0}, searches{0}, scatters{0};
  std::atomic<uint64_t> max_keys{UINT64_MAX};
  std::atomic<uint64_t> piece{0};
  std::atomic<StatusCode> fault{StatusCode::io_error};
};
class FakeTreeIndex final : public ForwardingTreeIndex {
 public:
  FakeTreeIndex(TreeIndex& to, FakeCounters& counters)
      : ForwardingTreeIndex(to, AccessCosts::typical_device()), counters_(counters) {}

  Status measure_keys(const PackedColumn& keys, const SampleOptions& options,
                      KeyStatistics* statistics) override {
    STRIDE_TRY(counters_.call());
    return to_.measure_keys(keys, options, statistics);
  }
  Status measure_costs(AccessCosts* costs) override {
    STRIDE_TRY(counters_.call());
    return to_.measure_costs(costs);
  }
  Status build_tree(const PackedColumn& keys, const TreeOptions& options,
                    std::vector<std::byte>* image) override {
    STRIDE_TRY(counters_.call());
    return to_.build_tree(keys, options, image);
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
    STRIDE_TRY(counters_.call());
    ++counters_.searches;
    std::vector<IndexView> here = copies(indexes);
    if (counters_.piece != 0) return find_in_pieces(here, queries, take);
    STRIDE_TRY(to_.find_blocks(here, queries, take));
    return counters_.call();  // fails late, too
  }
  bool finds_in_pieces(std::span<const IndexView>, const KeyColumn&) const override {
    return counters_.piece != 0;
  }
  Status find_ranks(const IndexView& index, const KeyColumn& queries,
                    std::span<uint32_t> out) override {
    return search_as(&TreeIndex::find_ranks, index, queries, out);
  }
  Status lower_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return search_as(&TreeIndex::lower_bound, index, queries, out);
  }
  Status upper_bound(const IndexView& index, const KeyColumn& queries,
                     std::span<uint32_t> out) override {
    return search_as(&TreeIndex::upper_bound, index, queries, out);
  }
  Status prefix_interval(const IndexView& index, const KeyColumn& queries,
                         std::span<RankInterval> out) override {
    return search_as(&TreeIndex::prefix_interval, index, queries, out);
  }
  Result<std::shared_ptr<ResidentIndex>> make_resident(const IndexView& index,
                                                       const IndexRows& rows) override {
    STRIDE_TRY(counters_.call());
    uint64_t bytes = index.keys.row_bytes() + index.tree.image_bytes;
    if (rows.values) bytes += rows.values->row_bytes();
    if (counters_.used + bytes > counters_.limit || index.keys.size > counters_.max_keys)
      return Status(StatusCode::resource_exhausted, "no room");
    counters_.used += bytes;
    return std::shared_ptr<ResidentIndex>(
        std::make_shared<Copy>(index, rows, bytes, &counters_.used));
  }
  Result<std::shared_ptr<ResidentIndex>> build_index(const KeyColumn& keys, KeyOrder order,
                                                     const TreeOptions& options) override {
    auto built = to_.build_index(keys, order, options);
    if (!built.ok()) return built;
    return make_resident((*built)->view(), {});
  }
  Result<std::unique_ptr<FoundValues>> find_values(std::span<const IndexView> indexes,
                                                   const KeyColumn& queries,
                                                   std::span<uint64_t> found,
                                                   std::span<uint64_t> ends) override {
    STRIDE_TRY(counters_.call());
    ++counters_.searches;
    auto values = std::make_unique<Values>(&counters_, ends);
    std::vector<IndexView> here = copies(indexes);
    std::vector<Location> locations(queries.size);
    STRIDE_TRY(to_.find(here, queries, locations));
    for (uint64_t i = 0; i < queries.size; ++i) {
      Location at = locations[i];
      if (at.found()) {
        const Copy& copy = static_cast<const Copy&>(*indexes[at.index].resident);
        CHECK_MESSAGE(copy.has_values(), "values are asked of an index without");
        if (!copy.hidden[at.rank]) {
          found[i / 64] |= uint64_t{1} << (i % 64);
          values->add(copy.values[at.rank]);
        }
      }
      values->end(i);
    }
    return std::unique_ptr<FoundValues>(std::move(values));
  }
  Status find_on_device(std::span<const IndexView> indexes, const KeyColumn& queries, Location* out,
                        void*) override {
    STRIDE_TRY(counters_.call());
    std::vector<IndexView> here = copies(indexes);
    STRIDE_TRY(to_.find(here, queries, {out, queries.size}));
    for (uint64_t i = 0; i < queries.size; ++i) {
      if (!out[i].found()) continue;
      const Copy& copy = static_cast<const Copy&>(*indexes[out[i].index].resident);
      if (copy.hidden[out[i].rank]) out[i] = {Location::absent, Location::absent};
    }
    return {};
  }
  Status get_on_device(std::span<const IndexView> indexes, const KeyColumn& queries,
                       const DeviceValues& out, void*) override {
    if (out.width) return get_rows(indexes, queries, out);
    std::vector<uint64_t> found((queries.size + 63) / 64);
    out.offsets[0] = 0;
    auto values = find_values(indexes, queries, found, {out.offsets + 1, queries.size});
    if (!values.ok()) return values.status();
    if (queries.size == 0) return {};
    std::memcpy(out.found, found.data(), (queries.size + 31) / 32 * 4);
    std::string all((*values)->bytes(), '\0');
    STRIDE_TRY((*values)->copy(reinterpret_cast<std::byte*>(all.data())));
    std::memcpy(out.values, all.data(), std::min<uint64_t>(out.capacity, all.size()));
    return {};
  }
  Status gather_on_device(std::span<const IndexView> indexes, const Location* locations,
                          uint64_t count, const GatheredRows& out, void*) override {
    STRIDE_TRY(counters_.call());
    auto put = [](std::byte* to, uint32_t width, Bytes row) {
      std::memset(to, 0, width);
      if (row.size() == width) std::memcpy(to, row.data(), width);
    };
    for (uint64_t i = 0; i < count; ++i) {
      const Location at = locations[i];
      const Copy* copy =
          at.found() ? &static_cast<const Copy&>(*indexes[at.index].resident) : nullptr;
      if (copy && copy->hidden[at.rank]) copy = nullptr;
      if (out.there) out.there[i] = copy != nullptr;
      const Bytes key = copy ? copy->here.keys[at.rank] : Bytes();
      if (out.key_width) put(out.keys + i * out.key_width, out.key_width, key);
      if (copy && out.value_width)
        CHECK_MESSAGE(copy->has_values(), "values are asked of an index without");
      const Bytes value = copy && out.value_width ? as_bytes(copy->values[at.rank]) : Bytes();
      if (out.value_width) put(out.values + i * out.value_width, out.value_width, value);
    }
    return {};
  }
  Status make_keys_on_device(std::span<const DeviceKeyPart> parts, uint64_t rows, std::byte* keys,
                             void*) override {
    STRIDE_TRY(counters_.call());
    using Kind = DeviceKeyPart::Kind;
    for (uint64_t row = 0; row < rows; ++row) {
      for (const DeviceKeyPart& part : parts) {
        const std::byte* cell = part.data + row * part.stride;
        for (uint32_t i = 0; i < part.width; ++i)
          keys[i] = part.kind == Kind::bytes ? cell[i] : cell[part.width - 1 - i];
        const bool negative = (keys[0] & std::byte{0x80}) != std::byte{0};
        if (part.kind == Kind::floating && negative)
          for (uint32_t i = 0; i < part.width; ++i) keys[i] = ~keys[i];
        else if (part.kind == Kind::floating || part.kind == Kind::signed_number)
          keys[0] ^= std::byte{0x80};
        keys += part.width;
      }
    }
    return {};
  }

 private:
  // Hands pieces over from several threads, each of four in another order, which have time for
  // other work after each. A call that fails does so when half of them have been handed over, or
  // all.
  Status find_in_pieces(std::span<const IndexView> indexes, const KeyColumn& queries,
                        const TakeLocations& take) {
    std::vector<Location> found(queries.size);
    STRIDE_TRY(to_.find(indexes, queries, found));
    const uint64_t rows = counters_.piece, pieces = (queries.size + rows - 1) / rows;
    auto hand_over = [&](uint64_t first, uint64_t end) {
      std::atomic<uint64_t> next{first};
      FirstFailure failure;
      auto work = [&] {
        for (uint64_t turn; (turn = next++) < end;) {
          const uint64_t piece = (turn | 3) < end ? turn ^ 3 : turn;
          const uint64_t begin = piece * rows;
          failure.report(
              take(begin, std::span(found).subspan(begin, std::min(rows, queries.size - begin))));
          if (take.meanwhile()) take.meanwhile()();
        }
      };
      std::thread others[] = {std::thread(work), std::thread(work)};
      work();
      for (std::thread& other : others) other.join();
      if (take.meanwhile()) take.meanwhile()();
      return failure.status();
    };
    STRIDE_TRY(hand_over(0, pieces / 8 * 4));
    STRIDE_TRY(counters_.call());
    STRIDE_TRY(hand_over(pieces / 8 * 4, pieces));
    return counters_.call();
  }

  template <class Search, class T>
  Status search_as(Search op, const IndexView& index, const KeyColumn& queries, std::span<T> out) {
    STRIDE_TRY(search(index));
    return (to_.*op)(here(index), queries, out);
  }
  Status get_rows(std::span<const IndexView> indexes, const KeyColumn& queries,
                  const DeviceValues& out) {
    std::vector<Location> locations(queries.size);
    STRIDE_TRY(find_on_device(indexes, queries, locations.data(), nullptr));
    for (uint64_t i = 0; i < queries.size; ++i) {
      const Location at = locations[i];
      std::byte* to = out.values + i * out.width;
      std::memset(to, 0, out.width);
      out.there[i] = at.found();
      if (!at.found()) continue;
      const std::string& value =
          static_cast<const Copy&>(*indexes[at.index].resident).values[at.rank];
      if (value.size() == out.width) std::memcpy(to, value.data(), out.width);
    }
    return {};
  }
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

  // Until they are copied the ends are relative to those of chunks, as those of a device are.
  struct Values final : FoundValues {
    static constexpr uint64_t chunk = 100;

    Values(FakeCounters* shared, std::span<uint64_t> room) : counters(shared), ends(room) {}
    void add(const std::string& value) {
      bytes_of_all += value;
      lengths.push_back(value.size());
    }
    void end(uint64_t query) {
      if (query % chunk == 0) bases.push_back(query == 0 ? 0 : last);
      last = bytes_of_all.size();
      ends[query] = last - bases.back();
    }
    uint64_t bytes() const override { return bytes_of_all.size(); }
    bool have_width(uint64_t width) const override {
      return std::all_of(lengths.begin(), lengths.end(),
                         [&](uint64_t length) { return length == width; });
    }
    Status copy(std::byte* to, uint64_t begin) override {
      STRIDE_TRY(counters->call());
      if (!bytes_of_all.empty()) std::memcpy(to, bytes_of_all.data(), bytes_of_all.size());
      for (uint64_t i = 0; i < ends.size(); ++i) ends[i] += begin + bases[i / chunk];
      return {};
    }
    FakeCounters* counters;
    std::span<uint64_t> ends;
    std::string bytes_of_all;
    std::vector<uint64_t> lengths, bases;
    uint64_t last = 0;
  };

  // Only what is resident is the device's work.
  Status search(const IndexView& index) {
    if (!index.resident) return {};
    ++counters_.searches;
    return counters_.call();
  }
  static IndexView here(const IndexView& index) {
    return index.resident ? index.resident->view() : index;
  }

  std::vector<IndexView> copies(std::span<const IndexView> indexes) const {
    std::vector<IndexView> views;
    for (const IndexView& index : indexes) {
      CHECK_MESSAGE(index.resident != nullptr, "the device is asked of what it has not");
      views.push_back(index.resident->view());
    }
    return views;
  }

  FakeCounters& counters_;
};

}  // namespace stride::test
