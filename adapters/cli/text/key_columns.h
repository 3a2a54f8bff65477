// Keys of columns as text: one of a type that is none of the plain ones, or several.
//
//   u32,string      'nz,1999' as an argument, with quotes as in CSV; a column each in files and
//   output
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/cli/output/output.h"
#include "storage/column.h"
#include "storage/schema.h"

namespace stride::cli {

// The key columns of types with commas between; null where these are none.
std::shared_ptr<const Schema> key_columns_named(std::string_view types);
// The types, with commas between.
std::string types_of(const Schema& columns);

// Room that is enough for a key of parts of so many bytes.
inline size_t encoded_key_bound(const Schema& columns, size_t text_bytes) {
  return 2 * text_bytes + 18 * columns.key().size();
}
// Writes the key of its parts, or of the first ones of them, and returns its bytes. Negative: a
// part is none, or they are too many; -1 for the first part, and so on.
ptrdiff_t encode_key_parts(const Schema& columns, std::span<const std::string_view> parts,
                           std::byte* to);
// The parts of an argument; *memory has those that were in quotes.
std::vector<std::string_view> split_key(std::string_view text, std::string* memory);
// The same, of names with commas between: "id,\"a, b\"" are two.
std::vector<std::string> split_names(std::string_view text);
std::string why_no_key_parts(const Schema& columns, std::span<const std::string_view> parts);

// The texts of a key's columns with `between` between; quoted: as in CSV. False, and nothing is
// appended: the bytes are no such key.
bool append_key_parts(const Schema& columns, Bytes key, char between, bool quoted, TextBuffer* out);
// Members of a JSON object. names: of the columns.
bool append_key_members(const Schema& columns, const std::vector<std::string>& names, Bytes key,
                        TextBuffer* out);

}  // namespace stride::cli
