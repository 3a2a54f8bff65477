// Searches that hand over blocks, and values that are kept on a device.

#include <map>
#include <mutex>

#include "gpu/backend.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {
namespace {

// A column as a segment stores it.
struct Stored {
  std::string bytes;
  std::vector<uint64_t> bases, deltas;
  PackedColumn column;

  explicit Stored(const std::vector<std::string>& rows) {
    bool fixed = true;
    for (size_t i = 0; i <= rows.size(); ++i) {
      if (i % 128 == 0) bases.push_back(bytes.size());
      deltas.push_back(bytes.size() - bases.back());
      if (i == rows.size()) break;
      bytes += rows[i];
      fixed &= rows[i].size() == rows[0].size();
    }
    column.data = reinterpret_cast<const std::byte*>(bytes.data());
    column.data_bytes = bytes.size();
    column.size = rows.size();
    column.fixed = fixed;
    column.width = fixed && !rows.empty() ? static_cast<uint32_t>(rows[0].size()) : 0;
    if (!fixed) column.offsets = {bases.data(), deltas.data(), 8};
  }
};

// Some runs of a table, newest first, and what they hold together.
struct Runs {
  struct Run {
    Keys keys;
    std::vector<std::string> values;
    std::vector<uint8_t> hidden;
    std::unique_ptr<Stored> stored_keys, stored_values;
    std::vector<std::byte> image;
    std::shared_ptr<ResidentIndex> resident;
  };
  std::vector<Run> runs;
  std::map<std::string, std::pair<Location, std::string>> newest;  // hidden ones included

  Runs(Backend& backend, Random& random, const KeySet& set, size_t n, size_t count,
       bool with_values, size_t longest) {
    bool fixed = random() % 2, tombstones = random() % 2;
    for (size_t r = 0; r < count; ++r) {
      Run run;
      run.keys = set.make(random, n);
      std::sort(run.keys.begin(), run.keys.end());
      run.keys.erase(std::unique(run.keys.begin(), run.keys.end()), run.keys.end());
      for (size_t i = 0; i < run.keys.size(); ++i) {
        size_t bytes = fixed ? longest : random() % (longest + 1);
        run.hidden.push_back(tombstones && random() % 4 == 0);
        run.values.push_back(random_bytes(random, run.hidden[i] && !fixed ? 0 : bytes));
      }
      run.stored_keys = std::make_unique<Stored>(run.keys);
      run.stored_values = std::make_unique<Stored>(run.values);
      PackedColumn& keys = run.stored_keys->column;
      CHECK_OK(backend.tree_index().build_tree(keys, {}, &run.image));
      IndexView view{keys, {run.image.data(), run.image.size()}};
      IndexRows rows{with_values ? &run.stored_values->column : nullptr,
                     tombstones ? run.hidden.data() : nullptr};
      auto resident = backend.tree_index().make_resident(view, rows);
      CHECK_OK(resident);
      run.resident = *resident;
      runs.push_back(std::move(run));
    }
    for (uint32_t r = static_cast<uint32_t>(count); r-- > 0;)
      for (uint32_t i = 0; i < runs[r].keys.size(); ++i)
        newest[runs[r].keys[i]] = {{r, i}, runs[r].values[i]};
  }
  std::vector<IndexView> views() const {
    std::vector<IndexView> views;
    for (const Run& run : runs) views.push_back(run.resident->view());
    return views;
  }
  bool is_hidden(Location at) const { return runs[at.index].hidden[at.rank]; }
};

Keys some_queries(Random& random, const Runs& runs, const KeySet& set, size_t n) {
  Keys queries = set.make(random, n / 4 + 1);
  for (const auto& run : runs.runs)
    for (size_t i = 0; i < n / 2 && !run.keys.empty(); ++i)
      queries.push_back(run.keys[random() % run.keys.size()]);
  std::shuffle(queries.begin(), queries.end(), random);
  queries.resize(std::min(queries.size(), n));
  return queries;
}

class ValuesTest {
 protected:
  const std::string side_ = GENERATE(as<std::string>{}, "host", "cuda");
  RunsWith name_{side_};

  ValuesTest() {
    backend_ = Backend::host(2);
    if (side_ == "host") return;
    auto device = Backend::cuda({.host_threads = 3});
    if (!device.ok()) SKIP(device.status().to_string());
    backend_ = std::move(*device);
  }
  std::unique_ptr<BackendMemory> copy_to_backend(const void* from, uint64_t bytes) {
    auto memory = backend_->allocate(std::max<uint64_t>(bytes, 8));
    CHECK_OK(memory);
    CHECK_OK(backend_->copy((*memory)->data(), from, bytes));
    return std::move(*memory);
  }
  void expect_blocks(const Runs& runs, const Keys& queries, const KeyColumn& column);
  void expect_values(const Runs& runs, const Keys& queries, const KeyColumn& column);
  void expect_on_device(const Runs& runs, const Keys& queries, const KeyColumn& column);

  std::unique_ptr<Backend> backend_;
};

void ValuesTest::expect_blocks(const Runs& runs, const Keys& queries, const KeyColumn& column) {
  std::vector<Location> found(queries.size(), Location{7, 7});
  std::mutex mutex;
  uint64_t taken = 0;
  auto views = runs.views();
  Status status = backend_->tree_index().find_blocks(
      views, column, [&](uint64_t first, std::span<const Location> locations) {
        std::lock_guard lock(mutex);
        taken += locations.size();
        std::copy(locations.begin(), locations.end(),
                  found.begin() + static_cast<ptrdiff_t>(first));
        return Status();
      });
  REQUIRE_OK(status);
  REQUIRE(taken == queries.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    auto at = runs.newest.find(queries[i]);
    REQUIRE_MESSAGE(found[i].found() == (at != runs.newest.end()), i);
    if (at == runs.newest.end()) continue;
    REQUIRE_MESSAGE(found[i].index == at->second.first.index, i);
    REQUIRE_MESSAGE(found[i].rank == at->second.first.rank, i);
  }
  if (queries.empty()) return;
  status = backend_->tree_index().find_blocks(
      views, column,
      [](uint64_t, std::span<const Location>) { return Status(StatusCode::corruption, "enough"); });
  REQUIRE_MESSAGE(status.code() == StatusCode::corruption, status.to_string());
}

void ValuesTest::expect_values(const Runs& runs, const Keys& queries, const KeyColumn& column) {
  std::vector<uint64_t> found((queries.size() + 63) / 64), offsets(queries.size() + 1);
  auto values = backend_->tree_index().find_values(runs.views(), column, found, offsets);
  REQUIRE_OK(values);
  std::string all((*values)->bytes(), '\0');
  REQUIRE_OK((*values)->copy(reinterpret_cast<std::byte*>(all.data())));
  REQUIRE(offsets[0] == 0u);
  REQUIRE(offsets.back() == all.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    auto at = runs.newest.find(queries[i]);
    bool there = at != runs.newest.end() && !runs.is_hidden(at->second.first);
    REQUIRE_MESSAGE((found[i / 64] >> (i % 64) & 1) == there, i);
    REQUIRE_MESSAGE(
        all.substr(offsets[i], offsets[i + 1] - offsets[i]) == (there ? at->second.second : ""), i);
  }
}

void ValuesTest::expect_on_device(const Runs& runs, const Keys& queries, const KeyColumn& column) {
  uint64_t n = queries.size(), capacity = 0;
  for (const std::string& query : queries) {
    auto at = runs.newest.find(query);
    if (at != runs.newest.end() && !runs.is_hidden(at->second.first))
      capacity += at->second.second.size();
  }
  std::string zeros(std::max(capacity, (n + 1) * 8), '\0');
  auto locations = copy_to_backend(zeros.data(), n * 8),
       found = copy_to_backend(zeros.data(), (n + 31) / 32 * 4);
  auto offsets = copy_to_backend(zeros.data(), (n + 1) * 8),
       values = copy_to_backend(zeros.data(), capacity);
  capacity -= capacity > 100 ? 50 : 0;  // what does not fit is left out
  DeviceValues out{reinterpret_cast<uint32_t*>(found->data()),
                   reinterpret_cast<uint64_t*>(offsets->data()), values->data(), capacity};
  auto views = runs.views();
  Status located = backend_->tree_index().find_on_device(
      views, column, reinterpret_cast<Location*>(locations->data()), nullptr);
  REQUIRE_OK(located);
  Status status = backend_->tree_index().get_on_device(views, column, out, nullptr);
  REQUIRE_OK(status);
  std::vector<Location> at_device(n);
  std::vector<uint32_t> bits((n + 31) / 32);
  std::vector<uint64_t> ends(n + 1);
  std::string all(capacity, '\0');
  REQUIRE_OK(backend_->copy(at_device.data(), locations->data(), n * 8));
  REQUIRE_OK(backend_->copy(bits.data(), found->data(), bits.size() * 4));
  REQUIRE_OK(backend_->copy(ends.data(), offsets->data(), ends.size() * 8));
  REQUIRE_OK(backend_->copy(all.data(), values->data(), capacity));
  uint64_t end = 0;
  for (size_t i = 0; i < n; ++i) {
    auto at = runs.newest.find(queries[i]);
    bool there = at != runs.newest.end() && !runs.is_hidden(at->second.first);
    REQUIRE_MESSAGE(at_device[i].found() == there, i);
    if (there) REQUIRE_MESSAGE(at_device[i].rank == at->second.first.rank, i);
    REQUIRE_MESSAGE((bits[i / 32] >> (i % 32) & 1) == there, i);
    REQUIRE_MESSAGE(ends[i] == end, i);
    if (there) end += at->second.second.size();
    if (there && end <= capacity)
      REQUIRE_MESSAGE(all.substr(ends[i], end - ends[i]) == at->second.second, i);
  }
  REQUIRE(ends[n] == end);
}

TEST_CASE_METHOD(ValuesTest, "ValuesTest.FindsTheNewestThatIsNotHidden", "[ValuesTest]") {
  Random random(seed());
  for (const KeySet& set : key_sets()) {
    for (size_t n : {0, 1, 40, 3000}) {
      if (set.make == only_zeros || set.make == long_among_short) n = std::min<size_t>(n, 300);
      for (size_t count : {1, 3, 70}) {
        if (count == 70 && n > 40) continue;
        INFO(std::string(set.name) + ", " + std::to_string(n) + " keys in each of " +
             std::to_string(count) + " runs");
        Runs runs(*backend_, random, set, n, count, true, random() % 60);
        Keys queries = some_queries(random, runs, set, n * 3);
        OwnedColumn owned(queries, true);
        KeyColumn column = owned.column();
        expect_blocks(runs, queries, column);
        if (!backend_->has_device()) continue;
        expect_values(runs, queries, column);
        KeyColumn there = column;
        auto data = copy_to_backend(column.data + column.begin(0), column.bytes());
        std::unique_ptr<BackendMemory> offsets;
        there.data = data->data();
        if (!column.is_fixed()) {
          offsets = copy_to_backend(column.offsets, (column.size + 1) * 8);
          there.offsets = reinterpret_cast<const uint64_t*>(offsets->data());
        }
        expect_blocks(runs, queries, there);
        expect_values(runs, queries, there);
        expect_on_device(runs, queries, there);
      }
    }
  }
}

// More than a chunk of queries, and values larger than a piece of staging memory.
TEST_CASE_METHOD(ValuesTest, "ValuesTest.GoesInPieces", "[ValuesTest]") {
  Random random(seed());
  const KeySet numbers{"numbers", random_numbers};
  for (size_t longest : {0, 5, 44}) {
    Runs runs(*backend_, random, numbers, smaller_under_sanitizers(200000, 50000), 1, true,
              longest);
    Keys queries = some_queries(random, runs, numbers, smaller_under_sanitizers(500000, 150000));
    OwnedColumn owned(queries, true);
    expect_blocks(runs, queries, owned.column());
    if (backend_->has_device()) expect_values(runs, queries, owned.column());
  }
  Runs runs(*backend_, random, numbers, 20, 2, true, smaller_under_sanitizers(5 << 20, 1 << 16));
  Keys queries = some_queries(random, runs, numbers, 60);
  OwnedColumn owned(queries, true);
  expect_blocks(runs, queries, owned.column());
  if (backend_->has_device()) expect_values(runs, queries, owned.column());
}

TEST_CASE_METHOD(ValuesTest, "ValuesTest.SaysWhereValuesAreMissing", "[ValuesTest]") {
  Random random(seed());
  Runs runs(*backend_, random, {"numbers", random_numbers}, 100, 1, false, 5);
  std::vector<uint64_t> found(1), offsets(2);
  Keys query{runs.runs[0].keys[0]};
  OwnedColumn owned(query, true);
  auto values = backend_->tree_index().find_values(runs.views(), owned.column(), found, offsets);
  REQUIRE_FALSE(values.ok());
  CHECK_MESSAGE(values.status().code() == StatusCode::unavailable, values.status().to_string());
}

}  // namespace
}  // namespace stride::test
