#include "engine/key_columns.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "storage/key_format.h"
#include "storage/key_order.h"
#include "storage/no_throw.h"
#include "storage/quoted.h"

namespace stride {
namespace {

std::string name_of(const Field& field) { return "key column " + in_quotes(field.name); }

Status check_count(const Schema& schema, size_t given) {
  if (given == schema.key().size() && given != 0) return {};
  return Status::invalid(std::to_string(given) +
                         " columns are given, and keys of the schema have " +
                         std::to_string(schema.key().size()) + ": " + schema.to_string())
      .with_remedy("give a column of cells for each of the schema's key columns");
}

Status check_cells(const Field& field, const CellColumn& column, uint64_t rows) {
  if (column.size != rows)
    return Status::invalid(name_of(field) + " has " + std::to_string(column.size) +
                           " rows, and the first one has " + std::to_string(rows));
  const uint32_t width = cell_width(field);
  if (width ? column.offsets || column.width != width : rows && !column.offsets)
    return Status::invalid(
        name_of(field) + " is of type " + type_text(field) + ", and cells of " +
        (column.offsets ? "any length" : std::to_string(column.width) + " bytes") + " are given");
  for (uint64_t row = 0; column.valid && row < rows; ++row)
    if (!column.is_there(row))
      return Status::invalid(name_of(field) + ", row " + std::to_string(row) +
                             ": the cell is null, and keys have none")
          .with_remedy("leave such rows out, or give them a key");
  for (uint64_t row = 0; column.offsets && row < rows; ++row)
    if (column.offsets[row + 1] < column.offsets[row])
      return Status::invalid(name_of(field) + ", row " + std::to_string(row) +
                             ": the offsets descend");
  return {};
}

// Writes the cells of a column of one width into keys that lie at one distance.
void write_fixed(const Field& field, const CellColumn& column, uint32_t distance, std::byte* to) {
  auto each = [&](auto width, const auto& write) {
    for (uint64_t row = 0; row < column.size; ++row)
      write(column.data + row * column.stride, to + row * distance, width);
  };
  if (is_of_bytes(field)) {
    each(column.width,
         [](const std::byte* from, std::byte* at, uint32_t n) { std::memcpy(at, from, n); });
    return;
  }
  const uint32_t elements = std::max(field.count, 1u);
  with_number_of(field.type, [&](auto number) {
    using T = decltype(number);
    if (elements == 1 && column.stride == sizeof(T) && distance == sizeof(T)) {
      // Several at once, as compilers do it where they see that both lie close.
      for (uint64_t row = 0; row < column.size; ++row)
        order_number<T>(column.data + row * sizeof(T), to + row * sizeof(T));
    } else if (elements == 1) {
      each(0, [](const std::byte* from, std::byte* at, uint32_t) { order_number<T>(from, at); });
    } else {
      each(elements, [](const std::byte* from, std::byte* at, uint32_t n) {
        for (uint32_t i = 0; i < n; ++i) order_number<T>(from + i * sizeof(T), at + i * sizeof(T));
      });
    }
  });
}

void read_fixed(const Field& field, const std::byte* from, uint32_t distance,
                DecodedColumn* column) {
  const uint64_t rows = column->size;
  column->bytes.reset(rows * column->width);
  std::byte* to = column->bytes.data();
  const uint32_t width = column->width;
  with_number_of(field.type, [&](auto number) {
    using T = decltype(number);
    for (uint64_t row = 0; row < rows; ++row)
      for (uint32_t i = 0; i < width; i += sizeof(T))
        unorder_number<T>(from + row * distance + i, to + row * width + i);
  });
  column->data = to;
  column->stride = width;
}

Status encode_variable(const Schema& schema, std::span<const CellColumn> columns,
                       EncodedKeys* encoded) {
  const std::vector<Field>& fields = schema.key();
  const uint64_t rows = columns[0].size;
  std::string bytes;
  encoded->offsets.reset(rows + 1);
  encoded->offsets[0] = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < fields.size(); ++i)
      append_key_cell(fields[i], columns[i][row], i + 1 == fields.size(), &bytes);
    encoded->offsets[row + 1] = bytes.size();
  }
  encoded->data.reset(bytes.size());
  if (!bytes.empty()) std::memcpy(encoded->data.data(), bytes.data(), bytes.size());
  encoded->keys = Column::variable(encoded->data.data(), encoded->offsets.data(), rows);
  return {};
}

Status no_key(const Schema& schema, uint64_t row) {
  return Status(StatusCode::corruption, "the key of row " + std::to_string(row) +
                                            " is none of the schema " + schema.to_string())
      .with_remedy("erase the row; whatever wrote it knew no schema");
}

// Takes keys apart one by one, for those that have columns of any length.
Status decode_variable(const Schema& schema, const KeyColumn& keys,
                       std::span<DecodedColumn> decoded) {
  const std::vector<Field>& fields = schema.key();
  std::vector<uint64_t> ends(fields.size(), 0);
  for (size_t i = 0; i < fields.size(); ++i) {
    decoded[i].bytes.reset(decoded[i].width ? keys.size * decoded[i].width : keys.bytes());
    if (decoded[i].width) continue;
    decoded[i].ends.reset(keys.size + 1);
    decoded[i].ends[0] = 0;
  }
  std::string memory;
  for (uint64_t row = 0; row < keys.size; ++row) {
    Bytes key = keys[row];
    for (size_t i = 0; i < fields.size(); ++i) {
      Bytes cell;
      if (!take_key_cell(fields[i], i + 1 == fields.size(), &key, &memory, &cell))
        return no_key(schema, row);
      if (!cell.empty()) std::memcpy(decoded[i].bytes.data() + ends[i], cell.data(), cell.size());
      ends[i] += cell.size();
      if (!decoded[i].width) decoded[i].ends[row + 1] = ends[i];
    }
    if (!key.empty()) return no_key(schema, row);
  }
  for (DecodedColumn& column : decoded) {
    column.data = column.bytes.data();
    column.stride = column.width;
    if (!column.width) column.offsets = column.ends.data();
  }
  return {};
}

}  // namespace

Status encode_keys(const Schema& schema, std::span<const CellColumn> columns,
                   EncodedKeys* encoded) {
  return no_throw([&]() -> Status {
    const std::vector<Field>& fields = schema.key();
    STRIDE_TRY(check_count(schema, columns.size()));
    const uint64_t rows = columns[0].size;
    for (size_t i = 0; i < fields.size(); ++i) STRIDE_TRY(check_cells(fields[i], columns[i], rows));
    const CellColumn& first = columns[0];
    if (fields.size() == 1 && is_of_bytes(fields[0]) &&
        (first.offsets || first.stride == first.width)) {
      encoded->keys = {first.data, first.offsets, rows, first.width};
      return {};
    }
    const uint32_t width = schema.key_width();
    if (width == 0) return encode_variable(schema, columns, encoded);
    encoded->data.reset(rows * width);
    uint32_t at = 0;
    for (size_t i = 0; i < fields.size(); ++i) {
      write_fixed(fields[i], columns[i], width, encoded->data.data() + at);
      at += columns[i].width;
    }
    encoded->keys = Column::fixed(encoded->data.data(), width, rows);
    return {};
  });
}

Status decode_keys(const Schema& schema, const KeyColumn& keys, std::span<DecodedColumn> decoded) {
  return no_throw([&]() -> Status {
    const std::vector<Field>& fields = schema.key();
    STRIDE_TRY(check_count(schema, decoded.size()));
    for (size_t i = 0; i < fields.size(); ++i) {
      static_cast<CellColumn&>(decoded[i]) = {};
      decoded[i].size = keys.size;
      decoded[i].width = cell_width(fields[i]);
    }
    const uint32_t width = schema.key_width();
    if (width == 0 && fields.size() == 1 && !keys.is_fixed()) {
      decoded[0].data = keys.data;
      decoded[0].offsets = keys.offsets;
      return {};
    }
    if (width == 0 || !keys.is_fixed() || keys.width != width)
      return decode_variable(schema, keys, decoded);
    uint32_t at = 0;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (is_of_bytes(fields[i])) {
        decoded[i].data = keys.data + at;
        decoded[i].stride = width;
      } else {
        read_fixed(fields[i], keys.data + at, width, &decoded[i]);
      }
      at += decoded[i].width;
    }
    return {};
  });
}

}  // namespace stride
