#include "adapters/cli/record_writer.h"

#include "adapters/cli/json_text.h"

namespace stride::cli {

void append_json_member(std::string_view name, std::string_view text, TextBuffer* out) {
  out->append('"');
  out->append(name);
  if (is_utf8(text)) {
    out->append("\":");
    append_json_string(text, out);
    return;
  }
  out->append("_hex\":\"");
  decode_key(KeyType::hex, as_bytes(text), out);
  out->append('"');
}

void append_csv_field(std::string_view text, char delimiter, TextBuffer* out) {
  const char special[] = {delimiter, '"', '\n', '\r'};
  if (text.find_first_of(std::string_view(special, sizeof special)) == std::string_view::npos)
    return out->append(text);
  out->append('"');
  for (char c : text) {
    if (c == '"') out->append('"');
    out->append(c);
  }
  out->append('"');
}

void RecordWriter::write(Bytes key, Bytes value, bool found, TextBuffer* out) {
  if (format_ == Format::raw) {
    const uint32_t lengths[] = {static_cast<uint32_t>(key.size()),
                                static_cast<uint32_t>(value.size())};
    out->append({reinterpret_cast<const char*>(lengths), sizeof lengths});
    out->append(as_text(key));
    return out->append(as_text(value));
  }
  if (format_ == Format::tsv) {
    decode_key(key_type_, key, out);
    out->append('\t');
    out->append(as_text(value));
    return out->append('\n');
  }
  key_text_.clear();
  decode_key(key_type_, key, &key_text_);
  if (format_ == Format::csv) {
    append_csv_field(key_text_.text(), ',', out);
    out->append(',');
    append_csv_field(as_text(value), ',', out);
    return out->append('\n');
  }
  out->append('{');
  bool number = width_of(key_type_) == 8 && key.size() == 8;
  if (number) {
    out->append("\"key\":");
    out->append(key_text_.text());
  } else {
    append_json_member("key", key_text_.text(), out);
  }
  out->append(',');
  if (found) {
    append_json_member("value", as_text(value), out);
  } else {
    out->append("\"value\":null");
  }
  out->append("}\n");
}

}  // namespace stride::cli
