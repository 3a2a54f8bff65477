// Runs of a table with their values, resident on a backend, and what must be found in them.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"

namespace stride::test {

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

inline Keys some_queries(Random& random, const Runs& runs, const KeySet& set, size_t n) {
  Keys queries = set.make(random, n / 4 + 1);
  for (const auto& run : runs.runs)
    for (size_t i = 0; i < n / 2 && !run.keys.empty(); ++i)
      queries.push_back(run.keys[random() % run.keys.size()]);
  std::shuffle(queries.begin(), queries.end(), random);
  queries.resize(std::min(queries.size(), n));
  return queries;
}

inline std::unique_ptr<BackendMemory> copy_to_backend(Backend& backend, const void* from,
                                                      uint64_t bytes) {
  auto memory = backend.allocate(std::max<uint64_t>(bytes, 8));
  CHECK_OK(memory);
  CHECK_OK(backend.copy((*memory)->data(), from, bytes));
  return std::move(*memory);
}

// A column in the memory of a backend's device.
struct DeviceRows {
  std::unique_ptr<BackendMemory> data, offsets;
  KeyColumn column;

  DeviceRows(Backend& backend, const KeyColumn& from) : column(from) {
    data = copy_to_backend(backend, from.data + from.begin(0), from.bytes());
    column.data = data->data();
    if (from.is_fixed()) return;
    offsets = copy_to_backend(backend, from.offsets, (from.size + 1) * 8);
    column.offsets = reinterpret_cast<const uint64_t*>(offsets->data());
  }
};

inline void expect_blocks(Backend& backend, const Runs& runs, const Keys& queries,
                          const KeyColumn& column) {
  std::vector<Location> found(queries.size(), Location{7, 7});
  std::mutex mutex;
  std::set<uint64_t> firsts;  // of the blocks, which may come again
  uint64_t taken = 0;
  auto views = runs.views();
  Status status = backend.tree_index().find_blocks(
      views, column, [&](uint64_t first, std::span<const Location> locations) {
        std::lock_guard lock(mutex);
        if (firsts.insert(first).second) taken += locations.size();
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
  status = backend.tree_index().find_blocks(views, column, [](uint64_t, std::span<const Location>) {
    return Status(StatusCode::corruption, "enough");
  });
  REQUIRE_MESSAGE(status.code() == StatusCode::corruption, status.to_string());
}

// have_width() of the width that one of the values has, and of others.
inline void expect_widths(const Runs& runs, const Keys& queries, const FoundValues& values) {
  std::set<uint64_t> widths;
  for (const std::string& query : queries) {
    auto at = runs.newest.find(query);
    if (at != runs.newest.end() && !runs.is_hidden(at->second.first))
      widths.insert(at->second.second.size());
  }
  const uint64_t one = widths.empty() ? 5 : *widths.begin();
  REQUIRE(values.have_width(one) == (widths.size() <= 1));
  REQUIRE(values.have_width(one + 1) == widths.empty());
}

inline void expect_values(Backend& backend, const Runs& runs, const Keys& queries,
                          const KeyColumn& column) {
  std::vector<uint64_t> found((queries.size() + 63) / 64), offsets(queries.size() + 1);
  auto values = backend.tree_index().find_values(runs.views(), column, found,
                                                 std::span<uint64_t>(offsets).subspan(1));
  REQUIRE_OK(values);
  expect_widths(runs, queries, **values);
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

inline void expect_on_device(Backend& backend, const Runs& runs, const Keys& queries,
                             const KeyColumn& column) {
  uint64_t n = queries.size(), capacity = 0;
  for (const std::string& query : queries) {
    auto at = runs.newest.find(query);
    if (at != runs.newest.end() && !runs.is_hidden(at->second.first))
      capacity += at->second.second.size();
  }
  std::string zeros(std::max(capacity, (n + 1) * 8), '\0');
  auto locations = copy_to_backend(backend, zeros.data(), n * 8),
       found = copy_to_backend(backend, zeros.data(), (n + 31) / 32 * 4);
  auto offsets = copy_to_backend(backend, zeros.data(), (n + 1) * 8),
       values = copy_to_backend(backend, zeros.data(), capacity);
  capacity -= capacity > 100 ? 50 : 0;  // what does not fit is left out
  DeviceValues out{reinterpret_cast<uint32_t*>(found->data()),
                   reinterpret_cast<uint64_t*>(offsets->data()), values->data(), capacity};
  auto views = runs.views();
  Status located = backend.tree_index().find_on_device(
      views, column, reinterpret_cast<Location*>(locations->data()), nullptr);
  REQUIRE_OK(located);
  Status status = backend.tree_index().get_on_device(views, column, out, nullptr);
  REQUIRE_OK(status);
  std::vector<Location> at_device(n);
  std::vector<uint32_t> bits((n + 31) / 32);
  std::vector<uint64_t> ends(n + 1);
  std::string all(capacity, '\0');
  REQUIRE_OK(backend.copy(at_device.data(), locations->data(), n * 8));
  REQUIRE_OK(backend.copy(bits.data(), found->data(), bits.size() * 4));
  REQUIRE_OK(backend.copy(ends.data(), offsets->data(), ends.size() * 8));
  REQUIRE_OK(backend.copy(all.data(), values->data(), capacity));
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

}  // namespace stride::test
