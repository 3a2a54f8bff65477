// Rows of Parquet and Arrow IPC files (the file form, which is also Feather 2, and the stream
// form), where the program is built with Arrow's C++ library, of which nothing is seen here.
//
//   std::unique_ptr<BatchFile> file;
//   RowPlan plan;
//   STRIDE_CLI_TRY(BatchFile::open("rows.parquet", 0, options, 0, &file, &plan));
//   std::shared_ptr<const RowBatch> batch;
//   STRIDE_CLI_TRY(file->next(&batch));
//   STRIDE_CLI_TRY(batch->parse(plan, &rows));
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "adapters/cli/input/parsed_rows.h"
#include "adapters/cli/input/row_plan.h"

namespace stride::cli {

// Some rows of a file, column by column.
class RowBatch {
 public:
  virtual ~RowBatch() = default;
  virtual uint64_t size() const = 0;
  // A row is a line here. While other threads do the same with other batches, or this one.
  virtual ExitStatus parse(const RowPlan& plan, ParsedRows* rows) const = 0;
};

// For one thread at a time.
class BatchFile {
 public:
  // In this build: it has the library.
  static bool available();
  // path "-": the descriptor standard_input, from which only the stream form is read. The rows
  // before from_row are passed over. unavailable, usage, bad_input, not_found, ...
  static ExitStatus open(const std::string& path, int standard_input, const RowOptions& options,
                         uint64_t from_row, std::unique_ptr<BatchFile>* file, RowPlan* plan);
  virtual ~BatchFile() = default;

  // The next rows; null at the end.
  virtual ExitStatus next(std::shared_ptr<const RowBatch>* batch) = 0;
  // Counts bytes of the file as it is stored, roughly.
  virtual uint64_t stored_bytes_read() const = 0;
};

}  // namespace stride::cli
