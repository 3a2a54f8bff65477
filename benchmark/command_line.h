// The program stride-bench, as a function that tests can call.
#pragma once

namespace stride::benchmark {

// 0: done; 1: a workload failed or an engine gave a wrong answer; 2: the arguments are off. Results
// go to the standard output, problems and progress to the standard error.
int run_command_line(int argc, const char* const* argv);

}  // namespace stride::benchmark
