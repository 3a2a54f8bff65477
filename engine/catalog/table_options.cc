#include "engine/catalog/table_options.h"

#include "storage/column.h"
#include "storage/prefix_key.h"
#include "storage/quoted.h"
#include "storage/segment_format.h"

namespace stride {

Status check_table_name(const std::string& name) {
  if (name.empty() || name.size() > 255 || name.find('\0') != std::string::npos)
    return Status::invalid("a table's name has 1 to 255 bytes and no NUL; this one has " +
                           std::to_string(name.size()) + " bytes");
  return {};
}

namespace {

Status check_expiry(const TableOptions& options) {
  const std::string& name = options.expiry_column;
  if (name.empty() && options.time_to_live == 0) return {};
  const std::string live = "time_to_live " + std::to_string(options.time_to_live);
  if (options.time_to_live < 0)
    return Status::invalid(live + " is negative: rows would have ended before they are put")
        .with_remedy("give microseconds, 0 for rows that do not end by themselves");
  if (name.empty())
    return Status::invalid(live + " is given without an expiry_column")
        .with_remedy("add a column such as 'expires timestamp?' to the schema, and name it");
  if (options.address_bits)
    return Status::invalid("expiry_column " + in_quotes(name) +
                           " is given for a prefix table, whose rows do not end")
        .with_remedy("leave it out, and erase prefixes");
  const auto column = options.schema.find(name);
  if (!column)
    return Status::invalid("expiry_column " + in_quotes(name) +
                           " is no value column of the schema '" + options.schema.to_string() + "'")
        .with_remedy("name one of type timestamp");
  const Field& field = options.schema.values()[*column];
  if (field.type < FieldType::timestamp_s || field.type > FieldType::timestamp_ns || field.count)
    return Status::invalid("expiry_column " + in_quotes(name) + " is of type " + type_text(field))
        .with_remedy("name a column of type timestamp, with one element");
  if (options.time_to_live && !field.nullable)
    return Status::invalid(live + " is given, and the column " + in_quotes(name) +
                           " always has a time")
        .with_remedy("make its type " + in_quotes(type_text(field) + "?") + ", or leave it at 0");
  return {};
}

// Rounded up to the column's unit, so that no row ends too early.
std::optional<ExpiryCell> make_expiry(const TableOptions& options) {
  const auto column = options.schema.find(options.expiry_column);
  if (options.expiry_column.empty() || !column) return std::nullopt;
  ExpiryCell cell{options.schema.offset(*column), options.schema.valid_bit(*column),
                  options.schema.values()[*column].type, 0};
  cell.time_to_live = cell.in_unit(options.time_to_live);
  if (cell.in_microseconds(cell.time_to_live) < options.time_to_live) ++cell.time_to_live;
  return cell;
}

}  // namespace

Status check_table_options(const std::string& name, const TableOptions& options) {
  STRIDE_TRY(check_table_name(name));
  if (options.key_width > max_key_bytes)
    return Status::invalid("key_width " + std::to_string(options.key_width) +
                           " is too large; at most 65535 bytes are possible");
  if (options.address_bits > max_address_bits && options.address_bits != byte_strings)
    return Status::invalid("address_bits " + std::to_string(options.address_bits) +
                           " is too large; at most 65535 bits are possible, or byte_strings");
  if (options.address_bits && options.key_width)
    return Status::invalid(
               "key_width " + std::to_string(options.key_width) +
               " is given for a prefix table, whose keys are as wide as address_bits says")
        .with_remedy("leave key_width at 0");
  const NumberType numbers = options.numbers;
  if (numbers > NumberType::f64)
    return Status::invalid("numbers of type " + std::string(to_string(numbers)) +
                           " cannot be the values of a table")
        .with_remedy("use i32, i64, f32 or f64");
  if (options.overflow == Overflow::wrap && !is_integer(numbers))
    return Status::invalid("Overflow::wrap is given for a table of " +
                           std::string(to_string(numbers)) + ", and only integers wrap")
        .with_remedy("use i32 or i64, or leave overflow as it is");
  const Schema& schema = options.schema;
  if (schema.has_values() && numbers != NumberType::none)
    return Status::invalid("a table of numbers has no columns")
        .with_remedy("leave one of the two out: a column of numbers is in a schema, too");
  if (const uint32_t width = schema.key_width();
      width && options.key_width && width != options.key_width)
    return Status::invalid("key_width " + std::to_string(options.key_width) +
                           " is given, and keys of the schema have " + std::to_string(width) +
                           " bytes")
        .with_remedy("leave key_width at 0");
  if (!schema.key().empty() && options.address_bits)
    return Status::invalid("key columns are given for a prefix table")
        .with_remedy("leave the keys out of the schema");
  return check_expiry(options);
}

std::shared_ptr<const TableRecord> make_table_record(uint32_t id, const std::string& name,
                                                     const TableOptions& options) {
  auto record = std::make_shared<TableRecord>();
  record->id = id;
  record->name = name;
  record->key_width = options.address_bits         ? prefix_key_width(options.address_bits)
                      : options.schema.key_width() ? options.schema.key_width()
                                                   : options.key_width;
  record->address_bits = options.address_bits;
  record->share_equal_values = options.share_equal_values;
  record->numbers = options.numbers;
  record->sums_wrap = options.overflow == Overflow::wrap;
  record->expiry = make_expiry(options);
  return record;
}

namespace {

std::string kind_of(uint32_t address_bits) {
  if (address_bits == 0) return "an ordinary table";
  if (address_bits == byte_strings) return "a table of prefixes of byte strings";
  return "a table of prefixes of " + std::to_string(address_bits) + "-bit addresses";
}

std::string values_of(NumberType numbers, Overflow overflow) {
  if (numbers == NumberType::none) return "any bytes";
  return std::string(to_string(numbers)) + " numbers" +
         (overflow == Overflow::wrap ? " that wrap" : "");
}

std::string expiry_of(const std::string& column, int64_t time_to_live) {
  if (column.empty()) return "rows that do not end";
  return "rows that end as the column " + in_quotes(column) + " says" +
         (time_to_live ? ", by default after " + std::to_string(time_to_live) + " us" : "");
}

// A table that is opened without a schema is taken as it is.
Status check_same_expiry(const Table& table, const TableOptions& options) {
  if (options.schema.empty() && options.expiry_column.empty()) return {};
  const auto wanted = make_expiry(options);
  const int64_t live = wanted ? wanted->in_microseconds(wanted->time_to_live) : 0;
  if (table.expiry_column() == options.expiry_column && table.time_to_live() == live) return {};
  return Status::invalid("table '" + table.name() + "' has " +
                         expiry_of(table.expiry_column(), table.time_to_live()) + ", not " +
                         expiry_of(options.expiry_column, live) + ", which cannot be changed")
      .with_remedy("leave that as it is, or copy the rows into a new table");
}

}  // namespace

Result<Table> check_same_options(const Table& table, const TableOptions& options) {
  if (table.address_bits() != options.address_bits)
    return Status::invalid("table '" + table.name() + "' is " + kind_of(table.address_bits()) +
                           ", not " + kind_of(options.address_bits));
  const uint32_t key_width = options.key_width ? options.key_width : options.schema.key_width();
  if (!options.address_bits && table.key_width() != key_width)
    return Status::invalid("table '" + table.name() + "' has keys of width " +
                           std::to_string(table.key_width()) + ", not " +
                           std::to_string(key_width) + " (0: any)");
  if (table.share_equal_values() != options.share_equal_values)
    return Status::invalid("table '" + table.name() + "' was made " +
                           (table.share_equal_values() ? "with" : "without") +
                           " share_equal_values, which cannot be changed")
        .with_remedy("leave that as it is, or copy the rows into a new table");
  if (table.numbers() != options.numbers || table.overflow() != options.overflow)
    return Status::invalid("table '" + table.name() + "' has values of " +
                           values_of(table.numbers(), table.overflow()) + ", not of " +
                           values_of(options.numbers, options.overflow) +
                           ", which cannot be changed")
        .with_remedy("leave that as it is, or copy the rows into a new table");
  STRIDE_TRY(check_same_expiry(table, options));
  if (!options.schema.empty() && !(options.schema == table.schema()))
    return Status::invalid(
               "table '" + table.name() + "' has " +
               (table.schema().empty() ? "no schema" : "the schema " + table.schema().to_string()) +
               ", not " + options.schema.to_string())
        .with_remedy("give the table's, or none, or copy the rows into a new table");
  return table;
}

}  // namespace stride
