// Sums of any numbers, beside those of an oracle and of a map that takes them one by one.
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/backend.h"
#include "tests/engine/write/accumulate_numbers.h"
#include "tests/engine/write/write_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/random_rows.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

// The last bits of floats depend neither on the threads nor on the order of the rows nor on the
// backend, and are those of a reproducible sum.
TEST_CASE("AccumulateFloatsTest.TheSameBitsFromEveryDatabase", "[AccumulateFloatsTest]") {
  std::mt19937_64 random(seed());
  for_each_type([&](auto type, TableOptions options) {
    using T = decltype(type);
    if constexpr (std::is_floating_point_v<T>) {
      constexpr uint64_t rows = 300'000, keys = 5000;
      std::vector<uint64_t> targets(rows);
      std::vector<T> deltas(rows), sums(keys);
      for (uint64_t i = 0; i < rows; ++i) {
        targets[i] = random() % keys;
        deltas[i] = static_cast<T>(std::ldexp(static_cast<double>(random()) - 0x1p63,
                                              static_cast<int>(random() % 40) - 80));
      }
      auto oracle = Backend::host(1);
      for (int round = 0; round < 2; ++round)
        REQUIRE_OK(oracle->scatter().apply(
            Numbers::of(std::span<const T>(deltas)), Indexes::of(targets),
            MutableNumbers::of(std::span<T>(sums)), {.mode = ScatterMode::reproducible}));
      options.key_width = 8;
      for (unsigned threads : {1u, 2u, 3u, 0u}) {  // 0: a device
        MemoryFileSystem files;
        Options open;
        open.file_system = &files;
        open.threads = threads;
        auto device = std::make_shared<FakeDevice>(uint64_t{1} << 40);
        if (!threads) open.shared_backend = device;
        auto db = std::move(*Database::open("/db", open));
        Table table = *db->create_table("t", options);
        for (int round = 0; round < 2; ++round) {
          if (!threads && round == 1) device->fail_call(4, StatusCode::io_error);
          WriteTransaction t = db->begin();
          uint64_t step = rows / (threads + 1);
          TestThreads pool;
          for (uint64_t first = 0; first < rows; first += step)
            pool.start([&, first] {
              uint64_t n = std::min(step, rows - first);
              CHECK_OK(t.accumulate(table, Column::fixed(targets.data() + first, 8, n),
                                    std::span<const T>(deltas).subspan(first, n)));
            });
          pool.join();
          REQUIRE_OK(t.commit());
        }
        if (!threads) CHECK(device->scatters() >= 1u);
        auto got = read_table(*db, table);
        REQUIRE(got.size() == keys);
        for (uint64_t key = 0; key < keys; ++key)
          REQUIRE_MESSAGE(got[bytes_of(key)] == bytes_of(sums[key]),
                          threads << " threads, key " << key);
      }
    }
  });
}

__extension__ using Wide = __int128;

// What the calls of a transaction make of a table.
template <class T>
class Changes {
 public:
  Changes(const Model& before, const TableOptions& options) : before_(before), options_(options) {}

  void put(const std::string& key, T value) { keys_[key] = {Kind::put, value, {}}; }
  void erase(const std::string& key) { keys_[key] = {Kind::erased, T{}, {}}; }
  void erase_range(const std::string& from, const std::string& to) {
    if (from >= to) return;
    auto first = before_.lower_bound(from), last = before_.lower_bound(to);
    for (; first != last; ++first) erase(first->first);
    auto mine = keys_.lower_bound(from), end = keys_.lower_bound(to);
    for (; mine != end; ++mine) mine->second = {Kind::erased, T{}, {}};
  }
  void add(const std::string& key, T delta) { keys_[key].deltas.push_back(delta); }
  void put_if_absent(const std::string& key, T value) { absent_.emplace_back(key, value); }

  // Nothing where a sum does not fit.
  std::optional<Model> finish() {
    Model after = before_;
    std::vector<T> sources, sums;
    std::vector<uint32_t> targets;
    Keys of_sums;
    for (auto& [key, change] : keys_) {
      if (change.kind == Kind::put) after[key] = bytes_of(change.value);
      if (change.kind == Kind::erased) after.erase(key);
      if (change.deltas.empty()) continue;
      T base{};
      if (auto found = after.find(key); found != after.end()) base = number_from<T>(found->second);
      for (T delta : change.deltas) {
        sources.push_back(delta);
        targets.push_back(static_cast<uint32_t>(of_sums.size()));
      }
      of_sums.push_back(key);
      sums.push_back(base);
      if constexpr (std::is_integral_v<T>) {
        Wide sum = base;
        for (T delta : change.deltas) sum += delta;
        bool fits = sum >= std::numeric_limits<T>::min() && sum <= std::numeric_limits<T>::max();
        if (!fits && options_.overflow == Overflow::error) return std::nullopt;
        sums.back() = static_cast<T>(static_cast<unsigned long long>(sum));
      }
    }
    if constexpr (std::is_floating_point_v<T>) {
      auto backend = Backend::host(1);
      Status s = backend->scatter().apply(
          Numbers::of(std::span<const T>(sources)), Indexes::of(targets),
          MutableNumbers::of(std::span<T>(sums)), {.mode = ScatterMode::reproducible});
      CHECK_OK(s);
    }
    for (size_t i = 0; i < sums.size(); ++i) after[of_sums[i]] = bytes_of(sums[i]);
    for (auto& [key, value] : absent_) after.emplace(key, bytes_of(value));
    return after;
  }

 private:
  enum class Kind { stored, put, erased };
  struct Change {
    Kind kind = Kind::stored;
    T value{};
    std::vector<T> deltas;
  };
  const Model& before_;
  const TableOptions& options_;
  std::map<std::string, Change> keys_;
  std::vector<std::pair<std::string, T>> absent_;
};

// All kinds of changes in one transaction, several commits, snapshots, reopening, compactions.
template <class T>
class ModelRun {
 public:
  ModelRun(const Shape& shape, TableOptions options, std::mt19937_64& random)
      : options_(options), random_(random), rows_(shape, random) {
    options_.key_width = shape.key_width;
    options_.share_equal_values = random() % 4 == 0;
  }

  void run() {
    MemoryFileSystem files;
    Options options;
    options.file_system = &files;
    options.threads = 1 + random_() % 3;
    if (random_() % 2) options.memory_limit_bytes = 1;
    if (random_() % 4 == 0)
      options.shared_backend = std::make_shared<FakeDevice>(uint64_t{1} << 40);
    for (int reopen = 0; reopen < 2; ++reopen) {
      auto db = std::move(*Database::open("/db", options));
      auto table = db->open_or_create_table("t", options_);
      REQUIRE_OK(table);
      Snapshot held = db->snapshot();
      Model of_held = model_;
      for (int i = 0; i < 8; ++i) {
        commit(*db, *table);
        if (random_() % 6 == 0) REQUIRE_OK(db->compact());
        if (random_() % 4 == 0) {
          held = db->snapshot();
          of_held = model_;
        }
      }
      expect_equal(db->snapshot(), *table, model_, random_);
      expect_equal(held, *table, of_held, random_);
      REQUIRE_OK(db->verify());
      REQUIRE_OK(db->close());
    }
  }

 private:
  T any_number() {
    uint64_t r = random_();
    if constexpr (std::is_integral_v<T>) {
      T n = static_cast<T>(random_());
      return r % 200 == 0 ? n : static_cast<T>(n >> (sizeof(T) * 4));
    } else {
      if (r % 100 == 0) return std::numeric_limits<T>::infinity() * (r & 1024 ? 1 : -1);
      if (r % 100 == 1) return std::numeric_limits<T>::quiet_NaN();
      if (r % 100 == 2) return std::numeric_limits<T>::denorm_min();
      return static_cast<T>(
          std::ldexp(static_cast<double>(random_()) - 0x1p63, static_cast<int>(r % 100) - 110));
    }
  }
  std::string key() {
    if (model_.empty() || random_() % 2) return rows_.key();
    return std::next(model_.begin(), static_cast<ptrdiff_t>(random_() % model_.size()))->first;
  }
  Status accumulate(WriteTransaction& t, const Table& table, const Keys& keys,
                    const std::vector<T>& numbers) {
    Rows rows(keys), variable;
    for (T n : numbers) variable.add(bytes_of(n));
    switch (random_() % 3) {
      case 0:
        return t.accumulate(table, rows.column(), numbers);
      case 1:
        return t.accumulate(table, rows.column(), variable.column());
      default: {
        Status s;
        t.hand_over();
        std::thread([&] { s = t.accumulate(table, rows.column(), numbers); }).join();
        t.hand_over();
        return s;
      }
    }
  }

  void commit(Database& db, const Table& table) {
    Changes<T> changes(model_, options_);
    WriteTransaction t = db.begin();
    std::vector<std::pair<Rows, std::vector<T>>> viewed;
    viewed.reserve(8);
    for (uint64_t part = random_() % 7; part > 0; --part) {
      Keys keys;
      std::vector<T> numbers;
      for (uint64_t n = random_() % 60; n > 0; --n) {
        keys.push_back(key());
        numbers.push_back(any_number());
      }
      switch (random_() % 8) {
        case 0:
          REQUIRE_OK(t.put(table, Rows(keys).column(), column_of(numbers)));
          for (size_t i = 0; i < keys.size(); ++i) changes.put(keys[i], numbers[i]);
          break;
        case 1:
          REQUIRE_OK(t.erase(table, Rows(keys).column()));
          for (const std::string& k : keys) changes.erase(k);
          break;
        case 2: {
          std::string from = rows_.key(), to = rows_.key();
          REQUIRE_OK(t.erase_range(table, as_bytes(from), as_bytes(to)));
          changes.erase_range(from, to);
          break;
        }
        case 3:
          REQUIRE_OK(t.put_if_absent(table, Rows(keys).column(), column_of(numbers)));
          for (size_t i = 0; i < keys.size(); ++i) changes.put_if_absent(keys[i], numbers[i]);
          break;
        default:
          REQUIRE_OK(accumulate(t, table, keys, numbers));
          for (size_t i = 0; i < keys.size(); ++i) changes.add(keys[i], numbers[i]);
      }
    }
    std::optional<Model> after = changes.finish();
    Status s = t.commit(static_cast<Durability>(random_() % 3));
    if (after) {
      REQUIRE_OK(s);
      model_ = std::move(*after);
    } else {
      REQUIRE_MESSAGE(s.code() == StatusCode::invalid_argument, s.to_string());
      REQUIRE_MESSAGE(s.message().find("does not fit") != std::string::npos, s.to_string());
    }
    REQUIRE(read_table(db, table) == model_);
  }

  TableOptions options_;
  std::mt19937_64& random_;
  RandomRows rows_;
  Model model_;
};

TEST_CASE("AccumulateModelTest.AnswersAsAMapDoes", "[AccumulateModelTest]") {
  std::mt19937_64 random(seed());
  for (const Shape& shape :
       {Shape{"short", 0, 4, 4, 8}, Shape{"dense", 0, 2, 9, 8}, Shape{"long", 0, 3, 300, 8},
        Shape{"wide", 8, 3, 8, 8}, Shape{"narrow", 3, 26, 3, 8}, Shape{"fixed20", 20, 3, 20, 8}})
    for_each_type([&](auto type, const TableOptions& options) {
      INFO(std::string(shape.name) + ", " + name_of(options));
      ModelRun<decltype(type)>(shape, options, random).run();
    });
}

}  // namespace
}  // namespace stride::test
