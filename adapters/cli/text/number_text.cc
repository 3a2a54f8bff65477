#include "adapters/cli/text/number_text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "adapters/cli/text/key_codec.h"

namespace stride::cli {
namespace {

// Calls body with a number of the type.
template <class Body>
auto with_number(NumberType type, const Body& body) {
  switch (type) {
    case NumberType::i32:
      return body(int32_t{});
    case NumberType::f32:
      return body(float{});
    case NumberType::f64:
      return body(double{});
    default:
      return body(int64_t{});
  }
}

}  // namespace

namespace {

constexpr std::pair<std::string_view, int64_t> time_units[] = {
    {"d", 86'400'000'000}, {"h", 3'600'000'000}, {"m", 60'000'000},
    {"s", 1'000'000},      {"ms", 1000},         {"us", 1}};

}  // namespace

std::optional<int64_t> microseconds_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  for (const auto& [name, microseconds] : time_units)
    if (error == std::errc() && number > 0 && unit == name &&
        number <= std::numeric_limits<int64_t>::max() / microseconds)
      return number * microseconds;
  return std::nullopt;
}

std::string time_text(int64_t microseconds) {
  for (const auto& [name, unit] : time_units)
    if (microseconds % unit == 0) return std::to_string(microseconds / unit) + std::string(name);
  return std::to_string(microseconds) + "us";
}

std::optional<NumberType> number_type_named(std::string_view name) {
  for (NumberType type : {NumberType::i32, NumberType::i64, NumberType::f32, NumberType::f64})
    if (to_string(type) == name) return type;
  return std::nullopt;
}

bool parse_number(NumberType type, std::string_view text, std::byte* to) {
  return with_number(type, [&](auto number) {
    const char* end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end) return false;
    std::memcpy(to, &number, sizeof number);
    return true;
  });
}

std::string why_no_number(NumberType type, std::string_view text) {
  if (is_float(type))
    return "value " + in_quotes(text) + " is no number that " + std::string(to_string(type)) +
           " can hold";
  return with_number(type, [&](auto number) {
    using Limits = std::numeric_limits<decltype(number)>;
    return "value " + in_quotes(text) + " is no number from " + std::to_string(Limits::min()) +
           " to " + std::to_string(Limits::max());
  });
}

void append_number(NumberType type, Bytes number, TextBuffer* out) {
  if (number.size() != width_of(type)) return out->append(as_text(number));
  with_number(type, [&](auto n) {
    constexpr size_t most = 32;
    std::memcpy(&n, number.data(), sizeof n);
    char* to = out->room(most);
    out->grow(static_cast<size_t>(std::to_chars(to, to + most, n).ptr - to));
  });
}

void append_number_member(std::string_view name, NumberType type, Bytes number, TextBuffer* out) {
  bool finite = number.size() == width_of(type) && with_number(type, [&](auto n) {
                  std::memcpy(&n, number.data(), sizeof n);
                  return std::isfinite(static_cast<double>(n));
                });
  std::string_view quote = finite ? "" : "\"";
  out->append('"');
  out->append(name);
  out->append("\":");
  out->append(quote);
  append_number(type, number, out);
  out->append(quote);
}

}  // namespace stride::cli
