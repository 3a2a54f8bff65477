// stride-bench: StrideDB and its peers side by side.
#include "benchmark/command_line.h"

int main(int argc, char** argv) { return stride::benchmark::run_command_line(argc, argv); }
