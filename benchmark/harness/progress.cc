#include "benchmark/harness/progress.h"

#include <unistd.h>

#include <cstdio>

namespace stride::benchmark {

void Progress::show(const std::string& text) const {
  if (!to_terminal_) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

Progress terminal_progress() { return Progress(isatty(STDERR_FILENO) != 0); }

}  // namespace stride::benchmark
