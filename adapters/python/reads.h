// What the reads of a table share.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/python/cells.h"
#include "adapters/python/fields.h"
#include "adapters/python/handles.h"
#include "engine/transaction.h"
#include "storage/column.h"

namespace stride::python {

namespace nb = nanobind;

// Byte strings that are gathered one by one.
class BytesColumn {
 public:
  void append(Bytes bytes) {
    data_.append(as_text(bytes));
    offsets_.push_back(data_.size());
  }
  void append(const Column& column) {
    if (column.size == 0) return;
    const uint64_t from = column.begin(0), to = data_.size();
    data_.append(as_text({column.data + from, column.bytes()}));
    for (uint64_t row = 1; row <= column.size; ++row)
      offsets_.push_back(column.begin(row) - from + to);
  }
  Column column() const {
    return Column::variable(data_.data(), offsets_.data(), offsets_.size() - 1);
  }

 private:
  std::string data_;
  std::vector<uint64_t> offsets_{0};
};

// Rows whose memory is their own.
struct CopiedRows {
  BytesColumn keys, values;
  Bitmap found;
  std::vector<DecodedColumn> decoded;
};

// The positions of columns of values; without names all of them.
std::vector<size_t> wanted_columns(const TableForm& form,
                                   const std::optional<std::vector<std::string>>& names);
// The cells of these columns. found: null where all rows are there. They point into the values or
// into `decoded`, both of which `owner` keeps.
std::vector<Cells> value_cells(const TableForm& form, const ValueColumn& values,
                               const Bitmap* found, const std::vector<size_t>& wanted,
                               std::vector<DecodedColumn>* decoded,
                               std::shared_ptr<const void> owner);
// One value: a dict, or with `bare` the one cell.
nb::object value_object(const TableForm& form, Bytes value, const std::vector<size_t>& wanted,
                        bool bare);
// As get() and contains() of a table, within a transaction.
nb::object get_in(Transaction& transaction, const PyTable& table, nb::handle keys,
                  nb::object otherwise, const std::optional<std::vector<std::string>>& columns);
nb::object contains_in(Transaction& transaction, const PyTable& table, nb::handle keys);
// The key columns of rows of which some are not there.
std::vector<Cells> found_key_cells(const TableForm& form, const CopiedRows& rows,
                                   std::shared_ptr<const void> owner);

}  // namespace stride::python
