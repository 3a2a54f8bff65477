// Every engine of the comparison holds what it is given, and a faulty one is found out.
#include "benchmark/peers/engines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "benchmark/harness/lookup_plan.h"
#include "benchmark/workloads/dedup/dictionary.h"
#include "benchmark/workloads/sts/workload.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sample_records.h"

namespace stride::benchmark {
namespace {

std::string scratch() {
  std::string path = testing::TempDir() + "stride-engines-" + std::to_string(getpid());
  std::filesystem::create_directories(path);
  return path;
}

class EnginesTest : public testing::TestWithParam<EngineConfiguration> {};

TEST_P(EnginesTest, StsWorkload) {
  for (double randomness : {1.0, 0.5, 0.0}) {
    StsWorkloadOptions options;
    options.records = 10'000;
    options.randomness = randomness;
    options.seed = test::seed() % 1000 + 1;
    options.engines = {GetParam()};
    options.repeats = 1;
    options.threads = 3;
    options.directory = scratch();
    options.batches = {1, 100, 3000, 10'000};
    options.lookup_seconds = 0.01;
    std::vector<ResultRow> rows;
    Status status = run_sts(options, Progress(false), &rows);
    ASSERT_TRUE(status.ok()) << status.to_string();
    std::vector<std::string> phases;
    for (const ResultRow& row : rows) phases.push_back(row.phase);
    EXPECT_EQ(phases, (std::vector<std::string>{"write", "read", "secondary_read", "lookup_1",
                                                "lookup_100", "lookup_3k", "lookup_10k", "open"}));
    for (const ResultRow& row : rows) {
      EXPECT_GT(row.seconds, 0);
      EXPECT_GT(row.records, 0u);
      EXPECT_GT(row.bytes_on_disk, 10'000u);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch())) << "databases are removed";
}

// Keys that repeat in a flow and between flows, values of many lengths, every durability.
TEST_P(EnginesTest, RepeatedKeys) {
  auto sample = test::SampleRecords::random(4, 20'000, test::seed());
  Records records = sample.records();
  Parallel parallel(2);
  Expected expected(&records, &parallel);
  for (Durability durability : {Durability::sync, Durability::flush, Durability::none}) {
    auto directory = ScratchDirectory::create(scratch(), "repeated");
    ASSERT_TRUE(directory.ok());
    EngineSettings settings{.directory = directory->path(),
                            .threads = 2,
                            .durability = durability,
                            .key_width = 8,
                            .records = records.size(),
                            .bytes = records.bytes(),
                            .longest_value = records.longest_value()};
    auto engine = GetParam().make(settings);
    ASSERT_TRUE(engine->open().ok());
    Status status = engine->write(records);
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (bool reopened : {false, true}) {
      ReadCheck cheap(true);
      ASSERT_TRUE(engine->read(cheap).ok());
      EXPECT_TRUE(expected.check(cheap).ok()) << expected.check(cheap).to_string();
      FullCheck full(&expected);
      ASSERT_TRUE(engine->read(full).ok());
      EXPECT_TRUE(full.finish().ok()) << full.finish().to_string();
      LookupPlan plan(&expected, {.seed = test::seed(), .queries = 5000, .miss_share = 0.5});
      for (uint64_t batch : {1u, 64u, 5000u}) {
        Status checked = plan.check(engine.get(), batch);
        EXPECT_TRUE(checked.ok()) << checked.to_string();
      }
      if (reopened) break;
      ASSERT_TRUE(engine->close().ok());
      ASSERT_TRUE(engine->open().ok());
    }
    EXPECT_TRUE(engine->close().ok());
  }
}

TEST_P(EnginesTest, Dictionary) {
  if (GetParam().numbers_only) GTEST_SKIP() << "takes only 8-byte keys";
  std::string words = scratch() + "/words.txt", text = scratch() + "/text_small.txt";
  std::ofstream(words) << "apple\npear\napplesauce\ndon't\nParis\nan\napplesaucepans\n\nzebra\n";
  std::ofstream(text) << "An Apple, a PEAR and 'applesauce' don't go to Paris; paris 7 zebras.\n";
  DictionaryOptions options{.words = words,
                            .texts = {text},
                            .engines = {GetParam()},
                            .repeats = 1,
                            .threads = 2,
                            .directory = scratch() + "/db"};
  std::vector<TextSummary> texts;
  std::vector<ResultRow> rows;
  Status status = run_dictionary(options, Progress(false), &texts, &rows);
  std::filesystem::remove_all(scratch());
  ASSERT_TRUE(status.ok()) << status.to_string();
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_EQ(texts[0].name, "small");
  EXPECT_EQ(texts[0].words, 12u);
  EXPECT_EQ(texts[0].hits, 6u);  // An, Apple, PEAR, applesauce, don't, Paris
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].phase, "lookup_small");
}

INSTANTIATE_TEST_SUITE_P(All, EnginesTest, testing::ValuesIn(all_engines()), [](const auto& test) {
  return test.param.engine + "_" + test.param.configuration;
});

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

TEST(FaultyEngineTest, EveryFaultStopsTheWorkload) {
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
      EXPECT_TRUE(status.ok()) << status.to_string();
    } else {
      EXPECT_EQ(status.code(), StatusCode::corruption) << static_cast<int>(fault);
      EXPECT_NE(status.message().find("hash:plain: wrong answer"), std::string::npos)
          << status.message();
    }
  }
  std::filesystem::remove_all(scratch());
}

TEST(ChooseEnginesTest, NamesAndErrors) {
  auto both = choose_engines("hash,vector:plain,hash:plain");
  ASSERT_TRUE(both.ok());
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ((*both)[0].name(), "hash:plain");
  Status unknown = choose_engines("hash,berkeleydb").status();
  EXPECT_EQ(unknown.code(), StatusCode::invalid_argument);
  EXPECT_NE(unknown.message().find("unknown engine 'berkeleydb'"), std::string::npos);
  EXPECT_NE(unknown.message().find("vector:plain"), std::string::npos);
  EXPECT_EQ(choose_engines("").status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(choose_engines("hash:tuned").status().code(), StatusCode::invalid_argument);
  EXPECT_TRUE(choose_engines(default_engines()).ok());
  for (const char* optional : {"rocksdb", "lmdb"}) {
    auto engines = choose_engines(optional);
    if (engines.ok()) continue;
    EXPECT_NE(engines.status().remedy().find("-dev"), std::string::npos);
  }
}

}  // namespace
}  // namespace stride::benchmark
