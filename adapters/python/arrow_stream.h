// Arrow data that a caller gives, batch by batch.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "adapters/python/arrow_abi.h"
#include "adapters/python/cells.h"

namespace stride::python {

namespace nb = nanobind;

// A stream of arrays, or one array, behind __arrow_c_stream__ or __arrow_c_array__.
class ArrowStream {
 public:
  explicit ArrowStream(nb::handle given);
  // Whether rows have columns with names.
  bool is_frame() const;
  std::vector<std::string> names() const;
  // False at the end. What the producer raises is thrown. Without names one column is set.
  bool next(std::vector<Cells>* columns);
  // The one column of an array that is no frame, or of a frame that has one column.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

 private:
  std::shared_ptr<ArrowSchema> schema_;
  std::shared_ptr<ArrowArray> array_;  // the one array, until it is read
  std::shared_ptr<ArrowArrayStream> stream_;
  nb::object capsules_;
  std::string name_;
};

// The cells of one array. owner: what keeps its memory. first, rows: which ones.
Cells import_arrow(const ArrowSchema& schema, const ArrowArray& array,
                   std::shared_ptr<const void> owner, int64_t first, int64_t rows,
                   const std::string& name);

}  // namespace stride::python
