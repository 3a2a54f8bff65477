// Arrow arrays as cells: where they lie, as far as the layouts agree.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "adapters/python/arrow_stream.h"
#include "adapters/python/errors.h"
#include "storage/quoted.h"
#include "storage/row_format.h"
#include "storage/utf8.h"

namespace stride::python {
namespace {

struct Source {
  const ArrowSchema& schema;
  const ArrowArray& array;
  uint64_t first, rows;  // in the array's buffers
  const std::string& name;

  std::string_view format() const { return schema.format; }
  template <class T>
  const T* buffer(int64_t i) const {
    return i < array.n_buffers ? static_cast<const T*>(array.buffers[i]) : nullptr;
  }
};

[[noreturn]] void raise_format(const Source& source, const std::string& remedy) {
  raise("InvalidType",
        "column " + in_quotes(source.name) + " is of Arrow's type " +
            in_quotes(std::string(source.format())) + ", which no column has",
        remedy);
}

// What a producer says is not trusted as far as it can be checked without knowing how large its
// buffers are.
[[noreturn]] void raise_malformed(const std::string& name, const std::string& what) {
  raise("InvalidArgument", "column " + in_quotes(name) + ": the Arrow data are malformed: " + what,
        "report it to who has made them");
}

// The buffer, of data that have rows.
template <class T>
const T* needed(const Source& source, int64_t i) {
  const T* buffer = source.buffer<T>(i);
  if (!buffer && source.rows) raise_malformed(source.name, "a buffer is missing");
  return buffer;
}

bool bit_of(const uint8_t* bits, uint64_t i) { return bits[i / 8] >> (i % 8) & 1; }

void copy_valid(const Source& source, Cells* cells) {
  const auto* bits = source.buffer<uint8_t>(0);
  if (!bits || source.array.null_count == 0 || source.rows == 0) return;
  uint64_t* valid = add_bits(cells, source.rows);
  if (source.first % 8 == 0) {
    std::memcpy(valid, bits + source.first / 8, (source.rows + 7) / 8);
  } else {
    for (uint64_t row = 0; row < source.rows; ++row)
      valid[row / 64] |= uint64_t{bit_of(bits, source.first + row)} << (row % 64);
  }
  cells->column.valid = valid;
}

// The number that a format ends with; 0: it is none, or so many elements are no cell.
uint32_t count_of(const char* text, uint32_t element_bytes) {
  const unsigned long long count = std::strtoull(text, nullptr, 10);
  return count <= max_cell_width / element_bytes ? static_cast<uint32_t>(count) : 0;
}

std::optional<Field> plain_field(std::string_view format) {
  static const std::pair<std::string_view, FieldType> types[] = {
      {"c", FieldType::i8},  {"C", FieldType::u8},  {"s", FieldType::i16},   {"S", FieldType::u16},
      {"i", FieldType::i32}, {"I", FieldType::u32}, {"l", FieldType::i64},   {"L", FieldType::u64},
      {"f", FieldType::f32}, {"g", FieldType::f64}, {"tdD", FieldType::date}};
  for (const auto& [name, type] : types)
    if (format == name) return Field{.type = type};
  // With a time zone behind, which does not change the moment.
  static const std::pair<std::string_view, FieldType> times[] = {{"tss:", FieldType::timestamp_s},
                                                                 {"tsm:", FieldType::timestamp_ms},
                                                                 {"tsu:", FieldType::timestamp_us},
                                                                 {"tsn:", FieldType::timestamp_ns}};
  for (const auto& [name, type] : times)
    if (format.starts_with(name)) return Field{.type = type};
  if (format.starts_with("w:")) {
    const uint32_t width = count_of(format.data() + 2, 1);
    if (width) return Field{.type = FieldType::bytes, .count = width};
  }
  return std::nullopt;
}

void import_plain(const Source& source, Cells* cells) {
  const uint32_t width = cell_width(cells->field);
  const auto* data = needed<std::byte>(source, 1);
  static constexpr std::byte nothing[8] = {};
  cells->column = {
      data ? data + source.first * width : nothing, nullptr, nullptr, source.rows, width, width};
}

// A float of 16 bits: a sign, 5 bits of exponent and 10 of fraction, of 2 to the power of -24 each
// where the exponent is 0.
float float_of_half(uint16_t half) {
  const uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
  float value;
  if (exponent == 31)
    value = fraction ? std::numeric_limits<float>::quiet_NaN() : INFINITY;
  else if (exponent == 0)
    value = std::ldexp(static_cast<float>(fraction), -24);
  else
    value = std::ldexp(static_cast<float>(1024 + fraction), static_cast<int>(exponent) - 25);
  return std::copysign(value, half >> 15 ? -1.0f : 1.0f);
}

void import_halves(const Source& source, Cells* cells) {
  const auto* halves = needed<uint16_t>(source, 1);
  auto* data = add_memory<float>(cells, std::max<uint64_t>(source.rows, 1));
  for (uint64_t row = 0; row < source.rows; ++row)
    data[row] = float_of_half(halves[source.first + row]);
  cells->field.type = FieldType::f32;
  cells->column = CellColumn::fixed(data, sizeof *data, source.rows);
}

void import_booleans(const Source& source, Cells* cells) {
  const auto* bits = needed<uint8_t>(source, 1);
  auto* data = add_memory<uint8_t>(cells, std::max<uint64_t>(source.rows, 1));
  for (uint64_t row = 0; row < source.rows; ++row) data[row] = bit_of(bits, source.first + row);
  cells->field.type = FieldType::boolean;
  cells->column = CellColumn::fixed(data, 1, source.rows);
}

bool is_ascii(std::string_view text) {
  const char* p = text.data();
  size_t left = text.size();
  uint64_t bits = 0, eight;
  for (; left >= 8; p += 8, left -= 8) {
    std::memcpy(&eight, p, 8);
    bits |= eight;
  }
  for (; left > 0; ++p, --left) bits |= static_cast<unsigned char>(*p);
  return (bits & 0x8080808080808080) == 0;
}

// Strings have to be text, also those of a producer that did not look.
void check_text(const Source& source, const Cells& cells) {
  const CellColumn& column = cells.column;
  if (cells.field.type != FieldType::string || column.size == 0) return;
  const uint64_t begin = column.offsets[0], end = column.offsets[column.size];
  const std::string_view all = as_text({column.data + begin, end - begin});
  if (is_ascii(all)) return;
  const auto* valid = source.array.null_count == 0 ? nullptr : source.buffer<uint8_t>(0);
  for (uint64_t row = 0; row < column.size; ++row) {
    if (valid && !bit_of(valid, source.first + row)) continue;
    if (!is_utf8(as_text(column[row])))
      raise("InvalidArgument",
            "column " + in_quotes(source.name) + ", row " + std::to_string(row) +
                ": the string is no UTF-8",
            "give it as bytes, to a table that has a column of bytes");
  }
}

// Offsets of 32 bits become such of 64; those of 64 bits are taken as they are.
template <class Offset>
void import_strings(const Source& source, FieldType type, Cells* cells) {
  static constexpr std::byte nothing{};
  static constexpr uint64_t no_ends[1] = {0};
  cells->field.type = type;
  if (source.rows == 0) {
    cells->column = CellColumn::variable(&nothing, no_ends, 0);
    return;
  }
  const Offset* offsets = needed<Offset>(source, 1) + source.first;
  const auto* data = source.buffer<std::byte>(2);
  bool good = offsets[0] >= 0;
  for (uint64_t row = 0; row < source.rows; ++row) good &= offsets[row] <= offsets[row + 1];
  if (!good) raise_malformed(source.name, "offsets of strings descend, or are negative");
  if (!data && offsets[0] != offsets[source.rows])
    raise_malformed(source.name, "a buffer is missing");
  const uint64_t* ends;
  if constexpr (sizeof(Offset) == 8) {
    ends = reinterpret_cast<const uint64_t*>(offsets);
  } else {
    auto* wide = add_memory<uint64_t>(cells, source.rows + 1);
    for (uint64_t row = 0; row <= source.rows; ++row)
      wide[row] = static_cast<uint64_t>(offsets[row]);
    ends = wide;
  }
  cells->column = CellColumn::variable(data ? data : &nothing, ends, source.rows);
  check_text(source, *cells);
}

// Strings of up to 12 bytes lie in their view, longer ones in one of several buffers.
struct View {
  int32_t length;
  char inlined[4];
  int32_t buffer, offset;
};
static_assert(sizeof(View) == 16);

const char* bytes_of_view(const Source& source, const View& view) {
  if (view.length <= 12) return view.inlined;
  // The last buffer has the sizes of those with the strings.
  const int64_t last = source.array.n_buffers - 1;
  const auto* sizes = needed<int64_t>(source, last);
  const bool good = view.buffer >= 0 && view.buffer < last - 2 && view.offset >= 0 &&
                    view.offset + int64_t{view.length} <= sizes[view.buffer];
  if (!good) raise_malformed(source.name, "a view of a string leads out of its buffer");
  return needed<char>(source, 2 + view.buffer) + view.offset;
}

void import_views(const Source& source, FieldType type, Cells* cells) {
  const auto* views = needed<View>(source, 1);
  const auto* valid = source.array.null_count == 0 ? nullptr : source.buffer<uint8_t>(0);
  auto* ends = add_memory<uint64_t>(cells, source.rows + 1);
  ends[0] = 0;
  for (uint64_t row = 0; row < source.rows; ++row) {
    const bool there = !valid || bit_of(valid, source.first + row);
    const int32_t length = there ? views[source.first + row].length : 0;
    if (length < 0) raise_malformed(source.name, "a string has a negative length");
    ends[row + 1] = ends[row] + static_cast<uint64_t>(length);
  }
  auto* data = add_memory<std::byte>(cells, std::max<uint64_t>(ends[source.rows], 1));
  for (uint64_t row = 0; row < source.rows; ++row) {
    const View& view = views[source.first + row];
    const uint64_t length = ends[row + 1] - ends[row];
    if (length == 0) continue;
    std::memcpy(data + ends[row], bytes_of_view(source, view), length);
  }
  cells->field.type = type;
  cells->column = CellColumn::variable(data, ends, source.rows);
  check_text(source, *cells);
}

void import_vectors(const Source& source, std::shared_ptr<const void> owner, Cells* cells) {
  if (source.schema.n_children != 1 || source.array.n_children != 1 || !source.schema.children[0] ||
      !source.array.children[0])
    raise_malformed(source.name, "a list of vectors has not one child");
  const ArrowSchema& schema = *source.schema.children[0];
  std::optional<Field> element = plain_field(schema.format ? schema.format : "");
  if (schema.format == std::string_view("b")) element = Field{.type = FieldType::boolean};
  if (schema.format == std::string_view("e")) element = Field{.type = FieldType::f32};
  const uint32_t width_of_one = element ? cell_width(*element) : 1;
  const uint32_t count = count_of(source.schema.format + 3, width_of_one);
  if (!element || element->type == FieldType::bytes || count == 0 || schema.dictionary)
    raise_format(source, "give lists of numbers that all have as many elements");
  const auto elements = static_cast<uint64_t>(source.array.children[0]->length);
  if (source.first + source.rows > elements / count)
    raise_malformed(source.name, "vectors have fewer elements than they should");
  const Cells flat = import_arrow(schema, *source.array.children[0], std::move(owner),
                                  static_cast<int64_t>(source.first * count),
                                  static_cast<int64_t>(source.rows * count), source.name);
  for (uint64_t i = 0; i < flat.size(); ++i)
    if (!flat.column.is_there(i) && (!cells->column.valid || cells->column.is_there(i / count)))
      raise("InvalidArgument", "column " + in_quotes(source.name) + ", row " +
                                   std::to_string(i / count) +
                                   ": an element of the vector is missing");
  cells->memory.insert(cells->memory.end(), flat.memory.begin(), flat.memory.end());
  cells->field.type = element->type;
  cells->field.count = count;
  const uint32_t width = flat.column.width * count;
  cells->column = {flat.column.data, nullptr, cells->column.valid, source.rows, width, width};
}

// Looks up each row's value.
Cells import_dictionary(const Source& source, std::shared_ptr<const void> owner) {
  if (!source.array.dictionary) raise_malformed(source.name, "there is no dictionary");
  const ArrowArray& values = *source.array.dictionary;
  const Cells entries =
      import_arrow(*source.schema.dictionary, values, owner, 0, values.length, source.name);
  const std::optional<Field> number = plain_field(source.format());
  if (!number || number->type < FieldType::i8 || number->type > FieldType::u64)
    raise_format(source, "cast it to a plain type first");
  Cells cells;
  cells.field = entries.field;
  Cells keys;
  keys.field = *number;
  import_plain(source, &keys);
  copy_valid(source, &keys);
  std::vector<uint64_t> at(source.rows, 0);
  uint64_t bytes = 0;
  uint64_t* valid = add_bits(&cells, source.rows);
  for (uint64_t row = 0; row < source.rows; ++row) {
    if (!keys.column.is_there(row)) continue;
    with_number_of(number->type, [&](auto index) {
      at[row] = static_cast<uint64_t>(keys.column.number<decltype(index)>(row));
    });
    if (at[row] >= entries.size())
      raise("InvalidArgument", "column " + in_quotes(source.name) + ", row " + std::to_string(row) +
                                   ": the dictionary has no such entry");
    if (!entries.column.is_there(at[row])) continue;
    valid[row / 64] |= uint64_t{1} << (row % 64);
    bytes += entries.column[at[row]].size();
  }
  const uint32_t width = cell_width(cells.field);
  auto* data =
      add_memory<std::byte>(&cells, std::max<uint64_t>(width ? width * source.rows : bytes, 1));
  uint64_t* ends = width ? nullptr : add_memory<uint64_t>(&cells, source.rows + 1);
  uint64_t end = 0;
  if (ends) ends[0] = 0;
  for (uint64_t row = 0; row < source.rows; ++row) {
    const bool there = valid[row / 64] >> (row % 64) & 1;
    const Bytes cell = there ? entries.column[at[row]] : Bytes();
    if (width) std::memset(data + end, 0, width);
    if (!cell.empty()) std::memcpy(data + end, cell.data(), cell.size());
    end += width ? width : cell.size();
    if (ends) ends[row + 1] = end;
  }
  cells.column = {data, ends, valid, source.rows, width, width};
  return cells;
}

// Milliseconds that are whole days.
void import_date64(const Source& source, Cells* cells) {
  cells->field.type = FieldType::timestamp_ms;
  import_plain(source, cells);
}

bool import_text(const Source& source, Cells* cells) {
  const std::string_view format = source.format();
  if (format == "u")
    import_strings<int32_t>(source, FieldType::string, cells);
  else if (format == "U")
    import_strings<int64_t>(source, FieldType::string, cells);
  else if (format == "z")
    import_strings<int32_t>(source, FieldType::bytes, cells);
  else if (format == "Z")
    import_strings<int64_t>(source, FieldType::bytes, cells);
  else if (format == "vu")
    import_views(source, FieldType::string, cells);
  else if (format == "vz")
    import_views(source, FieldType::bytes, cells);
  else
    return false;
  return true;
}

void import_nulls(uint64_t rows, Cells* cells) {
  cells->field = {.type = FieldType::boolean, .nullable = true};
  auto* data = add_memory<uint8_t>(cells, std::max<uint64_t>(rows, 1));
  std::fill_n(data, rows, 0);
  cells->column = CellColumn::fixed(data, 1, rows, add_bits(cells, rows));
}

}  // namespace

Cells import_arrow(const ArrowSchema& schema, const ArrowArray& array,
                   std::shared_ptr<const void> owner, int64_t first, int64_t rows,
                   const std::string& name) {
  constexpr int64_t most = INT64_MAX / 4096;  // of rows: what is computed of it does not overflow
  const bool good = schema.format && array.offset >= 0 && array.length >= 0 && first >= 0 &&
                    rows >= 0 && array.offset < most && first < most && rows <= array.length &&
                    first <= array.length - rows && rows < most && array.n_buffers >= 0 &&
                    (array.n_buffers == 0 || array.buffers);
  if (!good) raise_malformed(name, "there is no type, or offset and length are none");
  const Source source{schema, array, static_cast<uint64_t>(array.offset + first),
                      static_cast<uint64_t>(rows), name};
  if (schema.dictionary) return import_dictionary(source, std::move(owner));
  Cells cells;
  const std::string_view format = source.format();
  if (format == "n") {
    import_nulls(source.rows, &cells);
    return cells;
  }
  if (const std::optional<Field> field = plain_field(format)) {
    cells.field = *field;
    import_plain(source, &cells);
  } else if (format == "b") {
    import_booleans(source, &cells);
  } else if (format == "e") {
    import_halves(source, &cells);
  } else if (format == "tdm") {
    import_date64(source, &cells);
  } else if (format.starts_with("+w:")) {
    copy_valid(source, &cells);
    import_vectors(source, owner, &cells);
  } else if (!import_text(source, &cells)) {
    raise_format(source, format.starts_with("+")
                             ? "take nested columns apart first"
                             : "cast it to a number, a string or a timestamp first");
  }
  copy_valid(source, &cells);
  cells.field.nullable = true;
  cells.memory.push_back(std::move(owner));
  return cells;
}

}  // namespace stride::python
