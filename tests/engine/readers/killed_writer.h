// Readers in other processes beside a writer that is killed and started again.
#pragma once

#include <cstdint>

namespace stride::test {

// Every commit of the writer puts one number under several keys of two tables: through the log, as
// a large commit, after erasing a range, and with all levels of durability, while memtables are
// flushed and runs are merged. One reader lives as long as the test; another one is killed, too.
// Each refreshes, and checks that all keys agree, that the number never goes back, that it has not
// missed a commit that had returned to the writer before, and that old snapshots stay what they
// are. Fails the test where they find something else.
void run_beside_killed_writer(uint64_t kills);

}  // namespace stride::test
