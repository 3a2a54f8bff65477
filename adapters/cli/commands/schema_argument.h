// What --schema is given: a file, or the text itself.
#pragma once

#include <string>

#include "adapters/cli/exit_status.h"
#include "storage/schema.h"

namespace stride::cli {

// Text that is no file's name is the schema. not_found, usage: what is neither; bad_input, with the
// line: a file that has none.
ExitStatus read_schema_argument(const std::string& argument, Schema* schema);

// The text of the value columns, without the key's.
std::string columns_text(const Schema& schema);

}  // namespace stride::cli
