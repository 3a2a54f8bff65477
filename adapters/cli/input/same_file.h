// A file that is read must not be written meanwhile.
#pragma once

#include <string>
#include <vector>

#include "adapters/cli/exit_status.h"

namespace stride::cli {

// usage: what is written to `fd` (called `name`) goes into one of the files that are read, under
// this or another name. "-" is the descriptor standard_input. Only of regular files: terminals and
// pipes have a side for each.
ExitStatus check_not_read(int fd, const std::string& name, const std::vector<std::string>& inputs,
                          int standard_input);

// Whether both are the same regular file.
bool is_same_file(int fd, int other);

}  // namespace stride::cli
