// How answers are written down, by the model and for the database alike.
#pragma once

#include <string>

#include "storage/status.h"

namespace stride::test::metamorphic {

inline std::string answer(StatusCode code) { return " " + std::string(to_string(code)); }
inline std::string answer_none() { return "-,"; }
inline std::string answer_value(const std::string& value) { return "=" + value + ","; }
inline std::string answer_row(const std::string& key, const std::string& value) {
  return key + "=" + value + ",";
}
// What was found of the keys, and at or behind them.
inline std::string answer_lookups(const std::string& found, const std::string& bounds) {
  return " found " + found + " bounds " + bounds;
}
inline std::string answer_scan(const std::string& rows) { return " scan " + rows; }
// The longest prefix and all prefixes of the addresses; and what is inside the first key.
inline std::string answer_matches(const std::string& longest, const std::string& all,
                                  const std::string& inside) {
  return " longest " + longest + " all " + all + " inside " + inside;
}

}  // namespace stride::test::metamorphic
