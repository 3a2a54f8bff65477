// Values of one width that go from the memory of several devices to theirs.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/gpu/several/several_fixture.h"
#include "tests/gpu/tree/stored_runs.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

struct RunShape {
  bool hides = true;       // some keys are hidden
  bool all_there = false;  // all queries are of keys
  int queries = 5000;
};

// One run of random numbers.
struct OneRun {
  OneRun(Random& random, uint32_t width, const RunShape& shape = {}) {
    std::map<std::string, std::string> rows;
    for (int i = 0; i < 3000; ++i)
      rows[big_endian(random() % 20'000 << 40, 8)] = random_bytes(random, width);
    for (const auto& [key, value] : rows) {
      keys.push_back(key);
      values.push_back(value);
      if (shape.hides) hidden.push_back(random() % 5 == 0);
    }
    for (int i = 0; i < shape.queries; ++i)
      queries.push_back(shape.all_there || random() % 3 ? keys[random() % keys.size()]
                                                        : big_endian(random() % 20'000 << 40, 8));
  }
  // Null: there is none.
  const std::string* find(const std::string& query) const {
    const auto at = std::lower_bound(keys.begin(), keys.end(), query);
    const auto rank = static_cast<size_t>(at - keys.begin());
    if (at == keys.end() || *at != query || (!hidden.empty() && hidden[rank])) return nullptr;
    return &values[rank];
  }
  // The value of each query, zeros where there is none, and then a byte that says whether there is.
  std::string expected(uint32_t width) const {
    std::string all, there;
    for (const std::string& query : queries) {
      const std::string* value = find(query);
      all += value ? *value : std::string(width, '\0');
      there += static_cast<char>(value != nullptr);
    }
    return all + there;
  }

  std::vector<std::string> keys, values, queries;
  std::vector<uint8_t> hidden;
};

// Queries and room for answers in the memory of a backend.
struct PlacedQueries {
  PlacedQueries(Backend& place, const OneRun& run, uint32_t width)
      : backend(place),
        queries(place, OwnedColumn(run.queries, true).column()),
        answers(run.queries.size() * (width + 1), '?'),
        room(copy_to_backend(place, answers.data(), answers.size())),
        out{.values = room->data(),
            .width = width,
            .there = reinterpret_cast<uint8_t*>(room->data()) + run.queries.size() * width} {}
  std::string bring() {
    REQUIRE_OK(backend.copy(answers.data(), room->data(), answers.size()));
    return answers;
  }

  Backend& backend;
  const DeviceRows queries;
  std::string answers;
  const std::unique_ptr<BackendMemory> room;
  const DeviceValues out;
};

// Where the index is resident on the backend.
class ResidentRun {
 public:
  ResidentRun(Backend& backend, const OneRun& run)
      : backend_(backend), keys_(run.keys), values_(run.values) {
    REQUIRE_OK(backend.tree_index().build_tree(keys_.column, {}, &image_));
    auto made = backend.tree_index().make_resident({keys_.column, {image_.data(), image_.size()}},
                                                   {&values_.column, hidden_of(run)});
    REQUIRE_OK(made);
    resident_ = std::move(*made);
  }
  // Null: no row is hidden.
  static const uint8_t* hidden_of(const OneRun& run) {
    return run.hidden.empty() ? nullptr : run.hidden.data();
  }
  Status get(const PlacedQueries& placed) const {
    const IndexView index = resident_->view();
    return backend_.tree_index().get_on_device({&index, 1}, placed.queries.column, placed.out,
                                               nullptr);
  }
  // To host memory; compares all that the call says.
  void check_to_host(const OneRun& run) const {
    const OwnedColumn queries(run.queries, true);
    const uint64_t n = run.queries.size(), begin = 77;
    std::vector<uint64_t> found((n + 63) / 64), ends(n), right_ends;
    const IndexView index = resident_->view();
    auto values = backend_.tree_index().find_values({&index, 1}, queries.column(), found, ends);
    REQUIRE_OK(values);
    std::string all;
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const std::string* value = run.find(run.queries[i]);
      if (value) all += *value;
      right_ends.push_back(begin + all.size());
      wrong += (found[i / 64] >> (i % 64) & 1) != (value != nullptr);
    }
    REQUIRE(wrong == 0u);
    REQUIRE((*values)->bytes() == all.size());
    REQUIRE((*values)->have_width(run.values[0].size()));
    REQUIRE(!(*values)->have_width(run.values[0].size() + 1));
    std::string got(all.size() + 1, '?');
    REQUIRE_OK((*values)->copy(reinterpret_cast<std::byte*>(got.data()), begin));
    REQUIRE(ends == right_ends);
    REQUIRE(got == all + '?');
  }

 private:
  Backend& backend_;
  const Stored keys_, values_;
  std::vector<std::byte> image_;
  std::shared_ptr<ResidentIndex> resident_;
};

TEST_CASE_METHOD(SeveralTest, "SeveralValuesTest.OfOneWidthStayOnTheDevices",
                 "[SeveralValuesTest]") {
  Random random(seed());
  for (uint32_t width : {1, 5, 12, 16, 128, 208}) {
    INFO("values of " << width << " bytes");
    const OneRun run(random, width);
    const ResidentRun copies(*backend_, run);
    for (Backend* place : {backend_.get(), devices_.devices()[0].get()}) {
      PlacedQueries placed(*place, run, width);
      REQUIRE_OK(copies.get(placed));
      REQUIRE(placed.bring() == run.expected(width));
    }
    if (devices_.size() < 2) continue;
    const std::unique_ptr<Backend> in_parts = devices_.backend_in_parts();
    for (const auto& fake : devices_.fakes()) fake->set_max_keys(2000);  // about half of them
    const ResidentRun parts(*in_parts, run);
    for (Backend* place : {in_parts.get(), devices_.devices().back().get()}) {
      PlacedQueries placed(*place, run, width);
      const Status status = parts.get(placed);
      if (!devices_.fakes().empty()) {  // they have no kernels that put queries together
        REQUIRE(status.code() == StatusCode::unavailable);
        continue;
      }
      REQUIRE_OK(status);
      REQUIRE(placed.bring() == run.expected(width));
    }
    for (const auto& fake : devices_.fakes()) fake->set_max_keys(UINT64_MAX);
  }
}

// More queries than a task has, with and without hidden rows and queries that are not there.
TEST_CASE_METHOD(SeveralTest, "SeveralValuesTest.OfOneWidthGoToTheHost", "[SeveralValuesTest]") {
  Random random(seed());
  for (uint32_t width : {1, 8, 100})
    for (const RunShape& shape : {RunShape{.hides = false, .all_there = true, .queries = 40'000},
                                  RunShape{.hides = false, .all_there = false, .queries = 40'000},
                                  RunShape{.hides = true, .all_there = false, .queries = 3000}}) {
      INFO("values of " << width << " bytes, " << shape.queries << " queries");
      const OneRun run(random, width, shape);
      ResidentRun(*backend_, run).check_to_host(run);
      if (devices_.size() < 2) continue;
      const std::unique_ptr<Backend> in_parts = devices_.backend_in_parts();
      for (const auto& fake : devices_.fakes()) fake->set_max_keys(2000);
      ResidentRun(*in_parts, run).check_to_host(run);
      for (const auto& fake : devices_.fakes()) fake->set_max_keys(UINT64_MAX);
    }
}

// Each call to a device fails: the answers are right, or the call says that it could not.
TEST_CASE_METHOD(SeveralTest, "SeveralValuesTest.EachCallFails", "[SeveralValuesTest]") {
  if (devices_.size() < 2 || !devices_.fakes().empty()) SKIP("needs several real devices");
  Random random(seed());
  const OneRun run(random, 24);
  for (StatusCode code : {StatusCode::io_error, StatusCode::resource_exhausted})
    for (size_t device = 0; device < devices_.size(); ++device) {
      uint64_t failed = 0;
      for (uint64_t n = 1;; n += 1 + n / 6) {
        INFO("call " << n << " of device " << device);
        const std::unique_ptr<Backend> in_parts = devices_.backend_in_parts();
        const ResidentRun parts(*in_parts, run);
        PlacedQueries placed(*in_parts, run, 24);
        devices_.fail_call(device, n, code);
        const Status status = parts.get(placed);
        const bool all_worked = devices_.calls(device) < n;
        devices_.work_again();
        if (status.ok()) {
          REQUIRE(placed.bring() == run.expected(24));
        } else {
          REQUIRE_MESSAGE((status.code() == code || status.code() == StatusCode::unavailable),
                          status.to_string());
          ++failed;
        }
        if (all_worked) {
          REQUIRE_OK(status);
          break;
        }
      }
      CHECK(failed > 2u);
    }
}

}  // namespace
}  // namespace stride::test
