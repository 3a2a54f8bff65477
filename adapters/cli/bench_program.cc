#include "adapters/cli/bench_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace stride::cli {

ExitStatus run_bench(std::vector<std::string> arguments) {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string program = (self.parent_path() / "stride-bench").string();
  std::vector<char*> argv = {program.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return ExitStatus(ExitCode::unavailable,
                    program + ": " + std::strerror(errno) +
                        "; the benchmark is a program of its own beside this one");
}

}  // namespace stride::cli
