// TSV, CSV (RFC 4180, strictly) and raw records.
#include <algorithm>
#include <cstring>
#include <optional>

#include "adapters/cli/input/block_reader.h"
#include "adapters/cli/input/parsed_rows.h"
#include "adapters/cli/input/typed_lines.h"

namespace stride::cli {
namespace {

std::string too_long_text(const RowOptions& options) {
  return "longer than --max-row-bytes (" + std::to_string(options.max_row_bytes) + ")";
}

std::string column_count_text(const RowPlan& plan, size_t columns) {
  bool few = columns < plan.min_columns || columns < plan.exact_columns;
  std::string text = few ? "too few columns: " : "too many columns: ";
  text += std::to_string(columns) + ", and ";
  if (plan.exact_columns && plan.options.schema && plan.columns.empty())
    return text + std::to_string(plan.exact_columns) + " are the key and the table's columns";
  if (plan.exact_columns)
    return text + (plan.options.header ? "the header has " : "the first row has ") +
           std::to_string(plan.exact_columns);
  return text + std::to_string(plan.min_columns) + " are needed";
}

constexpr const char* mixed_advice = "take both ends with --line-ends any";

// Cuts the line end off a line that ends at a newline. Null, or what is wrong with it.
const char* cut_line_end(const RowPlan& plan, std::string_view* line) {
  if (plan.options.line_ends == LineEnds::lf) return nullptr;
  bool cr = !line->empty() && line->back() == '\r';
  if (cr == plan.crlf || plan.options.line_ends == LineEnds::any) {
    if (cr) line->remove_suffix(1);
    return nullptr;
  }
  return cr ? "mixed line ends: this one is CRLF, the ones before are LF"
            : "mixed line ends: this one is LF, the ones before are CRLF";
}

// The last line of a file may end without a newline, and then with a lone CR or without.
void cut_last_line_end(const RowPlan& plan, std::string_view* line) {
  bool cr = !line->empty() && line->back() == '\r';
  if (cr && (plan.crlf || plan.options.line_ends == LineEnds::any)) line->remove_suffix(1);
}

class DelimitedParser {
 public:
  DelimitedParser(const RowPlan& plan, ParsedRows* rows)
      : plan_(plan),
        rows_(*rows),
        delimiter_(plan.options.delimiter),
        key_first_(plan.key_columns == std::vector<size_t>{0} && plan.exact_columns == 0 &&
                   (plan.value_is_rest || !rows->wants_values())),
        max_fields_(plan.exact_columns || plan.value_is_rest ? ~size_t{0} : plan.min_columns) {
    if (TypedLines::fit(plan, *rows)) typed_.emplace(plan, rows);
  }

  void parse(std::string_view text) {
    bool csv = plan_.options.format == Format::csv;
    const char* p = text.data();
    const char* end = p + text.size();
    // Where quotes are rare whole blocks have none.
    const char* quote = csv ? next_quote(p, end) : end;
    while (p < end) {
      rows_.at_line(line_);
      if (const char* next = typed_ ? typed_->take(p, end, line_) : nullptr) {
        ++line_;
        p = next;
        continue;
      }
      if (quote < p) quote = next_quote(p, end);
      const char* newline = static_cast<const char*>(std::memchr(p, '\n', end - p));
      const char* line_end = newline ? newline : end;
      if (quote < line_end) {
        p = parse_quoted(p, end);
        quote = next_quote(p, end);
        continue;
      }
      std::string_view line(p, static_cast<size_t>(line_end - p));
      p = newline ? newline + 1 : end;
      const char* wrong = nullptr;
      if (newline) {
        wrong = cut_line_end(plan_, &line);
      } else {
        cut_last_line_end(plan_, &line);
      }
      if (wrong) {
        rows_.refuse(wrong, line, mixed_advice);
      } else if (line.size() > plan_.options.max_row_bytes) {
        rows_.refuse(too_long_text(plan_.options), line.substr(0, 200));
      } else {
        parse_line(line);
      }
      ++line_;
    }
    rows_.end(line_);
  }

 private:
  const char* next_quote(const char* p, const char* end) const {
    const void* quote = p < end ? std::memchr(p, '"', static_cast<size_t>(end - p)) : nullptr;
    return quote ? static_cast<const char*>(quote) : end;
  }

  void take_whole(std::string_view row) {
    if (rows_.key(row, row)) rows_.end_row(row, line_);
  }

  void parse_line(std::string_view line) {
    if (plan_.options.whole_rows) return take_whole(line);
    if (key_first_) return parse_key_first(line);
    fields_.clear();
    in_quotes_.clear();
    std::string_view left = line;
    for (;;) {
      size_t at = left.find(delimiter_);
      fields_.push_back(left.substr(0, at));
      if (at == std::string_view::npos || fields_.size() == max_fields_) break;
      left.remove_prefix(at + 1);
    }
    take_fields(line);
  }

  // The key, and the rest of the line as it is.
  void parse_key_first(std::string_view line) {
    const void* found = line.empty() ? nullptr : std::memchr(line.data(), delimiter_, line.size());
    size_t at =
        found ? static_cast<size_t>(static_cast<const char*>(found) - line.data()) : line.size();
    if (!found && plan_.min_columns > 1) return refuse_count(1, line);
    if (!rows_.key(line.substr(0, at), line)) return;
    if (rows_.wants_values()) {
      std::string_view rest = line.substr(std::min(at + 1, line.size()));
      if (delimiter_ == '\t') {
        rows_.value(rest);
      } else {
        char* to = rows_.value_space();
        for (size_t i = 0; i < rest.size(); ++i) to[i] = rest[i] == delimiter_ ? '\t' : rest[i];
        rows_.grow_value(rest.size());
      }
    }
    rows_.end_row(line, line_);
  }

  void refuse_count(size_t columns, std::string_view row) {
    if (row.empty()) return rows_.refuse("empty line", row);
    rows_.refuse(column_count_text(plan_, columns), row, "check --format and --delimiter");
  }

  bool take_key(std::string_view row) {
    if (plan_.key_columns.size() == 1) return rows_.key(fields_[plan_.key_columns[0]], row);
    key_.clear();
    for (size_t i : plan_.key_columns) key_.push_back(fields_[i]);
    return rows_.key_columns(key_, row);
  }

  bool take_cell(size_t i, size_t field, std::string_view row) {
    const bool in_quotes = field < in_quotes_.size() && in_quotes_[field];
    return rows_.cell_or_null(i, fields_[field], in_quotes, row);
  }

  void take_fields(std::string_view row) {
    if (plan_.options.whole_rows) return take_whole(row);
    if (fields_.size() < plan_.min_columns ||
        (plan_.exact_columns && fields_.size() != plan_.exact_columns))
      return refuse_count(fields_.size(), row);
    if (!take_key(row)) return;
    if (rows_.wants_values() && plan_.options.schema) {
      for (size_t i = 0; i < plan_.value_columns.size(); ++i)
        if (!take_cell(i, plan_.value_columns[i], row)) return;
    } else if (rows_.wants_values()) {
      bool first = true;
      auto add = [&](size_t column) {
        if (!first) rows_.value('\t');
        first = false;
        rows_.value(fields_[column]);
      };
      if (plan_.value_is_rest) {
        for (size_t i = 0; i < fields_.size(); ++i)
          if (!plan_.is_key(i)) add(i);
      } else {
        for (size_t i : plan_.value_columns) add(i);
      }
    }
    rows_.end_row(row, line_);
  }

  // A row with a quote in it, from `p`; returns where the next one begins. A field that starts with
  // a quote goes to the next single one, over line ends; whatever is wrong, the row ends where the
  // quotes so read say, as BlockReader has cut it.
  const char* parse_quoted(const char* begin, const char* end) {
    std::string wrong;
    const char* p = begin;
    uint64_t lines = 0;
    unquoted_.clear();
    unquoted_.room(static_cast<size_t>(end - begin) < 4096 ? static_cast<size_t>(end - begin)
                                                           : 4096);
    spans_.clear();
    in_quotes_.clear();
    for (;;) {
      size_t from = unquoted_.size();
      in_quotes_.push_back(p < end && *p == '"');
      if (p < end && *p == '"') {
        p = quoted_field(p + 1, end, &wrong, &lines);
      } else {
        p = plain_field(p, end, &wrong);
      }
      spans_.push_back({from, unquoted_.size() - from});
      if (p == end || *p == '\n') break;
      ++p;  // the delimiter
    }
    const char* next = p == end ? end : p + 1;
    std::string_view row(begin, static_cast<size_t>(p - begin));
    bool at_cr = !row.empty() && row.back() == '\r';
    const char* line_end = nullptr;
    if (p == end) {
      cut_last_line_end(plan_, &row);
    } else {
      line_end = cut_line_end(plan_, &row);
    }
    // What was cut off the row belongs to the last field, unless that had been quoted.
    if (at_cr && row.data() + row.size() == p - 1 && last_was_plain_) --spans_.back().second;
    const char* advice = "close the quote, or write quotes inside of quotes twice";
    if (wrong.empty() && line_end) {
      wrong = line_end;
      advice = mixed_advice;
    }
    if (row.size() > plan_.options.max_row_bytes) {
      rows_.refuse(too_long_text(plan_.options), row.substr(0, 200));
    } else if (!wrong.empty()) {
      rows_.refuse(wrong, row, advice);
    } else {
      fields_.clear();
      for (auto [offset, bytes] : spans_) fields_.push_back(unquoted_.text().substr(offset, bytes));
      take_fields(row);
    }
    line_ += lines + 1;
    return next;
  }

  const char* quoted_field(const char* p, const char* end, std::string* wrong, uint64_t* lines) {
    last_was_plain_ = false;
    const uint64_t first_line = *lines;
    for (;;) {
      const char* quote = next_quote(p, end);
      std::string_view piece(p, static_cast<size_t>(quote - p));
      for (const char* n = p; n < quote; ++n) *lines += *n == '\n';
      unquoted_.append(piece);
      if (quote == end) {
        if (wrong->empty()) *wrong = "unterminated quote, which opens in this row" + column_text();
        return end;
      }
      p = quote + 1;
      if (p < end && *p == '"') {
        unquoted_.append('"');
        ++p;
        continue;
      }
      if (p == end || *p == delimiter_ || *p == '\n') return p;
      if (*p == '\r' && is_of_line_end(p, end)) return p + 1;
      if (wrong->empty()) {
        *wrong = "text after a closing quote" + column_text();
        if (*lines != first_line)
          *wrong += ": the quote opens in this row and closes " +
                    std::to_string(*lines - first_line) + " lines below";
      }
      return skip_field(p, end);
    }
  }

  // Of the field that is read.
  std::string column_text() const { return " (column " + std::to_string(spans_.size() + 1) + ")"; }

  // Whether this CR past a closing quote ends the row, and is no text behind the quote.
  bool is_of_line_end(const char* cr, const char* end) const {
    const LineEnds ends = plan_.options.line_ends;
    const bool last = cr + 1 == end;
    if (!last && cr[1] != '\n') return false;
    if (plan_.options.whole_rows) return true;  // it counts with all other bytes
    if (ends == LineEnds::lf) return false;
    // cut_line_end() says what is wrong with another row.
    return !last || plan_.crlf || ends == LineEnds::any;
  }

  const char* plain_field(const char* p, const char* end, std::string* wrong) {
    last_was_plain_ = true;
    const char* stop = skip_field(p, end);
    std::string_view field(p, static_cast<size_t>(stop - p));
    if (wrong->empty() && field.find('"') != std::string_view::npos)
      *wrong = "a quote inside a field that does not begin with one" + column_text();
    unquoted_.append(field);
    return stop;
  }

  const char* skip_field(const char* p, const char* end) const {
    while (p < end && *p != delimiter_ && *p != '\n') ++p;
    return p;
  }

  const RowPlan& plan_;
  ParsedRows& rows_;
  std::optional<TypedLines> typed_;
  char delimiter_;
  bool key_first_;
  size_t max_fields_;
  uint64_t line_ = 0;
  std::vector<std::string_view> fields_, key_;
  std::vector<std::pair<size_t, size_t>> spans_;  // of unquoted_
  std::vector<bool> in_quotes_;                   // of fields_; shorter: those behind are not
  TextBuffer unquoted_;
  bool last_was_plain_ = true;
};

void parse_raw(const RowPlan& plan, std::string_view text, ParsedRows* rows) {
  const RowOptions& options = plan.options;
  uint64_t record = 0;
  std::optional<RowReader> reader;
  if (options.schema) reader.emplace(*options.schema);
  while (!text.empty()) {
    rows->at_line(record);
    uint32_t lengths[2] = {options.raw_key_bytes, options.raw_value_bytes};
    size_t head = options.raw_key_bytes ? 0 : sizeof lengths;
    if (head && text.size() >= head) std::memcpy(lengths, text.data(), head);
    uint64_t bytes = head + uint64_t{lengths[0]} + lengths[1];
    if (text.size() < head || text.size() < bytes) {
      rows->refuse("the file ends within the record", text.substr(0, 200));
      ++record;
      break;
    }
    std::string_view row = text.substr(0, bytes);
    text.remove_prefix(bytes);
    if (rows->key(row.substr(head, lengths[0]), row)) {
      const std::string_view value = row.substr(head + lengths[0]);
      if (rows->wants_values()) rows->value(value);
      TextBuffer ignored;
      if (options.key_form.columns &&
          !append_key_parts(*options.key_form.columns, as_bytes(row.substr(head, lengths[0])), ',',
                            false, &ignored)) {
        rows->refuse("the key is none of type " + types_of(*options.key_form.columns), row);
      } else if (rows->wants_values() && reader && !reader->read(as_bytes(value))) {
        rows->refuse("the value is no row of the schema " + options.schema->to_string(), row);
      } else {
        rows->end_row(row, record);
      }
    }
    ++record;
  }
  rows->end(record);
}

}  // namespace

void parse_rows(const RowPlan& plan, std::string_view text, ParsedRows* rows) {
  rows->begin(plan, text);
  switch (plan.options.format) {
    case Format::tsv:
    case Format::csv:
      DelimitedParser(plan, rows).parse(text);
      break;
    case Format::jsonl:
      parse_json_rows(plan, text, rows);
      break;
    case Format::raw:
      parse_raw(plan, text, rows);
      break;
    case Format::parquet:
    case Format::arrow:
      break;  // RowBatch::parse()
  }
}

ExitStatus split_header(std::string_view row, const RowOptions& options,
                        std::vector<std::string>* columns) {
  while (!row.empty() && (row.back() == '\n' || row.back() == '\r')) row.remove_suffix(1);
  bool csv = options.format == Format::csv;
  for (size_t at = 0;;) {
    std::string name;
    if (csv && at < row.size() && row[at] == '"') {
      for (++at;; ++at) {
        if (at == row.size())
          return ExitStatus(ExitCode::bad_input, "unterminated quote in the header");
        if (row[at] == '"' && (at + 1 == row.size() || row[++at] != '"')) {
          if (at + 1 == row.size() && row[at] == '"') ++at;
          break;
        }
        name += row[at];
      }
      if (at < row.size() && row[at] != options.delimiter)
        return ExitStatus(ExitCode::bad_input, "text after a closing quote in the header");
    } else {
      size_t end = std::min(row.find(options.delimiter, at), row.size());
      name = row.substr(at, end - at);
      at = end;
    }
    columns->push_back(std::move(name));
    if (at >= row.size()) return {};
    ++at;
  }
}

}  // namespace stride::cli
