// Prefix tables: keys that are prefixes, addresses, and the longest prefix of each.
#include "engine/prefixes.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "adapters/python/errors.h"
#include "adapters/python/keys.h"
#include "adapters/python/reads.h"
#include "adapters/python/rows.h"
#include "storage/key_order.h"
#include "storage/quoted.h"

namespace stride::python {
namespace {

// "1.2.3.4" as bytes; false: it is written in another way, or not at all.
bool parse_dotted(std::string_view text, std::byte* to) {
  size_t at = 0;
  for (int part = 0; part < 4; ++part) {
    if (part && (at == text.size() || text[at++] != '.')) return false;
    unsigned number = 0;
    const size_t begin = at;
    while (at < text.size() && at < begin + 3 && text[at] >= '0' && text[at] <= '9')
      number = number * 10 + static_cast<unsigned>(text[at++] - '0');
    if (at == begin || number > 255 || (at - begin > 1 && text[begin] == '0')) return false;
    to[part] = static_cast<std::byte>(number);
  }
  return at == text.size();
}

// to: room for address_bytes(bits).
void write_address_text(uint32_t bits, std::string_view text, std::byte* to) {
  if (bits == 32 && parse_dotted(text, to)) return;
  const std::string parsed = take(parse_address(text, bits));
  std::memcpy(to, parsed.data(), parsed.size());
}

void append_address_text(uint32_t bits, std::string_view text, std::string* bytes) {
  std::byte address[16];
  write_address_text(bits, text, address);
  bytes->append(as_text({address, address_bytes(bits)}));
}

// An integer, highest byte first.
void append_integer(uint32_t bits, nb::handle given, std::string* bytes) {
  const uint32_t width = address_bytes(bits);
  // An address of so many bits begins with the first bit of its first byte.
  try {
    const nb::object shifted = nb::borrow(given).attr("__lshift__")(width * 8 - bits);
    const auto written = nb::cast<nb::bytes>(shifted.attr("to_bytes")(width, "big"));
    bytes->append(static_cast<const char*>(written.data()), written.size());
  } catch (nb::python_error&) {
    raise("InvalidArgument", shown(given) + " is no address of " + std::to_string(bits) + " bits");
  }
}

bool is_ip_object(nb::handle given) { return nb::hasattr(given, "packed"); }

const char* address_remedy(const TableForm& form) {
  return form.address_bits == byte_strings
             ? "give bytes or a text"
             : "give a text, an integer, an object of ipaddress, or bytes";
}

void append_bytes(nb::handle given, std::string* bytes) {
  const auto raw = nb::borrow<nb::bytes>(given);
  bytes->append(static_cast<const char*>(raw.data()), raw.size());
}

// It lives as long as the object.
std::string_view text_of(nb::handle given) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(given.ptr(), &size);
  if (text) return {text, static_cast<size_t>(size)};
  PyErr_Clear();
  raise("InvalidArgument", shown(given) + " is no text, for it has surrogates", "leave them out");
}

void check_all_there(const Cells& cells) {
  for (uint64_t row = 0; cells.column.valid && row < cells.size(); ++row)
    if (!cells.column.is_there(row))
      raise("InvalidArgument", "address " + std::to_string(row) + " is null");
}

bool is_list_of_texts(nb::handle given) {
  if (!PyList_Check(given.ptr())) return false;
  const Py_ssize_t rows = PyList_Size(given.ptr());
  for (Py_ssize_t row = 0; row < rows; ++row)
    if (!PyUnicode_Check(PyList_GetItem(given.ptr(), row))) return false;
  return true;
}

// text(row): of the address, as it is written.
template <class Text>
GivenKeys addresses_of_texts(const TableForm& form, uint64_t rows, EncodedKeys* encoded,
                             const Text& text) {
  const uint32_t width = address_bytes(form.address_bits);
  encoded->data.reset(std::max<uint64_t>(rows * width, 1));
  std::byte* to = encoded->data.data();
  for (uint64_t row = 0; row < rows; ++row) {
    check_signals_at(row);
    write_address_text(form.address_bits, text(row), to + row * width);
  }
  GivenKeys keys;
  keys.keys = encoded->keys = Column::fixed(to, width, rows);
  return keys;
}

// Keys that are made one by one, of objects of any kind. width: of each; 0: any.
template <class Append>
GivenKeys made_of_list(nb::handle given, uint32_t width, EncodedKeys* encoded,
                       const Append& append) {
  std::string bytes;
  std::vector<uint64_t> offsets{0};
  if (!nb::hasattr(given, "__iter__"))
    raise("InvalidType", "one " + python_type(given) + " is given in place of a column");
  bool fixed = width != 0;
  for (nb::handle one : given) {
    check_signals_at(offsets.size());
    append(one, &bytes);
    fixed = fixed && bytes.size() - offsets.back() == width;
    offsets.push_back(bytes.size());
  }
  const uint64_t rows = offsets.size() - 1;
  encoded->data.reset(std::max<size_t>(bytes.size(), 1));
  std::memcpy(encoded->data.data(), bytes.data(), bytes.size());
  encoded->offsets.reset(rows + 1);
  std::copy(offsets.begin(), offsets.end(), encoded->offsets.data());
  encoded->keys = fixed ? Column::fixed(encoded->data.data(), width, rows)
                        : Column::variable(encoded->data.data(), encoded->offsets.data(), rows);
  GivenKeys keys;
  keys.keys = encoded->keys;
  return keys;
}

// The cells of Arrow data; nothing: it has none, as a Series of objects of `ipaddress`.
std::optional<Cells> exported_cells(nb::handle given, const std::string& name) {
  if (!is_arrow(given)) return std::nullopt;
  try {
    return cells_of_arrow(given, name);
  } catch (nb::python_error& error) {
    if (!is_failed_export(error, given)) throw;
    return std::nullopt;
  }
}

// The cells of an array or of Arrow data in their own type; nothing: it is a list or another
// sequence.
std::optional<Cells> typed_cells(nb::handle given) {
  if (nb::isinstance<PyColumn>(given)) return nb::cast<const PyColumn&>(given).cells;
  if (nb::hasattr(given, "__array_interface__")) {
    const nb::object array = as_array(given);
    const std::string kind =
        nb::cast<std::string>(nb::str(nb::object(array.attr("dtype").attr("kind"))));
    if (kind == "i" || kind == "u" || kind == "V") return cells_of_array(array, "address");
    return std::nullopt;
  }
  return exported_cells(given, "address");
}

bool is_number(FieldType type) { return type >= FieldType::i8 && type <= FieldType::u64; }

GivenKeys addresses_of_cells(const TableForm& form, Cells cells, EncodedKeys* encoded) {
  check_all_there(cells);
  const uint32_t bits = form.address_bits;
  const Field field = cells.field;
  if (field.type == FieldType::string && bits != byte_strings)
    return addresses_of_texts(form, cells.size(), encoded,
                              [&](uint64_t row) { return as_text(cells.column[row]); });
  const bool octets = field.type == FieldType::u8 && field.count == address_bytes(bits);
  const bool raw = field.type == FieldType::bytes || field.type == FieldType::string ||
                   field.type == FieldType::uuid;
  const bool number = is_number(field.type) && !field.count && (bits == 32 || bits == 64);
  if (!octets && !raw && !number)
    raise("InvalidType",
          "addresses of type " + type_text({"", field.type, field.count}) +
              " are given, and table '" + form.table.name() + "' has " +
              (bits == byte_strings ? "strings" : std::to_string(bits) + " bits"),
          address_remedy(form));
  Field address = {.name = "address", .type = FieldType::bytes};
  if (number)
    address.type = bits == 32 ? FieldType::u32 : FieldType::u64;
  else if (bits != byte_strings || octets)
    address.count = address_bytes(bits);
  if (octets) cells.field = {.name = "address", .type = FieldType::bytes, .count = address.count};
  if (number || address.count) cells = cast_cells(std::move(cells), address);
  const Schema one = *Schema::make({}, {address});
  check(encode_keys(one, std::span(&cells.column, 1), encoded));
  GivenKeys keys;
  keys.cells.push_back(std::move(cells));
  keys.keys = encoded->keys;
  return keys;
}

// What match() has found, with memory of its own.
struct Matches {
  explicit Matches(uint64_t rows) : found(rows) { lengths.reset(rows); }

  Bitmap found;
  ResultBuffer<uint32_t> lengths;
  ResultBuffer<std::byte> rows;  // of one width,
  BytesColumn values;            // or of any
  std::vector<DecodedColumn> decoded;
};

// Copies what was found of the addresses from `first` on. width: of all values; 0: they differ.
void take_part(const MatchResult& part, uint64_t first, uint32_t width, Matches* matches) {
  const uint64_t rows = part.found.size();
  std::ranges::copy(part.found.words(), matches->found.words().begin() + first / 64);
  std::copy_n(part.lengths.data(), rows, matches->lengths.data() + first);
  for (uint64_t i = 0; width == 0 && i < rows; ++i) matches->values.append(part.value(i));
  if (width == 0) return;
  std::byte* to = matches->rows.data() + first * width;
  for (uint64_t i = 0; i < rows; ++i, to += width) {
    const Bytes value = part.value(i);
    if (value.size() == width)
      std::memcpy(to, value.data(), width);
    else
      std::memset(to, 0, width);
  }
}

PyRows match_many(const PyTable& table, nb::handle addresses,
                  const std::optional<std::vector<std::string>>& names) {
  // Parts lie in the cache until they are copied, and Ctrl-C ends the call between two of them.
  constexpr uint64_t part_rows = 1 << 17;
  const TableForm& form = *table.form;
  const std::vector<size_t> wanted = wanted_columns(form, names);
  EncodedKeys encoded;
  const GivenKeys given = addresses_of(form, addresses, &encoded);
  const uint64_t rows = given.keys.size;
  const uint32_t width = form.schema.is_fixed() ? form.schema.fixed_bytes() : 0;
  auto matches = std::make_shared<Matches>(rows);
  matches->rows.reset(std::max<uint64_t>(rows * width, 1));
  const Snapshot snapshot = table.snapshot();
  MatchResult part;
  run_in_parts(rows, part_rows, [&](uint64_t first, uint64_t n) -> Status {
    STRIDE_TRY(snapshot.match(form.table, given.keys.slice(first, n), &part));
    take_part(part, first, width, matches.get());
    return {};
  });
  PyRows result;
  result.size = rows;
  const ValueColumn values =
      width ? Column::fixed(matches->rows.data(), width, rows) : matches->values.column();
  const bool all = matches->found.count() == rows;
  result.columns = value_cells(form, values, all ? nullptr : &matches->found, wanted,
                               &matches->decoded, matches);
  Cells lengths;
  lengths.field = {.name = "length", .type = FieldType::u32};
  lengths.column = CellColumn::fixed(matches->lengths.data(), 4, rows);
  lengths.memory.push_back(matches);
  result.columns.push_back(std::move(lengths));
  result.found = std::shared_ptr<const Bitmap>(matches, &matches->found);
  return result;
}

nb::dict entry_object(const TableForm& form, const PrefixEntry& entry) {
  std::vector<size_t> wanted = wanted_columns(form, std::nullopt);
  nb::dict d = nb::cast<nb::dict>(value_object(form, entry.value, wanted, false));
  d["prefix"] = key_object(form, entry.key);
  d["length"] = entry.length;
  return d;
}

void check_prefixes(const PyTable& table) {
  if (!table.form->is_prefixes())
    raise("InvalidArgument", "table '" + table.table().name() + "' is no table of prefixes",
          "make one with Database.prefixes()");
}

nb::object match(const PyTable& table, nb::handle addresses,
                 const std::optional<std::vector<std::string>>& columns) {
  check_prefixes(table);
  if (nb::hasattr(addresses, "__cuda_array_interface__"))
    return nb::module_::import_("stridedb._device").attr("match")(table, addresses, columns);
  if (!is_one_address(addresses)) return nb::cast(match_many(table, addresses, columns));
  std::string address;
  append_address(*table.form, addresses, &address);
  const Snapshot snapshot = table.snapshot();
  const std::optional<PrefixEntry> entry = take(snapshot.match(table.table(), as_bytes(address)));
  return entry ? nb::object(entry_object(*table.form, *entry)) : nb::object(nb::none());
}

nb::list match_all(const PyTable& table, nb::handle given) {
  check_prefixes(table);
  std::string address;
  append_address(*table.form, given, &address);
  nb::list all;
  const Snapshot snapshot = table.snapshot();
  for (const PrefixEntry& entry : take(snapshot.match_all(table.table(), as_bytes(address))))
    all.append(entry_object(*table.form, entry));
  return all;
}

}  // namespace

bool is_one_address(nb::handle given) {
  return PyLong_Check(given.ptr()) || PyUnicode_Check(given.ptr()) || PyBytes_Check(given.ptr()) ||
         is_ip_object(given) || is_network(given) || is_numpy_scalar(given);
}

void append_address(const TableForm& form, nb::handle given, std::string* bytes) {
  const uint32_t bits = form.address_bits;
  if (PyUnicode_Check(given.ptr())) {
    if (bits == byte_strings)
      bytes->append(text_of(given));
    else
      append_address_text(bits, text_of(given), bytes);
  } else if (PyBytes_Check(given.ptr())) {
    append_bytes(given, bytes);
  } else if (is_ip_object(given)) {
    append_bytes(nb::object(given.attr("packed")), bytes);
  } else if (bits != byte_strings && nb::hasattr(given, "__index__") &&
             !PyBool_Check(given.ptr())) {
    const nb::object index = nb::steal(PyNumber_Index(given.ptr()));
    if (!index.is_valid()) {
      PyErr_Clear();
      raise("InvalidType", shown(given) + " is no address", address_remedy(form));
    }
    append_integer(bits, index, bytes);
  } else {
    raise("InvalidType", "an address of Python's type " + python_type(given) + " is given",
          is_network(given) ? "get() finds a prefix, and scan(prefix=) those that are inside it"
                            : address_remedy(form));
  }
}

void append_prefix(const TableForm& form, nb::handle given, std::string* bytes) {
  if (PyBytes_Check(given.ptr())) {
    append_bytes(given, bytes);
  } else if (PyUnicode_Check(given.ptr()) && form.address_bits == byte_strings) {
    bytes->append(text_of(given));
  } else if (PyUnicode_Check(given.ptr()) || nb::hasattr(given, "prefixlen") ||
             is_ip_object(given)) {
    bytes->append(take(parse_prefix(text_of(nb::str(given)), form.address_bits)));
  } else {
    raise("InvalidType", "a prefix of Python's type " + python_type(given) + " is given",
          "give a text like '10.0.0.0/8', an object of ipaddress, or the bytes of a key");
  }
}

GivenKeys prefixes_of(const TableForm& form, nb::handle given, EncodedKeys* encoded) {
  nb::object list = nb::borrow(given);
  if (nb::isinstance<PyColumn>(given))
    list = list_of(nb::cast<const PyColumn&>(given).cells);
  else if (const std::optional<Cells> cells = exported_cells(given, "prefix"))
    list = list_of(*cells);
  else if (nb::hasattr(given, "tolist"))
    list = given.attr("tolist")();
  if (nb::isinstance<nb::str>(list) || is_network(list) || !nb::hasattr(list, "__iter__"))
    raise("InvalidType", "one " + python_type(given) + " is given in place of a column of prefixes",
          "give a list");
  return made_of_list(list, prefix_key_width(form.address_bits), encoded,
                      [&](nb::handle one, std::string* bytes) { append_prefix(form, one, bytes); });
}

GivenKeys addresses_of(const TableForm& form, nb::handle given, EncodedKeys* encoded) {
  if (std::optional<Cells> cells = typed_cells(given))
    return addresses_of_cells(form, std::move(*cells), encoded);
  nb::object list = nb::borrow(given);
  if (nb::hasattr(given, "tolist")) list = given.attr("tolist")();
  const uint32_t width = form.address_bits == byte_strings ? 0 : address_bytes(form.address_bits);
  if (width && is_list_of_texts(list))
    return addresses_of_texts(form, nb::len(list), encoded, [&](uint64_t row) {
      return text_of(PyList_GetItem(list.ptr(), static_cast<Py_ssize_t>(row)));
    });
  return made_of_list(list, width, encoded, [&](nb::handle one, std::string* bytes) {
    append_address(form, one, bytes);
  });
}

void bind_prefixes(nb::class_<PyTable>& table) {
  table
      .def("match", match, nb::arg("addresses").none(), nb::arg("columns").none() = nb::none(),
           "Of a prefix table the longest prefix of each address: Rows with its value and its "
           "`length` in "
           "bits; of one address a dict, or None. addresses: text, objects of ipaddress, bytes, or "
           "integers of 32 and 64 bits. InvalidArgument: one is no address.")
      .def("match_all", match_all, nb::arg("address").none(),
           "All prefixes of an address, the shortest first.");
}

}  // namespace stride::python
