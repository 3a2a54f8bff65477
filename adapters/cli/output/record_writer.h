// Records as text, in the formats that `load` reads back. VALUE is the table's columns, or its
// value where it has none.
//
//   tsv     KEY <tab> VALUE, as they are
//   csv     KEY,VALUE, in quotes where there is a comma, a quote or a line end in it
//   jsonl   {"key":...,"value":"..."}; key_hex or value_hex where the bytes are not UTF-8
//   raw     lengths of key and value (4 bytes each, little-endian), key, value as they are stored
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "adapters/cli/input/row_plan.h"
#include "adapters/cli/output/key_text.h"
#include "adapters/cli/output/output.h"
#include "adapters/cli/output/value_text.h"
#include "adapters/cli/text/key_codec.h"
#include "storage/column.h"

namespace stride::cli {

class RecordWriter {
 public:
  RecordWriter(Format format, KeyText key, const ValueText& value)
      : format_(format), key_(std::move(key)), value_(value) {}

  // What the columns are called, in tsv and csv.
  void write_header(TextBuffer* out) const;
  // found false: of a key that is not there; its value is empty, and null in JSON.
  void write(Bytes key, Bytes value, bool found, TextBuffer* out);
  // damaged: a value was no row of the table's schema.
  ExitStatus status() const;

 private:
  Format format_;
  KeyText key_;
  ValueText value_;
  std::string broken_key_;
};

// What addresses match, in all of these formats but raw: address, prefix and value, or
// {"address":"...","prefix":"...","value":"..."}.
class MatchWriter {
 public:
  MatchWriter(Format format, uint32_t address_bits, const ValueText& value)
      : format_(format),
        address_form_(KeyType::address, address_bits),
        prefix_form_(KeyType::prefix, address_bits),
        value_(value),
        address_name_(other_name("address")),
        prefix_name_(other_name("prefix")) {}

  void write_header(TextBuffer* out) const;
  // found false: no prefix; its fields are empty, and null in JSON.
  void write(Bytes address, Bytes prefix, Bytes value, bool found, TextBuffer* out);
  ExitStatus status() const;

 private:
  void write_field(const KeyForm& form, Bytes key, TextBuffer* out);
  // With as many _ behind as it takes for no column of the value to have it.
  std::string other_name(std::string name) const;
  Format format_;
  KeyForm address_form_, prefix_form_;
  TextBuffer text_;
  ValueText value_;
  std::string address_name_, prefix_name_;
  std::string broken_key_;
};

// damaged: the value of a key is no row of the table's schema.
ExitStatus no_row_of_schema(const std::string& key);

}  // namespace stride::cli
