#include "adapters/cli/commands/table_cells.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "adapters/cli/output/key_text.h"
#include "adapters/cli/output/record_writer.h"
#include "adapters/cli/text/similar_names.h"
#include "storage/quoted.h"

namespace stride::cli {
namespace {

template <class T>
int compare_elements(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return int{std::isnan(a)} - int{std::isnan(b)};
  }
  return a < b ? -1 : int{a > b};
}

template <class T>
int compare_number_cells(Bytes a, Bytes b) {
  for (size_t at = 0; at + sizeof(T) <= a.size(); at += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    if (const int c = compare_elements(x, y)) return c;
  }
  return 0;
}

int compare_byte_cells(Bytes a, Bytes b) { return compare(a, b); }

}  // namespace

CompareCells comparison_of(const Field& field) {
  CompareCells comparison = &compare_byte_cells;
  with_number_of(field.type,
                 [&](auto number) { comparison = &compare_number_cells<decltype(number)>; });
  return comparison;
}

void append_same_bytes(const Field& field, Bytes cell, std::string* to) {
  const size_t begin = to->size();
  to->append(as_text(cell));
  if (field.type != FieldType::f32 && field.type != FieldType::f64) return;
  with_number_of(field.type, [&](auto number) {
    for (size_t at = begin; at + sizeof number <= to->size(); at += sizeof number) {
      std::memcpy(&number, to->data() + at, sizeof number);
      if (number == 0) number = 0;
      if (std::isnan(static_cast<double>(number)))
        number = std::numeric_limits<decltype(number)>::quiet_NaN();
      std::memcpy(to->data() + at, &number, sizeof number);
    }
  });
}

TableCells::TableCells(const Table& table, const KeyForm& form)
    : table_(table.name()), form_(form), schema_(table.schema()), row_(schema_), key_(schema_) {
  for (const Field& field : schema_.key()) {
    std::string name = field.name;
    while (schema_.find(name)) name += "_";  // as key_text() prints it
    names_.push_back(std::move(name));
  }
  for (const Field& field : schema_.values()) names_.push_back(field.name);
}

ExitStatus TableCells::check_columns(const std::string& option) const {
  if (!schema_.empty()) return {};
  return ExitStatus::usage("table '" + table_ + "' has no columns: leave " + option +
                           " out, or load it anew with --schema or --header");
}

ExitStatus TableCells::find(const std::string& option, const std::string& name,
                            NamedColumn* column) {
  STRIDE_CLI_TRY(check_columns(option));
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end())
    return ExitStatus::usage(option + ": no column " + in_quotes(name) + " in table '" + table_ +
                             "', which has " + names_text(names_) + ": " +
                             did_you_mean(name, names_, "name one of these"));
  const auto place = static_cast<size_t>(found - names_.begin());
  const size_t keys = schema_.key().size();
  column->of_key = place < keys;
  column->column = column->of_key ? place : place - keys;
  column->field = column->of_key ? schema_.key()[place] : schema_.values()[column->column];
  if (!column->of_key) return {};
  if (form_.type != KeyType::bytes && form_.type != KeyType::columns && !is_number(form_.type))
    return ExitStatus::usage(option + ": column " + in_quotes(name) +
                             " is the key, which is of type " + name_of(form_) +
                             " here: choose rows by it with --from, --to or --prefix");
  reads_key_ = true;
  return {};
}

ExitStatus TableCells::read(Bytes key, Bytes value) {
  const bool good = (!schema_.has_values() || row_.read(value)) && (!reads_key_ || key_.read(key));
  return good ? ExitStatus() : no_row_of_schema(KeyText(form_).text(key));
}

}  // namespace stride::cli
