// What surrounds a command: its streams, and for tests another file system and machine.
#pragma once

#include <string>

namespace stride {
class FileSystem;
}

namespace stride::cli {

struct Environment {
  int in = 0, out = 1, err = 2;       // file descriptors
  FileSystem* file_system = nullptr;  // of the databases; null: the system's
  std::string meminfo = "/proc/meminfo";
};

}  // namespace stride::cli
