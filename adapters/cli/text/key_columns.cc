#include "adapters/cli/text/key_columns.h"

#include <algorithm>
#include <array>

#include "adapters/cli/input/json_text.h"
#include "adapters/cli/output/value_text.h"
#include "adapters/cli/text/cell_text.h"
#include "storage/key_format.h"
#include "storage/quoted.h"

namespace stride::cli {
namespace {

// The bytes of a cell's text, as a row has them. `number` is where a number lies.
bool cell_of_text(const Field& field, std::string_view text, std::array<std::byte, 16>* number,
                  Bytes* cell) {
  if (width_of(field.type) == 0) {
    *cell = as_bytes(text);
    if (field.count && text.size() != field.count) return false;
    return field.type != FieldType::string || is_utf8(text);
  }
  *cell = {number->data(), width_of(field.type)};
  return parse_element(field.type, text, number->data());
}

// Calls use(field, cell, number) for each column; false: the bytes are no key.
template <class Use>
bool for_each_cell(const Schema& columns, Bytes key, const Use& use) {
  std::string memory;
  Bytes cell;
  const std::vector<Field>& fields = columns.key();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!take_key_cell(fields[i], i + 1 == fields.size(), &key, &memory, &cell)) return false;
    use(fields[i], cell, i);
  }
  return key.empty();
}

bool is_key(const Schema& columns, Bytes key) {
  return for_each_cell(columns, key, [](const Field&, Bytes, size_t) {});
}

}  // namespace

std::shared_ptr<const Schema> key_columns_named(std::string_view types) {
  std::vector<Field> fields;
  for (size_t at = 0; at <= types.size();) {
    const size_t comma = std::min(types.find(',', at), types.size());
    std::optional<Field> field = field_of_type(types.substr(at, comma - at));
    if (!field) return nullptr;
    field->name =
        "key" +
        (fields.empty() && comma == types.size() ? "" : "_" + std::to_string(fields.size() + 1));
    fields.push_back(std::move(*field));
    at = comma + 1;
  }
  Result<Schema> schema = Schema::make({}, std::move(fields));
  return schema.ok() ? std::make_shared<const Schema>(std::move(*schema)) : nullptr;
}

std::string types_of(const Schema& columns) {
  std::string text;
  for (const Field& field : columns.key()) text += (text.empty() ? "" : ",") + type_text(field);
  return text;
}

ptrdiff_t encode_key_parts(const Schema& columns, std::span<const std::string_view> parts,
                           std::byte* to) {
  thread_local std::string key;
  key.clear();
  const std::vector<Field>& fields = columns.key();
  if (parts.size() > fields.size()) return -1 - static_cast<ptrdiff_t>(fields.size());
  std::array<std::byte, 16> number;
  Bytes cell;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!cell_of_text(fields[i], parts[i], &number, &cell)) return -1 - static_cast<ptrdiff_t>(i);
    append_key_cell(fields[i], cell, i + 1 == fields.size(), &key);
  }
  std::memcpy(to, key.data(), key.size());
  return static_cast<ptrdiff_t>(key.size());
}

std::vector<std::string_view> split_key(std::string_view text, std::string* memory) {
  memory->clear();
  memory->reserve(text.size());  // views of it are handed out
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    if (at == text.size() || text[at] != '"') {
      const size_t comma = std::min(text.find(',', at), text.size());
      parts.push_back(text.substr(at, comma - at));
      at = comma;
    } else {
      const size_t begin = memory->size();
      for (++at; at < text.size(); ++at) {
        if (text[at] == '"' && (++at == text.size() || text[at] != '"')) break;
        *memory += text[at];
      }
      // What stands behind the quotes belongs to the part, and makes it another one.
      for (; at < text.size() && text[at] != ','; ++at) *memory += text[at];
      parts.push_back(std::string_view(*memory).substr(begin));
    }
    if (at == text.size()) return parts;
    ++at;
  }
}

std::vector<std::string> split_names(std::string_view text) {
  std::string memory;
  const std::vector<std::string_view> parts = split_key(text, &memory);
  return {parts.begin(), parts.end()};
}

std::string why_no_key_parts(const Schema& columns, std::span<const std::string_view> parts) {
  const std::vector<Field>& fields = columns.key();
  std::array<std::byte, 16> number;
  Bytes cell;
  for (size_t i = 0; i < std::min(parts.size(), fields.size()); ++i)
    if (!cell_of_text(fields[i], parts[i], &number, &cell)) return why_no_cell(fields[i], parts[i]);
  if (parts.size() != fields.size() && fields.size() > 1)
    return std::to_string(parts.size()) + (parts.size() == 1 ? " column" : " columns") +
           " of a key, and the table's have " + std::to_string(fields.size()) + " (" +
           types_of(columns) + ")";
  return "no key of " + types_of(columns);
}

bool append_key_parts(const Schema& columns, Bytes key, char between, bool quoted,
                      TextBuffer* out) {
  if (!is_key(columns, key)) return false;
  TextBuffer text;
  return for_each_cell(columns, key, [&](const Field& field, Bytes cell, size_t i) {
    if (i != 0) out->append(between);
    if (!quoted || width_of(field.type) != 0) return append_cell(field, cell, out);
    text.clear();
    append_cell(field, cell, &text);
    append_csv_field(text.text(), between, out);
  });
}

bool append_key_members(const Schema& columns, const std::vector<std::string>& names, Bytes key,
                        TextBuffer* out) {
  if (!is_key(columns, key)) return false;
  return for_each_cell(columns, key, [&](const Field& field, Bytes cell, size_t i) {
    if (i != 0) out->append(',');
    if (width_of(field.type) == 0) return append_json_member(names[i], as_text(cell), out);
    append_json_name(names[i], out);
    append_json_cell(field, cell, out);
  });
}

}  // namespace stride::cli
