// The schema of files that say what their columns are called, from their first block of rows.
#pragma once

#include "adapters/cli/exit_status.h"
#include "adapters/cli/input/block_reader.h"
#include "storage/schema.h"

namespace stride::cli {

// Value columns with names: all but the key, or those of --value. Parquet and Arrow have types; of
// text it is the narrowest one that has all cells of the block. Empty where the file does not name
// its columns, or has but a key. bad_input: two columns have one name.
ExitStatus guess_schema(const Block& block, Schema* schema);

}  // namespace stride::cli
