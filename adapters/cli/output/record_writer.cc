#include "adapters/cli/output/record_writer.h"

#include "adapters/cli/input/json_text.h"
#include "adapters/cli/text/number_text.h"

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

std::string_view ValueText::of(Bytes value) {
  if (numbers_ == NumberType::none || value.empty()) return as_text(value);
  text_.clear();
  append_number(numbers_, value, &text_);
  return text_.text();
}

void ValueText::append_member(std::string_view name, Bytes value, bool found,
                              TextBuffer* out) const {
  if (found && numbers_ != NumberType::none)
    return append_number_member(name, numbers_, value, out);
  if (found) return append_json_member(name, as_text(value), out);
  out->append('"');
  out->append(name);
  out->append("\":null");
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
    decode_key(key_form_, key, out);
    out->append('\t');
    out->append(value_.of(value));
    return out->append('\n');
  }
  key_text_.clear();
  decode_key(key_form_, key, &key_text_);
  if (format_ == Format::csv) {
    append_csv_field(key_text_.text(), ',', out);
    out->append(',');
    append_csv_field(value_.of(value), ',', out);
    return out->append('\n');
  }
  out->append('{');
  bool number = is_number(key_form_.type) && key.size() == 8;
  if (number) {
    out->append("\"key\":");
    out->append(key_text_.text());
  } else {
    append_json_member("key", key_text_.text(), out);
  }
  out->append(',');
  value_.append_member("value", value, found, out);
  out->append("}\n");
}

void MatchWriter::write_field(const KeyForm& form, Bytes key, TextBuffer* out) {
  if (format_ == Format::tsv) return decode_key(form, key, out);
  text_.clear();
  decode_key(form, key, &text_);
  if (format_ == Format::csv) return append_csv_field(text_.text(), ',', out);
  append_json_member(form.type == KeyType::address ? "address" : "prefix", text_.text(), out);
}

void MatchWriter::write(Bytes address, Bytes prefix, Bytes value, bool found, TextBuffer* out) {
  bool json = format_ == Format::jsonl;
  char between = format_ == Format::tsv ? '\t' : ',';
  if (json) out->append('{');
  write_field(address_form_, address, out);
  out->append(between);
  if (found) {
    write_field(prefix_form_, prefix, out);
  } else if (json) {
    out->append("\"prefix\":null");
  }
  out->append(between);
  if (format_ == Format::tsv) {
    out->append(value_.of(value));
  } else if (format_ == Format::csv) {
    append_csv_field(value_.of(value), ',', out);
  } else {
    value_.append_member("value", value, found, out);
  }
  out->append(json ? std::string_view("}\n") : std::string_view("\n"));
}

}  // namespace stride::cli
