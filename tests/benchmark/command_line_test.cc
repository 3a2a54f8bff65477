// The program as a person meets it: results, files, and arguments that are off.
#include "benchmark/command_line.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace stride::benchmark {
namespace {

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() { std::filesystem::create_directories(directory_); }
  ~CommandLineTest() override { std::filesystem::remove_all(directory_); }

  int run(std::vector<std::string> arguments) {
    std::vector<const char*> argv = {"stride-bench"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int code = run_command_line(static_cast<int>(argv.size()), argv.data());
    out_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }
  // sts with small defaults, and then these.
  int sts(std::vector<std::string> arguments) {
    std::vector<std::string> all = {"sts",       "--records",   "2000",      "--repeat", "1",
                                    "--engines", "vector,hash", "--batches", "1,100"};
    for (std::string& argument : arguments) {
      auto same = std::find(all.begin(), all.end(), argument);
      if (same != all.end()) all.erase(same, same + 2);
    }
    all.insert(all.end(), arguments.begin(), arguments.end());
    if (std::find(all.begin(), all.end(), "--directory") == all.end()) {
      all.insert(all.end(), {"--directory", directory_});
    }
    return run(all);
  }
  void expect_refused(const std::vector<std::string>& arguments, const std::string& message) {
    EXPECT_EQ(sts(arguments), 2) << arguments[1];
    EXPECT_NE(error_.find(message), std::string::npos) << error_;
    EXPECT_EQ(out_, "");
  }

  std::string directory_ = testing::TempDir() + "stride-cli-" + std::to_string(getpid());
  std::string out_, error_;
};

TEST_F(CommandLineTest, StsPrintsATableAndWritesFiles) {
  std::string json = directory_ + "/rows.json", plot = directory_ + "/plot.svg";
  ASSERT_EQ(sts({"--json", json, "--plot", plot, "--randomness", "0.5", "--flows", "2"}), 0)
      << error_;
  EXPECT_NE(out_.find("2,000 records, 2 flows, randomness 0.5"), std::string::npos) << out_;
  EXPECT_NE(out_.find("\nhash:plain"), std::string::npos);
  EXPECT_EQ(error_, "");
  auto rows = nlohmann::json::parse(std::ifstream(json));
  EXPECT_EQ(rows.size(), 12u);  // write, read, secondary_read, lookup_1, lookup_100, open; twice
  for (const auto& row : rows) EXPECT_GT(row["records_per_second"], 0);
  std::stringstream svg;
  svg << std::ifstream(plot).rdbuf();
  EXPECT_NE(svg.str().find("</svg>"), std::string::npos);
}

TEST_F(CommandLineTest, WrongArgumentsAreRefusedWithTheReason) {
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
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(run({"unknown"}), 2);
  EXPECT_EQ(run({"sts", "--unknown"}), 2);
}

TEST_F(CommandLineTest, TooManyRecordsForTheMemory) {
  EXPECT_EQ(sts({"--records", "4294000000"}), 1);
  EXPECT_NE(error_.find("lower --records"), std::string::npos) << error_;
}

TEST_F(CommandLineTest, FilesAndDirectoriesThatCannotBeWritten) {
  std::ofstream(directory_ + "/file") << "x";
  EXPECT_NE(sts({"--directory", directory_ + "/file/below"}), 0);
  EXPECT_NE(error_.find(directory_ + "/file/below"), std::string::npos) << error_;
  EXPECT_NE(sts({"--json", directory_ + "/absent/rows.json"}), 0);
  EXPECT_NE(error_.find("absent/rows.json"), std::string::npos) << error_;
}

TEST_F(CommandLineTest, Help) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_NE(out_.find("sts"), std::string::npos);
  EXPECT_EQ(run({"sts", "--help"}), 0);
  EXPECT_NE(out_.find("before the clock starts"), std::string::npos);
  EXPECT_NE(out_.find("hash:plain"), std::string::npos);
}

TEST_F(CommandLineTest, Dictionary) {
  std::string words = directory_ + "/words", text = directory_ + "/text_two.txt";
  std::ofstream(words) << "one\ntwo\n";
  std::ofstream(text) << "One, two, three!";
  std::string json = directory_ + "/rows.json";
  ASSERT_EQ(run({"dictionary", "--words", words, "--text", text, "--engines", "hash", "--repeat",
                 "1", "--directory", directory_, "--json", json}),
            0)
      << error_;
  EXPECT_NE(out_.find("66.7"), std::string::npos) << out_;
  auto rows = nlohmann::json::parse(std::ifstream(json));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1]["workload"], "dictionary");
  EXPECT_EQ(rows[1]["phase"], "lookup_two");

  EXPECT_EQ(run({"dictionary", "--words", words + ".absent", "--text", text, "--engines", "hash"}),
            1);
  EXPECT_NE(error_.find("words.absent"), std::string::npos) << error_;
  std::ofstream(words, std::ios::trunc) << "";
  EXPECT_NE(run({"dictionary", "--words", words, "--text", text, "--engines", "hash"}), 0);
  EXPECT_NE(error_.find("no words"), std::string::npos) << error_;
}

}  // namespace
}  // namespace stride::benchmark
