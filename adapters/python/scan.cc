// Ordered reading in batches, and groups of rows.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "adapters/python/bounds.h"
#include "adapters/python/errors.h"
#include "adapters/python/keys.h"
#include "adapters/python/reads.h"
#include "adapters/python/rows.h"
#include "adapters/python/transaction.h"
#include "adapters/python/watch.h"
#include "engine/group_by.h"
#include "engine/prefixes.h"
#include "storage/key_format.h"

namespace stride::python {

std::optional<std::string> bound_of(const TableForm& form, nb::handle given) {
  if (given.is_none()) return std::nullopt;
  std::string bytes;
  append_key(form, given, true, &bytes);
  return bytes;
}

ScanOptions range_of(const TableForm& form, nb::handle start, nb::handle stop, nb::handle prefix) {
  ScanOptions options;
  options.from = bound_of(form, start);
  options.to = bound_of(form, stop);
  if (prefix.is_none()) return options;
  const std::vector<Field>& key = form.schema.key();
  const bool of_text = form.bare_key && width_of(key[0].type) == 0 && !form.is_prefixes();
  if (form.bare_key && !of_text && !form.is_prefixes())
    raise("InvalidArgument", "a prefix is asked for of keys of type " + type_text(key[0]),
          "prefixes are of strings, bytes and keys of several columns; give start and stop");
  if (form.is_prefixes()) {
    std::string bytes;
    append_prefix(form, prefix, &bytes);
    const ScanOptions inside = take(scan_inside(as_bytes(bytes), form.address_bits));
    if (!start.is_none() || !stop.is_none())
      raise("InvalidArgument", "start or stop is given beside a prefix", "give one of the two");
    return inside;
  }
  options.prefix = bound_of(form, prefix);
  return options;
}

namespace {

struct PyScan {
  PyTable table;
  std::vector<size_t> wanted;
  Scan scan;
  std::mutex mutex;  // a scan is of one thread at a time

  PyScan(PyTable t, std::vector<size_t> w, Scan s)
      : table(std::move(t)), wanted(std::move(w)), scan(std::move(s)) {}
};

// A batch whose memory is its own, for what a scan hands out is there until it goes on.
struct Batch {
  std::vector<std::byte> keys, values;
  std::vector<uint64_t> key_offsets, value_offsets;
  std::vector<DecodedColumn> decoded;
};

Column copy_column(const Column& from, std::vector<std::byte>* data,
                   std::vector<uint64_t>* offsets) {
  const std::byte* begin = from.data + (from.size ? from.begin(0) : 0);
  data->assign(begin, begin + from.bytes());
  if (from.is_fixed()) return Column::fixed(data->data(), from.width, from.size);
  offsets->resize(from.size + 1);
  for (uint64_t row = 0; row <= from.size; ++row)
    (*offsets)[row] = from.offsets[row] - from.offsets[0];
  return Column::variable(data->data(), offsets->data(), from.size);
}

PyRows rows_of(const PyScan& scan, const KeyColumn& keys, const ValueColumn& values,
               const std::shared_ptr<Batch>& batch) {
  const TableForm& form = *scan.table.form;
  PyRows rows;
  rows.size = keys.size;
  rows.columns = key_cells(form, keys, batch);
  for (Cells& cells : value_cells(form, values, nullptr, scan.wanted, &batch->decoded, batch))
    rows.columns.push_back(std::move(cells));
  return rows;
}

PyRows next_batch(PyScan& scan) {
  auto batch = std::make_shared<Batch>();
  KeyColumn keys;
  ValueColumn values;
  bool there = false;
  run([&]() -> Status {
    std::lock_guard lock(scan.mutex);
    ScanBatch next;
    there = scan.scan.next(&next);
    if (!there) return scan.scan.status();
    keys = copy_column(next.keys, &batch->keys, &batch->key_offsets);
    values = copy_column(next.values, &batch->values, &batch->value_offsets);
    return {};
  });
  check_signals();
  if (!there) throw nb::stop_iteration();
  return rows_of(scan, keys, values, batch);
}

// What a scan without rows would hand out if it did: no rows, and all columns.
PyRows empty_batch(PyScan& scan) {
  auto batch = std::make_shared<Batch>();
  batch->key_offsets = batch->value_offsets = {0};
  batch->keys.resize(1);
  const Column none = Column::variable(batch->keys.data(), batch->key_offsets.data(), 0);
  return rows_of(scan, none, none, batch);
}

struct ScanArguments {
  nb::object start, stop, prefix;
  bool reverse = false;
  std::optional<std::vector<std::string>> columns;
  uint32_t batch_rows = 0;
};

// Source: a Snapshot, or a Transaction.
template <class Source>
std::unique_ptr<PyScan> make_scan(Source& source, const PyTable& table,
                                  const ScanArguments& given) {
  const TableForm& form = *table.form;
  ScanOptions options = range_of(form, given.start, given.stop, given.prefix);
  options.reverse = given.reverse;
  options.batch_rows = given.batch_rows;
  std::optional<Scan> scan;
  run([&]() -> Status {
    Result<Scan> made = source.scan(form.table, options);
    if (!made.ok()) return made.status();
    scan.emplace(std::move(*made));
    return {};
  });
  return std::make_unique<PyScan>(table, wanted_columns(form, given.columns), std::move(*scan));
}

// Columns of a number for each group.
template <class T>
Cells numbers_of(const std::string& name, FieldType type, std::span<const T> numbers) {
  Cells cells;
  cells.field = {.name = name, .type = type};
  auto* data = add_memory<T>(&cells, std::max<size_t>(numbers.size(), 1));
  std::copy(numbers.begin(), numbers.end(), data);
  cells.column = CellColumn::fixed(data, sizeof(T), numbers.size());
  return cells;
}

FieldType field_type_of(NumberType type) {
  switch (type) {
    case NumberType::i32:
      return FieldType::i32;
    case NumberType::f32:
      return FieldType::f32;
    case NumberType::f64:
      return FieldType::f64;
    default:
      return FieldType::i64;
  }
}

Cells extremes_of(const std::string& name, NumberType type, std::span<const std::byte> numbers) {
  Cells cells;
  cells.field = {.name = name, .type = field_type_of(type)};
  auto* data = add_memory<std::byte>(&cells, std::max<size_t>(numbers.size(), 1));
  std::copy(numbers.begin(), numbers.end(), data);
  const uint32_t width = width_of(type);
  cells.column = CellColumn::fixed(data, width, numbers.size() / width);
  return cells;
}

NumberType grouped_type(const TableForm& form, const std::vector<std::string>& wanted) {
  if (form.table.numbers() != NumberType::none) return form.table.numbers();
  const std::vector<Field>& values = form.schema.values();
  const std::optional<NumberType> type = number_type_of(values[0]);
  if (values.size() == 1 && !values[0].nullable && type) return *type;
  if (wanted.empty()) return NumberType::i64;  // counts look at no value
  raise("InvalidArgument",
        "values of table '" + form.table.name() + "' are no numbers: " + form.schema.to_string(),
        "group a table of counters, or one whose only column is of i32, i64, f32 or f64");
}

// Bytes of the first columns of keys, of which groups are made.
uint32_t group_bytes(const TableForm& form, uint32_t columns) {
  const std::vector<Field>& key = form.schema.key();
  if (columns > key.size())
    raise("InvalidArgument", "groups by " + std::to_string(columns) +
                                 " key columns are asked for, and there are " +
                                 std::to_string(key.size()));
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < columns; ++i) {
    if (cell_width(key[i]) == 0)
      raise("InvalidArgument",
            column_name(key[i]) + " has any length, and groups are of key columns that have one",
            "give prefix_bytes, or group the rows of scan() elsewhere");
    bytes += cell_width(key[i]);
  }
  return bytes;
}

PyRows group(const PyTable& table, const std::vector<std::string>& wanted, uint32_t columns,
             std::optional<uint32_t> prefix_bytes, nb::object start, nb::object stop) {
  const TableForm& form = *table.form;
  GroupOptions options;
  options.prefix_bytes = prefix_bytes ? *prefix_bytes : group_bytes(form, columns);
  options.type = grouped_type(form, wanted);
  for (const std::string& name : wanted) {
    if (name == "sum")
      options.sum = true;
    else if (name == "min")
      options.min = true;
    else if (name == "max")
      options.max = true;
    else
      raise("InvalidArgument", "'" + name + "' of groups is asked for",
            "it may be 'sum', 'min', 'max'");
  }
  const ScanOptions range = range_of(form, start, stop, nb::none());
  // Groups have the first key columns for keys.
  TableForm groups_form = form;
  if (!prefix_bytes && columns != 0) {
    const auto& key = form.schema.key();
    groups_form.schema = take(Schema::make({}, {key.begin(), key.begin() + columns}));
    groups_form.bare_key = columns == 1;
  }
  auto result = std::make_shared<GroupResult>();
  const Snapshot snapshot = table.snapshot();
  run_watched(
      [&]() -> Status {
        Result<GroupResult> groups = group_by(snapshot, form.table, range, options);
        if (!groups.ok()) return groups.status();
        *result = std::move(*groups);
        return {};
      },
      &groups_form);
  PyRows rows;
  rows.size = result->size();
  if (prefix_bytes) {
    const KeyColumn keys = result->keys();
    rows.columns.push_back({{.name = "prefix", .type = FieldType::bytes},
                            CellColumn::variable(keys.data, keys.offsets, keys.size),
                            {result}});
  } else if (columns != 0) {
    auto fixed = std::make_shared<std::vector<std::byte>>();
    const KeyColumn keys = result->keys();
    fixed->assign(keys.data, keys.data + keys.bytes());
    rows.columns = key_cells(groups_form,
                             Column::fixed(fixed->data(), options.prefix_bytes, keys.size), fixed);
  }
  rows.columns.push_back(numbers_of("count", FieldType::u64, result->counts()));
  const bool floats = is_float(options.type);
  if (options.sum && floats)
    rows.columns.push_back(numbers_of("sum", FieldType::f64, result->float_sums()));
  if (options.sum && !floats)
    rows.columns.push_back(numbers_of("sum", FieldType::i64, result->integer_sums()));
  if (options.min) rows.columns.push_back(extremes_of("min", options.type, result->mins()));
  if (options.max) rows.columns.push_back(extremes_of("max", options.type, result->maxes()));
  return rows;
}

}  // namespace

void bind_scan(nb::module_& module) {
  nb::class_<PyScan>(module, "Scan",
                     "The rows of a range in the order of their keys, batch by batch.")
      .def("__iter__", [](nb::object self) { return self; })
      .def("__next__", next_batch)
      .def("_empty", empty_batch);
  module.def(
      "_scan",
      [](const PyTable& t, nb::object start, nb::object stop, nb::object prefix, bool reverse,
         std::optional<std::vector<std::string>> columns, uint32_t batch_rows,
         PyTransaction* within) {
        const ScanArguments given{start, stop, prefix, reverse, std::move(columns), batch_rows};
        if (within) {
          const TransactionUse use(*within);
          return make_scan(within->reading(t), t, given);
        }
        const Snapshot snapshot = t.snapshot();
        return make_scan(snapshot, t, given);
      },
      nb::arg("table"), nb::arg("start").none(), nb::arg("stop").none(), nb::arg("prefix").none(),
      nb::arg("reverse"), nb::arg("columns").none(), nb::arg("batch_rows"),
      nb::arg("transaction").none() = nb::none());
  module.def("_group", group, nb::arg("table"), nb::arg("wanted"), nb::arg("columns"),
             nb::arg("prefix_bytes").none(), nb::arg("start").none(), nb::arg("stop").none());
}

}  // namespace stride::python
