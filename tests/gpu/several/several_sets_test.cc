// Sets that are spread over several devices beside a std::map: vectors, ids and bits in the memory
// of devices, sets that do not grow, and devices that fail or have no room. What sets do otherwise
// is tested with those of one device (tests/gpu/set).
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/gpu/several/several_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

using Words = std::vector<uint32_t>;  // of one vector

constexpr uint64_t smallest = 1024;  // vectors of a device, of sets that are spread

class SeveralSetsTest : public SeveralTest {
 protected:
  std::unique_ptr<Backend> spread() const {
    return devices_.backend({.min_share = 64, .min_device_share = smallest});
  }
  VectorSetOptions options(uint32_t words, VectorForm form = VectorForm::slots) const {
    VectorSetOptions options;
    options.words = words;
    options.form = form;
    options.capacity = smallest * devices_.size() * 4;
    return options;
  }
  // Which of a device's calls fails first: under the sanitizers fewer of them do, others in each
  // run.
  static uint64_t first_call(Random& random) { return 1 + (under_sanitizer ? random() % 3 : 0); }
  // Some of them several times.
  static Words random_words(Random& random, size_t vectors, uint32_t words, uint64_t different) {
    Words all;
    for (size_t i = 0; i < vectors; ++i) {
      const uint64_t number = random() % different;
      for (uint32_t word = 0; word < words; ++word)
        all.push_back(
            static_cast<uint32_t>((number + 1) * 0x9E3779B97F4A7C15ull >> (word % 4 * 8)));
    }
    return all;
  }
};

KeyColumn column_of(const Words& all, uint32_t words) {
  return Column::fixed(all.data(), words * 4, all.size() / words);
}

// What vectors a set has, with their ids.
class Known {
 public:
  explicit Known(uint32_t words) : words_(words) {}

  // ids, bits: what find_or_put() has said.
  void expect(const Words& all, const std::vector<uint64_t>& ids,
              const std::vector<uint64_t>& bits) {
    std::set<Words> news;
    for (size_t i = 0; i < ids.size(); ++i) {
      const Words vector = at(all, i);
      const auto known = ids_.find(vector);
      if (bits[i / 64] >> i % 64 & 1) {
        REQUIRE_MESSAGE(news.insert(vector).second, "row " << i << " is new twice");
        REQUIRE_MESSAGE(known == ids_.end(), "row " << i << " is not new");
      } else if (known != ids_.end() && ids[i] != known->second) {
        REQUIRE(ids[i] == known->second);
      }
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      const Words vector = at(all, i);
      const bool is_there = news.contains(vector) || ids_.contains(vector);
      if (!is_there) REQUIRE_MESSAGE(is_there, "row " << i << " is lost");
      const auto [known, is_first] = ids_.emplace(vector, ids[i]);
      if (known->second != ids[i]) REQUIRE(known->second == ids[i]);
      if (is_first) REQUIRE_MESSAGE(given_.insert(ids[i]).second, "an id is given twice");
    }
  }
  uint64_t size() const { return ids_.size(); }
  uint64_t id_of(const Words& all, size_t row) const {
    const auto known = ids_.find(at(all, row));
    return known == ids_.end() ? VectorSet::absent : known->second;
  }

 private:
  Words at(const Words& all, size_t row) const {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(row * words_);
    return {begin, begin + words_};
  }

  const uint32_t words_;
  std::map<Words, uint64_t> ids_;
  std::set<uint64_t> given_;
};

// An array in the memory of a backend.
class There {
 public:
  There(Backend& backend, const void* data, uint64_t bytes) : backend_(backend), bytes_(bytes) {
    auto made = backend.allocate(bytes);
    REQUIRE_OK(made);
    memory_ = std::move(*made);
    REQUIRE_OK(backend.copy(memory_->data(), data, bytes));
  }
  std::byte* data() const { return memory_->data(); }
  std::span<uint64_t> words() const {
    return {reinterpret_cast<uint64_t*>(memory_->data()), bytes_ / 8};
  }
  std::vector<uint64_t> back() const {
    std::vector<uint64_t> words(bytes_ / 8);
    REQUIRE_OK(backend_.copy(words.data(), memory_->data(), bytes_));
    return words;
  }

 private:
  Backend& backend_;
  uint64_t bytes_;
  std::unique_ptr<BackendMemory> memory_;
};

// Columns in host memory, spread over the devices, or on each of them in turn.
TEST_CASE_METHOD(SeveralSetsTest, "SeveralSetsTest.ColumnsAnywhere", "[SeveralSetsTest]") {
  Random random(seed());
  const auto backend = spread();
  std::vector<Backend*> places = {nullptr, backend.get()};
  for (const auto& device : devices_.devices()) places.push_back(device.get());
  struct Case {
    VectorForm form;
    uint32_t words;
  };
  for (const Case& one : {Case{VectorForm::slots, 1}, Case{VectorForm::slots, 2},
                          Case{VectorForm::slots, 4}, Case{VectorForm::compressed, 3},
                          Case{VectorForm::compressed, 8}, Case{VectorForm::dense, 4}}) {
    INFO(std::to_string(one.words) + " words");
    auto made = backend->sets().make_vector_set(options(one.words, one.form));
    REQUIRE_OK(made);
    VectorSet& set = **made;
    Known known(one.words);
    for (size_t n : {1, 63, 64, 65, smaller_under_sanitizers(1000, 200),
                     smaller_under_sanitizers(20'000, 2'000)}) {
      for (Backend* place : places) {
        const Words all = random_words(random, n, one.words, 1 + random() % (2 * n));
        std::vector<uint64_t> ids(n, 12345), bits((n + 63) / 64, ~uint64_t{0}), found(n);
        Words vectors(all.size());
        if (!place) {
          REQUIRE_OK(set.find_or_put(column_of(all, one.words), ids, bits));
          REQUIRE_OK(set.find(column_of(all, one.words), found));
          REQUIRE_OK(set.get(ids, std::as_writable_bytes(std::span(vectors))));
        } else {
          const There in(*place, all.data(), all.size() * 4), out(*place, ids.data(), n * 8),
              marks(*place, bits.data(), bits.size() * 8), again(*place, found.data(), n * 8),
              rows(*place, vectors.data(), vectors.size() * 4);
          const KeyColumn column = Column::fixed(in.data(), one.words * 4, n);
          REQUIRE_OK(set.find_or_put(column, out.words(), marks.words()));
          REQUIRE_OK(set.find(column, again.words()));
          REQUIRE_OK(set.get(out.words(), {rows.data(), vectors.size() * 4}));
          ids = out.back();
          bits = marks.back();
          found = again.back();
          REQUIRE_OK(place->copy(vectors.data(), rows.data(), vectors.size() * 4));
        }
        known.expect(all, ids, bits);
        REQUIRE(*std::max_element(ids.begin(), ids.end()) < set.id_limit());
        for (size_t i = n; i < bits.size() * 64; ++i) REQUIRE((bits[i / 64] >> i % 64 & 1) == 0u);
        REQUIRE(found == ids);
        REQUIRE(vectors == all);
        REQUIRE(set.size() == known.size());
      }
    }
    const Words others = random_words(random, 3000, one.words, 1'000'000);
    std::vector<uint64_t> found(3000);
    REQUIRE_OK(set.find(column_of(others, one.words), found));
    for (size_t i = 0; i < found.size(); ++i) REQUIRE(found[i] == known.id_of(others, i));
    // Ids without bits, bits without ids, and neither.
    std::vector<uint64_t> ids(3000), bits(47);
    REQUIRE_OK(set.find_or_put(column_of(others, one.words), {}, bits));
    REQUIRE_OK(set.find_or_put(column_of(others, one.words), ids, {}));
    REQUIRE_OK(set.find_or_put(column_of(others, one.words), {}, {}));
    known.expect(others, ids, bits);
    REQUIRE_OK(set.clear());
    REQUIRE(set.size() == 0u);
    REQUIRE_OK(set.find(column_of(others, one.words), found));
    for (uint64_t id : found) REQUIRE(id == VectorSet::absent);
  }
}

TEST_CASE_METHOD(SeveralSetsTest, "SeveralSetsTest.HoldsWhatItHasRoomFor", "[SeveralSetsTest]") {
  const auto backend = spread();
  for (uint64_t round = 0; round < smaller_under_sanitizers(2u, 1u); ++round) {
    VectorSetOptions o = options(2);
    o.grows = false;
    o.seed = seed() + round;
    auto set = backend->sets().make_vector_set(o);
    REQUIRE_OK(set);
    std::vector<uint64_t> vectors(o.capacity), ids(o.capacity);
    for (size_t i = 0; i < vectors.size(); ++i) vectors[i] = i;
    REQUIRE_OK((*set)->find_or_put(Column::fixed(vectors.data(), 8, vectors.size()), ids, {}));
    CHECK((*set)->size() == o.capacity);
    // Until it is full: those that do not fit have no id, and all others are there.
    std::vector<uint64_t> more(o.capacity * 2), more_ids(more.size());
    for (size_t i = 0; i < more.size(); ++i) more[i] = i * 3;
    const KeyColumn column = Column::fixed(more.data(), 8, more.size());
    const Status full = (*set)->find_or_put(column, more_ids, {});
    CHECK(full.code() == StatusCode::resource_exhausted);
    std::set<uint64_t> given;
    for (uint64_t id : more_ids)
      if (id != VectorSet::absent) REQUIRE(given.insert(id).second);
    CHECK(given.size() < more.size());
    const auto missing = more.size() - given.size();
    CHECK(full.message().find("no room for " + std::to_string(missing) + " of") !=
          std::string::npos);
    std::vector<uint64_t> found(more.size());
    REQUIRE_OK((*set)->find(column, found));
    REQUIRE(found == more_ids);
  }
}

TEST_CASE_METHOD(SeveralSetsTest, "SeveralSetsTest.SaysWhichIdWasNeverGiven", "[SeveralSetsTest]") {
  Random random(seed());
  const auto backend = spread();
  auto set = backend->sets().make_vector_set(options(4));
  REQUIRE_OK(set);
  const Words all = random_words(random, 5000, 4, 1'000'000);
  std::vector<uint64_t> ids(5000);
  REQUIRE_OK((*set)->find_or_put(column_of(all, 4), ids, {}));
  Words back(all.size());
  for (uint64_t bad : {VectorSet::absent, (*set)->id_limit(), (*set)->id_limit() + 1}) {
    std::vector<uint64_t> asked = ids;
    const size_t first = random() % asked.size();
    for (size_t i = first; i < asked.size(); i += 1 + random() % 100) asked[i] = bad;
    const Status status = (*set)->get(asked, std::as_writable_bytes(std::span(back)));
    CHECK(status.code() == StatusCode::not_found);
    CHECK(status.message().find("row " + std::to_string(first) + ":") != std::string::npos);
  }
}

// A device that fails takes its vectors with it: that is said, by later calls too, and a set that
// is made anew lies on those that are left.
TEST_CASE_METHOD(SeveralSetsTest, "SeveralSetsTest.SaysThatADeviceHasFailed", "[SeveralSetsTest]") {
  if (devices_.size() < 2) SKIP("one device");
  Random random(seed());
  const Words all = random_words(random, 6000, 4, 100'000);
  const KeyColumn column = column_of(all, 4);
  for (size_t device = 0; device < devices_.size(); ++device) {
    for (uint64_t call = first_call(random); call < smaller_under_sanitizers(200, 60);
         call += 1 + call / smaller_under_sanitizers(3, 1)) {
      const auto backend = spread();
      auto set = backend->sets().make_vector_set(options(4));
      REQUIRE_OK(set);
      std::vector<uint64_t> ids(6000), bits(94);
      devices_.fail_call(device, call, StatusCode::io_error);
      const Status status = (*set)->find_or_put(column, ids, bits);
      const bool failed = devices_.calls(device) >= call;
      devices_.work_again();
      REQUIRE(status.code() == (failed ? StatusCode::io_error : StatusCode::ok));
      REQUIRE(backend->lost_devices() == (failed ? 1u : 0u));
      std::vector<uint64_t> found(6000);
      Words back(all.size());
      CHECK((*set)->find(column, found).code() == status.code());
      if (!failed) continue;
      CHECK((*set)->clear().code() == StatusCode::io_error);
      CHECK((*set)->get(ids, std::as_writable_bytes(std::span(back))).code() ==
            StatusCode::io_error);
      set = backend->sets().make_vector_set(options(4));
      REQUIRE_OK(set);
      Known known(4);
      REQUIRE_OK((*set)->find_or_put(column, ids, bits));
      known.expect(all, ids, bits);
      REQUIRE((*set)->size() == known.size());
    }
  }
}

// What was put before stays, and the set takes all of it when there is room again.
TEST_CASE_METHOD(SeveralSetsTest, "SeveralSetsTest.LosesNothingWithoutRoom", "[SeveralSetsTest]") {
  Random random(seed());
  const Words before = random_words(random, 3000, 4, 2000),
              all = random_words(random, 6000, 4, 9000);
  for (size_t device = 0; device < devices_.size(); ++device) {
    for (uint64_t call = first_call(random); call < smaller_under_sanitizers(200, 60);
         call += 1 + call / smaller_under_sanitizers(3, 1)) {
      const auto backend = spread();
      auto set = backend->sets().make_vector_set(options(4));
      REQUIRE_OK(set);
      std::vector<uint64_t> ids(3000), bits(47), more(6000), found(3000);
      REQUIRE_OK((*set)->find_or_put(column_of(before, 4), ids, bits));
      devices_.fail_call(device, call, StatusCode::resource_exhausted);
      const Status status = (*set)->find_or_put(column_of(all, 4), more, {});
      devices_.work_again();
      REQUIRE((status.ok() || status.code() == StatusCode::resource_exhausted));
      REQUIRE_OK((*set)->find(column_of(before, 4), found));
      REQUIRE(found == ids);
      REQUIRE_OK((*set)->find_or_put(column_of(all, 4), more, {}));
      std::vector<uint64_t> again(6000);
      REQUIRE_OK((*set)->find(column_of(all, 4), again));
      REQUIRE(again == more);
      REQUIRE(std::set<uint64_t>(more.begin(), more.end()).size() <= (*set)->size());
    }
  }
}

}  // namespace
}  // namespace stride::test
