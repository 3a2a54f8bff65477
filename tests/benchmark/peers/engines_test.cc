// Every engine of the comparison holds what it is given, and a faulty one is found out.
#include "benchmark/peers/engines.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "benchmark/harness/lookup_plan.h"
#include "benchmark/workloads/dictionary/workload.h"
#include "benchmark/workloads/sts/workload.h"
#include "tests/benchmark/sample_records.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::benchmark {
namespace {

std::string scratch() {
  std::string path = std::filesystem::temp_directory_path().string() + "/stride-engines-" +
                     std::to_string(getpid());
  std::filesystem::create_directories(path);
  return path;
}

class EnginesTest {
 protected:
  const EngineConfiguration engine_ = GENERATE(from_range(all_engines()));
  test::RunsWith name_{engine_.name()};
};

TEST_CASE_METHOD(EnginesTest, "EnginesTest.StsWorkload", "[EnginesTest]") {
  for (double randomness : {1.0, 0.5, 0.0}) {
    StsWorkloadOptions options;
    options.records = 10'000;
    options.randomness = randomness;
    options.seed = test::seed() % 1000 + 1;
    options.engines = {engine_};
    options.repeats = 1;
    options.threads = 3;
    options.directory = scratch();
    options.batches = {1, 100, 3000, 10'000};
    options.lookup_seconds = 0.01;
    std::vector<ResultRow> rows;
    Status status = run_sts(options, Progress(false), &rows);
    REQUIRE_OK(status);
    std::vector<std::string> phases;
    for (const ResultRow& row : rows) phases.push_back(row.phase);
    CHECK(phases == (std::vector<std::string>{"write", "read", "secondary_read", "lookup_1",
                                              "lookup_100", "lookup_3k", "lookup_10k", "open"}));
    for (const ResultRow& row : rows) {
      CHECK(row.seconds > 0);
      CHECK(row.records > 0u);
      CHECK(row.bytes_on_disk > 10'000u);
    }
  }
  CHECK_MESSAGE(std::filesystem::is_empty(scratch()), "databases are removed");
}

// Keys that repeat in a flow and between flows, values of many lengths, every durability.
TEST_CASE_METHOD(EnginesTest, "EnginesTest.RepeatedKeys", "[EnginesTest]") {
  auto sample = test::SampleRecords::random(4, 20'000, test::seed());
  Records records = sample.records();
  Parallel parallel(2);
  Expected expected(&records, &parallel);
  for (Durability durability : {Durability::sync, Durability::flush, Durability::none}) {
    auto directory = ScratchDirectory::create(scratch(), "repeated");
    REQUIRE_OK(directory);
    EngineSettings settings{.directory = directory->path(),
                            .threads = 2,
                            .durability = durability,
                            .key_width = 8,
                            .records = records.size(),
                            .bytes = records.bytes(),
                            .longest_value = records.longest_value()};
    auto engine = engine_.make(settings);
    REQUIRE_OK(engine->open());
    Status status = engine->write(records);
    REQUIRE_OK(status);
    for (bool reopened : {false, true}) {
      ReadCheck cheap(true);
      REQUIRE_OK(engine->read(cheap));
      CHECK_OK(expected.check(cheap));
      FullCheck full(&expected);
      REQUIRE_OK(engine->read(full));
      CHECK_OK(full.finish());
      LookupPlan plan(&expected, {.seed = test::seed(), .queries = 5000, .miss_share = 0.5});
      for (uint64_t batch : {1u, 64u, 5000u}) {
        Status checked = plan.check(engine.get(), batch);
        CHECK_OK(checked);
      }
      if (reopened) break;
      REQUIRE_OK(engine->close());
      REQUIRE_OK(engine->open());
    }
    CHECK_OK(engine->close());
  }
}

TEST_CASE_METHOD(EnginesTest, "EnginesTest.Dictionary", "[EnginesTest]") {
  if (engine_.numbers_only) SKIP("takes only 8-byte keys");
  std::string words = scratch() + "/words.txt", text = scratch() + "/text_small.txt";
  std::ofstream(words) << "apple\npear\napplesauce\ndon't\nParis\nan\napplesaucepans\n\nzebra\n";
  std::ofstream(text) << "An Apple, a PEAR and 'applesauce' don't go to Paris; paris 7 zebras.\n";
  DictionaryOptions options{.words = words,
                            .texts = {text},
                            .engines = {engine_},
                            .repeats = 1,
                            .threads = 2,
                            .directory = scratch() + "/db"};
  std::vector<TextSummary> texts;
  std::vector<ResultRow> rows;
  Status status = run_dictionary(options, Progress(false), &texts, &rows);
  std::filesystem::remove_all(scratch());
  REQUIRE_OK(status);
  REQUIRE(texts.size() == 1u);
  CHECK(texts[0].name == "small");
  CHECK(texts[0].words == 12u);
  CHECK(texts[0].hits == 6u);  // An, Apple, PEAR, applesauce, don't, Paris
  REQUIRE(rows.size() == 3u);
  CHECK(rows[1].phase == "lookup_small");
}

// An engine that answers as the plain hash table does, except for one planted fault.
enum class Fault { none, lost_record, changed_value, lookup_miss, lookup_value, lost_on_close };

class FaultyEngine : public EngineUnderTest {
 public:
  FaultyEngine(std::unique_ptr<EngineUnderTest> sound, Fault fault)
      : sound_(std::move(sound)), fault_(fault) {}

  Status open() override { return sound_->open(); }
  Status close() override {
    closed_ = true;
    return sound_->close();
  }
  Status write(const Records& records) override { return sound_->write(records); }
  Status read(ReadCheck& check) override {
    if (fault_ == Fault::lost_record) return {};
    STRIDE_TRY(sound_->read(check));
    if (fault_ == Fault::changed_value) check = changed(check);
    return {};
  }
  Status read(FullCheck& check) override {
    return fault_ == Fault::lost_on_close && closed_ ? Status() : sound_->read(check);
  }
  Status lookup(const KeyColumn& queries, LookupResult* result) override {
    STRIDE_TRY(sound_->lookup(queries, result));
    if (fault_ == Fault::lookup_miss) result->found.words()[0] ^= 1;
    if (fault_ == Fault::lookup_value && result->data.size()) result->data[0] ^= std::byte{1};
    return {};
  }

 private:
  // One record in place of another: the count stays.
  static ReadCheck changed(const ReadCheck& right) {
    ReadCheck check(true);
    for (uint64_t i = 0; i < right.records(); ++i) check.record(i, as_bytes("x"));
    return check;
  }

  std::unique_ptr<EngineUnderTest> sound_;
  Fault fault_;
  bool closed_ = false;
};

TEST_CASE("FaultyEngineTest.EveryFaultStopsTheWorkload", "[FaultyEngineTest]") {
  EngineConfiguration hash =
      choose_engines("hash").ok() ? (*choose_engines("hash"))[0] : EngineConfiguration{};
  for (Fault fault : {Fault::none, Fault::lost_record, Fault::changed_value, Fault::lookup_miss,
                      Fault::lookup_value, Fault::lost_on_close}) {
    StsWorkloadOptions options;
    options.records = 1000;
    options.repeats = 1;
    options.directory = scratch();
    options.batches = {10};
    options.lookup_seconds = 0;
    EngineConfiguration faulty = hash;
    faulty.make = [&](const EngineSettings& settings) {
      return std::make_unique<FaultyEngine>(hash.make(settings), fault);
    };
    options.engines = {faulty};
    std::vector<ResultRow> rows;
    Status status = run_sts(options, Progress(false), &rows);
    if (fault == Fault::none) {
      CHECK_OK(status);
    } else {
      CHECK_MESSAGE(status.code() == StatusCode::corruption, static_cast<int>(fault));
      CHECK_MESSAGE(status.message().find("hash:plain: wrong answer") != std::string::npos,
                    status.message());
    }
  }
  std::filesystem::remove_all(scratch());
}

TEST_CASE("ChooseEnginesTest.NamesAndErrors", "[ChooseEnginesTest]") {
  auto both = choose_engines("hash,vector:plain,hash:plain");
  REQUIRE_OK(both);
  REQUIRE(both->size() == 2u);
  CHECK((*both)[0].name() == "hash:plain");
  Status unknown = choose_engines("hash,berkeleydb").status();
  CHECK(unknown.code() == StatusCode::invalid_argument);
  CHECK(unknown.message().find("unknown engine 'berkeleydb'") != std::string::npos);
  CHECK(unknown.message().find("vector:plain") != std::string::npos);
  CHECK(choose_engines("").status().code() == StatusCode::invalid_argument);
  CHECK(choose_engines("hash:tuned").status().code() == StatusCode::invalid_argument);
  CHECK_OK(choose_engines(default_engines()));
  for (const char* optional : {"rocksdb", "lmdb"}) {
    auto engines = choose_engines(optional);
    if (engines.ok()) continue;
    CHECK(engines.status().remedy().find("-dev") != std::string::npos);
  }
}

}  // namespace
}  // namespace stride::benchmark
