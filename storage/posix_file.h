// Files and mappings of the operating system.
//
// Internal to storage.
#pragma once

#include <memory>
#include <string>

#include "storage/file.h"
#include "storage/posix_descriptor.h"

namespace stride {

// A file that is open. direct: a second descriptor of it, opened with O_DIRECT, or an invalid one.
std::unique_ptr<File> make_posix_file(std::string path, Descriptor buffered, Descriptor direct);

}  // namespace stride
