// Keys of a table with key columns as columns of cells, and back: storage/key_format.h in bulk.
//
//   CellColumn columns[] = {CellColumn::of(years), CellColumn::of(ids)};
//   EncodedKeys keys;  // reused, it keeps its memory
//   Status s = encode_keys(table.schema(), columns, &keys);
//   if (s.ok()) s = snapshot.get(table, keys.keys, &result);
//
//   DecodedColumn cells[2];
//   while (scan.next(&batch))
//     if (decode_keys(table.schema(), batch.keys, cells).ok()) use(cells[0].number<int16_t>(0));
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/result_buffer.h"
#include "engine/row_columns.h"
#include "storage/column.h"
#include "storage/export.h"
#include "storage/schema.h"
#include "storage/status.h"

namespace stride {

// Keys that were made of columns.
struct EncodedKeys {
  KeyColumn keys;  // points into these, or to the cells where they are their own keys
  ResultBuffer<std::byte> data;
  ResultBuffer<uint64_t> offsets;
};

// A key for each of the columns' rows; columns[i] is of the schema's i-th key column. The cells
// must stay as long as the keys are read. invalid_argument, which names column and row: another
// number of columns, columns of different sizes, cells of another width, offsets that descend, or a
// null.
STRIDE_API Status encode_keys(const Schema& schema, std::span<const CellColumn> columns,
                              EncodedKeys* encoded);

// The cells of all key columns, of which there are decoded.size(). They point into the keys, which
// must stay as long as they are read, or into `decoded`. invalid_argument: another number of
// columns. corruption: bytes that are no key of the schema, with the row's number.
STRIDE_API Status decode_keys(const Schema& schema, const KeyColumn& keys,
                              std::span<DecodedColumn> decoded);

}  // namespace stride
