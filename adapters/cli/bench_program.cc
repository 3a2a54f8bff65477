#include "adapters/cli/bench_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace stride::cli {

ExitStatus run_bench(int argc, const char* const* argv) {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string program = (self.parent_path() / "stride-bench").string();
  std::vector<char*> arguments = {program.data()};
  for (int i = 0; i < argc; ++i) arguments.push_back(const_cast<char*>(argv[i]));
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  return ExitStatus(ExitCode::unavailable,
                    program + ": " + std::strerror(errno) +
                        "; the benchmark is a program of its own beside this one");
}

}  // namespace stride::cli
