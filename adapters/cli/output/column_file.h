// Rows as Parquet or Arrow (IPC, the stream form), where the program is built with Arrow's C++
// library, of which nothing is seen here.
//
//   std::unique_ptr<ColumnFile> file;
//   STRIDE_CLI_TRY(ColumnFile::make(Format::parquet, key_form, key_names, table, columns, &out,
//   &file)); STRIDE_CLI_TRY(file->add(key, value)); STRIDE_CLI_TRY(file->finish());
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/cli/exit_status.h"
#include "adapters/cli/input/row_plan.h"
#include "adapters/cli/output/output.h"
#include "adapters/cli/text/key_codec.h"
#include "engine/table.h"
#include "storage/column.h"

namespace stride::cli {

class ColumnFile {
 public:
  // In this build: it has the library.
  static bool available();
  // columns: of the table's schema. Keys and values keep their types; keys of other types than
  // numbers, bytes and columns are text. out must outlive the file.
  static ExitStatus make(Format format, const KeyForm& key_form,
                         const std::vector<std::string>& key_names, const Table& table,
                         const std::vector<size_t>& columns, Output* out,
                         std::unique_ptr<ColumnFile>* file);
  virtual ~ColumnFile() = default;

  // damaged: the value is no row of the table's schema.
  virtual ExitStatus add(Bytes key, Bytes value) = 0;
  virtual ExitStatus finish() = 0;
};

}  // namespace stride::cli
