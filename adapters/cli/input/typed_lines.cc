#include "adapters/cli/input/typed_lines.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace stride::cli {
namespace {

constexpr uint64_t every_byte = 0x0101010101010101;
constexpr uint64_t high_bits = 0x8080808080808080;

uint64_t eight_bytes(const char* p) {
  uint64_t eight;
  std::memcpy(&eight, p, sizeof eight);
  return eight;
}

// Has a byte's high bit where that byte is 0, and perhaps where a lower one is.
uint64_t zero_bytes(uint64_t eight) { return (eight - every_byte) & ~eight & high_bits; }

constexpr int64_t powers_of_ten[] = {1,
                                     10,
                                     100,
                                     1'000,
                                     10'000,
                                     100'000,
                                     1'000'000,
                                     10'000'000,
                                     100'000'000,
                                     1'000'000'000,
                                     10'000'000'000,
                                     100'000'000'000,
                                     1'000'000'000'000,
                                     10'000'000'000'000,
                                     100'000'000'000'000,
                                     1'000'000'000'000'000};
constexpr size_t most_digits = 16;

// Digits at the beginning of a text, as a number.
struct Digits {
  uint64_t number = 0;
  size_t count = 0;  // more than most_digits: there are so many or more, and the number is none
};

// At most eight of them, which become four numbers below 100, then two, then one (D. Lemire,
// "Number parsing at a gigabyte per second", 2021, section 6).
inline Digits eight_digits_at(const char* p) {
  uint64_t eight = eight_bytes(p) ^ 0x30 * every_byte;
  const uint64_t others = (((eight & ~high_bits) + 0x76 * every_byte) | eight) & high_bits;
  const size_t count = others ? static_cast<size_t>(std::countr_zero(others)) / 8 : 8;
  if (count == 0) return {};
  eight <<= 64 - 8 * count;
  eight = (eight * 10 + (eight >> 8)) & 0x00FF00FF00FF00FF;
  eight = (eight * 100 + (eight >> 16)) & 0x0000FFFF0000FFFF;
  eight = (eight * 10'000 + (eight >> 32)) & 0x00000000FFFFFFFF;
  return {eight, count};
}

// Reads 24 bytes at most.
inline Digits digits_at(const char* p) {
  Digits digits = eight_digits_at(p);
  for (size_t last = digits.count; last == 8 && digits.count <= most_digits;) {
    const Digits more = eight_digits_at(p + digits.count);
    digits.number = digits.number * static_cast<uint64_t>(powers_of_ten[more.count]) + more.number;
    digits.count += last = more.count;
  }
  return digits;
}

// Of a line, from where a cell begins: a sign, digits, a point, digits.
constexpr ptrdiff_t bytes_read = 1 + 24 + 1 + 24;

// Of a number that a column of so many bytes has.
bool fits(uint64_t magnitude, bool negative, size_t width, bool is_signed) {
  if (negative && !is_signed) return false;
  if (width == 8) return true;  // as many digits always do
  const uint64_t limit = uint64_t{1} << (8 * width - is_signed);
  return magnitude < limit + negative;
}

}  // namespace

bool TypedLines::fit(const RowPlan& plan, const ParsedRows& rows) {
  if (!rows.wants_values() || !plan.options.schema || plan.options.whole_rows) return false;
  std::vector<size_t> columns = plan.key_columns;
  columns.insert(columns.end(), plan.value_columns.begin(), plan.value_columns.end());
  std::sort(columns.begin(), columns.end());
  return std::adjacent_find(columns.begin(), columns.end()) == columns.end();
}

TypedLines::TypedLines(const RowPlan& plan, ParsedRows* rows)
    : plan_(plan),
      rows_(*rows),
      delimiter_(plan.options.delimiter),
      quote_(plan.options.format == Format::csv ? '"' : plan.options.delimiter),
      line_end_(plan.crlf && plan.options.line_ends != LineEnds::lf ? '\r' : '\n'),
      steps_(std::max(plan.min_columns, plan.exact_columns)),
      key_(plan.key_columns.size()) {
  const KeyType key_type = plan.options.key_form.type;
  for (size_t i = 0; i < plan.value_columns.size(); ++i)
    steps_[plan.value_columns[i]] = step_of(plan.options.schema->values()[i], i);
  for (size_t i = 0; i < plan.key_columns.size(); ++i) {
    Step& step = steps_[plan.key_columns[i]];
    step.column = static_cast<uint32_t>(i);
    step.kind = is_number(key_type) && plan.options.key_width == sizeof(uint64_t) ? Kind::number_key
                                                                                  : Kind::key;
    step.is_signed = key_type == KeyType::i64;
    step.width = sizeof(uint64_t);
  }
}

TypedLines::Step TypedLines::step_of(const Field& field, size_t column) {
  Step step;
  step.kind = Kind::other;
  step.column = static_cast<uint32_t>(column);
  step.field = &field;
  if (field.count != 0) return step;
  switch (field.type) {
    case FieldType::f64:
      step.kind = Kind::f64;
      break;
    case FieldType::u8:
    case FieldType::u16:
    case FieldType::u32:
    case FieldType::u64:
    case FieldType::i8:
    case FieldType::i16:
    case FieldType::i32:
    case FieldType::i64:
      step.kind = Kind::integer;
      step.width = static_cast<uint8_t>(width_of(field.type));
      step.is_signed = field.type >= FieldType::i8 && field.type <= FieldType::i64;
      break;
    default:
      break;
  }
  return step;
}

const char* TypedLines::take_number(const Step& step, const char* p) {
  const bool negative = *p == '-';
  const char* first = p + negative;
  const Digits digits = digits_at(first);
  if (digits.count == 0 || digits.count > most_digits || (*first == '0' && digits.count > 1))
    return nullptr;
  const char* stop = first + digits.count;
  if (step.kind == Kind::f64) return take_decimal(step, negative, digits.number, first, stop);
  if (!fits(digits.number, negative, step.width, step.is_signed)) return nullptr;
  const uint64_t number = negative ? 0 - digits.number : digits.number;
  if (step.kind == Kind::number_key) {
    rows_.number_key(number);
  } else {
    std::memcpy(rows_.writer()->cell(step.column), &number, step.width);
  }
  return stop;
}

// As parse_cell() does: digits that a double has, divided by a power of ten that it has.
const char* TypedLines::take_decimal(const Step& step, bool negative, uint64_t number,
                                     const char* first, const char* stop) {
  constexpr size_t exact_digits = 15;
  size_t count = static_cast<size_t>(stop - first), places = 0;
  if (*stop == '.') {
    const Digits fraction = digits_at(stop + 1);
    places = fraction.count;
    count += places;
    if (places == 0 || count > exact_digits) return nullptr;
    number = number * static_cast<uint64_t>(powers_of_ten[places]) + fraction.number;
    stop += 1 + places;
  }
  if (count > exact_digits) return nullptr;
  double value = static_cast<double>(static_cast<int64_t>(number)) /
                 static_cast<double>(powers_of_ten[places]);
  if (negative) value = -value;
  std::memcpy(rows_.writer()->cell(step.column), &value, sizeof value);
  return stop;
}

bool TypedLines::find_cell(const char* p, const char* end, Cell* cell) const {
  cell->in_quotes = *p == quote_ && quote_ != delimiter_;
  if (cell->in_quotes) {
    const char* text = p + 1;
    const auto* close =
        static_cast<const char*>(std::memchr(text, quote_, static_cast<size_t>(end - text)));
    if (!close) return false;
    cell->text = {text, static_cast<size_t>(close - text)};
    cell->stop = close + 1;
    return cell->text.find('\n') == std::string_view::npos;
  }
  const uint64_t delimiters = every_byte * static_cast<unsigned char>(delimiter_);
  const uint64_t quotes = every_byte * static_cast<unsigned char>(quote_);
  const uint64_t newlines = every_byte * '\n';
  for (const char* at = p; end - at >= 8; at += 8) {
    const uint64_t eight = eight_bytes(at);
    const uint64_t found =
        zero_bytes(eight ^ delimiters) | zero_bytes(eight ^ newlines) | zero_bytes(eight ^ quotes);
    if (!found) continue;
    cell->stop = at + std::countr_zero(found) / 8;
    if (line_end_ == '\r' && *cell->stop == '\n') {
      if (cell->stop == p || cell->stop[-1] != '\r') return false;
      --cell->stop;
    }
    cell->text = {p, static_cast<size_t>(cell->stop - p)};
    return true;
  }
  return false;
}

bool TypedLines::take_cell(const Step& step, const Cell& cell) {
  if (step.kind == Kind::skipped) return true;
  if (step.kind == Kind::key || step.kind == Kind::number_key) {
    key_[step.column] = cell.text;
    return true;
  }
  return rows_.try_cell_or_null(step.column, cell.text, cell.in_quotes);
}

const char* TypedLines::take(const char* const line, const char* end, uint64_t number) {
  const char* p = line;
  bool has_key = false;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (end - p < bytes_read) return nullptr;
    const char stop_at = i + 1 == steps_.size() ? line_end_ : delimiter_;
    const char* stop = step.kind <= Kind::f64 ? take_number(step, p) : nullptr;
    if (stop && *stop == stop_at) {
      has_key |= step.kind == Kind::number_key;
    } else {
      Cell cell;
      if (!find_cell(p, end, &cell) || *cell.stop != stop_at || !take_cell(step, cell))
        return nullptr;
      stop = cell.stop;
    }
    p = stop + 1;
  }
  std::string_view row(line, static_cast<size_t>(p - 1 - line));
  if (line_end_ == '\r') {
    if (*p++ != '\n') return nullptr;
  } else if (plan_.options.line_ends != LineEnds::lf && !row.empty() && row.back() == '\r') {
    return nullptr;
  }
  if (row.size() > plan_.options.max_row_bytes) return nullptr;
  if (has_key || (key_.size() == 1 ? rows_.key(key_[0], row) : rows_.key_columns(key_, row)))
    rows_.end_row(row, number);
  return p;
}

}  // namespace stride::cli
