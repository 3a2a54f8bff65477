// The values of tables of numbers as text: decimal, floats with as few digits as tell them apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "adapters/cli/output/output.h"
#include "storage/column.h"
#include "storage/number.h"

namespace stride::cli {

// Finds one of the types that a table's values can have: i32, i64, f32, f64.
std::optional<NumberType> number_type_named(std::string_view name);

// Room for any number.
inline constexpr size_t max_number_bytes = 8;
// Writes width_of(type) bytes as a table stores them. False: the text is no such number.
bool parse_number(NumberType type, std::string_view text, std::byte* to);
// "'1.5' is no number from -2147483648 to 2147483647"
std::string why_no_number(NumberType type, std::string_view text);

// "90s", "15m", "24h", "7d": a time above 0. Nothing: the text is no such time.
std::optional<int64_t> microseconds_of(std::string_view text);
// The same back, with the largest unit that it is a whole number of: "24h", "1500ms".
std::string time_text(int64_t microseconds);

// The text of a stored number. What is not of the type (another width) is shown as it is.
void append_number(NumberType type, Bytes number, TextBuffer* out);
// A member of a JSON object; infinities and NaN, which JSON has not, are strings.
void append_number_member(std::string_view name, NumberType type, Bytes number, TextBuffer* out);

}  // namespace stride::cli
