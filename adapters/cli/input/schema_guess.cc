#include "adapters/cli/input/schema_guess.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "adapters/cli/input/json_text.h"
#include "adapters/cli/input/rejected_rows.h"
#include "adapters/cli/text/cell_text.h"
#include "storage/row_format.h"

namespace stride::cli {
namespace {

// A guess looks at so much of a block's text: of its rows the first ones, and each sixteenth behind
// them.
constexpr size_t guessed_bytes = 512 << 10;
constexpr uint64_t dense_rows = 8192, sparse_step = 16;

ExitStatus make_schema(const FileRows& file, std::vector<Field> fields, Schema* schema) {
  Result<Schema> made = Schema::make(std::move(fields));
  if (!made.ok())
    return ExitStatus(ExitCode::bad_input,
                      file.name + ": " + made.status().message() +
                          ": choose columns with --value, or give --schema none, which keeps rows "
                          "as text");
  *schema = std::move(*made);
  return {};
}

// Reads the cells as bytes, and guesses from these.
ExitStatus guess_delimited(const Block& block, Schema* schema) {
  const FileRows& file = *block.file;
  std::vector<Field> fields;
  for (size_t i : file.plan.chosen_columns())
    fields.push_back({file.plan.columns[i], FieldType::bytes, 0, true});
  if (fields.empty()) return {};
  Schema as_bytes;
  STRIDE_CLI_TRY(make_schema(file, fields, &as_bytes));
  Block copy = block;
  // A row that this cuts, within quotes, is a bad one, and not looked at.
  const size_t end = copy.text.rfind('\n', guessed_bytes);
  if (copy.text.size() > guessed_bytes && end != std::string_view::npos)
    copy.text = copy.text.substr(0, end + 1);
  auto rows_of = std::make_shared<FileRows>(file);
  rows_of->plan.set_schema(std::make_shared<const Schema>(as_bytes));
  copy.file = rows_of;
  ParsedRows rows({.values = true, .rows = false, .lines = false});
  STRIDE_CLI_TRY(parse_block(copy, &rows));
  std::vector<CellGuess> guesses(fields.size());
  RowReader reader(as_bytes);
  const RowColumns columns = rows.take();
  for (uint64_t row = 0; row < columns.keys.size; row += row < dense_rows ? 1 : sparse_step) {
    if (!reader.read(columns.values[row])) continue;
    for (size_t i = 0; i < fields.size(); ++i) guesses[i].add(as_text(reader[i]));
  }
  for (size_t i = 0; i < fields.size(); ++i)
    fields[i] = guesses[i].field(as_bytes.values()[i].name, /*sparse=*/false);
  return make_schema(file, std::move(fields), schema);
}

// Fields in the order in which they first come.
class JsonFields {
 public:
  explicit JsonFields(const RowPlan& plan) : keys_(plan.key_names()), names_(plan.options.values) {
    only_these_ = !names_.empty();
    guesses_.resize(names_.size());
    for (size_t i = 0; i < names_.size(); ++i) places_.emplace(names_[i], i);
  }

  void add(std::string_view line) {
    JsonObject object(line);
    size_t position = 0;
    for (JsonSlice name, value; object.next(&name, &value); ++position) {
      const size_t i = find(unescaped(name, &name_), position);
      if (i == names_.size()) continue;
      if (value.kind == JsonSlice::Kind::other && value.text == "null") continue;
      const bool is_number = value.kind == JsonSlice::Kind::number;
      const bool is_boolean = value.text == "true" || value.text == "false";
      guesses_[i].add_json(unescaped(value, &value_),
                           !is_number && !(value.kind == JsonSlice::Kind::other && is_boolean));
    }
  }
  std::vector<Field> fields() const {
    std::vector<Field> fields;
    for (size_t i = 0; i < names_.size(); ++i)
      fields.push_back(guesses_[i].field(names_[i], /*sparse=*/true));
    return fields;
  }

 private:
  static std::string_view unescaped(const JsonSlice& slice, std::string* memory) {
    if (!slice.escaped) return slice.text;
    memory->resize(slice.text.size());
    memory->resize(unescape(slice, memory->data()));
    return *memory;
  }
  // The end: it is the key, or not wanted.
  size_t find(std::string_view name, size_t hint) {
    if (hint < names_.size() && names_[hint] == name) return hint;
    const auto found = places_.find(std::string(name));
    if (found != places_.end()) return found->second;
    const bool is_key = std::find(keys_.begin(), keys_.end(), name) != keys_.end();
    if (only_these_ || is_key) return names_.size();
    places_.emplace(name, names_.size());
    names_.emplace_back(name);
    guesses_.emplace_back();
    return names_.size() - 1;
  }

  std::vector<std::string> keys_;
  bool only_these_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> places_;
  std::vector<CellGuess> guesses_;
  std::string name_, value_;
};

ExitStatus guess_json(const Block& block, Schema* schema) {
  JsonFields fields(block.file->plan);
  for (std::string_view text = block.text; !text.empty();) {
    const size_t end = text.find('\n');
    fields.add(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (fields.fields().empty()) return {};
  return make_schema(*block.file, fields.fields(), schema);
}

}  // namespace

ExitStatus guess_schema(const Block& block, Schema* schema) {
  *schema = {};
  const RowPlan& plan = block.file->plan;
  if (plan.options.format == Format::jsonl) return guess_json(block, schema);
  if (plan.columns.empty() || block.too_long) return {};
  if (!is_columnar(plan.options.format)) return guess_delimited(block, schema);
  std::vector<Field> fields;
  for (size_t i : plan.chosen_columns()) fields.push_back(plan.fields[i]);
  return fields.empty() ? ExitStatus() : make_schema(*block.file, std::move(fields), schema);
}

}  // namespace stride::cli
