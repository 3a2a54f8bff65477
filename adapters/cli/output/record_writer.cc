#include "adapters/cli/output/record_writer.h"

#include <vector>

namespace stride::cli {

ExitStatus no_row_of_schema(const std::string& key) {
  return ExitStatus(ExitCode::damaged,
                    "the value of key " + stride::quoted(key) +
                        " is no row of the table's columns: put the row again, or delete the key");
}

void RecordWriter::write_header(TextBuffer* out) const {
  if (format_ != Format::tsv && format_ != Format::csv) return;
  const bool csv = format_ == Format::csv;
  append_names({key_name_}, csv ? ',' : '\t', csv, out);
  out->append(csv ? ',' : '\t');
  append_names(value_.names(), csv ? ',' : '\t', csv, out);
  out->append('\n');
}

ExitStatus RecordWriter::status() const {
  return value_.ok() ? ExitStatus() : no_row_of_schema(broken_key_);
}

void RecordWriter::write(Bytes key, Bytes value, bool found, TextBuffer* out) {
  if (format_ == Format::raw) {
    const uint32_t lengths[] = {static_cast<uint32_t>(key.size()),
                                static_cast<uint32_t>(value.size())};
    out->append({reinterpret_cast<const char*>(lengths), sizeof lengths});
    out->append(as_text(key));
    return out->append(as_text(value));
  }
  const bool was_ok = value_.ok();
  if (format_ == Format::tsv) {
    decode_key(key_form_, key, out);
    out->append('\t');
    value_.append_fields(value, found, '\t', /*quoted=*/false, out);
    out->append('\n');
  } else {
    key_text_.clear();
    decode_key(key_form_, key, &key_text_);
    if (format_ == Format::csv) {
      append_csv_field(key_text_.text(), ',', out);
      out->append(',');
      value_.append_fields(value, found, ',', /*quoted=*/true, out);
      out->append('\n');
    } else {
      write_object(key, value, found, out);
    }
  }
  if (value_.ok() == was_ok) return;
  key_text_.clear();
  decode_key(key_form_, key, &key_text_);
  broken_key_ = key_text_.text();
}

// Precondition: key_text_ is the key's.
void RecordWriter::write_object(Bytes key, Bytes value, bool found, TextBuffer* out) {
  out->append('{');
  if (is_number(key_form_.type) && key.size() == 8) {
    append_json_name(key_name_, out);
    out->append(key_text_.text());
  } else {
    append_json_member(key_name_, key_text_.text(), out);
  }
  out->append(',');
  value_.append_members(value, found, out);
  out->append("}\n");
}

void MatchWriter::write_header(TextBuffer* out) const {
  if (format_ == Format::jsonl) return;
  const bool csv = format_ == Format::csv;
  std::vector<std::string> names = {"address", "prefix"};
  names.insert(names.end(), value_.names().begin(), value_.names().end());
  append_names(names, csv ? ',' : '\t', csv, out);
  out->append('\n');
}

ExitStatus MatchWriter::status() const {
  return value_.ok() ? ExitStatus() : no_row_of_schema(broken_key_);
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
  const bool was_ok = value_.ok();
  if (json) {
    value_.append_members(value, found, out);
  } else {
    value_.append_fields(value, found, between, format_ == Format::csv, out);
  }
  out->append(json ? std::string_view("}\n") : std::string_view("\n"));
  if (value_.ok() == was_ok) return;
  text_.clear();
  decode_key(prefix_form_, prefix, &text_);
  broken_key_ = text_.text();
}

}  // namespace stride::cli
