// The program as a person meets it: results, files, and arguments that are off.
#include "tests/benchmark/harness/command_line_fixture.h"
#include "tests/support/catch.h"

namespace stride::benchmark {
namespace {

class CommandLineTest : public CommandLineFixture {
 protected:
  // sts with small defaults, and then these.
  int sts(const std::vector<std::string>& arguments) {
    return run_with("sts",
                    {{"--records", "2000"},
                     {"--repeat", "1"},
                     {"--engines", "vector,hash"},
                     {"--batches", "1,100"},
                     {"--directory", directory_}},
                    arguments);
  }
  // tree with small defaults, and then these.
  int tree(const std::vector<std::string>& arguments) {
    return run_with(
        "tree", {{"--n", "2000"}, {"--queries", "3000"}, {"--backend", "host"}, {"--repeat", "1"}},
        arguments);
  }
  void expect_tree_refused(const std::vector<std::string>& arguments, const std::string& message) {
    CHECK_MESSAGE(tree(arguments) == 2, arguments[1]);
    CHECK_MESSAGE(error_.find(message) != std::string::npos, error_);
    CHECK(out_ == "");
  }
  void expect_refused(const std::vector<std::string>& arguments, const std::string& message) {
    CommandLineFixture::expect_refused(sts(arguments), message);
  }
};

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.StsPrintsATableAndWritesFiles",
                 "[CommandLineTest]") {
  std::string json = directory_ + "/rows.json", plot = directory_ + "/plot.svg";
  REQUIRE_MESSAGE(sts({"--json", json, "--plot", plot, "--randomness", "0.5", "--flows", "2"}) == 0,
                  error_);
  CHECK_MESSAGE(out_.find("2,000 records, 2 flows, randomness 0.5") != std::string::npos, out_);
  CHECK(out_.find("\nhash:plain") != std::string::npos);
  CHECK(error_ == "");
  auto rows = read_rows(json);
  CHECK(rows.size() == 12u);  // write, read, secondary_read, lookup_1, lookup_100, open; twice
  for (const auto& row : rows) CHECK(row["records_per_second"] > 0);
  std::string svg = read_text(plot);
  CHECK(svg.find("</svg>") != std::string::npos);
}

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.WrongArgumentsAreRefusedWithTheReason",
                 "[CommandLineTest]") {
  expect_refused({"--records", "0"}, "--records must be a number from 1 to");
  expect_refused({"--records", "ten"}, "not 'ten'");
  expect_refused({"--records", "5000000000"}, "--records");
  expect_refused({"--records", "99999999999999999999999"}, "--records");
  expect_refused({"--flows", "0"}, "--flows");
  expect_refused({"--flows", "many"}, "--flows");
  expect_refused({"--randomness", "1.5"}, "--randomness");
  expect_refused({"--randomness", "nan"}, "--randomness");
  expect_refused({"--repeat", "0"}, "--repeat");
  expect_refused({"--batches", "1,x"}, "--batches");
  expect_refused({"--batches", "0"}, "--batches");
  expect_refused({"--durability", "perhaps"}, "--durability");
  expect_refused({"--engines", "mongodb"}, "unknown engine 'mongodb'");
  expect_refused({"--engines", ""}, "no engine is named");
  CHECK(run({}) == 2);
  CHECK(run({"unknown"}) == 2);
  CHECK(error_ == "stride-bench: no command 'unknown': stride-bench help lists all commands\n");
  CHECK(run({"help", "tere"}) == 2);
  CHECK(error_ == "stride-bench: no command 'tere': did you mean 'tree'?\n");
  CHECK(run({"sts", "--unknown"}) == 2);
}

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.StsWithABackend", "[CommandLineTest]") {
  std::string json = directory_ + "/rows.json";
  REQUIRE_MESSAGE(
      sts({"--engines", "stride", "--backend", "host", "--values", "device", "--json", json}) == 0,
      error_);
  CHECK_MESSAGE(out_.find("backend host, values on the device") != std::string::npos, out_);
  for (const auto& row : read_rows(json)) {
    CHECK(std::string(row["backend"]).substr(0, 6) == "host (");
    CHECK(row["values"] == "device");
  }
  expect_refused({"--backend", "fpga"}, "--backend");
  expect_refused({"--values", "disk"}, "--values");
  if (!Backend::cuda().ok()) {
    CHECK(sts({"--engines", "stride", "--backend", "cuda"}) == 1);
    CHECK_MESSAGE(error_.find("stride:defaults: ") != std::string::npos, error_);
  }
}

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.TooManyRecordsForTheMemory",
                 "[CommandLineTest]") {
  CHECK(sts({"--records", "4294000000"}) == 1);
  CHECK_MESSAGE(error_.find("lower --records") != std::string::npos, error_);
}

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.FilesAndDirectoriesThatCannotBeWritten",
                 "[CommandLineTest]") {
  std::ofstream(directory_ + "/file") << "x";
  CHECK(sts({"--directory", directory_ + "/file/below"}) != 0);
  CHECK_MESSAGE(error_.find(directory_ + "/file/below") != std::string::npos, error_);
  CHECK(sts({"--json", directory_ + "/absent/rows.json"}) != 0);
  CHECK_MESSAGE(error_.find("absent/rows.json") != std::string::npos, error_);
}

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.Help", "[CommandLineTest]") {
  CHECK(run({"--help"}) == 0);
  CHECK(out_.find("sts") != std::string::npos);
  CHECK(run({"sts", "--help"}) == 0);
  CHECK(out_.find("before the clock starts") != std::string::npos);
  CHECK(out_.find("hash:plain") != std::string::npos);
}

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.Dictionary", "[CommandLineTest]") {
  std::string words = directory_ + "/words", text = directory_ + "/text_two.txt";
  std::ofstream(words) << "one\ntwo\n";
  std::ofstream(text) << "One, two, three!";
  std::string json = directory_ + "/rows.json";
  REQUIRE_MESSAGE(run({"dictionary", "--words", words, "--text", text, "--engines", "hash",
                       "--repeat", "1", "--directory", directory_, "--json", json}) == 0,
                  error_);
  CHECK_MESSAGE(out_.find("66.7") != std::string::npos, out_);
  auto rows = read_rows(json);
  REQUIRE(rows.size() == 3u);
  CHECK(rows[1]["workload"] == "dictionary");
  CHECK(rows[1]["phase"] == "lookup_two");

  CHECK(run({"dictionary", "--words", words + ".absent", "--text", text, "--engines", "hash"}) ==
        1);
  CHECK_MESSAGE(error_.find("words.absent") != std::string::npos, error_);
  std::ofstream(words, std::ios::trunc) << "";
  CHECK(run({"dictionary", "--words", words, "--text", text, "--engines", "hash"}) != 0);
  CHECK_MESSAGE(error_.find("no words") != std::string::npos, error_);
}

void expect_tree_row(const nlohmann::json& row, const std::string& kind, uint64_t keys) {
  CHECK(row["workload"] == "tree");
  CHECK(row["keys"] == keys);
  CHECK(row["hit_rate"] == 0.5);
  CHECK(row["key_kind"] == kind);
  CHECK(row["records_per_second"] > 0);
  CHECK(row["key_bytes"] > 2);
  if (row["engine"] != "stride") return;
  CHECK(row["bytes_per_key"] > row["key_bytes"]);
  CHECK(row["image_bytes_per_key"] > 0);
  CHECK(row["limit_per_second"] > 0);
  CHECK(row["limit_percent"] > 0);
}

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.TreeOfEveryKindOfKeys", "[CommandLineTest]") {
  std::string lines = directory_ + "/lines.txt", json = directory_ + "/rows.json";
  std::ofstream(lines) << "one\ntwo\n\nthree\none\nfour\nfive\n";
  for (const std::string& kind : {std::string("u32"), std::string("u64"), std::string("fixed:3"),
                                  std::string("fixed:33"), lines}) {
    REQUIRE_MESSAGE(tree({"--keys", kind, "--json", json, "--hit-rate", "0.5"}) == 0, error_);
    CHECK(error_ == "");
    auto rows = read_rows(json);
    CHECK(phases_of(rows, "stride", "auto") ==
          (std::vector<std::string>{"build", "build_sorted", "find", "lower_bound",
                                    "prefix_interval"}));
    CHECK(phases_of(rows, "std::lower_bound", "plain") ==
          (std::vector<std::string>{"find", "lower_bound"}));
    CHECK(phases_of(rows, "std::unordered_map", "plain") == std::vector<std::string>{"find"});
    for (const auto& row : rows) {
      kind == lines ? expect_tree_row(row, "lines", 5) : expect_tree_row(row, kind, 2000);
    }
  }
}

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.TreeCombinesKindsAndSizes",
                 "[CommandLineTest]") {
  std::string json = directory_ + "/rows.json", plot = directory_ + "/plot.svg";
  REQUIRE_MESSAGE(
      tree({"--keys", "u32,fixed:16", "--n", "100,1k", "--operations", "find", "--where", "host",
            "--order", "sorted", "--json", json, "--plot", plot}) == 0,
      error_);
  auto rows = read_rows(json);
  CHECK(phases_of(rows, "stride", "auto") == std::vector<std::string>(4, "find"));
  CHECK(phases_of(rows, "std::lower_bound", "plain") == std::vector<std::string>(4, "find"));
  for (const auto& row : rows) CHECK(row["order"] == "sorted");
  CHECK_MESSAGE(out_.find("\nfixed:16 1k, stride:auto") != std::string::npos, out_);
  std::string svg = read_text(plot);
  CHECK_MESSAGE(svg.find("stride:find, u32 1k:") != std::string::npos, svg);
}

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.TreeLatencyOfConfigurations",
                 "[CommandLineTest]") {
  std::string json = directory_ + "/rows.json", plot = directory_ + "/plot.svg";
  REQUIRE_MESSAGE(tree({"--strides", "auto;10,4;flavors:8,8", "--operations", "", "--latency",
                        "yes", "--queries", "200", "--json", json, "--plot", plot}) == 0,
                  error_);
  auto rows = read_rows(json);
  CHECK(rows.size() == 9u);
  for (const char* configuration : {"auto", "10,4", "flavors:8,8"}) {
    CHECK(phases_of(rows, "stride", configuration) ==
          (std::vector<std::string>{"find_batch_1", "find_batch_10", "find_batch_100"}));
  }
  CHECK(rows[2]["records"] == 100);
  CHECK(rows[8]["strides_built"] == "8,8");
  CHECK_MESSAGE(out_.find("\nu64 2k, stride:flavors:8,8") != std::string::npos, out_);
  std::string svg = read_text(plot);
  CHECK_MESSAGE(svg.find("stride:u64 2k 10,4, 10 a call:") != std::string::npos, svg);
}

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.TreeRefusesWrongArgumentsWithTheReason",
                 "[CommandLineTest]") {
  expect_tree_refused({"--keys", "u65"}, "u32, u64, fixed:BYTES, words or a file");
  expect_tree_refused({"--keys", directory_}, "no file");
  expect_tree_refused({"--keys", ""}, "--keys is empty");
  expect_tree_refused({"--keys", "fixed:0"}, "BYTES of fixed:BYTES must be a number from 1 to");
  expect_tree_refused({"--keys", "fixed:70000"}, "65535");
  expect_tree_refused({"--keys", "fixed:1", "--n", "257"}, "there are only 256 keys of 1 byte");
  expect_tree_refused({"--keys", "fixed:1", "--n", "256", "--hit-rate", "0.9"}, "none is left");
  expect_tree_refused({"--n", "0"}, "--n must be a number from 1 to");
  expect_tree_refused({"--n", "1k,many"}, "not 'many'");
  expect_tree_refused({"--n", "4294967295"}, "--n must be a number from 1 to 4294967294");
  expect_tree_refused({"--queries", "0"}, "--queries must be a number from 1 to");
  expect_tree_refused({"--hit-rate", "1.5"}, "--hit-rate");
  expect_tree_refused({"--hit-rate", "nan"}, "--hit-rate");
  expect_tree_refused({"--order", "up"}, "--order");
  expect_tree_refused({"--strides", "8,29"}, "stride 29 of level 1: a stride is 1 to 28 bits");
  expect_tree_refused({"--strides", "8,0"}, "stride 0 of level 1");
  expect_tree_refused({"--strides", "8,,8"}, "numbers with commas between");
  expect_tree_refused({"--strides", "auto;flavors:x"}, "not 'flavors:x'");
  expect_tree_refused({"--strides", "flavors:"}, "no strides");
  expect_tree_refused({"--strides", ""}, "--strides is empty");
  expect_tree_refused({"--leaf-capacity", "70000"}, "leaf_capacity 70000");
  expect_tree_refused({"--backend", "fpga"}, "--backend");
  expect_tree_refused({"--where", "disk"}, "--where");
  expect_tree_refused({"--operations", "build,erase"}, "unknown operation 'erase'");
  expect_tree_refused({"--operations", ""}, "--operations is empty");
  expect_tree_refused({"--latency", "perhaps"}, "--latency");
  std::ofstream(directory_ + "/empty") << "\n\n";
  expect_tree_refused({"--keys", directory_ + "/empty"}, "no keys in it");
  CHECK(tree({"--n", "4000m"}) == 1);
  CHECK_MESSAGE(error_.find("lower --n") != std::string::npos, error_);
}

TEST_CASE_METHOD(CommandLineTest, "CommandLineTest.TreeHelp", "[CommandLineTest]") {
  CHECK(run({"tree", "--help"}) == 0);
  CHECK(out_.find("fixed:BYTES") != std::string::npos);
  CHECK(out_.find("flavors:16,8,8") != std::string::npos);
}

}  // namespace
}  // namespace stride::benchmark
