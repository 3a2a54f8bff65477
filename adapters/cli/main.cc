// stride: a database from the command line.
#include <signal.h>

#include "adapters/cli/command_line.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/standard_streams.h"

int main(int argc, char** argv) {
  stride::cli::hold_standard_streams();
  stride::cli::ignore_file_size_signal();
  signal(SIGPIPE, SIG_IGN);
  stride::cli::catch_interrupts();
  return stride::cli::run(argc, argv);
}
