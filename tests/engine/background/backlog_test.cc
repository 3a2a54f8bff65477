// What waits to be merged: runs that an earlier opening has left, and tables beside others in which
// there is always something due.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/database.h"
#include "engine/event_listener.h"
#include "storage/memory_file_system.h"
#include "tests/support/becomes_true.h"
#include "tests/support/catch.h"
#include "tests/support/forwarding_file_system.h"

namespace stride::test {
namespace {

// The tables in the order in which merges of them begin.
class MergedTables final : public EventListener {
 public:
  void on_event(const Event& event) override {
    if (event.kind != EventKind::compaction_begun) return;
    std::lock_guard lock(mutex_);
    names_.push_back(event.table);
  }
  std::vector<std::string> names() {
    std::lock_guard lock(mutex_);
    return names_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> names_;
};

// Segments of other threads than that which made this wait with their first write until they are
// let through.
class NewSegments final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    auto file = below().open(path, mode);
    if (!file.ok() || mode == OpenMode::read || !path.ends_with(".seg")) return file;
    return std::unique_ptr<File>(std::make_unique<Segment>(*this, std::move(*file)));
  }
  void let_through(uint64_t segments) {
    std::lock_guard lock(mutex_);
    allowed_ = segments;
    changed_.notify_all();
  }
  // Until so many have come in all.
  void wait_for(uint64_t segments) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return come_ >= segments; });
  }

 private:
  class Segment final : public ForwardingFile {
   public:
    Segment(NewSegments& all, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), all_(all) {}
    Status write_at(uint64_t offset, Bytes data) override {
      if (!std::exchange(begun_, true)) all_.begin();
      return ForwardingFile::write_at(offset, data);
    }

   private:
    NewSegments& all_;
    bool begun_ = false;
  };

  void begin() {
    std::unique_lock lock(mutex_);
    if (std::this_thread::get_id() == owner_) return;
    ++come_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return allowed_ > 0; });
    --allowed_;
  }

  const std::thread::id owner_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t come_ = 0, allowed_ = ~uint64_t{0};
};

class BacklogTest {
 protected:
  void open(bool background_work) {
    database_.reset();
    Options options;
    options.backend = BackendKind::host;
    options.threads = 1;
    options.memtable_bytes = 0;  // each commit makes a run
    options.background_work = background_work;
    options.file_system = &files_;
    options.event_listener = merged_;
    auto database = Database::open("/db", options);
    REQUIRE_OK(database);
    database_ = std::move(*database);
  }
  void add_runs(const std::string& name, int runs) {
    auto table = database_->open_or_create_table(name);
    REQUIRE_OK(table);
    for (int i = 0; i < runs; ++i) {
      WriteTransaction t = database_->begin();
      REQUIRE_OK(t.put(*table, "key" + std::to_string(added_++), "value"));
      REQUIRE_OK(t.commit(Durability::none));
    }
  }
  uint64_t runs_of(const std::string& name) {
    for (const TableStatistics& table : database_->tables())
      if (table.name == name) return table.runs;
    return 0;
  }

  MemoryFileSystem memory_;
  NewSegments files_{memory_};
  std::shared_ptr<MergedTables> merged_ = std::make_shared<MergedTables>();
  std::unique_ptr<Database> database_;
  int added_ = 0;
};

// Nothing is written after it was opened.
TEST_CASE_METHOD(BacklogTest, "BacklogTest.IsMergedAfterOpening", "[BacklogTest]") {
  open(/*background_work=*/false);
  add_runs("few", 9);
  add_runs("many", 200);
  add_runs("due no more", 3);
  open(/*background_work=*/true);
  CHECK(becomes_true([&] { return runs_of("few") == 1 && runs_of("many") == 1; }));
  CHECK(runs_of("due no more") == 3u);
  REQUIRE_OK(database_->verify());
}

TEST_CASE_METHOD(BacklogTest, "BacklogTest.TablesTakeTurns", "[BacklogTest]") {
  constexpr int due = 30;  // also while loads go on
  open(/*background_work=*/false);
  for (const char* name : {"a", "b", "c"}) add_runs(name, due);
  files_.let_through(0);
  open(/*background_work=*/true);
  // Two merges go on at the same time, and when they end their tables are due again.
  files_.wait_for(2);
  add_runs("a", due);
  add_runs("b", due);
  files_.let_through(2);
  files_.wait_for(4);
  CHECK(becomes_true([&] { return merged_->names().size() >= 4; }));
  std::string order;
  for (const std::string& name : merged_->names()) order += name;
  files_.let_through(~uint64_t{0});
  INFO("in this order: " << order);
  // Either of two that begin at the same time may be told first.
  CHECK(order.find('c') >= 2);
  CHECK(std::count(order.begin(), order.end(), 'c') == 1);
}

}  // namespace
}  // namespace stride::test
