// How a table's keys are written: as text, or as their columns.
#pragma once

#include <string>
#include <vector>

#include "adapters/cli/output/output.h"
#include "adapters/cli/text/key_codec.h"
#include "storage/column.h"

namespace stride::cli {

class KeyText {
 public:
  // names: of the key's columns; the missing ones are "key", or "key_1" and so on.
  explicit KeyText(KeyForm form, std::vector<std::string> names = {});

  const std::vector<std::string>& names() const { return names_; }
  // Fields with delimiters between; quoted: in quotes where they need them.
  void append_fields(Bytes key, char delimiter, bool quoted, TextBuffer* out);
  // Members of a JSON object, without the braces.
  void append_members(Bytes key, TextBuffer* out);
  // As an argument has it.
  std::string text(Bytes key) const;

 private:
  KeyForm form_;
  std::vector<std::string> names_;
  TextBuffer text_;
};

}  // namespace stride::cli
