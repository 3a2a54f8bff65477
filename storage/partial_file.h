// Reads a file as far as the disk gives it.
#pragma once

#include <string>

#include "storage/file.h"
#include "storage/status.h"

namespace stride {

// All of its bytes, with zeros in the place of pages that cannot be read.
Result<std::string> read_what_can_be_read(File& file);
// not_found, permission_denied, invalid_argument: it cannot be opened.
Result<std::string> read_what_can_be_read(FileSystem& fs, const std::string& path);

}  // namespace stride
