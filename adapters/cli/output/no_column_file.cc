#include "adapters/cli/output/column_file.h"

namespace stride::cli {

bool ColumnFile::available() { return false; }

ExitStatus ColumnFile::make(Format format, const KeyForm&, const std::vector<std::string>&,
                            const Table&, const std::vector<size_t>&, Output*,
                            std::unique_ptr<ColumnFile>*) {
  return ExitStatus(ExitCode::unavailable, "this program writes no " +
                                               std::string(name_of(format)) +
                                               " files: give --format csv or jsonl");
}

}  // namespace stride::cli
