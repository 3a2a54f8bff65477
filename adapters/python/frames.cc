#include "adapters/python/frames.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "adapters/python/arrow_stream.h"
#include "adapters/python/errors.h"
#include "adapters/python/rows.h"
#include "storage/quoted.h"

namespace stride::python {
namespace {

bool is_pandas_frame(nb::handle given) {
  return nb::hasattr(given, "iloc") && nb::hasattr(given, "columns") && nb::hasattr(given, "items");
}

// pandas' DataFrame, which has Arrow's interface only where pyarrow is, as a dict of its columns.
nb::dict dict_of_pandas(nb::handle frame) {
  nb::dict columns;
  for (nb::handle item : frame.attr("items")()) {
    const nb::object name = item[0];
    if (columns.contains(name))
      raise("InvalidArgument", "there are two columns " + shown(name),
            "give one of them another name");
    columns[name] = nb::object(item[1]);
  }
  return columns;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + in_quotes(name);
  return text.empty() ? "none" : text;
}

// The name that pandas gives to an index that has none.
bool is_unnamed_index(const std::string& name) { return name.starts_with("__index_level_"); }

// Where each field's column is; nothing: it is missing and may be null.
std::vector<std::optional<size_t>> places_of(const std::vector<std::string>& names,
                                             const std::vector<Field>& fields, bool others_too) {
  std::vector<std::optional<size_t>> places;
  for (const Field& field : fields) {
    const auto found = std::find(names.begin(), names.end(), field.name);
    if (found == names.end()) {
      if (!field.nullable)
        raise("InvalidArgument",
              "there is no column " + in_quotes(field.name) + " of type " + type_text(field),
              "the columns given are: " + listed(names));
      places.emplace_back();
      continue;
    }
    if (std::find(found + 1, names.end(), field.name) != names.end())
      raise("InvalidArgument", "there are two columns " + in_quotes(field.name),
            "give one of them another name");
    places.emplace_back(found - names.begin());
  }
  if (others_too) return places;
  for (const std::string& name : names) {
    const bool known = std::any_of(fields.begin(), fields.end(),
                                   [&](const Field& field) { return field.name == name; });
    if (!known && !is_unnamed_index(name)) {
      std::vector<std::string> wanted;
      for (const Field& field : fields) wanted.push_back(field.name);
      raise("InvalidArgument", "the table has no column " + in_quotes(name),
            "leave it out; the table's columns are: " + listed(wanted));
    }
  }
  return places;
}

Cells nulls_of(const Field& field, uint64_t rows) {
  Cells cells;
  cells.field = {.name = field.name, .type = FieldType::boolean, .nullable = true};
  auto* data = add_memory<uint8_t>(&cells, std::max<uint64_t>(rows, 1));
  std::fill_n(data, rows, 0);
  cells.column = CellColumn::fixed(data, 1, rows, add_bits(&cells, rows));
  // No caster takes booleans that are all missing for anything but nulls.
  if (field.type == FieldType::boolean && field.count == 0) return cells;
  return cast_cells(std::move(cells), field);
}

void check_sizes(const std::vector<Cells>& columns) {
  for (const Cells& column : columns)
    if (column.size() != columns[0].size())
      raise("InvalidArgument", column_name(column.field) + " has " + std::to_string(column.size()) +
                                   " rows, and " + column_name(columns[0].field) + " has " +
                                   std::to_string(columns[0].size()));
}

void use_arrow(nb::handle given, const std::vector<Field>& fields, bool others_too,
               const UseBatch& use) {
  ArrowStream stream(given);
  if (!stream.is_frame())
    raise("InvalidType", "one column is given in place of rows",
          "give a frame, or keys and values apart");
  const auto places = places_of(stream.names(), fields, others_too);
  std::vector<Cells> batch;
  uint64_t first = 0;
  while (stream.next(&batch)) {
    check_signals();
    const uint64_t rows = batch.empty() ? 0 : batch[0].size();
    std::vector<Cells> columns;
    for (size_t i = 0; i < fields.size(); ++i)
      columns.push_back(places[i] ? cast_cells(batch[*places[i]], fields[i])
                                  : nulls_of(fields[i], rows));
    use(std::move(columns));
    first += rows;
  }
}

void use_dict(const nb::dict& dict, const std::vector<Field>& fields, bool others_too,
              const UseBatch& use) {
  std::vector<std::string> names;
  std::vector<nb::object> given;
  for (auto [name, column] : dict) {
    if (!nb::isinstance<nb::str>(name))
      raise("InvalidType", "a column is called " + shown(name) + ", which is no text");
    names.push_back(lossy_text(name));
    given.push_back(nb::borrow(column));
  }
  const auto places = places_of(names, fields, others_too);
  std::vector<Cells> columns(fields.size());
  std::optional<uint64_t> rows;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!places[i]) continue;
    columns[i] = cells_of(given[*places[i]], fields[i]);
    if (!rows) rows = columns[i].size();
  }
  for (size_t i = 0; i < fields.size(); ++i)
    if (!places[i]) columns[i] = nulls_of(fields[i], rows.value_or(0));
  check_sizes(columns);
  use(std::move(columns));
}

void use_rows(const PyRows& rows, const std::vector<Field>& fields, bool others_too,
              const UseBatch& use) {
  std::vector<std::string> names;
  for (const Cells& cells : rows.columns) names.push_back(cells.field.name);
  const auto places = places_of(names, fields, others_too);
  std::vector<Cells> columns;
  for (size_t i = 0; i < fields.size(); ++i)
    columns.push_back(places[i] ? cast_cells(rows.columns[*places[i]], fields[i])
                                : nulls_of(fields[i], rows.size));
  use(std::move(columns));
}

void use_frame(nb::handle given, const std::vector<Field>& fields, bool others_too,
               const UseBatch& use) {
  if (nb::isinstance<PyRows>(given))
    return use_rows(nb::cast<const PyRows&>(given), fields, others_too, use);
  if (nb::isinstance<nb::dict>(given))
    return use_dict(nb::borrow<nb::dict>(given), fields, others_too, use);
  if (is_arrow(given)) {
    try {
      return use_arrow(given, fields, others_too, use);
    } catch (nb::python_error& error) {
      if (!is_pandas_frame(given) || !is_failed_export(error, given)) throw;
    }
  }
  if (is_pandas_frame(given)) return use_dict(dict_of_pandas(given), fields, others_too, use);
  if (!has_polars_objects(given))
    raise("InvalidType", "rows are expected",
          "give a DataFrame, Arrow data, or a dict with a column for each name");
  nb::dict columns;
  for (nb::handle name : given.attr("columns")) columns[name] = given[name];
  use_dict(columns, fields, others_too, use);
}

}  // namespace

bool is_frame(nb::handle given) {
  if (nb::isinstance<PyRows>(given) || nb::isinstance<nb::dict>(given) || is_pandas_frame(given))
    return true;
  if (has_polars_objects(given)) return nb::hasattr(given, "columns");
  if (!is_arrow(given) || nb::isinstance<PyColumn>(given)) return false;
  // Frames of polars and pyarrow have columns with names, and so do Arrow's readers.
  return nb::hasattr(given, "columns") || nb::hasattr(given, "read_next_batch") ||
         (!nb::hasattr(given, "__len__") && !nb::hasattr(given, "__arrow_c_array__"));
}

std::vector<Cells> columns_of_frame(nb::handle given, const std::vector<Field>& fields) {
  std::vector<std::vector<Cells>> chunks(fields.size());
  use_frame(given, fields, true, [&](std::vector<Cells> columns) {
    for (size_t i = 0; i < fields.size(); ++i) chunks[i].push_back(std::move(columns[i]));
  });
  std::vector<Cells> columns;
  for (size_t i = 0; i < fields.size(); ++i) {
    columns.push_back(chunks[i].empty() ? cells_of_list(nb::list(), fields[i])
                                        : joined(std::move(chunks[i]), fields[i].name));
    columns.back().field = fields[i];
  }
  return columns;
}

void for_each_batch(nb::handle given, const std::vector<Field>& fields, const UseBatch& use) {
  use_frame(given, fields, false, use);
}

std::vector<std::string> column_names(nb::handle given) {
  std::vector<std::string> names;
  if (nb::isinstance<PyRows>(given)) {
    for (const Cells& cells : nb::cast<const PyRows&>(given).columns)
      names.push_back(cells.field.name);
    return names;
  }
  const nb::object all =
      nb::isinstance<nb::dict>(given) ? nb::borrow(given) : nb::object(given.attr("columns"));
  for (nb::handle name : all) names.push_back(lossy_text(nb::str(name)));
  return names;
}

}  // namespace stride::python
