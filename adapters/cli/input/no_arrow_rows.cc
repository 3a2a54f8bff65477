// In the place of arrow_rows.cc where Arrow's library is not found.
#include "adapters/cli/input/arrow_rows.h"

namespace stride::cli {

bool BatchFile::available() { return false; }

ExitStatus BatchFile::open(const std::string& path, int, const RowOptions& options, uint64_t,
                           std::unique_ptr<BatchFile>*, RowPlan*) {
  return ExitStatus(ExitCode::unavailable,
                    path + ": this program is built without Arrow, and reads no " +
                        std::string(name_of(options.format)) + " files");
}

}  // namespace stride::cli
