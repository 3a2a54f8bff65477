// The lookup workload runs every engine, and finds wrong answers out.
#include <unistd.h>

#include <filesystem>

#include "benchmark/peers/engines.h"
#include "benchmark/workloads/lookup/workload.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::benchmark {
namespace {

LookupWorkloadOptions small(const EngineConfiguration& engine) {
  LookupWorkloadOptions options;
  options.engines = {engine};
  options.durability = Durability::none;
  options.stride.backend = BackendKind::host;
  options.records = {.records = 5000, .value_bytes = 44, .seed = test::seed() % 1000};
  options.batches = {1, 3000};
  options.lookup_seconds = 0.01;
  options.repeats = 1;
  options.threads = 2;
  options.directory = std::filesystem::temp_directory_path().string() + "/stride-lookup-" +
                      std::to_string(getpid());
  return options;
}

std::vector<std::string> phases_named(const std::vector<ResultRow>& rows, const std::string& name) {
  std::vector<std::string> phases;
  for (const ResultRow& row : rows) {
    CHECK_MESSAGE(row.records_per_second() > 0, row.engine_name() << " " << row.phase);
    if (row.engine_name() == name) phases.push_back(row.phase);
  }
  return phases;
}

using Phases = std::vector<std::string>;

class LookupTest {
 protected:
  const EngineConfiguration engine_ = GENERATE(from_range(all_engines()));
  test::RunsWith name_{engine_.name()};

  ~LookupTest() { std::filesystem::remove_all(small(engine_).directory); }
};

TEST_CASE_METHOD(LookupTest, "LookupTest.AllPhases", "[LookupTest]") {
  bool ours = engine_.engine == "stride";
  for (uint32_t value_bytes : {44, 0}) {
    LookupWorkloadOptions options = small(engine_);
    options.records.value_bytes = value_bytes;
    std::vector<ResultRow> rows;
    Status status = run_lookup(options, Progress(false), &rows);
    REQUIRE_OK(status);
    CHECK(phases_named(rows, engine_.name()) ==
          (ours ? Phases({"load", "lookup_1", "find_1", "lookup_3k", "find_3k", "open"})
                : Phases({"load", "lookup_1", "lookup_3k", "open"})));
    CHECK(phases_named(rows, "limit:memory copy") == Phases({"load"}));
    CHECK(phases_named(rows, "limit:gather") ==
          (value_bytes ? Phases({"lookup_1", "lookup_3k"}) : Phases()));
    CHECK(phases_named(rows, "limit:reads") ==
          (value_bytes ? Phases({"find_1", "find_3k"})
                       : Phases({"lookup_1", "lookup_3k", "find_1", "find_3k"})));
    for (const ResultRow& row : rows) {
      bool limited = row.engine != "limit" && row.phase != "open";
      CHECK_MESSAGE(row.numbers.contains("limit_percent") == limited, row.phase);
      CHECK_MESSAGE(row.texts.contains("limit") == limited, row.phase);
    }
  }
}

TEST_CASE_METHOD(LookupTest, "LookupTest.Cold", "[LookupTest]") {
  LookupWorkloadOptions options = small(engine_);
  options.cold = true;
  options.cold_memory_bytes = 1 << 20;
  options.batches = {100};
  std::vector<ResultRow> rows;
  Status status = run_lookup(options, Progress(false), &rows);
  REQUIRE_OK(status);
  CHECK(phases_named(rows, engine_.name()) == Phases({"load", "cold_100", "warm_100"}));
  CHECK(phases_named(rows, "limit:gather") == Phases({"warm_100"}));
  CHECK(rows[1].numbers.contains("cached_bytes"));
  CHECK_FALSE(rows[1].numbers.contains("limit_percent"));
  CHECK(rows[1].bytes_on_disk > 5000u * 52);
  CHECK(rows[1].records == rows[2].records);
}

// StrideDB with one planted fault.
enum class AnswerFault { none, reference, copy_after_reopening };

class FaultyStride : public EngineUnderTest {
 public:
  FaultyStride(std::unique_ptr<EngineUnderTest> sound, AnswerFault fault)
      : sound_(std::move(sound)), fault_(fault) {}

  Status open() override { return sound_->open(); }
  Status close() override { return sound_->close(); }
  Status write(const Records& records) override { return sound_->write(records); }
  Status read(ReadCheck& check) override { return sound_->read(check); }
  Status read(FullCheck& check) override { return sound_->read(check); }
  Status lookup(const KeyColumn& queries, LookupResult* result) override {
    STRIDE_TRY(sound_->lookup(queries, result));
    if (fault_ == AnswerFault::copy_after_reopening) result->data[0] ^= std::byte{1};
    return {};
  }
  bool gives_references() const override { return true; }
  Status refer(const KeyColumn& queries, FindResult* result) override {
    STRIDE_TRY(sound_->refer(queries, result));
    for (uint64_t i = 0; fault_ == AnswerFault::reference && i < queries.size; ++i) {
      result->locations[i].rank ^= 1;
    }
    return {};
  }

 private:
  std::unique_ptr<EngineUnderTest> sound_;
  AnswerFault fault_;
};

TEST_CASE("FaultyLookupTest.EveryFaultStopsTheWorkload", "[FaultyLookupTest]") {
  EngineConfiguration stride = (*choose_engines("stride"))[0];
  for (AnswerFault fault :
       {AnswerFault::none, AnswerFault::reference, AnswerFault::copy_after_reopening}) {
    EngineConfiguration faulty = stride;
    faulty.make = [&](const EngineSettings& settings) {
      return std::make_unique<FaultyStride>(stride.make(settings), fault);
    };
    LookupWorkloadOptions options = small(faulty);
    options.batches = {1000};
    options.cold = fault == AnswerFault::copy_after_reopening;
    std::vector<ResultRow> rows;
    Status status = run_lookup(options, Progress(false), &rows);
    std::filesystem::remove_all(options.directory);
    if (fault == AnswerFault::none) {
      CHECK_OK(status);
    } else {
      CHECK_MESSAGE(status.code() == StatusCode::corruption, static_cast<int>(fault));
      CHECK_MESSAGE(status.message().find("stride:defaults: wrong answer") != std::string::npos,
                    status.message());
    }
  }
}

TEST_CASE("FastestEnginesTest.AreOfThisBuild", "[FastestEnginesTest]") {
  auto engines = choose_engines(fastest_engines());
  REQUIRE_OK(engines);
  CHECK(engines->front().engine == "stride");
  CHECK(engines->back().engine == "hash");
}

}  // namespace
}  // namespace stride::benchmark
