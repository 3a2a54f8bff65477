// Commands of `stride` that are killed (kill -9) at random moments, as processes of their own.
#pragma once

#include <cstdint>

namespace stride::cli {

// Loads, single rows in a shell, erasures, renames, merges, and copies of the database, all drawn
// at random, with so many of them killed. After each the database is whole, and it is as one of the
// command's commits left it: none is there in half, and none is gone that the command had answered.
// A copy is whole, or said not to be. Fails the test where they find something else.
void run_killed_commands(uint64_t kills);

}  // namespace stride::cli
