// Ctrl-C and SIGTERM: work ends at the next block, before its commit.
#pragma once

namespace stride::cli {

// The first signal asks for an end; a second one ends the process at once.
void catch_interrupts();
bool interrupted();
// For tests.
void set_interrupted(bool value);

}  // namespace stride::cli
