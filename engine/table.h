// A named, ordered map of byte strings to byte strings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/export.h"
#include "storage/number.h"
#include "storage/schema.h"

namespace stride {

enum class Overflow : uint8_t;
struct DatabaseIdentity;
struct TableRecord;

// A handle, cheap to copy; names a table of one Database, and is refused (invalid_argument) by
// every other one, also by the next that is opened at the same path. Stays valid where the table
// gets another name, and finds nothing and takes nothing (not_found) once the table is dropped.
class STRIDE_API Table {
 public:
  Table() = default;
  uint32_t id() const;
  const std::string& name() const;  // that it had when this was opened
  uint32_t key_width() const;       // bytes of every key; 0: any length
  // For a prefix table: bits of the addresses, or byte_strings. 0: an ordinary table.
  uint32_t address_bits() const;
  bool share_equal_values() const;
  NumberType numbers() const;  // of a table of numbers; none: values are any bytes
  Overflow overflow() const;
  // Empty: values are bytes.
  const Schema& schema() const;
  // The column that says when a row ends (TableOptions::expiry_column). Empty: no row does.
  std::string expiry_column() const;
  int64_t time_to_live() const;  // as of TableOptions

 private:
  friend struct TableParts;
  Table(std::shared_ptr<const TableRecord> record, std::shared_ptr<const DatabaseIdentity> database,
        std::shared_ptr<const Schema> schema)
      : record_(std::move(record)), database_(std::move(database)), schema_(std::move(schema)) {}
  std::shared_ptr<const TableRecord> record_;
  std::shared_ptr<const DatabaseIdentity> database_;
  std::shared_ptr<const Schema> schema_;  // null: there is none
};

}  // namespace stride
