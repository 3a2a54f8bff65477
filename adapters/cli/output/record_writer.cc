#include "adapters/cli/output/record_writer.h"

#include <algorithm>
#include <vector>

namespace stride::cli {

ExitStatus no_row_of_schema(const std::string& key) {
  return ExitStatus(ExitCode::damaged,
                    "the value of key " + in_quotes(key) +
                        " is no row of the table's columns: put the row again, or delete the key");
}

void RecordWriter::write_header(TextBuffer* out) const {
  if (format_ != Format::tsv && format_ != Format::csv) return;
  const bool csv = format_ == Format::csv;
  std::vector<std::string> names = key_.names();
  names.insert(names.end(), value_.names().begin(), value_.names().end());
  append_names(names, csv ? ',' : '\t', csv, out);
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
  if (format_ == Format::jsonl) {
    out->append('{');
    key_.append_members(key, out);
    out->append(',');
    value_.append_members(value, found, out);
    out->append("}\n");
  } else {
    const bool csv = format_ == Format::csv;
    const char between = csv ? ',' : '\t';
    key_.append_fields(key, between, csv, out);
    out->append(between);
    value_.append_fields(value, found, between, csv, out);
    out->append('\n');
  }
  if (value_.ok() != was_ok) broken_key_ = key_.text(key);
}

void MatchWriter::write_header(TextBuffer* out) const {
  if (format_ == Format::jsonl) return;
  const bool csv = format_ == Format::csv;
  std::vector<std::string> names = {address_name_, prefix_name_};
  names.insert(names.end(), value_.names().begin(), value_.names().end());
  append_names(names, csv ? ',' : '\t', csv, out);
  out->append('\n');
}

ExitStatus MatchWriter::status() const {
  return value_.ok() ? ExitStatus() : no_row_of_schema(broken_key_);
}

std::string MatchWriter::other_name(std::string name) const {
  const std::vector<std::string>& taken = value_.names();
  while (std::find(taken.begin(), taken.end(), name) != taken.end()) name += "_";
  return name;
}

void MatchWriter::write_field(const KeyForm& form, Bytes key, TextBuffer* out) {
  if (format_ == Format::tsv) return decode_key(form, key, out);
  text_.clear();
  decode_key(form, key, &text_);
  if (format_ == Format::csv) return append_csv_field(text_.text(), ',', out);
  append_json_member(form.type == KeyType::address ? address_name_ : prefix_name_, text_.text(),
                     out);
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
    out->append('"');
    out->append(prefix_name_);
    out->append("\":null");
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
