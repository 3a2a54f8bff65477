#include "adapters/cli/output/key_text.h"

#include "adapters/cli/output/value_text.h"

namespace stride::cli {

KeyText::KeyText(KeyForm form, std::vector<std::string> names)
    : form_(std::move(form)), names_(std::move(names)) {
  const size_t parts = form_.parts();
  while (names_.size() < parts)
    names_.push_back(parts == 1 ? "key" : "key_" + std::to_string(names_.size() + 1));
}

void KeyText::append_fields(Bytes key, char delimiter, bool quoted, TextBuffer* out) {
  if (form_.columns && append_key_parts(*form_.columns, key, delimiter, quoted, out)) return;
  if (!quoted) return decode_key(form_, key, out);
  text_.clear();
  decode_key(form_, key, &text_);
  append_csv_field(text_.text(), delimiter, out);
}

void KeyText::append_members(Bytes key, TextBuffer* out) {
  if (form_.columns && append_key_members(*form_.columns, names_, key, out)) return;
  text_.clear();
  decode_key(form_, key, &text_);
  if (!is_number(form_.type) || key.size() != 8)
    return append_json_member(names_[0], text_.text(), out);
  append_json_name(names_[0], out);
  out->append(text_.text());
}

std::string KeyText::text(Bytes key) const {
  TextBuffer text;
  decode_key(form_, key, &text);
  return std::string(text.text());
}

}  // namespace stride::cli
