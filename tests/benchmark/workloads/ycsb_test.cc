// stride-bench ycsb as a person meets it, and its checks with stores that answer wrongly.
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>

#include "benchmark/workloads/ycsb/records.h"
#include "benchmark/workloads/ycsb/report.h"
#include "benchmark/workloads/ycsb/workload.h"
#include "tests/benchmark/harness/command_line_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::benchmark {
namespace {

// What a faulty store does wrong.
enum class Fault { none, loses_a_put, old_value, another_value, short_scan, forgets_when_closed };
Fault fault_of_stores = Fault::none;

// A map, with the fault from the 1500th call on.
class FaultyStore : public SmallStore {
 public:
  Status open() override { return {}; }
  Status put(Bytes key, Bytes value) override {
    const std::lock_guard lock(mutex_);
    if (faulty(Fault::loses_a_put)) return {};
    std::string& there = rows_[std::string(as_text(key))];
    old_ = {std::string(as_text(key)), there};
    there = as_text(value);
    return {};
  }
  Status put_all(std::span<const SmallRecord> records) override {
    for (const SmallRecord& record : records) STRIDE_TRY(put(record.key, record.value));
    return {};
  }
  Status erase(Bytes key) override {
    const std::lock_guard lock(mutex_);
    rows_.erase(std::string(as_text(key)));
    return {};
  }
  Status get(Bytes key, std::string* value) override {
    const std::lock_guard lock(mutex_);
    auto found = rows_.find(std::string(as_text(key)));
    *value = found == rows_.end() ? "" : found->second;
    if (old_.first == as_text(key) && faulty(Fault::old_value)) *value = old_.second;
    if (faulty(Fault::another_value)) value->back() ^= 1;
    return {};
  }
  Status scan(Bytes from, uint64_t count, const RowVisitor& visit) override {
    const std::lock_guard lock(mutex_);
    const bool is_short = faulty(Fault::short_scan);
    auto row = rows_.lower_bound(std::string(as_text(from)));
    for (uint64_t i = 0; i < count && row != rows_.end(); ++i, ++row) {
      if (is_short && i == 1 && ++row == rows_.end()) break;
      visit(as_bytes(row->first), as_bytes(row->second));
    }
    return {};
  }
  Status transact(std::span<const Bytes>, size_t, const ValueChange&, bool*) override {
    return Status::invalid("no workload asks for it");
  }
  Status close() override {
    if (fault_of_stores == Fault::forgets_when_closed && !rows_.empty()) rows_.erase(rows_.begin());
    return {};
  }

 private:
  bool faulty(Fault fault) { return ++calls_ > 1500 && fault_of_stores == fault; }

  std::mutex mutex_;
  std::map<std::string, std::string> rows_;
  std::pair<std::string, std::string> old_;  // the key of the last put, and what was there before
  uint64_t calls_ = 0;
};

SmallStoreConfiguration faulty_store(Fault fault) {
  fault_of_stores = fault;
  return {"faulty", "map", "", [](const SmallStoreSettings&) -> std::unique_ptr<SmallStore> {
            return std::make_unique<FaultyStore>();
          }};
}

class YcsbTest : public CommandLineFixture {
 protected:
  YcsbTest() {
    options_.records = 400;
    options_.operations = 1000;
    options_.seconds = 0;
    options_.rounds = 3;
    options_.load_batch = 64;
    options_.threads = {1, 3};
    options_.durability = Durability::flush;
    options_.stores = small_stores();
    options_.directory = directory_;
    options_.seed = test::seed() % 1'000'000;
  }
  void choose(const std::string& mixes) {
    Result<std::vector<YcsbMix>> chosen = choose_ycsb_mixes(mixes);
    REQUIRE_OK(chosen.status());
    options_.mixes = *chosen;
  }
  Status run_all() { return run_ycsb(options_, Progress(false), &rows_, &series_); }
  int ycsb(const std::vector<std::string>& arguments) {
    return run_with("ycsb",
                    {{"--workload", "A"},
                     {"--records", "300"},
                     {"--operations", "500"},
                     {"--durability", "none"},
                     {"--directory", directory_}},
                    arguments);
  }

  YcsbOptions options_;
  std::vector<ResultRow> rows_;
  std::vector<YcsbSeries> series_;
};

double calls(const ResultRow& row, const char* operation) {
  return row.number_of(std::string(operation) + "_calls");
}

// The run of a mix: its share of each operation, within what chance allows.
void check_run(const ResultRow& row, const YcsbMix& mix) {
  const double all = static_cast<double>(row.records);
  for (size_t kind = 0; kind < operation_kinds; ++kind) {
    const std::string name = operation_name(static_cast<Operation>(kind));
    const double count = calls(row, name.c_str());
    CHECK(std::abs(count / all - mix.percent[kind] / 100.0) < 0.1);
    CHECK((count > 0) == (mix.percent[kind] > 0));
    if (count == 0) continue;
    CHECK(row.number_of(name + "_p50_us") > 0);
    CHECK(row.number_of(name + "_p50_us") <= row.number_of(name + "_p99_us"));
    CHECK(row.number_of(name + "_p99_us") <= row.number_of(name + "_p999_us"));
    CHECK(row.number_of(name + "_p999_us") <= row.number_of(name + "_max_us"));
  }
  CHECK(row.records == (mix.rewrites ? 1200 : 1000));
  const double puts = 400 + calls(row, "update") + calls(row, "insert") + calls(row, "rmw");
  CHECK(row.number_of("user_bytes_written") == puts * 124);
  CHECK(row.number_of("call_bytes_written") > 0);
  CHECK(row.bytes_on_disk > 0);
  CHECK(row.raw_bytes == static_cast<uint64_t>((400 + calls(row, "insert")) * 124));
}

TEST_CASE_METHOD(YcsbTest, "YcsbTest.EveryWorkloadOnEveryStore", "[YcsbTest]") {
  choose("all");
  REQUIRE_OK(run_all());
  const size_t runs = 7 * 2 * small_stores().size();
  REQUIRE(rows_.size() == 3 * runs);
  REQUIRE(series_.size() == runs);
  for (size_t i = 0; i < runs; ++i) {
    const ResultRow &load = rows_[3 * i], &run = rows_[3 * i + 1], &reopen = rows_[3 * i + 2];
    CHECK(load.phase == run.phase + "_load");
    CHECK(reopen.phase == run.phase + "_reopen");
    CHECK(load.records == 400);
    CHECK(reopen.records == 400 + static_cast<uint64_t>(calls(run, "insert")));
    const auto mix = std::ranges::find(ycsb_mixes(), run.text_of("ycsb"), &YcsbMix::name);
    REQUIRE(mix != ycsb_mixes().end());
    check_run(run, *mix);
    uint64_t operations = 0;
    for (const YcsbInterval& interval : series_[i].intervals) operations += interval.operations;
    CHECK(operations == run.records);
  }
}

TEST_CASE_METHOD(YcsbTest, "YcsbTest.EveryDistribution", "[YcsbTest]") {
  choose("A,D,E");
  options_.threads = {2};
  options_.value_bytes = 16;
  options_.load_batch = 1;
  for (const char* text : {"uniform", "zipf:0.5", "latest"}) {
    options_.keys = *parse_key_choice(text);
    REQUIRE_OK(run_all());
    CHECK(rows_.back().text_of("keys") == options_.keys->to_string());
  }
}

TEST_CASE_METHOD(YcsbTest, "YcsbTest.ARunEndsWhenItsTimeIsUp", "[YcsbTest]") {
  choose("B");
  options_.operations = 0;
  options_.seconds = 0.3;
  options_.interval_seconds = 0.05;
  options_.stores = {faulty_store(Fault::none)};
  REQUIRE_OK(run_all());
  CHECK(rows_[1].seconds >= 0.3);
  CHECK(series_[0].intervals.size() >= 6u);
  CHECK(series_[0].seconds == rows_[1].seconds);
}

TEST_CASE_METHOD(YcsbTest, "YcsbTest.WrongAnswersAreFound", "[YcsbTest]") {
  struct Case {
    Fault fault;
    const char* mix;
    const char* says;
  };
  options_.operations = 20'000;
  for (const Case& c : {Case{Fault::loses_a_put, "A", "another value"},
                        Case{Fault::old_value, "A", "another value"},
                        Case{Fault::another_value, "C", "another value"},
                        Case{Fault::another_value, "F", "another value"},
                        Case{Fault::short_scan, "E", "a scan visits"},
                        Case{Fault::loses_a_put, "E", "records after reopening, and not"},
                        Case{Fault::loses_a_put, "D", "another value"},
                        Case{Fault::loses_a_put, "rewrite", "an old value"},
                        Case{Fault::forgets_when_closed, "C", "399 records"}}) {
    choose(c.mix);
    options_.threads = {c.fault == Fault::old_value ? 1u : 2u};
    options_.rounds = 20;
    options_.stores = {faulty_store(c.fault)};
    const Status status = run_all();
    CHECK(status.code() == StatusCode::corruption);
    CHECK_MESSAGE(status.message().find(c.says) != std::string::npos, status.to_string());
  }
}

TEST_CASE_METHOD(YcsbTest, "YcsbTest.ShowsRatesLatenciesAndSeries", "[YcsbTest]") {
  const std::string json = directory_ + "/rows.json", csv = directory_ + "/series.csv",
                    plot = directory_ + "/plot.svg";
  REQUIRE_MESSAGE(ycsb({"--workload", "a,rewrite", "--threads", "1,2", "--rounds", "2", "--json",
                        json, "--series", csv, "--plot", plot, "--stores", "stride"}) == 0,
                  error_);
  for (const char* text : {"stride:defaults", "A: 50 % reads", "2 threads", "p99.9", "load k/s"})
    CHECK_MESSAGE(out_.find(text) != std::string::npos, out_);
  CHECK(read_rows(json).size() == 12u);
  const std::string lines = read_text(csv);
  CHECK_MESSAGE(lines.starts_with("workload,threads,store,repeat,seconds"), lines);
  CHECK_MESSAGE(lines.find("\nrewrite,2,stride:defaults,0,") != std::string::npos, lines);
  const std::string svg = read_text(plot);
  CHECK(svg.starts_with("<?xml"));
  CHECK(svg.find("rewrite, 2 threads") != std::string::npos);
  CHECK(svg.find("<polyline") != std::string::npos);
}

TEST_CASE_METHOD(YcsbTest, "YcsbTest.RefusesWhatItDoesNotKnow", "[YcsbTest]") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> refused = {
      {"--workload: there is no 'G', but A, B", {"--workload", "A,G"}},
      {"--workload is empty", {"--workload", ""}},
      {"--stores: unknown engine 'none'; known are stride", {"--stores", "none"}},
      {"--threads must be a number from 1 to 255", {"--threads", "256"}},
      {"--threads is empty", {"--threads", ""}},
      {"--records must be a number", {"--records", "many"}},
      {"--operations must be a number", {"--operations", "-1"}},
      {"--load-batch must be a number from 1", {"--load-batch", "0"}},
      {"without --seconds", {"--seconds", "0", "--operations", "0"}},
      {"--value-bytes", {"--value-bytes", "15"}},
      {"--rounds", {"--rounds", "0"}},
      {"--interval", {"--interval", "0"}},
      {"--durability", {"--durability", "often"}},
      {"from 0 to less than 1", {"--distribution", "zipf:1"}},
      {"from 0 to less than 1", {"--distribution", "zipf:"}},
      {"from 0 to less than 1", {"--distribution", "zipf:nan"}},
      {"from 0 to less than 1", {"--distribution", "uniform:0.5"}},
      {"not 'normal'", {"--distribution", "normal"}}};
  for (const auto& [says, arguments] : refused) {
    CHECK_MESSAGE(ycsb(arguments) == 2, says);
    CHECK_MESSAGE(error_.find(says) != std::string::npos, error_);
    CHECK(out_ == "");
  }
}

TEST_CASE_METHOD(YcsbTest, "YcsbTest.HelpSaysWhatThereIs", "[YcsbTest]") {
  CHECK(run({"help", "ycsb"}) == 0);
  for (const char* text : {"rewrite: every record", "zipf:THETA", "stride:defaults", "Examples:"})
    CHECK_MESSAGE(out_.find(text) != std::string::npos, out_);
  const std::string help = out_;
  CHECK(run({"ycsb", "--help"}) == 0);
  CHECK(out_ == help);
  CHECK(run({"help"}) == 0);
  CHECK(out_.find("ycsb") != std::string::npos);
}

TEST_CASE("YcsbRecordsTest.KeysAreDifferentAndInTheOrderOfTheirRanks", "[YcsbRecordsTest]") {
  const YcsbRecords records({.loaded = 500, .capacity = 500, .seed = test::seed(), .scans = true});
  std::map<std::string, uint64_t> keys;
  for (uint64_t n = 0; n < 500; ++n) keys[std::string(as_text(records.key(n).view()))] = n;
  REQUIRE(keys.size() == 500u);
  uint64_t left = 500;
  for (const auto& [key, n] : keys) CHECK(records.loaded_from(n) == left--);
}

TEST_CASE("YcsbRecordsTest.OnlyVersionsThatMayBeThereAreRight", "[YcsbRecordsTest]") {
  YcsbRecords records({.loaded = 2, .capacity = 3, .value_bytes = 37});
  std::string v1, v2, v3, other;
  auto put = [&](uint64_t n, std::string* value) {
    const YcsbWrite write = records.begin_write(n);
    records.make_value(n, write.version, value);
    return write;
  };
  auto right = [&](uint64_t n, const std::string& value) {
    return records.check(n, records.oldest(n), as_bytes(value));
  };
  CHECK(records.oldest(0) == 0);
  records.end_write(0, put(0, &v1));
  records.end_write(1, put(1, &other));
  CHECK(right(0, v1));
  CHECK_FALSE(right(0, other));
  CHECK_FALSE(right(0, v1.substr(1)));
  CHECK_FALSE(right(0, ""));
  for (size_t i = 0; i < v1.size(); ++i) {
    std::string damaged = v1;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    CHECK_FALSE(right(0, damaged));
  }
  // Either of two writes at once may win; after one alone what was before is old.
  const YcsbWrite second = put(0, &v2), third = put(0, &v3);
  CHECK(right(0, v1));
  records.end_write(0, third);
  records.end_write(0, second);
  CHECK(right(0, v2));
  CHECK(right(0, v3));
  std::string v4;
  records.end_write(0, put(0, &v4));
  CHECK(right(0, v4));
  for (const std::string& old : {v1, v2, v3}) CHECK_FALSE(right(0, old));
}

TEST_CASE("YcsbRecordsTest.InsertsAreVisibleInTheirOrder", "[YcsbRecordsTest]") {
  YcsbRecords records({.loaded = 1, .capacity = 4});
  const uint64_t first = records.begin_insert(), second = records.begin_insert();
  records.end_insert(second, records.begin_write(second));
  CHECK(records.visible() == 1);
  records.end_insert(first, records.begin_write(first));
  CHECK(records.visible() == 3);
  CHECK(records.begin_insert() == 3);
  CHECK(records.begin_insert() == records.capacity());
  CHECK(records.begin_insert() == records.capacity());
}

}  // namespace
}  // namespace stride::benchmark
