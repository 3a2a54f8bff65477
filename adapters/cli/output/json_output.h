#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/options.h"
#include "engine/table.h"
#include "storage/number.h"
#include "storage/prefix_key.h"

namespace stride::cli {

// One line. Names may be any bytes: what is not UTF-8 becomes replacement characters.
template <class Json>
std::string text_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Adds the address bits of a prefix table: a number, or "bytes". Adds nothing for other tables.
template <class Json>
void add_address_bits(uint32_t address_bits, Json* object) {
  if (address_bits == byte_strings) {
    (*object)["address_bits"] = "bytes";
  } else if (address_bits != 0) {
    (*object)["address_bits"] = address_bits;
  }
}

// Adds which column says when rows end, and the time to live in microseconds. Nothing where they do
// not.
template <class Json>
void add_expiry(const Table& table, Json* object) {
  if (table.expiry_column().empty()) return;
  (*object)["expires"] = table.expiry_column();
  if (table.time_to_live()) (*object)["time_to_live"] = table.time_to_live();
}

// Names the numbers of a table of numbers: "i64", "i64 wrap".
inline std::string numbers_text(NumberType numbers, Overflow overflow) {
  return std::string(to_string(numbers)) + (overflow == Overflow::wrap ? " wrap" : "");
}
// The same as members. Nothing of other tables.
template <class Json>
void add_numbers(NumberType numbers, Overflow overflow, Json* object) {
  if (numbers == NumberType::none) return;
  (*object)["numbers"] = std::string(to_string(numbers));
  if (overflow == Overflow::wrap) (*object)["overflow"] = "wrap";
}

}  // namespace stride::cli
