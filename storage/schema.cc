#include "storage/schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "storage/column.h"
#include "storage/quoted.h"
#include "storage/utf8.h"

namespace stride {
namespace {

struct TypeName {
  std::string_view name;
  uint32_t width;
};
// In the order of FieldType.
constexpr std::array<TypeName, 19> types = {{{"bool", 1},
                                             {"i8", 1},
                                             {"i16", 2},
                                             {"i32", 4},
                                             {"i64", 8},
                                             {"u8", 1},
                                             {"u16", 2},
                                             {"u32", 4},
                                             {"u64", 8},
                                             {"f32", 4},
                                             {"f64", 8},
                                             {"date", 4},
                                             {"timestamp[s]", 8},
                                             {"timestamp[ms]", 8},
                                             {"timestamp[us]", 8},
                                             {"timestamp[ns]", 8},
                                             {"uuid", 16},
                                             {"string", 0},
                                             {"bytes", 0}}};

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string quoted_name(const std::string& name) {
  if (!name.empty() && std::all_of(name.begin(), name.end(), is_plain)) return name;
  std::string text = "\"";
  for (char c : name) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + '"';
}

// Reads the text of a schema from left to right.
class SchemaText {
 public:
  explicit SchemaText(std::string_view text) : text_(text) {}

  // False: the text is at its end.
  bool next_field() {
    while (at_ < text_.size() && is_between(text_[at_])) ++at_;
    return at_ < text_.size();
  }
  Status field(Field* field, bool* is_key) {
    STRIDE_TRY(name(&field->name));
    skip_space();
    const size_t type_at = at_;
    const std::string_view type = word();
    std::optional<Field> of_type = field_of_type(type);
    if (!of_type) {
      at_ = type_at;
      return wrong(type.empty() ? "field " + in_quotes(field->name) + " has no type"
                                : in_quotes(type) + " is no type of a field",
                   "give bool, i8 to i64, u8 to u64, f32, f64, date, timestamp, uuid, string, "
                   "bytes, or one with [N] behind it");
    }
    field->type = of_type->type;
    field->count = of_type->count;
    field->nullable = of_type->nullable;
    skip_space();
    *is_key = text_.substr(at_, 3) == "key" && (at_ + 3 == text_.size() || ends_word(at_ + 3));
    if (*is_key) at_ += 3;
    skip_space();
    if (at_ < text_.size() && !is_between(text_[at_]))
      return wrong("more than a name and a type", "put a comma between fields");
    return {};
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  static bool is_between(char c) { return is_space(c) || c == ',' || c == '\n'; }
  bool ends_word(size_t at) const { return is_between(text_[at]); }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  std::string_view word() {
    const size_t begin = at_;
    while (at_ < text_.size() && !is_between(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  Status name(std::string* name) {
    if (text_[at_] != '"') {
      *name = word();
      return {};
    }
    for (++at_;; ++at_) {
      if (at_ == text_.size()) return wrong("a name has no quote at its end", "close it");
      if (text_[at_] == '"' && (++at_ == text_.size() || text_[at_] != '"')) return {};
      *name += text_[at_];
    }
  }
  Status wrong(const std::string& what, std::string remedy) const {
    const auto before = text_.substr(0, at_);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    return Status::invalid("schema, line " + std::to_string(line) + ": " + what)
        .with_remedy(std::move(remedy));
  }

  std::string_view text_;
  size_t at_ = 0;
};

Status check_field(const Field& field) {
  const uint64_t element = width_of(field.type);
  if (field.count == 0) return {};
  const std::string name = "column " + in_quotes(field.name);
  if (field.type == FieldType::string || field.type == FieldType::uuid)
    return Status::invalid(name + " is a vector of " + std::string(to_string(field.type)))
        .with_remedy("use a vector of numbers, or bytes");
  if (std::max<uint64_t>(element, 1) * field.count > max_cell_width)
    return Status::invalid(name + " has cells of more than " + std::to_string(max_cell_width) +
                           " bytes")
        .with_remedy("use bytes of any length");
  return {};
}

}  // namespace

std::string_view to_string(FieldType type) { return types[static_cast<size_t>(type)].name; }
uint32_t width_of(FieldType type) { return types[static_cast<size_t>(type)].width; }

std::string type_text(const Field& field) {
  std::string text(to_string(field.type));
  if (field.type == FieldType::timestamp_us) text = "timestamp";
  if (field.count) text += "[" + std::to_string(field.count) + "]";
  if (field.nullable) text += "?";
  return text;
}

std::optional<Field> field_of_type(std::string_view type) {
  Field field;
  if (type.ends_with('?')) {
    field.nullable = true;
    type.remove_suffix(1);
  }
  auto find = [&](std::string_view name) {
    if (name == "timestamp") name = "timestamp[us]";
    auto found = std::find_if(types.begin(), types.end(),
                              [&](const TypeName& known) { return known.name == name; });
    if (found == types.end()) return false;
    field.type = static_cast<FieldType>(found - types.begin());
    return true;
  };
  if (find(type)) return field;
  const size_t bracket = type.rfind('[');
  if (bracket == std::string_view::npos || type.back() != ']' || !find(type.substr(0, bracket)))
    return std::nullopt;
  const char* end = type.data() + type.size() - 1;
  auto [stop, error] = std::from_chars(type.data() + bracket + 1, end, field.count);
  if (error != std::errc() || stop != end || field.count == 0) return std::nullopt;
  return field;
}

uint32_t cell_width(const Field& field) {
  const uint32_t element = width_of(field.type);
  if (field.count == 0) return element;
  return field.count * std::max(element, 1u);  // of bytes one each
}

Result<Schema> Schema::make(std::vector<Field> values, std::vector<Field> key) {
  if (values.size() + key.size() > max_fields)
    return Status::invalid("a schema of " + std::to_string(values.size() + key.size()) +
                           " columns; at most " + std::to_string(max_fields) + " are possible")
        .with_remedy("put columns that go together into a vector, or into one of bytes");
  std::set<std::string_view> names;
  for (const auto* fields : {&key, &values})
    for (const Field& field : *fields) {
      if (field.name.empty())
        return Status::invalid("a column without a name").with_remedy("give each one a name");
      if (!is_utf8(field.name))
        return Status::invalid("column name " + in_quotes(field.name) + " is no UTF-8")
            .with_remedy("give it another name");
      if (!names.insert(field.name).second)
        return Status::invalid("two columns are called " + in_quotes(field.name))
            .with_remedy("give each one a name of its own");
      STRIDE_TRY(check_field(field));
    }
  for (const Field& field : key)
    if (field.nullable || field.is_vector())
      return Status::invalid("key column " + in_quotes(field.name) + " is of type " +
                             type_text(field) + ", and keys are neither null nor vectors")
          .with_remedy("leave ? and the length out, or make it a value");
  Schema schema;
  uint64_t key_bytes = 0;
  bool any_length = false;
  for (const Field& field : key) {
    key_bytes += cell_width(field);
    any_length |= cell_width(field) == 0;
  }
  if (key_bytes > max_key_bytes)
    return Status::invalid("keys of " + std::to_string(key_bytes) + " bytes; at most " +
                           std::to_string(max_key_bytes) + " are possible")
        .with_remedy("make values of some key columns");
  schema.key_width_ = any_length ? 0 : static_cast<uint32_t>(key_bytes);
  uint64_t at = 0;
  uint32_t nullable = 0;
  for (const Field& field : values) {
    Place place;
    place.width = cell_width(field);
    if (place.width) {
      place.at = static_cast<uint32_t>(at);
      at += place.width;
    } else {
      schema.variable_.push_back(static_cast<uint32_t>(schema.places_.size()));
    }
    schema.places_.push_back(place);
  }
  if (at > uint64_t{max_cell_width} * 16)
    return Status::invalid("rows of " + std::to_string(at) + " bytes are too long for a schema")
        .with_remedy("use bytes of any length");
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].nullable)
      schema.places_[i].valid_bit = static_cast<uint32_t>(at) * 8 + nullable++;
  schema.fixed_bytes_ = static_cast<uint32_t>(at) + (nullable + 7) / 8;
  schema.values_ = std::move(values);
  schema.key_ = std::move(key);
  return schema;
}

Result<Schema> Schema::parse(std::string_view text) {
  SchemaText fields(text);
  std::vector<Field> key, values;
  while (fields.next_field()) {
    Field field;
    bool is_key = false;
    STRIDE_TRY(fields.field(&field, &is_key));
    (is_key ? key : values).push_back(std::move(field));
  }
  return make(std::move(values), std::move(key));
}

std::string Schema::to_string() const {
  std::string text;
  auto append = [&](const std::vector<Field>& fields, const char* behind) {
    for (const Field& field : fields)
      text +=
          (text.empty() ? "" : ", ") + quoted_name(field.name) + " " + type_text(field) + behind;
  };
  append(key_, " key");
  append(values_, "");
  return text;
}

std::optional<size_t> Schema::find(std::string_view name) const {
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].name == name) return i;
  return std::nullopt;
}

}  // namespace stride
