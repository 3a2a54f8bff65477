#include "adapters/cli/text/cell_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "adapters/cli/input/json_text.h"
#include "storage/quoted.h"

namespace stride::cli {
namespace {

constexpr int64_t seconds_a_day = 86'400;
// These are the days of the years 0 to 9999.
constexpr int64_t min_day = -719'528, max_day = 2'932'896;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Zeros before a number, which it would lose, are a sign that it is none: a ZIP code, say.
bool has_leading_zeros(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

// Decimals of at most 15 digits without an exponent: their digits are a number that a double has
// exactly, and so is the power of ten, so that the quotient is the nearest double (W. D. Clinger,
// "How to read floating point numbers accurately", 1990). False: others.
bool parse_short_decimal(std::string_view text, double* number) {
  static constexpr double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char* p = text.data();
  const char* end = p + text.size();
  const bool negative = p != end && *p == '-';
  p += negative;
  if (end - p > 16 || p == end || !is_digit(*p)) return false;
  int64_t digits = 0;
  const char* first = p;
  for (; p != end && is_digit(*p); ++p) digits = digits * 10 + (*p - '0');
  int64_t places = 0;
  if (p != end && *p == '.') {
    const char* point = p++;
    for (; p != end && is_digit(*p); ++p) digits = digits * 10 + (*p - '0');
    places = p - point - 1;
  }
  if (p != end || p - first - (places != 0) > 15) return false;
  *number = static_cast<double>(digits) / powers[places];
  if (negative) *number = -*number;
  return true;
}

template <class T>
bool parse_number(std::string_view text, T* number) {
  const char* end = text.data() + text.size();
  if (has_leading_zeros(text)) return false;
  if constexpr (std::is_same_v<T, double>)
    if (parse_short_decimal(text, number)) return true;
  auto [stop, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stop == end;
}

bool parse_boolean(std::string_view text, uint8_t* to) {
  *to = text == "true" || text == "True" || text == "TRUE";
  return *to || text == "false" || text == "False" || text == "FALSE";
}

// Reads just so many digits.
bool take_digits(std::string_view* text, size_t digits, unsigned* number) {
  if (text->size() < digits) return false;
  *number = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (!is_digit((*text)[i])) return false;
    *number = *number * 10 + static_cast<unsigned>((*text)[i] - '0');
  }
  text->remove_prefix(digits);
  return true;
}

bool take_char(std::string_view* text, char c) {
  if (text->empty() || (*text)[0] != c) return false;
  text->remove_prefix(1);
  return true;
}

// 2022-01-08, the rest of the text left.
bool take_date(std::string_view* text, int64_t* day) {
  unsigned y = 0, m = 0, d = 0;
  if (!take_digits(text, 4, &y) || !take_char(text, '-') || !take_digits(text, 2, &m) ||
      !take_char(text, '-') || !take_digits(text, 2, &d))
    return false;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(y)),
                                         std::chrono::month(m), std::chrono::day(d)};
  if (!date.ok()) return false;
  *day = std::chrono::sys_days(date).time_since_epoch().count();
  return true;
}

// Reads a fraction of a second: digits behind the point, as so many decimal places.
bool take_fraction(std::string_view* text, size_t places, int64_t* fraction) {
  *fraction = 0;
  if (!take_char(text, '.')) return true;
  size_t digits = 0;
  for (; !text->empty() && is_digit((*text)[0]); ++digits, text->remove_prefix(1)) {
    if (digits < places) {
      *fraction = *fraction * 10 + ((*text)[0] - '0');
    } else if ((*text)[0] != '0') {
      return false;  // finer than the type
    }
  }
  for (size_t i = digits; i < places; ++i) *fraction *= 10;
  return digits != 0;
}

size_t places_of(FieldType type) {
  switch (type) {
    case FieldType::timestamp_s:
      return 0;
    case FieldType::timestamp_ms:
      return 3;
    case FieldType::timestamp_us:
      return 6;
    default:
      return 9;
  }
}

int64_t power_of_ten(size_t n) {
  int64_t power = 1;
  for (; n; --n) power *= 10;
  return power;
}

// Hours and minutes to add for UTC; nothing behind the time is UTC, too.
bool take_offset(std::string_view* text, int64_t* seconds) {
  *seconds = 0;
  if (text->empty() || take_char(text, 'Z')) return text->empty();
  const bool behind = (*text)[0] == '-';
  unsigned hours = 0, minutes = 0;
  if (!take_char(text, behind ? '-' : '+') || !take_digits(text, 2, &hours)) return false;
  take_char(text, ':');
  if (!text->empty() && !take_digits(text, 2, &minutes)) return false;
  *seconds = (behind ? 1 : -1) * static_cast<int64_t>(hours * 3600 + minutes * 60);
  return text->empty() && hours < 24 && minutes < 60;
}

bool parse_timestamp(FieldType type, std::string_view text, int64_t* time) {
  int64_t day = 0, fraction = 0, offset = 0;
  unsigned h = 0, m = 0, s = 0;
  if (!take_date(&text, &day)) return false;
  if (!text.empty() &&
      (!(take_char(&text, ' ') || take_char(&text, 'T')) || !take_digits(&text, 2, &h) ||
       !take_char(&text, ':') || !take_digits(&text, 2, &m)))
    return false;
  if (take_char(&text, ':') &&
      (!take_digits(&text, 2, &s) || !take_fraction(&text, places_of(type), &fraction)))
    return false;
  if (!take_offset(&text, &offset)) return false;
  if (h > 23 || m > 59 || s > 59) return false;
  const int64_t seconds = day * seconds_a_day + h * 3600 + m * 60 + s + offset;
  // Both parts of negative times count down, so that the sum fits where it can.
  const int64_t unit = power_of_ten(places_of(type));
  const bool down = seconds < 0 && fraction > 0;
  return !__builtin_mul_overflow(seconds + down, unit, time) &&
         !__builtin_add_overflow(*time, fraction - (down ? unit : 0), time);
}

bool is_timestamp(FieldType type) {
  return type >= FieldType::timestamp_s && type <= FieldType::timestamp_ns;
}

// Whether the number is written as a date or time, and not as the number that it is.
bool has_text_of_time(FieldType type, int64_t count) {
  if (type == FieldType::date) return count >= min_day && count <= max_day;
  const int64_t unit = power_of_ten(places_of(type));
  const int64_t seconds = count / unit - (count % unit < 0);
  const int64_t day = seconds / seconds_a_day - (seconds % seconds_a_day < 0);
  return day >= min_day && day <= max_day;
}

// A date or a timestamp, or the number of one that has no text.
bool parse_time(FieldType type, std::string_view text, std::byte* to) {
  int64_t count = 0;
  std::string_view left = text;
  const bool parsed = type == FieldType::date ? take_date(&left, &count) && left.empty()
                                              : parse_timestamp(type, text, &count);
  if (!parsed && (!parse_number(text, &count) || has_text_of_time(type, count))) return false;
  if (type != FieldType::date) {
    std::memcpy(to, &count, sizeof count);
    return true;
  }
  const auto day = static_cast<int32_t>(count);
  std::memcpy(to, &day, sizeof day);
  return day == count;
}

bool parse_uuid(std::string_view text, std::byte* to) {
  if (text.size() != 36) return false;
  size_t digits = 0;
  for (size_t i = 0; i < 36; ++i) {
    const char c = text[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (c != '-') return false;
      continue;
    }
    const char lower = static_cast<char>(c | 0x20);
    if (!is_digit(c) && !(lower >= 'a' && lower <= 'f')) return false;
    const auto digit = static_cast<unsigned>(is_digit(c) ? c - '0' : lower - 'a' + 10);
    std::byte& byte = to[digits / 2];
    byte = digits++ % 2 ? byte | static_cast<std::byte>(digit) : static_cast<std::byte>(digit << 4);
  }
  return true;
}

}  // namespace

bool parse_element(FieldType type, std::string_view text, std::byte* to) {
  if (type == FieldType::uuid) return parse_uuid(text, to);
  if (type == FieldType::boolean) {
    uint8_t flag = 0;
    if (!parse_boolean(text, &flag)) return false;
    *to = std::byte{flag};
    return true;
  }
  if (type == FieldType::date || is_timestamp(type)) return parse_time(type, text, to);
  bool parsed = false;
  with_number_of(type, [&](auto number) {
    parsed = parse_number(text, &number);
    if (parsed) std::memcpy(to, &number, sizeof number);
  });
  return parsed;
}

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

bool parse_vector(const Field& field, std::string_view text, std::byte* to) {
  text = trimmed(text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  const uint32_t width = width_of(field.type);
  for (uint32_t i = 0; i < field.count; ++i) {
    const size_t comma = text.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == field.count)) return false;
    std::string_view element = trimmed(text.substr(0, comma));
    if (element.size() > 1 && element.front() == '"' && element.back() == '"')
      element = element.substr(1, element.size() - 2);
    if (!parse_element(field.type, element, to + i * width)) return false;
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return true;
}

template <class T>
void append_number(T number, TextBuffer* out) {
  constexpr size_t most = 40;
  char* to = out->room(most);
  out->grow(static_cast<size_t>(std::to_chars(to, to + most, number).ptr - to));
}

void append_digits(int64_t number, size_t digits, TextBuffer* out) {
  char* to = out->room(digits);
  for (size_t i = digits; i-- > 0; number /= 10) to[i] = static_cast<char>('0' + number % 10);
  out->grow(digits);
}

bool append_date(int64_t day, TextBuffer* out) {
  if (day < min_day || day > max_day) return false;
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  append_digits(static_cast<int>(date.year()), 4, out);
  out->append('-');
  append_digits(static_cast<unsigned>(date.month()), 2, out);
  out->append('-');
  append_digits(static_cast<unsigned>(date.day()), 2, out);
  return true;
}

bool append_timestamp(FieldType type, int64_t time, TextBuffer* out) {
  size_t places = places_of(type);
  const int64_t unit = power_of_ten(places);
  int64_t fraction = time % unit, seconds = time / unit;
  if (fraction < 0) fraction += unit, --seconds;
  int64_t second = seconds % seconds_a_day, day = seconds / seconds_a_day;
  if (second < 0) second += seconds_a_day, --day;
  if (!append_date(day, out)) return false;
  out->append(' ');
  append_digits(second / 3600, 2, out);
  out->append(':');
  append_digits(second / 60 % 60, 2, out);
  out->append(':');
  append_digits(second % 60, 2, out);
  if (fraction == 0) return true;
  for (; fraction % 10 == 0; fraction /= 10) --places;
  out->append('.');
  append_digits(fraction, places, out);
  return true;
}

void append_uuid(Bytes cell, TextBuffer* out) {
  static constexpr char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < cell.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out->append('-');
    out->append(digits[std::to_integer<unsigned>(cell[i]) >> 4]);
    out->append(digits[std::to_integer<unsigned>(cell[i]) & 15]);
  }
}

// Appends the text of a date or time where it has one.
template <class T>
bool append_time(FieldType type, T number, TextBuffer* out) {
  if constexpr (std::is_integral_v<T>) {
    if (type == FieldType::date) return append_date(number, out);
    if (is_timestamp(type)) return append_timestamp(type, static_cast<int64_t>(number), out);
  }
  return false;
}

// json: NaN and infinities, dates and times are strings.
void append_element(FieldType type, Bytes element, bool json, TextBuffer* out) {
  with_number_of(type, [&](auto number) {
    std::memcpy(&number, element.data(), sizeof number);
    if (type == FieldType::boolean)
      return out->append(number ? std::string_view("true") : std::string_view("false"));
    bool quote = json && (type == FieldType::date || is_timestamp(type));
    if constexpr (std::is_floating_point_v<decltype(number)>)
      quote = json && !std::isfinite(number);
    if (quote) out->append('"');
    if (!append_time(type, number, out)) append_number(number, out);
    if (quote) out->append('"');
  });
}

void append_vector(const Field& field, Bytes cell, bool json, TextBuffer* out) {
  const uint32_t width = width_of(field.type);
  for (uint32_t i = 0; i < field.count; ++i) {
    out->append(i == 0 ? '[' : ',');
    append_element(field.type, cell.subspan(i * width, width), json, out);
  }
  out->append(']');
}

// The digits of a number, without those that only say how large it is; as many as a double can
// keep, and one more.
using SignificantDigits = std::array<char, std::numeric_limits<double>::max_digits10 + 1>;

size_t significant_digits(std::string_view text, SignificantDigits* digits) {
  size_t count = 0, zeros = 0;
  for (char c : text) {
    if (c == 'e' || c == 'E' || count == digits->size()) break;
    if (!is_digit(c) || (c == '0' && count == 0)) continue;
    if (c == '0') {
      ++zeros;
      continue;
    }
    for (; zeros != 0 && count < digits->size(); --zeros) (*digits)[count++] = '0';
    if (count < digits->size()) (*digits)[count++] = c;
  }
  return count;
}

bool is_text(const Field& field) {
  return field.type == FieldType::string || field.type == FieldType::bytes;
}

}  // namespace

bool parse_cell(const Field& field, std::string_view text, size_t column, RowWriter* row) {
  if (is_text(field)) {
    if (field.count && text.size() != field.count) return false;
    if (field.type == FieldType::string && !is_utf8(text)) return false;
    row->set(column, text);
    return true;
  }
  if (field.is_vector()) return parse_vector(field, text, row->cell(column));
  return parse_element(field.type, text, row->cell(column));
}

bool is_json_number(const Field& field) { return field.count == 0 && field.type <= FieldType::f64; }

bool keeps_digits(std::string_view text, double number) {
  constexpr size_t always_kept = std::numeric_limits<double>::digits10;
  if (text.size() <= always_kept) return true;
  char shortest[40];
  const char* end = std::to_chars(shortest, shortest + sizeof shortest, number).ptr;
  const std::string_view written(shortest, static_cast<size_t>(end - shortest));
  if (text == written) return true;
  SignificantDigits digits, kept;
  const size_t count = significant_digits(text, &digits);
  return count <= always_kept ||
         (count < digits.size() && significant_digits(written, &kept) == count &&
          std::equal(digits.begin(), digits.begin() + count, kept.begin()));
}

std::string why_no_cell(const Field& field, std::string_view text) {
  Field type = field;
  type.nullable = false;
  if (text.empty() && !is_text(field)) return "empty, which is no " + type_text(type);
  if (field.type == FieldType::string) return in_quotes(text) + " is no UTF-8";
  if (field.type == FieldType::bytes)
    return in_quotes(text) + " has " + std::to_string(text.size()) + " bytes, not " +
           std::to_string(field.count);
  double number = 0;
  if (field.type == FieldType::f64 && parse_number(text, &number) && !keeps_digits(text, number))
    return in_quotes(text) + " has more digits than f64 keeps";
  std::string why = in_quotes(text) + " is no " + type_text(type);
  if (!field.is_vector() && has_leading_zeros(text) && width_of(field.type) <= 8)
    why += ": a number has no zeros before it";
  return why;
}

void append_cell(const Field& field, Bytes cell, TextBuffer* out) {
  if (is_text(field)) return out->append(as_text(cell));
  if (field.type == FieldType::uuid) return append_uuid(cell, out);
  if (field.is_vector()) return append_vector(field, cell, false, out);
  append_element(field.type, cell, false, out);
}

void append_json_cell(const Field& field, Bytes cell, TextBuffer* out) {
  if (is_text(field)) return append_json_string(as_text(cell), out);
  if (field.type == FieldType::uuid) {
    out->append('"');
    append_uuid(cell, out);
    return out->append('"');
  }
  if (field.is_vector()) return append_vector(field, cell, true, out);
  append_element(field.type, cell, true, out);
}

namespace {

bool is_decimal(std::string_view text) {
  double number = 0;
  return text.find_first_of("0123456789") != std::string_view::npos &&
         parse_number(text, &number) && std::isfinite(number) && keeps_digits(text, number);
}

}  // namespace

void CellGuess::add(std::string_view text) {
  if (text.empty()) return;
  any_ = true;
  int64_t signed_number;
  uint64_t number;
  utf8_ = utf8_ && is_utf8(text);
  boolean_ = boolean_ && (text == "true" || text == "false");
  i64_ = i64_ && text != "-0" && parse_number(text, &signed_number);
  u64_ = u64_ && text[0] != '-' && parse_number(text, &number);
  f64_ = f64_ && is_decimal(text);
  std::string_view left = text;
  date_ = date_ && take_date(&left, &signed_number) && left.empty();
  timestamp_ = timestamp_ && text.size() >= 16 && (text.back() == 'Z' || is_digit(text.back())) &&
               text.find('+') == std::string_view::npos && text.rfind('-') == 7 &&
               parse_timestamp(FieldType::timestamp_us, text, &signed_number);
}

void CellGuess::add_json(std::string_view text, bool is_string) {
  if (!is_string) return add(text);
  any_ = text_ = true;
  utf8_ = utf8_ && is_utf8(text);
  const bool was_date = date_, was_timestamp = timestamp_;
  date_ = timestamp_ = true;
  CellGuess alone;
  if (!text.empty()) alone.add(text);
  date_ = was_date && alone.date_ && !text.empty();
  timestamp_ = was_timestamp && alone.timestamp_ && !text.empty();
  boolean_ = i64_ = u64_ = f64_ = false;
}

Field CellGuess::field(std::string name, bool sparse) const {
  Field field{std::move(name), FieldType::string, 0, true};
  if (any_ && boolean_)
    field.type = FieldType::boolean;
  else if (any_ && i64_)
    field.type = FieldType::i64;
  else if (any_ && u64_)
    field.type = FieldType::u64;
  else if (any_ && f64_)
    field.type = FieldType::f64;
  else if (any_ && date_)
    field.type = FieldType::date;
  else if (any_ && timestamp_)
    field.type = FieldType::timestamp_us;
  else if (!utf8_)
    field.type = FieldType::bytes;
  if (is_text(field)) field.nullable = sparse;
  return field;
}

}  // namespace stride::cli
