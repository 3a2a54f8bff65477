// Ctrl-C and SIGTERM: work ends at the next block, before its commit.
#pragma once

namespace stride::cli {

// The first signal asks for an end; a second one ends the process at once. Where the end takes a
// while after Ctrl-C, the standard error says why. A shell calls this again before each command:
// what has come before is over then.
void catch_interrupts();
bool interrupted();
// Whether the signal was SIGTERM, which ends a shell, too.
bool terminated();
// For tests, and for a shell.
void set_interrupted(bool value);

}  // namespace stride::cli
