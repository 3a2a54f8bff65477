// What tests of sets of vectors share: every backend and form, and what a set should hold.
#pragma once

#include <map>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/backend.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {

using Vector = std::vector<uint32_t>;

struct SetSide {
  std::string name;
  unsigned threads;
  size_t devices;  // over which sets are spread; 0: the host's
  bool fakes = false;
};

inline std::vector<SetSide> sides() {
  return {
      {"host1", 1, 0}, {"host4", 4, 0}, {"fakes3", 2, 3, true}, {"cuda", 2, 1}, {"cuda4", 2, 4}};
}

struct Form {
  std::string name;
  VectorForm form;
  bool wide;
  std::vector<uint32_t> words;
};

inline std::vector<Form> forms() {
  return {{"slots", VectorForm::slots, false, {1, 2, 4}},
          {"dense", VectorForm::dense, false, {1, 2, 3, 4, 7, 8, 16, 64}},
          {"compressed", VectorForm::compressed, false, {1, 2, 3, 4, 7, 8, 16, 64}},
          {"wide", VectorForm::compressed, true, {1, 2, 7, 16}}};
}

class VectorSetTest {
 protected:
  const SetSide side_ = GENERATE(from_range(sides()));
  const Form form_ = GENERATE(from_range(forms()));
  RunsWith name_{side_.name + "_" + form_.name};

  VectorSetTest() {
    if (side_.devices == 0) {
      backend_ = Backend::host(side_.threads);
      return;
    }
    if (side_.devices > 1 && dense()) SKIP("sets with ids in order are one device's");
    if (under_sanitizer && side_.fakes) SKIP("SeveralSetsTest has such sets");
    std::vector<std::shared_ptr<Backend>> devices;
    for (size_t i = 0; i < side_.devices; ++i) devices.push_back(make_device());
    // Sets of any size are spread, and few vectors make several shares.
    auto made = Backend::several(std::move(devices), {.min_share = 64, .min_device_share = 0});
    REQUIRE_OK(made);
    backend_ = std::move(*made);
  }
  std::shared_ptr<Backend> make_device() const {
    if (side_.fakes) return std::make_shared<FakeDevice>(uint64_t{1} << 30);
    auto device = Backend::cuda({.host_threads = side_.threads});
    if (!device.ok()) SKIP(device.status().to_string());
    return std::move(*device);
  }
  bool dense() const { return form_.form == VectorForm::dense; }
  // Calls test() with words_ set to each length.
  template <class Test>
  void each_length(const Test& test) {
    if (under_thread_sanitizer && side_.threads == 1) SKIP("threads share nothing");
    for (uint32_t words : form_.words) {
      INFO(std::to_string(words) + " words");
      words_ = words;
      test();
    }
  }
  VectorSetOptions options() const {
    VectorSetOptions options;
    options.words = words_;
    options.form = form_.form;
    options.wide_nodes = form_.wide;
    return options;
  }
  std::unique_ptr<VectorSet> make(const VectorSetOptions& options) {
    auto set = backend_->sets().make_vector_set(options);
    CHECK_OK(set);
    return set.ok() ? std::move(*set) : nullptr;
  }
  // Vectors that are few where `values` is small.
  std::vector<Vector> random(std::mt19937_64& rng, uint64_t n, uint32_t values) const {
    std::vector<Vector> out(n, Vector(words_));
    for (Vector& v : out)
      for (uint32_t& w : v)
        w = values ? static_cast<uint32_t>(rng() % values) - values / 2
                   : static_cast<uint32_t>(rng());
    return out;
  }
  std::shared_ptr<Backend> backend_;
  uint32_t words_ = 0;
};

inline std::vector<uint32_t> flat(const std::vector<Vector>& vectors) {
  std::vector<uint32_t> words;
  for (const Vector& v : vectors) words.insert(words.end(), v.begin(), v.end());
  return words;
}

inline bool bit(const std::vector<uint64_t>& bits, uint64_t i) {
  return bits[i / 64] >> i % 64 & 1;
}

// What a set should hold. Where there are many rows, an assertion is made for those alone that are
// wrong: it takes longer than the set does.
class Oracle {
 public:
  explicit Oracle(bool dense) : dense_(dense) {}

  void put(VectorSet& set, const std::vector<Vector>& vectors) {
    std::vector<uint32_t> words = flat(vectors);
    KeyColumn column = Column::fixed(words.data(), set.words() * 4, vectors.size());
    std::vector<uint64_t> ids(vectors.size(), 12345),
        bits((vectors.size() + 63) / 64, ~uint64_t{0});
    Status status = set.find_or_put(column, ids, bits);
    REQUIRE_OK(status);
    std::unordered_map<Vector, uint64_t, Hash> news;
    for (uint64_t i = 0; i < vectors.size(); ++i) {
      bool known = ids_.contains(vectors[i]);
      if (bit(bits, i)) {
        REQUIRE_MESSAGE(!known, "row " << i << " is new twice");
        ++news[vectors[i]];
        REQUIRE_MESSAGE(news[vectors[i]] == 1u, "row " << i << " is new twice in a batch");
        REQUIRE_MESSAGE(vectors_.emplace(ids[i], vectors[i]).second, "id " << ids[i] << " twice");
      }
      if (ids[i] >= set.id_limit()) REQUIRE(ids[i] < set.id_limit());
      if (dense_ && !known && !first_.contains(vectors[i])) {
        REQUIRE_MESSAGE(bit(bits, i), "row " << i << " comes first");
        REQUIRE(ids[i] == ids_.size() + first_.size());
        first_[vectors[i]] = ids[i];
      }
    }
    for (uint64_t i = 0; i < vectors.size(); ++i) {
      const bool is_there = ids_.contains(vectors[i]) || news.contains(vectors[i]);
      if (!is_there) REQUIRE_MESSAGE(is_there, "row " << i << " lost");
      if (vectors_.at(ids[i]) != vectors[i]) REQUIRE(vectors_.at(ids[i]) == vectors[i]);
    }
    for (uint64_t i = vectors.size(); i < bits.size() * 64; ++i) REQUIRE_FALSE(bit(bits, i));
    for (uint64_t i = 0; i < vectors.size(); ++i) ids_[vectors[i]] = ids[i];
    first_.clear();
    REQUIRE(set.size() == ids_.size());
  }
  void check(VectorSet& set, const std::vector<Vector>& others) const {
    std::vector<Vector> asked = others;
    std::vector<uint64_t> ids;
    for (const auto& [vector, id] : ids_) {
      asked.push_back(vector);
      ids.push_back(id);
    }
    std::vector<uint32_t> words = flat(asked);
    std::vector<uint64_t> found(asked.size());
    Status status = set.find(Column::fixed(words.data(), set.words() * 4, asked.size()), found);
    REQUIRE_OK(status);
    for (uint64_t i = 0; i < asked.size(); ++i) {
      auto there = ids_.find(asked[i]);
      const uint64_t id = there == ids_.end() ? VectorSet::absent : there->second;
      if (found[i] != id) REQUIRE_MESSAGE(found[i] == id, i);
    }
    std::vector<uint32_t> back(ids.size() * set.words());
    status = set.get(ids, std::as_writable_bytes(std::span(back)));
    REQUIRE_OK(status);
    uint64_t i = 0;
    for (const auto& [vector, id] : ids_) {
      const bool is_equal =
          std::equal(vector.begin(), vector.end(), back.begin() + static_cast<int64_t>(i));
      if (!is_equal) REQUIRE(is_equal);
      i += set.words();
    }
  }

 private:
  bool dense_;
  struct Hash {
    size_t operator()(const Vector& v) const {
      size_t h = 0;
      for (uint32_t word : v) h = h * 1'000'003 + word;
      return h;
    }
  };
  std::unordered_map<Vector, uint64_t, Hash> ids_, first_;
  std::unordered_map<uint64_t, Vector> vectors_;
};

}  // namespace stride::test
