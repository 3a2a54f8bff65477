// Copies that are made while threads commit, and while segments are flushed and merged behind them.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/backup/copy_fixture.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

constexpr int writers = 3, rows_at_once = 16;

// Each commit of a writer sets all of its rows to the commit's number, in two tables: so each copy
// shows whether it is of one moment, and of which.
class CopyBesideWritersTest : protected CopyFixture {
 protected:
  CopyBesideWritersTest() {
    open({.threads = 1, .memtable_bytes = 1 << 18});
    for (const char* name : {"a", "b"}) REQUIRE_OK(db_->create_table(name));
    for (int w = 0; w < writers; ++w) write(w, 0);
  }

  void write(int writer, uint64_t number) {
    WriteTransaction t = db_->begin();
    for (const char* name : {"a", "b"}) {
      auto table = db_->open_table(name);
      REQUIRE_OK(table);
      for (int row = 0; row < rows_at_once; ++row) {
        std::string value = std::to_string(number);
        value.resize(400, '.');
        REQUIRE_OK(t.put(*table, key(writer, row), value));
      }
    }
    const auto durability = static_cast<Durability>(number % 3);
    REQUIRE_OK(t.commit(durability));
    committed_[writer] = number;
  }
  static std::string key(int writer, int row) {
    return std::to_string(writer) + "/" + std::to_string(row);
  }

  // Commits as fast as it goes, until it is told to stop.
  std::vector<std::thread> start_writers() {
    std::vector<std::thread> threads;
    for (int w = 0; w < writers; ++w)
      threads.emplace_back([this, w] {
        for (uint64_t number = 1; !stop_; ++number) {
          write(w, number);
          if (w == 0 && number % 32 == 0) REQUIRE_OK(db_->compact());
        }
      });
    return threads;
  }
  std::vector<uint64_t> committed() const {
    std::vector<uint64_t> numbers;
    for (const auto& n : committed_) numbers.push_back(n);
    return numbers;
  }
  // It has all that was committed before it was begun, and of each commit all or nothing.
  void check(const std::string& path, const std::vector<uint64_t>& before) {
    const std::vector<uint64_t> after = committed();
    const Tables found = tables_at(fs_, path);
    for (int w = 0; w < writers; ++w) {
      const std::string value = found.at("a").at(key(w, 0));
      for (const char* name : {"a", "b"})
        for (int row = 0; row < rows_at_once; ++row)
          REQUIRE(found.at(name).at(key(w, row)) == value);
      const uint64_t number = std::stoull(value);
      REQUIRE(number >= before[w]);
      REQUIRE(number <= after[w] + 1);
    }
  }
  // copy(n) makes the n-th copy, and says where it is. of_writer: by a handle that sees all
  // commits; others see those that have left the writer's memory.
  template <class Copy>
  void run(int copies, bool of_writer, const Copy& copy) {
    std::vector<std::thread> threads = start_writers();
    for (int n = 0; n < copies; ++n) {
      const std::vector<uint64_t> before =
          of_writer ? committed() : std::vector<uint64_t>(writers, 0);
      check(copy(n), before);
    }
    stop_ = true;
    for (std::thread& thread : threads) thread.join();
    REQUIRE_OK(db_->verify());
  }

  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> committed_[writers] = {};
};

TEST_CASE_METHOD(CopyBesideWritersTest, "CopyBesideWritersTest.CheckpointsAreOfOneMoment",
                 "[CopyBesideWritersTest]") {
  run(12, true, [&](int n) {
    const std::string path = "/checkpoint" + std::to_string(n);
    REQUIRE_OK(db_->checkpoint(path));
    return path;
  });
}

TEST_CASE_METHOD(CopyBesideWritersTest, "CopyBesideWritersTest.BackupsAreOfOneMoment",
                 "[CopyBesideWritersTest]") {
  run(12, true, [&](int n) {
    const std::string path = "/restored" + std::to_string(n);
    REQUIRE_OK(db_->backup("/backup"));
    REQUIRE_OK(restore("/backup", path, {}, nullptr, &fs_));
    return path;
  });
}

TEST_CASE_METHOD(CopyBesideWritersTest, "CopyBesideWritersTest.ReadOnlyHandlesCopyToo",
                 "[CopyBesideWritersTest]") {
  run(8, false, [&](int n) {
    const std::string path = "/checkpoint" + std::to_string(n);
    auto reader = Database::open("/db", {.read_only = true, .threads = 1, .file_system = &fs_});
    REQUIRE_OK(reader);
    REQUIRE_OK((*reader)->checkpoint(path));
    return path;
  });
}

}  // namespace
}  // namespace stride::test
