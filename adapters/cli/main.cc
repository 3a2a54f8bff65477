// stride: a database from the command line.
#include <signal.h>

#include "adapters/cli/command_line.h"
#include "adapters/cli/interrupt.h"

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  stride::cli::catch_interrupts();
  return stride::cli::run(argc, argv);
}
