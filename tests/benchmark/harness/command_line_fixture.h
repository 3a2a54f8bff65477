// Runs stride-bench as a person does, and keeps what it prints.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/command_line.h"
#include "benchmark/harness/timed_phases.h"
#include "gpu/backend.h"
#include "tests/support/captured_file.h"
#include "tests/support/catch.h"

namespace stride::benchmark {

class CommandLineFixture {
 protected:
  CommandLineFixture() {
    usual_min_seconds = 0.02;
    std::filesystem::create_directories(directory_);
  }
  ~CommandLineFixture() { std::filesystem::remove_all(directory_); }

  int run(const std::vector<std::string>& arguments) {
    std::vector<const char*> argv = {"stride-bench"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    test::CapturedFile out(stdout), error(stderr);
    int code = run_command_line(static_cast<int>(argv.size()), argv.data());
    out_ = out.text();
    error_ = error.text();
    return code;
  }
  // A command with the arguments, and with those defaults that they do not name.
  int run_with(const std::string& command,
               const std::vector<std::pair<std::string, std::string>>& defaults,
               const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {command};
    for (const auto& [name, value] : defaults) {
      if (std::find(arguments.begin(), arguments.end(), name) != arguments.end()) continue;
      all.insert(all.end(), {name, value});
    }
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run(all);
  }
  // What a command returned, and that it says why and prints nothing else.
  void expect_refused(int code, const std::string& message) {
    CHECK_MESSAGE(code == 2, message);
    CHECK_MESSAGE(error_.find(message) != std::string::npos, error_);
    CHECK(out_ == "");
  }

  std::string directory_ =
      std::filesystem::temp_directory_path().string() + "/stride-cli-" + std::to_string(getpid());
  std::string out_, error_;
};

inline nlohmann::json read_rows(const std::string& path) {
  return nlohmann::json::parse(std::ifstream(path));
}

inline std::string read_text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Phases of the rows of one engine and configuration.
inline std::vector<std::string> phases_of(const nlohmann::json& rows, const std::string& engine,
                                          const std::string& configuration) {
  std::vector<std::string> phases;
  for (const auto& row : rows) {
    if (row["engine"] == engine && row["configuration"] == configuration) {
      phases.push_back(row["phase"]);
    }
  }
  return phases;
}

}  // namespace stride::benchmark
