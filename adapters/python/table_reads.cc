// Reads of a table: by one key, and by columns of keys.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <utility>

#include "adapters/python/errors.h"
#include "adapters/python/keys.h"
#include "adapters/python/reads.h"
#include "adapters/python/rows.h"
#include "adapters/python/watch.h"
#include "storage/quoted.h"
#include "storage/row_format.h"

namespace stride::python {

std::vector<size_t> wanted_columns(const TableForm& form,
                                   const std::optional<std::vector<std::string>>& names) {
  std::vector<size_t> wanted;
  if (!names) {
    for (size_t i = 0; i < form.schema.values().size(); ++i) wanted.push_back(i);
    return wanted;
  }
  for (const std::string& name : *names) {
    const std::optional<size_t> at = form.schema.find(name);
    if (!at)
      raise("KeyNotFound",
            "table '" + form.table.name() + "' has no column " + in_quotes(name) + " of values",
            "its columns are: " + form.schema.to_string());
    wanted.push_back(*at);
  }
  return wanted;
}

std::vector<Cells> value_cells(const TableForm& form, const ValueColumn& values,
                               const Bitmap* found, const std::vector<size_t>& wanted,
                               std::vector<DecodedColumn>* decoded,
                               std::shared_ptr<const void> owner) {
  if (decoded->size() < wanted.size()) decoded->resize(wanted.size());
  run([&]() -> Status {
    for (size_t i = 0; i < wanted.size(); ++i)
      STRIDE_TRY(decode_column(form.schema, values, wanted[i], &(*decoded)[i], found));
    return {};
  });
  std::vector<Cells> cells;
  for (size_t i = 0; i < wanted.size(); ++i) {
    cells.push_back({form.schema.values()[wanted[i]], (*decoded)[i], {owner}});
    if (found) cells.back().field.nullable = true;
  }
  return cells;
}

nb::object value_object(const TableForm& form, Bytes value, const std::vector<size_t>& wanted,
                        bool bare) {
  RowReader reader(form.schema);
  if (!reader.read(value))
    raise("Corruption", "a value of table '" + form.table.name() + "' is no row of its schema");
  auto cell = [&](size_t i) {
    return reader.is_null(i) ? nb::object(nb::none())
                             : object_of(form.schema.values()[i], reader[i]);
  };
  if (bare) return cell(0);
  nb::dict row;
  for (size_t i : wanted)
    if (PyDict_SetItem(row.ptr(), form.value_names[i], cell(i).ptr()) != 0)
      throw nb::python_error();
  return row;
}

namespace {

// Source: a Snapshot, or a Transaction, here and below. Nothing: it is not there.
template <class Source>
std::optional<nb::object> get_one(Source& source, const PyTable& table, nb::handle key,
                                  const std::optional<std::vector<std::string>>& names) {
  const TableForm& form = *table.form;
  std::string bytes;
  append_key(form, key, false, &bytes);
  const std::optional<Bytes> value = take(source.get(form.table, as_bytes(bytes)));
  if (!value) return std::nullopt;
  if (form.bare_value && !names) return value_object(form, *value, {}, true);
  return value_object(form, *value, wanted_columns(form, names), false);
}

// Many keys are looked up in parts, so that Ctrl-C ends the call between two of them. The result's
// rows are wanted in one width; false: they have none.
template <class Source>
bool get_in_parts(Source& source, const Table& table, const KeyColumn& keys, GetResult* result) {
  constexpr uint64_t part_rows = 1 << 22;
  const uint64_t width = result->row_width;
  if (width == 0 || keys.size <= part_rows) return false;
  result->found.reset(keys.size);
  result->data.reset(keys.size * width);
  result->values = Column::fixed(result->data.data(), result->row_width, keys.size);
  bool one_width = true;
  run_in_parts(keys.size, part_rows, [&](uint64_t first, uint64_t rows) -> Status {
    GetResult part;
    part.row_width = result->row_width;
    part.data.borrow(result->data.data() + first * width, rows * width);
    STRIDE_TRY(source.get(table, keys.slice(first, rows), &part));
    one_width &= part.values.is_fixed();
    std::ranges::copy(part.found.words(), result->found.words().begin() + first / 64);
    return {};
  });
  return one_width;
}

template <class Source>
PyRows get_many(Source& source, const PyTable& table, nb::handle keys,
                const std::optional<std::vector<std::string>>& names) {
  const TableForm& form = *table.form;
  const std::vector<size_t> wanted = wanted_columns(form, names);
  const std::shared_ptr<Lookup> lookup = table.handle->lookups->take();
  const GivenKeys given = keys_of(form, keys, &lookup->keys);
  lookup->result.row_width = form.schema.is_fixed() ? form.schema.fixed_bytes() : 0;
  if (!get_in_parts(source, form.table, given.keys, &lookup->result))
    run_watched(given.keys.size,
                [&] { return source.get(form.table, given.keys, &lookup->result); });
  PyRows rows;
  rows.size = given.keys.size;
  const Bitmap& found = lookup->result.found;
  const bool all = found.count() == rows.size;
  rows.columns = value_cells(form, lookup->result.values, all ? nullptr : &found, wanted,
                             &lookup->columns, lookup);
  rows.found = std::shared_ptr<const Bitmap>(lookup, &found);
  return rows;
}

// The calls for keys in the memory of a device, or None where these are not.
nb::object device_calls(nb::handle keys) {
  const bool several =
      (nb::isinstance<nb::list>(keys) || nb::isinstance<nb::tuple>(keys)) && nb::len(keys) != 0;
  const nb::object first = several ? nb::object(keys[0]) : nb::borrow(keys);
  if (!nb::hasattr(first, "__cuda_array_interface__")) return nb::none();
  return nb::module_::import_("stridedb._device");
}

template <class Source>
nb::object contains_many(Source& source, const PyTable& table, nb::handle keys) {
  EncodedKeys encoded;
  const GivenKeys given = keys_of(*table.form, keys, &encoded);
  // What is not wanted of the result, where the rows are, lies in the cache and is written over.
  constexpr uint64_t part_rows = 1 << 17;
  Bitmap found(given.keys.size);
  FindResult part;
  run_in_parts(found.size(), part_rows, [&](uint64_t first, uint64_t rows) -> Status {
    STRIDE_TRY(source.find(table.table(), given.keys.slice(first, rows), &part));
    std::ranges::copy(part.found.words(), found.words().begin() + first / 64);
    return {};
  });
  return booleans_of(found.words().data(), found.size());
}

nb::dict report_of(const SegmentReport& s) {
  nb::dict d;
  d["run"] = s.run;
  d["rows"] = s.rows;
  d["erased_rows"] = s.erased_rows;
  d["tombstones"] = s.tombstones;
  d["bytes_on_disk"] = s.bytes_on_disk;
  d["key_bytes"] = s.key_bytes;
  d["value_bytes"] = s.value_bytes;
  d["strides"] = s.strides;
  d["nodes"] = s.nodes;
  d["prefix_bits"] = s.prefix_bits;
  d["leaf_capacity"] = s.leaf_capacity;
  d["tree_bytes"] = s.tree_bytes;
  d["filter_bytes"] = s.filter_bytes;
  d["visits"] = s.visits;
  d["expected_finds_per_second"] = s.expected_finds_per_second;
  d["expected_on"] = s.expected_on;
  d["device_placement"] = s.device_placement;
  return d;
}

}  // namespace

nb::object get_in(Transaction& transaction, const PyTable& table, nb::handle keys,
                  nb::object otherwise, const std::optional<std::vector<std::string>>& columns) {
  if (is_one_key(*table.form, keys))
    return get_one(transaction, table, keys, columns).value_or(otherwise);
  return nb::cast(get_many(transaction, table, keys, columns));
}

nb::object contains_in(Transaction& transaction, const PyTable& table, nb::handle keys) {
  if (!is_one_key(*table.form, keys)) return contains_many(transaction, table, keys);
  std::string bytes;
  append_key(*table.form, keys, false, &bytes);
  return nb::bool_(take(transaction.get(table.table(), as_bytes(bytes))).has_value());
}

std::vector<Cells> found_key_cells(const TableForm& form, const CopiedRows& rows,
                                   std::shared_ptr<const void> owner) {
  // Keys of rows that are not there are left out, for no bytes are a key of every schema.
  BytesColumn present;
  for (uint64_t i = 0; i < rows.found.size(); ++i)
    if (rows.found[i]) present.append(rows.keys.column()[i]);
  std::vector<Cells> cells;
  for (const Cells& some : key_cells(form, present.column(), owner)) {
    Cells all;
    all.field = some.field;
    all.field.nullable = true;
    const uint64_t n = rows.found.size();
    const uint32_t width = cell_width(some.field);
    const CellColumn& column = some.column;
    const uint64_t bytes = width         ? n * width
                           : column.size ? column.offsets[column.size] - column.offsets[0]
                                         : 0;
    auto* data = add_memory<std::byte>(&all, std::max<uint64_t>(bytes, 1));
    uint64_t* ends = width ? nullptr : add_memory<uint64_t>(&all, n + 1);
    uint64_t end = 0, at = 0;
    if (ends) ends[0] = 0;
    for (uint64_t i = 0; i < n; ++i) {
      const Bytes cell = rows.found[i] ? column[at++] : Bytes();
      if (width) std::fill_n(data + end, width, std::byte{0});
      std::copy(cell.begin(), cell.end(), data + end);
      end += width ? width : cell.size();
      if (ends) ends[i + 1] = end;
    }
    all.column = {data, ends, rows.found.words().data(), n, width, width};
    all.memory.push_back(owner);
    cells.push_back(std::move(all));
  }
  return cells;
}

void bind_table_reads(nb::class_<PyTable>& table) {
  table
      .def(
          "__getitem__",
          [](const PyTable& t, nb::handle key) {
            const Snapshot snapshot = t.snapshot();
            std::optional<nb::object> value = get_one(snapshot, t, key, std::nullopt);
            if (!value)
              raise("KeyNotFound", "table '" + t.table().name() + "' has no key " + shown(key));
            return *value;
          },
          nb::arg("key").none())
      .def(
          "__contains__",
          [](const PyTable& t, nb::handle key) {
            std::string bytes;
            append_key(*t.form, key, false, &bytes);
            return take(t.snapshot().get(t.table(), as_bytes(bytes))).has_value();
          },
          nb::arg("key").none())
      .def(
          "get",
          [](const PyTable& t, nb::handle keys, nb::object otherwise,
             const std::optional<std::vector<std::string>>& columns) -> nb::object {
            const Snapshot snapshot = t.snapshot();
            if (is_one_key(*t.form, keys))
              return get_one(snapshot, t, keys, columns).value_or(otherwise);
            const nb::object device = device_calls(keys);
            if (!device.is_none()) return device.attr("get")(t, keys, columns);
            return nb::cast(get_many(snapshot, t, keys, columns));
          },
          nb::arg("keys").none(), nb::arg("default") = nb::none(),
          nb::arg("columns").none() = nb::none(),
          "Of one key its value, or `default`. Of a column of keys Rows, one for each key in their "
          "order, "
          "with `found`; columns: those of the values that are wanted.")
      .def(
          "contains",
          [](const PyTable& t, nb::handle keys) {
            const nb::object device = device_calls(keys);
            if (!device.is_none()) return device.attr("contains")(t, keys);
            const Snapshot snapshot = t.snapshot();
            return contains_many(snapshot, t, keys);
          },
          nb::arg("keys").none(), "An array of booleans: which keys are there.")
      .def(
          "segments",
          [](const PyTable& t) {
            nb::list all;
            for (const SegmentReport& s : take(t.handle->opened().segments(t.table())))
              all.append(report_of(s));
            return all;
          },
          "What the table's files and trees are like, as a list of dicts, the newest first.");
}

}  // namespace stride::python
