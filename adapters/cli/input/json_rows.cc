// JSON lines: an object a line; empty lines are passed over.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "adapters/cli/input/json_text.h"
#include "adapters/cli/input/parsed_rows.h"
#include "adapters/cli/text/cell_text.h"
#include "adapters/cli/text/similar_names.h"

namespace stride::cli {
namespace {

class JsonParser {
 public:
  JsonParser(const RowPlan& plan, ParsedRows* rows)
      : options_(plan.options),
        rows_(*rows),
        key_names_(plan.key_names()),
        keys_(key_names_.size()),
        key_texts_(key_names_.size()),
        key_views_(key_names_.size()),
        only_these_(!plan.options.values.empty()),
        names_(values_in_order(plan.options)) {
    if (plan.options.schema && !only_these_)
      for (const Field& field : plan.options.schema->values()) names_.push_back(field.name);
    for (size_t i = 0; i < names_.size(); ++i) places_.emplace(names_[i], i);
    values_.resize(names_.size());
    texts_.resize(names_.size());
  }

  void parse(std::string_view text) {
    uint64_t line = 0;
    for (; !text.empty(); ++line) {
      size_t end = text.find('\n');
      std::string_view row = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
      rows_.at_line(line);
      if (row.size() > options_.max_row_bytes) {
        rows_.refuse("longer than --max-row-bytes (" + std::to_string(options_.max_row_bytes) + ")",
                     row.substr(0, 200));
      } else if (row.find_first_not_of(" \t") != std::string_view::npos) {
        parse_row(row, line);
      }
    }
    rows_.end(line);
  }

 private:
  void parse_row(std::string_view row, uint64_t line) {
    for (JsonSlice& key : keys_) key = {};
    has_stranger_ = false;
    taken_ = nullptr;
    for (JsonSlice& value : values_) value = {};
    JsonObject object(row);
    JsonSlice name, value;
    for (next_ = 0; object.next(&name, &value);) take_member(name, value);
    if (object.error())
      return rows_.refuse(std::string("JSON: ") + object.error(), row, advice_on(row));
    if (taken_ != nullptr) return refuse_taken(row);
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i].kind == JsonSlice::Kind::absent)
        return rows_.refuse("no field " + in_quotes(key_names_[i]), row,
                            fields_of(row, key_names_[i]));
      const bool boolean = keys_[i].text == "true" || keys_[i].text == "false";
      if (keys_[i].kind == JsonSlice::Kind::other && !boolean)
        return rows_.refuse(
            "the field " + in_quotes(key_names_[i]) + " is neither a string nor a number", row);
      key_views_[i] = plain_text(keys_[i], &key_texts_[i]);
    }
    if (!(keys_.size() == 1 ? rows_.key(key_views_[0], row) : rows_.key_columns(key_views_, row)))
      return;
    if (rows_.wants_values() && !add_value(row)) return;
    rows_.end_row(row, line);
  }

  // The value's field comes last.
  void refuse_taken(std::string_view row) {
    const bool is_value = taken_ == &options_.added_fields.back();
    rows_.refuse("the object has a field " + in_quotes(*taken_) + " already", row,
                 is_value ? "give the one that is added another name with --value-name"
                          : "give it another name in the file");
  }

  // What is no line of JSON lines may be JSON of another form.
  static std::string advice_on(std::string_view row) {
    const size_t first = row.find_first_not_of(" \t"), last = row.find_last_not_of(" \t");
    if (row[first] == '[') return "make lines of the array's elements, as jq -c '.[]' FILE does";
    if (row[first] == '{' && row[last] != '}')
      return "write each object in a line, as jq -c . FILE does";
    return "";
  }

  // "the object has 'id' and 'name', did you mean 'id'?"
  std::string fields_of(std::string_view row, const std::string& wanted) {
    std::vector<std::string> names;
    if (!rows_.bad().empty()) return "";  // the first of a block is enough
    JsonObject object(row);
    for (JsonSlice name, value; object.next(&name, &value);) names.emplace_back(name_of(name));
    if (names.empty()) return "";
    return "the object has " + names_text(names) + ", " +
           did_you_mean(wanted, names, "name one of these with --key or --value");
  }

  std::string_view name_of(const JsonSlice& name) {
    if (!name.escaped) return name.text;
    name_.resize(name.text.size());
    name_.resize(unescape(name, name_.data()));
    return name_;
  }

  void take_member(const JsonSlice& name, const JsonSlice& value) {
    std::string_view text = name_of(name);
    bool is_key = false;
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (text != key_names_[i]) continue;
      keys_[i] = value;
      is_key = true;
    }
    for (const std::string& added : options_.added_fields)
      if (text == added) taken_ = &added;
    // Objects of one file have their fields in one order, as a rule.
    if (next_ < names_.size() && text == names_[next_]) {
      values_[next_++] = value;
      return;
    }
    const auto found = places_.find(text);
    if (found != places_.end()) {
      next_ = found->second;
      values_[next_++] = value;
    } else if (!is_key && !has_stranger_) {
      stranger_ = name;
      has_stranger_ = true;
    }
  }

  static std::string_view plain_text(const JsonSlice& slice, std::string* memory) {
    if (!slice.escaped) return slice.text;
    memory->resize(slice.text.size());
    memory->resize(unescape(slice, memory->data()));
    return *memory;
  }

  bool add_cell(size_t i, std::string_view row) {
    const JsonSlice& value = values_[i];
    if (value.kind == JsonSlice::Kind::absent ||
        (value.kind == JsonSlice::Kind::other && value.text == "null"))
      return rows_.null_cell(i, row);
    const std::string_view text = plain_text(value, &texts_[i]);
    // Nobody knows whether strings of digits are meant as numbers.
    const bool is_string = value.kind == JsonSlice::Kind::string;
    if (options_.schema_is_guess && is_string && is_json_number(options_.schema->values()[i]))
      return rows_.refuse_cell(i, "\"" + std::string(text) + "\"", row);
    return rows_.cell(i, text, row);
  }

  bool add_cells(std::string_view row) {
    if (!only_these_ && has_stranger_) {
      rows_.refuse("field " + in_quotes(name_of(stranger_)) + " is none of the table's columns",
                   row,
                   options_.schema_is_guess
                       ? "the columns were told from the first rows: name those that are to be "
                         "loaded with --value, give --schema, or --schema none, which keeps whole "
                         "lines"
                       : "name those that are to be loaded with --value");
      return false;
    }
    for (size_t i = 0; i < values_.size(); ++i)
      if (!add_cell(i, row)) return false;
    return true;
  }

  bool add_value(std::string_view row) {
    if (options_.schema) return add_cells(row);
    if (values_.empty()) {
      rows_.value(row);
      return true;
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].kind == JsonSlice::Kind::absent) {
        rows_.refuse("no field " + in_quotes(options_.values[i]), row,
                     fields_of(row, options_.values[i]));
        return false;
      }
      if (i != 0) rows_.value('\t');
      if (values_[i].escaped) {
        rows_.grow_value(unescape(values_[i], rows_.value_space()));
      } else {
        rows_.value(values_[i].text);
      }
    }
    return true;
  }

  const RowOptions& options_;
  ParsedRows& rows_;
  std::vector<std::string> key_names_;
  std::vector<JsonSlice> keys_;
  std::vector<std::string> key_texts_;
  std::vector<std::string_view> key_views_;
  bool only_these_;  // of an object's fields; else all of them are columns
  std::vector<std::string> names_;
  std::vector<JsonSlice> values_;
  std::vector<std::string> texts_;                       // of strings with escapes
  std::unordered_map<std::string_view, size_t> places_;  // of the names
  bool has_stranger_ = false;
  const std::string* taken_ = nullptr;  // of the fields that are added: one that is there
  JsonSlice stranger_;                  // a field that is none of these
  size_t next_ = 0;                     // where the next member is looked for first
  std::string name_;
};

}  // namespace

void parse_json_rows(const RowPlan& plan, std::string_view text, ParsedRows* rows) {
  JsonParser(plan, rows).parse(text);
}

}  // namespace stride::cli
