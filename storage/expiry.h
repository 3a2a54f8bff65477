// When rows end: a time in each row (storage/row_format.h) from which on it counts as not there.
//
//   ExpiryCheck check = cell.at(now);              // microseconds since 1970-01-01
//   if (check.hides(value)) ...                    // the row has ended by then
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "storage/column.h"
#include "storage/schema.h"

namespace stride {

// Of a row that does not end.
inline constexpr int64_t never_ends = std::numeric_limits<int64_t>::max();
// No row has ended by then.
inline constexpr int64_t before_all_time = std::numeric_limits<int64_t>::min();

// Which rows count as not there. One that is made by default: none.
struct ExpiryCheck {
  uint32_t offset = 0, valid_bit = Schema::no_bit;  // as of ExpiryCell
  int64_t now = before_all_time;                    // in the cell's unit

  bool is_there() const { return now != before_all_time; }
  // A value that is too short for the time has none.
  int64_t end_of(Bytes value) const {
    if (value.size() < uint64_t{offset} + sizeof(int64_t)) return never_ends;
    if (valid_bit != Schema::no_bit &&
        (value.size() <= valid_bit / 8 ||
         !(std::to_integer<unsigned>(value[valid_bit / 8]) >> (valid_bit % 8) & 1)))
      return never_ends;
    int64_t end;
    std::memcpy(&end, value.data() + offset, sizeof end);
    return end;
  }
  bool hides(Bytes value) const { return is_there() && end_of(value) <= now; }
};

// Where the rows of a table have that time.
struct ExpiryCell {
  uint32_t offset = 0;  // of 8 bytes, little-endian
  // The row's bit that says that the time is there, as Schema::valid_bit(); no_bit: it always is.
  uint32_t valid_bit = Schema::no_bit;
  FieldType unit = FieldType::timestamp_us;  // one of the four timestamps
  // What rows get that are put without a time: so long after that, in the unit. 0: they do not end.
  int64_t time_to_live = 0;
  bool operator==(const ExpiryCell&) const = default;

  // A time in microseconds, in the cell's unit; rounded down, and cut where it does not fit.
  int64_t in_unit(int64_t microseconds) const {
    auto divided = [&](int64_t by) { return microseconds / by - (microseconds % by < 0 ? 1 : 0); };
    constexpr int64_t largest = std::numeric_limits<int64_t>::max() / 1000;
    switch (unit) {
      case FieldType::timestamp_s:
        return divided(1'000'000);
      case FieldType::timestamp_ms:
        return divided(1000);
      case FieldType::timestamp_ns:
        return std::clamp(microseconds, -largest, largest) * 1000;
      default:
        return microseconds;
    }
  }
  // Back again. Precondition: it is not negative.
  int64_t in_microseconds(int64_t time) const {
    constexpr int64_t largest = std::numeric_limits<int64_t>::max();
    switch (unit) {
      case FieldType::timestamp_s:
        return std::min(time, largest / 1'000'000) * 1'000'000;
      case FieldType::timestamp_ms:
        return std::min(time, largest / 1000) * 1000;
      case FieldType::timestamp_ns:
        return time / 1000;
      default:
        return time;
    }
  }
  // before_all_time: a check that hides nothing. Whatever the time, what never ends has not.
  ExpiryCheck at(int64_t microseconds) const {
    const bool none = microseconds == before_all_time;
    return {offset, valid_bit,
            none ? microseconds : std::min(in_unit(microseconds), never_ends - 1)};
  }
};

// The ends of rows: the first and the last one, in the cell's unit.
struct ExpiryRange {
  int64_t first = never_ends, last = never_ends;
  bool operator==(const ExpiryRange&) const = default;

  static ExpiryRange of_no_rows() { return {never_ends, before_all_time}; }
  bool is_of_no_rows() const { return first > last; }
  void add(int64_t end) {
    first = std::min(first, end);
    last = std::max(last, end);
  }
};

}  // namespace stride
