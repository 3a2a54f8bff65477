// stride-bench: StrideDB and its peers side by side.
#include "adapters/cli/standard_streams.h"
#include "benchmark/command_line.h"

int main(int argc, char** argv) {
  stride::cli::hold_standard_streams();
  stride::cli::ignore_file_size_signal();
  return stride::benchmark::run_command_line(argc, argv);
}
