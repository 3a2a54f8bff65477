// Records as text, in the formats that `load` reads back.
//
//   tsv     KEY <tab> VALUE, as they are
//   csv     KEY,VALUE, in quotes where there is a comma, a quote or a line end in it
//   jsonl   {"key":...,"value":"..."}; key_hex or value_hex where the bytes are not UTF-8
//   raw     lengths of key and value (4 bytes each, little-endian), key, value
//
// Values of a table of numbers are decimal text, and numbers in JSON; of raw records they are
// bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "adapters/cli/input/row_plan.h"
#include "adapters/cli/output/output.h"
#include "adapters/cli/text/key_codec.h"
#include "storage/column.h"
#include "storage/number.h"

namespace stride::cli {

// How a table's values are written.
class ValueText {
 public:
  explicit ValueText(NumberType numbers) : numbers_(numbers) {}
  // Until the next call.
  std::string_view of(Bytes value);
  // A member of a JSON object; found false: null.
  void append_member(std::string_view name, Bytes value, bool found, TextBuffer* out) const;

 private:
  NumberType numbers_;
  TextBuffer text_;
};

class RecordWriter {
 public:
  // numbers: of a table of numbers.
  RecordWriter(Format format, const KeyForm& key_form, NumberType numbers = NumberType::none)
      : format_(format), key_form_(key_form), value_(numbers) {}

  // found false: of a key that is not there; its value is empty, and null in JSON.
  void write(Bytes key, Bytes value, bool found, TextBuffer* out);

 private:
  Format format_;
  KeyForm key_form_;
  TextBuffer key_text_;
  ValueText value_;
};

// What addresses match, in all of these formats but raw: address, prefix and value, or
// {"address":"...","prefix":"...","value":"..."}.
class MatchWriter {
 public:
  MatchWriter(Format format, uint32_t address_bits, NumberType numbers)
      : format_(format),
        address_form_(KeyType::address, address_bits),
        prefix_form_(KeyType::prefix, address_bits),
        value_(numbers) {}

  // found false: no prefix; its fields are empty, and null in JSON.
  void write(Bytes address, Bytes prefix, Bytes value, bool found, TextBuffer* out);

 private:
  void write_field(const KeyForm& form, Bytes key, TextBuffer* out);
  Format format_;
  KeyForm address_form_, prefix_form_;
  TextBuffer text_;
  ValueText value_;
};

// "value":"..." or "value_hex":"..."
void append_json_member(std::string_view name, std::string_view text, TextBuffer* out);
// A field, in quotes where it needs them.
void append_csv_field(std::string_view text, char delimiter, TextBuffer* out);

}  // namespace stride::cli
