#include "adapters/cli/output/value_text.h"

#include <algorithm>
#include <numeric>

#include "adapters/cli/input/json_text.h"
#include "adapters/cli/text/cell_text.h"
#include "adapters/cli/text/key_codec.h"
#include "adapters/cli/text/number_text.h"
#include "adapters/cli/text/similar_names.h"

namespace stride::cli {
namespace {

std::string json_name(const std::string& name) {
  TextBuffer text;
  append_json_name(name, &text);
  return std::string(text.text());
}

}  // namespace

ExitStatus find_columns(const Table& table, const std::vector<std::string>& names,
                        std::vector<size_t>* columns) {
  const Schema& schema = table.schema();
  if (names.empty()) {
    columns->resize(schema.values().size());
    std::iota(columns->begin(), columns->end(), size_t{0});
    return {};
  }
  if (!schema.has_values())
    return ExitStatus::usage(
        "table '" + table.name() +
        "' has no columns: leave --columns out, or load it anew with --schema");
  std::vector<std::string> known;
  for (const Field& field : schema.values()) known.push_back(field.name);
  for (const std::string& name : names) {
    const std::optional<size_t> column = schema.find(name);
    if (!column)
      return ExitStatus::usage("no column " + in_quotes(name) + " in table '" + table.name() +
                               "', which has " + names_text(known) + ": " +
                               did_you_mean(name, known, "name some of these"));
    if (std::find(columns->begin(), columns->end(), *column) != columns->end())
      return ExitStatus::usage("--columns names column " + in_quotes(name) + " twice");
    columns->push_back(*column);
  }
  return {};
}

ValueText::ValueText(const Table& table, std::vector<size_t> columns, std::string value_name)
    : numbers_(table.numbers()), schema_(table.schema()), columns_(std::move(columns)) {
  for (size_t i : columns_) names_.push_back(schema_.values()[i].name);
  if (has_columns()) {
    row_.emplace(schema_);
  } else {
    names_ = {std::move(value_name)};
  }
  for (const std::string& name : names_) json_names_.push_back(json_name(name));
}

ValueText::ValueText(const ValueText& other)
    : numbers_(other.numbers_),
      schema_(other.schema_),
      columns_(other.columns_),
      names_(other.names_),
      json_names_(other.json_names_) {
  if (has_columns()) row_.emplace(schema_);
}

std::string_view ValueText::of(Bytes value) {
  if (numbers_ == NumberType::none || value.empty()) return as_text(value);
  text_.clear();
  append_number(numbers_, value, &text_);
  return text_.text();
}

bool ValueText::read(Bytes value, bool found) {
  if (!found) return false;
  const bool good = row_->read(value);
  broken_ = broken_ || !good;
  return good;
}

void ValueText::append_fields(Bytes value, bool found, char delimiter, bool quoted,
                              TextBuffer* out) {
  auto append = [&](std::string_view field) {
    if (quoted) return append_csv_field(field, delimiter, out);
    out->append(field);
  };
  if (!has_columns()) return append(found ? of(value) : std::string_view());
  const bool good = read(value, found);
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (i != 0) out->append(delimiter);
    const size_t column = columns_[i];
    if (!good || row_->is_null(column)) continue;
    const Field& field = schema_.values()[column];
    if (!quoted) {
      append_cell(field, (*row_)[column], out);
      continue;
    }
    text_.clear();
    append_cell(field, (*row_)[column], &text_);
    // What is empty and no null is told apart by its quotes.
    if (field.nullable && text_.size() == 0) out->append("\"\"");
    append_csv_field(text_.text(), delimiter, out);
  }
}

void ValueText::append_members(Bytes value, bool found, TextBuffer* out) {
  if (!has_columns()) return append_member(names_[0], value, found, out);
  const bool good = read(value, found);
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (i != 0) out->append(',');
    const size_t column = columns_[i];
    const Field& field = schema_.values()[column];
    if (!good || row_->is_null(column)) {
      out->append(json_names_[i]);
      out->append("null");
      continue;
    }
    const Bytes cell = (*row_)[column];
    const bool text = field.type == FieldType::string || field.type == FieldType::bytes;
    if (text && !is_utf8(as_text(cell))) {
      append_json_member(names_[i], as_text(cell), out);
      continue;
    }
    out->append(json_names_[i]);
    append_json_cell(field, cell, out);
  }
}

void ValueText::append_member(std::string_view name, Bytes value, bool found, TextBuffer* out) {
  if (found && has_columns()) {
    out->append(json_name(std::string(name)));
    out->append('{');
    append_members(value, true, out);
    return out->append('}');
  }
  if (found && numbers_ != NumberType::none)
    return append_number_member(name, numbers_, value, out);
  if (found) return append_json_member(name, as_text(value), out);
  append_json_name(name, out);
  out->append("null");
}

void append_names(const std::vector<std::string>& names, char delimiter, bool quoted,
                  TextBuffer* out) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (i != 0) out->append(delimiter);
    if (quoted) {
      append_csv_field(names[i], delimiter, out);
    } else {
      out->append(names[i]);
    }
  }
}

void append_json_name(std::string_view name, TextBuffer* out) {
  append_json_string(is_utf8(name) ? std::string(name) : printable(name), out);
  out->append(':');
}

void append_json_member(std::string_view name, std::string_view text, TextBuffer* out) {
  if (is_utf8(text)) {
    append_json_name(name, out);
    append_json_string(text, out);
    return;
  }
  append_json_name(std::string(name) + "_hex", out);
  out->append('"');
  decode_key(KeyType::hex, as_bytes(text), out);
  out->append('"');
}

void append_csv_field(std::string_view text, char delimiter, TextBuffer* out) {
  const char special[] = {delimiter, '"', '\n', '\r'};
  // A byte order mark is one where a file begins.
  if (!text.starts_with("\xEF\xBB\xBF") &&
      text.find_first_of(std::string_view(special, sizeof special)) == std::string_view::npos)
    return out->append(text);
  out->append('"');
  for (char c : text) {
    if (c == '"') out->append('"');
    out->append(c);
  }
  out->append('"');
}

}  // namespace stride::cli
