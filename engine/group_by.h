// Sums, counts, smallest and largest values of the rows of a table, a group for each prefix of
// keys.
//
//   // Keys: 4 bytes of a zone, then 8 of a time; values: f32. What came of each zone?
//   auto zones = group_by(database->snapshot(), weights, {},
//                         {.prefix_bytes = 4, .type = NumberType::f32, .sum = true});
//   for (uint64_t g = 0; g < zones->size(); ++g) use(zones->keys()[g], zones->float_sums()[g]);
//
// Groups are in ascending order. Integers are summed exactly, and a sum that 64 bits do not hold is
// an error. Floats are summed in doubles, and a sum has the same bits on every run, with any number
// of threads, on any backend, and however the rows came into the table.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/scan.h"
#include "engine/snapshot.h"
#include "engine/table.h"
#include "storage/column.h"
#include "storage/export.h"
#include "storage/number.h"
#include "storage/status.h"

namespace stride {

class Backend;

struct GroupOptions {
  // Rows whose keys begin with the same so many bytes are a group; a shorter key is one of its own.
  // 0: all rows are one group.
  uint32_t prefix_bytes = 0;
  // The type of the values: i32, i64, f32 or f64, little-endian. none: that of a table of numbers.
  // Where counts alone are wanted no value is looked at.
  NumberType type = NumberType::none;
  // What is wanted; counts come in any case.
  bool sum = false, min = false, max = false;
  // What does it. Null: the database's device where Options::backend asks for one, else host
  // threads.
  std::shared_ptr<Backend> backend = nullptr;
};

// Entry g of each column belongs to group g. What was not asked for is empty. Views, valid while
// the result lives.
class GroupResult {
 public:
  uint64_t size() const { return counts_.size(); }
  // What the group's keys begin with.
  KeyColumn keys() const {
    return Column::variable(key_data_.data(), key_offsets_.data(), key_offsets_.size() - 1);
  }
  std::span<const uint64_t> counts() const { return counts_; }
  // Sums are i64 or f64. NaN and infinities give what IEEE 754 says of a sum.
  std::span<const int64_t> integer_sums() const { return integer_sums_; }
  std::span<const double> float_sums() const { return float_sums_; }
  // Columns of size() numbers of the values' type, in host memory. NaN is left out, but for groups
  // that have nothing else; -0 is smaller than +0.
  std::span<const std::byte> mins() const { return mins_; }
  std::span<const std::byte> maxes() const { return maxes_; }
  template <class T>
  std::span<const T> mins_as() const {
    return {reinterpret_cast<const T*>(mins_.data()), mins_.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> maxes_as() const {
    return {reinterpret_cast<const T*>(maxes_.data()), maxes_.size() / sizeof(T)};
  }

  GroupResult() = default;
  GroupResult(GroupResult&&) = default;
  GroupResult& operator=(GroupResult&&) = default;

 private:
  friend class GroupBuilder;
  std::vector<std::byte> key_data_;
  std::vector<uint64_t> key_offsets_{0};
  std::vector<uint64_t> counts_;
  std::vector<int64_t> integer_sums_;
  std::vector<double> float_sums_;
  std::vector<std::byte> mins_, maxes_;
};

// range: which rows; reverse and batch_rows are not looked at. Needs memory for the result and for
// a million rows. not_found: the table is not in the snapshot. invalid_argument: a type that cannot
// be grouped, a value of another width, or a sum that 64 bits do not hold; the message names table
// and key. corruption, and what a device's failure leaves to the host, as ever.
STRIDE_API Result<GroupResult> group_by(const Snapshot& snapshot, const Table& table,
                                        const ScanOptions& range, const GroupOptions& options);

}  // namespace stride
