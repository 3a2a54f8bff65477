// Metrics and callbacks of the C interface.
#include <atomic>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "adapters/c/stridedb_metrics.h"
#include "tests/support/c_fixture.h"

namespace stride::test {
namespace {

struct Told {
  std::vector<std::pair<int, std::string>> events;  // kind and line
  std::vector<std::pair<int, std::string>> lines;   // level and line
  uint64_t number = 0, rows = 0;
  bool in_order = true;
  stride_database* used = nullptr;  // asked from within a callback
  std::atomic<uint64_t> asked{0};
  int status = STRIDE_OK;
};

void on_event(void* context, const stride_event* event) {
  auto& told = *static_cast<Told*>(context);
  told.in_order &= event->number == ++told.number && event->dropped == 0 && event->time_us > 0 &&
                   event->size == sizeof *event;
  told.events.emplace_back(event->kind, event->line);
  if (event->kind == STRIDE_EVENT_FLUSH_ENDED) told.rows = event->rows;
  if (event->status != STRIDE_OK) told.status = event->status;
  if (event->kind == STRIDE_EVENT_FLUSH_ENDED && told.used) {
    stride_metrics m = {};
    m.size = sizeof m;
    if (stride_metrics_read(told.used, &m) == STRIDE_OK) told.asked = m.committed_rows;
    told.asked.notify_all();
  }
}

void on_line(void* context, int level, const char* line) {
  static_cast<Told*>(context)->lines.emplace_back(level, line);
}

class CMetricsTest {
 protected:
  std::string path() const { return directory_.file("db"); }
  void put(const std::string& key, const std::string& value) {
    stride_transaction* t = nullptr;
    REQUIRE_C_OK(stride_begin(db_, &t));
    const CRows keys({key}), values({value});
    const stride_column k = keys.column(), v = values.column();
    REQUIRE_C_OK(stride_put(t, table_, &k, &v));
    REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_DEFAULT));
  }
  ~CMetricsTest() {
    (void)stride_table_release(table_);
    (void)stride_close(db_);
  }
  TemporaryDirectory directory_;
  stride_database* db_ = nullptr;
  stride_table* table_ = nullptr;
};

TEST_CASE_METHOD(CMetricsTest, "CMetricsTest.CountsAndCallbacks", "[CMetricsTest]") {
  Told told;
  stride_watch_options watch;
  REQUIRE_C_OK(stride_watch_options_init(&watch, sizeof watch));
  CHECK(watch.log_file == 1);
  CHECK(watch.on_event == nullptr);
  watch.on_event = on_event;
  watch.event_context = &told;
  watch.on_line = on_line;
  watch.line_context = &told;
  REQUIRE_C_OK(stride_open_watched(path().c_str(), nullptr, &watch, &db_));
  told.used = db_;
  REQUIRE_C_OK(stride_table_create(db_, "t", 0, &table_));
  put("a", "one");
  put("b", "three");
  REQUIRE_C_OK(stride_compact(db_));
  told.asked.wait(0);  // with the handle, which goes with closing
  stride_metrics m = {};
  m.size = sizeof m;
  REQUIRE_C_OK(stride_metrics_read(db_, &m));
  CHECK(m.size == sizeof m);
  CHECK(m.small_commits == 2u);
  CHECK(m.committed_rows == 2u);
  CHECK(m.committed_bytes == 10u);
  CHECK(m.commit_latency.count == 2u);
  CHECK(m.commit_latency.p50_s > 0);
  CHECK(m.flushes == 1u);
  CHECK(m.tables == 1u);
  CHECK(m.rows == 2u);
  CHECK(m.write_amplification > 1);
  CHECK(m.poisoned == 0);
  REQUIRE_C_OK(stride_close(std::exchange(db_, nullptr)));
  CHECK(told.in_order);
  REQUIRE(told.events.size() == 4u);
  CHECK(told.events[0].first == STRIDE_EVENT_OPENED);
  CHECK(told.events[1].first == STRIDE_EVENT_FLUSH_BEGUN);
  CHECK(told.events[2].first == STRIDE_EVENT_FLUSH_ENDED);
  CHECK(told.events[3] == std::pair(int{STRIDE_EVENT_CLOSED}, std::string("closed")));
  CHECK(told.rows == 2u);
  CHECK(told.asked == 2u);
  CHECK(told.status == STRIDE_OK);
  REQUIRE(told.lines.size() == 4u);
  CHECK(told.lines[1] == std::pair(int{STRIDE_LOG_INFO}, told.events[1].second));
  CHECK_FALSE(std::filesystem::exists(path() + "/LOG"));  // the callback takes its place
}

TEST_CASE_METHOD(CMetricsTest, "CMetricsTest.TheFileIsKeptOrNot", "[CMetricsTest]") {
  stride_watch_options watch;
  REQUIRE_C_OK(stride_watch_options_init(&watch, sizeof watch));
  for (int kept : {0, 1}) {
    watch.log_file = kept;
    REQUIRE_C_OK(stride_open_watched(path().c_str(), nullptr, &watch, &db_));
    REQUIRE_C_OK(stride_table_open_or_create(db_, "t", 0, &table_));
    put("key", "value");
    REQUIRE_C_OK(stride_compact(db_));
    (void)stride_table_release(std::exchange(table_, nullptr));
    REQUIRE_C_OK(stride_close(std::exchange(db_, nullptr)));
    CHECK(std::filesystem::exists(path() + "/LOG") == (kept == 1));
  }
}

TEST_CASE_METHOD(CMetricsTest, "CMetricsTest.TextNeedsRoom", "[CMetricsTest]") {
  REQUIRE_C_OK(stride_open(path().c_str(), nullptr, &db_));
  REQUIRE_C_OK(stride_table_create(db_, "a \"table\"", 0, &table_));
  size_t bytes = 0;
  CHECK_C_ERROR(stride_prometheus_text(db_, nullptr, 0, &bytes), STRIDE_TOO_SMALL, "room for 0");
  std::string text(bytes - 1, '?');
  CHECK_C_ERROR(stride_prometheus_text(db_, text.data(), bytes - 1, nullptr), STRIDE_TOO_SMALL,
                "room for");
  CHECK(text == std::string(bytes - 1, '?'));
  text.resize(bytes + 10);
  REQUIRE_C_OK(stride_prometheus_text(db_, text.data(), text.size(), &bytes));
  CHECK(std::strlen(text.c_str()) == bytes - 1);
  CHECK(text.find("stride_table_rows{table=\"a \\\"table\\\"\"} 0\n") != std::string::npos);
}

TEST_CASE_METHOD(CMetricsTest, "CMetricsTest.BadArguments", "[CMetricsTest]") {
  REQUIRE_C_OK(stride_open(path().c_str(), nullptr, &db_));
  stride_metrics m = {};
  CHECK_C_ERROR(stride_metrics_read(db_, nullptr), STRIDE_INVALID_ARGUMENT, "metrics");
  CHECK_C_ERROR(stride_metrics_read(db_, &m), STRIDE_INVALID_ARGUMENT, "stride_metrics");
  m.size = sizeof m;
  CHECK_C_ERROR(stride_metrics_read(nullptr, &m), STRIDE_INVALID_ARGUMENT, "NULL");
  CHECK_C_ERROR(stride_prometheus_text(db_, nullptr, 10, nullptr), STRIDE_INVALID_ARGUMENT, "text");
  stride_watch_options watch;
  REQUIRE_C_OK(stride_watch_options_init(&watch, sizeof watch));
  stride_database* other = nullptr;
  watch.reserved = 1;
  const std::string elsewhere = directory_.file("other");
  CHECK_C_ERROR(stride_open_watched(elsewhere.c_str(), nullptr, &watch, &other),
                STRIDE_INVALID_ARGUMENT, "reserved");
  watch.reserved = 0;
  watch.size = 1;
  CHECK_C_ERROR(stride_open_watched(elsewhere.c_str(), nullptr, &watch, &other),
                STRIDE_INVALID_ARGUMENT, "stride_watch_options");
  CHECK_C_ERROR(stride_open_watched(nullptr, nullptr, nullptr, &other), STRIDE_INVALID_ARGUMENT,
                "path");
  CHECK_C_ERROR(stride_open_watched(elsewhere.c_str(), nullptr, nullptr, nullptr),
                STRIDE_INVALID_ARGUMENT, "database");
  CHECK_FALSE(std::filesystem::exists(elsewhere));
}

}  // namespace
}  // namespace stride::test
