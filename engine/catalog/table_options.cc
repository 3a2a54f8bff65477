#include "engine/catalog/table_options.h"

#include "storage/column.h"
#include "storage/prefix_key.h"
#include "storage/segment_format.h"

namespace stride {

Status check_table_name(const std::string& name) {
  if (name.empty() || name.size() > 255 || name.find('\0') != std::string::npos)
    return Status::invalid("a table's name has 1 to 255 bytes and no NUL; this one has " +
                           std::to_string(name.size()) + " bytes");
  return {};
}

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
  return {};
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
  if (!options.schema.empty() && !(options.schema == table.schema()))
    return Status::invalid(
               "table '" + table.name() + "' has " +
               (table.schema().empty() ? "no schema" : "the schema " + table.schema().to_string()) +
               ", not " + options.schema.to_string())
        .with_remedy("give the table's, or none, or copy the rows into a new table");
  return table;
}

}  // namespace stride
