#include "adapters/cli/input/sniff.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "adapters/cli/text/cell_text.h"

namespace stride::cli {
namespace {

using Row = std::vector<std::string>;
constexpr size_t max_sniffed_rows = 256;

// Reads rows from left to right; csv: fields may be in quotes.
class SampleRows {
 public:
  SampleRows(std::string_view text, bool whole, char delimiter, bool csv)
      : text_(text), whole_(whole), delimiter_(delimiter), csv_(csv) {}

  // Whole rows, as far as the sample has them.
  std::vector<Row> read() {
    std::vector<Row> rows;
    while (at_ < text_.size() && rows.size() < max_sniffed_rows) {
      Row row;
      if (!take_row(&row)) break;
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  bool take_row(Row* row) {
    for (;;) {
      row->emplace_back();
      take_field(&row->back());
      if (at_ == text_.size()) return whole_;
      if (text_[at_++] == '\n') return true;
    }
  }
  void take_field(std::string* field) {
    const bool quoted = csv_ && at_ < text_.size() && text_[at_] == '"';
    if (quoted) {
      for (++at_; at_ < text_.size(); ++at_) {
        if (text_[at_] == '"' && (++at_ == text_.size() || text_[at_] != '"')) break;
        *field += text_[at_];
      }
    }
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != delimiter_ && text_[at_] != '\n') ++at_;
    if (!quoted) *field = text_.substr(begin, at_ - begin);
    if (!field->empty() && field->back() == '\r' && (at_ == text_.size() || text_[at_] == '\n'))
      field->pop_back();
  }

  std::string_view text_;
  bool whole_;
  char delimiter_;
  bool csv_;
  size_t at_ = 0;
};

bool has_type(const std::string& cell) {
  CellGuess guess;
  guess.add(cell);
  return guess.field("", false).type != FieldType::string &&
         guess.field("", false).type != FieldType::bytes;
}

bool is_key(const KeyForm& form, const std::string& cell) {
  std::vector<std::byte> memory(encoded_bound(form, cell));
  return encode_key(form, cell, memory.data()) > 0;
}

bool is_number(const std::string& name) {
  return name.find_first_not_of("0123456789") == std::string::npos;
}

// Whether the row has all of the names that --key and --value, or the table, have; nothing where
// none are known.
std::optional<bool> header_by_names(const Row& first, const RowOptions& options) {
  std::vector<std::string> names = options.values;
  if (!options.key.empty())
    for (const std::string& name : key_parts(options)) names.push_back(name);
  std::erase_if(names, is_number);
  const bool of_table = names.empty() && options.schema && options.values_wanted;
  if (of_table)
    for (const Field& field : options.schema->values()) names.push_back(field.name);
  if (names.empty()) return std::nullopt;
  const bool all = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(first.begin(), first.end(), name) != first.end();
  });
  // A name that is misspelt is best told with those that there are.
  if (!all && !of_table) return std::nullopt;
  return all;
}

// Whether the key's cell is a key in the second row, and none in the first.
bool header_by_key(const std::vector<Row>& rows, const RowOptions& options) {
  if (options.key_form.type == KeyType::bytes || options.key_form.parts() > 1) return false;
  if (options.key_form.type == KeyType::prefix && options.key_form.address_bits == 0) return false;
  const size_t column = options.key.empty() ? 0 : std::stoul(options.key) - 1;
  if (column >= rows[0].size() || column >= rows[1].size()) return false;
  return !rows[0][column].empty() && !is_key(options.key_form, rows[0][column]) &&
         is_key(options.key_form, rows[1][column]);
}

bool header_by_types(const std::vector<Row>& rows) {
  const Row& first = rows[0];
  if (first.size() < 2 || std::set<std::string>(first.begin(), first.end()).size() != first.size())
    return false;
  for (const std::string& cell : first)
    if (cell.find_first_not_of(" \t\r\n") == std::string::npos || has_type(cell)) return false;
  for (size_t i = 0; i < first.size(); ++i) {
    CellGuess guess;
    bool any = false;
    for (size_t r = 1; r < rows.size(); ++r) {
      if (rows[r].size() != first.size()) continue;
      any |= !rows[r][i].empty();
      guess.add(rows[r][i]);
    }
    const FieldType type = guess.field("", false).type;
    if (any && type != FieldType::string && type != FieldType::bytes) return true;
  }
  return false;
}

bool is_header(const std::vector<Row>& rows, const RowOptions& options) {
  if (rows.empty()) return false;
  if (const auto told = header_by_names(rows[0], options)) return *told;
  if (rows.size() >= 2 && header_by_types(rows)) return true;
  const bool key_is_number = options.key.empty() || (is_number(options.key) &&
                                                     options.key.size() < 9 && options.key != "0");
  if (rows.size() < 2 || !key_is_number) return false;
  return header_by_key(rows, options);
}

}  // namespace

bool has_two_rows(std::string_view sample, const RowOptions& options) {
  const bool csv = options.format == Format::csv;
  return SampleRows(sample, false, options.delimiter, csv).read().size() >= 2;
}

Sniffed sniff(std::string_view sample, bool whole, const RowOptions& options) {
  const bool csv = options.format == Format::csv;
  Sniffed told{options.delimiter, false};
  std::vector<Row> rows = SampleRows(sample, whole, told.delimiter, csv).read();
  auto has_one_column = [](const Row& row) { return row.size() == 1; };
  if (csv && options.sniffs_delimiter && !rows.empty() &&
      std::all_of(rows.begin(), rows.end(), has_one_column)) {
    for (char other : {';', '\t', '|'}) {
      std::vector<Row> split = SampleRows(sample, whole, other, csv).read();
      const size_t columns = split[0].size();
      const bool alike = std::all_of(split.begin(), split.end(),
                                     [&](const Row& row) { return row.size() == columns; });
      if (columns < 2 || !alike) continue;
      told.delimiter = other;
      rows = std::move(split);
      break;
    }
  }
  if (options.sniffs_header) told.header = is_header(rows, options);
  return told;
}

}  // namespace stride::cli
