// What the rows of a block become: a key column, a value column, and the rows that were refused.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/cli/input/arena.h"
#include "adapters/cli/input/repeated_keys.h"
#include "adapters/cli/input/row_plan.h"
#include "adapters/cli/output/output.h"
#include "adapters/cli/text/cell_text.h"
#include "storage/column.h"
#include "storage/row_format.h"

namespace stride::cli {

struct BadRow {
  uint64_t line;  // from the block's first line, which is 0
  std::string reason;
  std::string row;     // its first bytes
  std::string advice;  // what to do; empty: to correct the row
};

// Columns that live as long as their memory.
struct RowColumns {
  KeyColumn keys;
  ValueColumn values;
  std::vector<std::shared_ptr<Slab>> memory;

  uint64_t bytes() const { return keys.bytes() + values.bytes() + 16 * keys.size; }
};

// Takes the rows of one block after the other. Memory is kept between blocks.
class ParsedRows {
 public:
  // What a command wants besides keys and values.
  struct Wanted {
    bool values = true;  // into the arena
    bool rows = false;   // where each row lies in the block
    bool lines = false;  // of each row
  };
  explicit ParsedRows(Wanted wanted) : wanted_(wanted) {}

  void begin(const RowPlan& plan, std::string_view text);
  // value_bytes: so many are enough for all values with the tabs in them, of at most so many rows.
  void begin(const RowPlan& plan, std::string_view text, uint64_t value_bytes, uint64_t max_rows);

  // A row: a key, then pieces of its value, then end_row(); or refuse(). False where the text is no
  // key, which has been refused then.
  bool key(std::string_view text, std::string_view row) {
    const KeyForm& form = plan_->options.key_form;
    size_t most = plan_->options.key_bytes_limit;
    if (form.type == KeyType::bytes && text.size() > most) return refuse_key(text, row);
    ptrdiff_t n =
        encode_key(form, text, reinterpret_cast<std::byte*>(keys_.room(encoded_bound(form, text))));
    ptrdiff_t width = plan_->options.key_width;
    if (n <= 0 || (width ? n != width : n > static_cast<ptrdiff_t>(most))) {
      if (n != 0 || width != 0 || !plan_->options.allow_empty_key) return refuse_key(text, row, n);
    }
    key_bytes_ = static_cast<size_t>(n);
    return true;
  }
  // The texts of a key's columns, where it has several.
  bool key_columns(std::span<const std::string_view> parts, std::string_view row) {
    const Schema& columns = *plan_->options.key_form.columns;
    size_t bytes = 0;
    for (std::string_view part : parts) bytes += part.size();
    const ptrdiff_t n = encode_key_parts(
        columns, parts,
        reinterpret_cast<std::byte*>(keys_.room(encoded_key_bound(columns, bytes))));
    const ptrdiff_t width = plan_->options.key_width;
    if (n < 0 || n > static_cast<ptrdiff_t>(max_key_bytes) || (width && n != width))
      return refuse_key_columns(parts, n, row);
    key_bytes_ = static_cast<size_t>(n);
    return true;
  }
  // A number for a key of type u64 or i64.
  void number_key(uint64_t number) {
    key_bytes_ = sizeof number;
    store_number(plan_->options.key_form.type, number,
                 reinterpret_cast<std::byte*>(keys_.room(key_bytes_)));
  }
  void value(std::string_view piece) {
    if (!piece.empty()) std::memcpy(value_end_, piece.data(), piece.size());
    value_end_ += piece.size();
  }
  void value(char c) { *value_end_++ = c; }
  // Rows of a schema take every cell, in any order, in the place of the calls above.
  // Texts must stay until end_row(). False: the cell cannot be that, and the row was refused.
  bool cell(size_t column, std::string_view text, std::string_view row) {
    return try_cell(column, text) || refuse_cell(column, text, row);
  }
  bool null_cell(size_t column, std::string_view row) {
    if (!plan_->options.schema->values()[column].nullable) return refuse_null(column, row);
    writer_->set_null(column);
    return true;
  }
  // Empty cells of delimited text are null where the column has nulls. One in quotes is an empty
  // text where the column has texts; files that have everything in quotes mean null by it
  // elsewhere.
  bool cell_or_null(size_t column, std::string_view text, bool in_quotes, std::string_view row) {
    return try_cell_or_null(column, text, in_quotes) || refuse_cell(column, text, row);
  }
  // The same, but that nothing is refused where it is false.
  bool try_cell_or_null(size_t column, std::string_view text, bool in_quotes) {
    const Field& field = plan_->options.schema->values()[column];
    const bool is_text =
        (field.type == FieldType::string || field.type == FieldType::bytes) && field.count == 0;
    if (!text.empty() || !field.nullable || (in_quotes && is_text)) return try_cell(column, text);
    writer_->set_null(column);
    return true;
  }
  RowWriter* writer() { return &*writer_; }
  bool refuse_cell(size_t column, std::string_view text, std::string_view row);
  // What is written there belongs to the value once grow_value() has counted it.
  char* value_space() { return value_end_; }
  void grow_value(size_t n) { value_end_ += n; }
  void drop_value() { value_end_ = value_begin_; }
  // False: its value should be a number and is none, and the row was refused.
  bool end_row(std::string_view row, uint64_t line);
  // advice: what to do about it, where that is more than to correct the row.
  void refuse(std::string reason, std::string_view row, std::string advice = "");
  // Lines that the row before took, which counts where its successor is.
  void at_line(uint64_t line) { line_ = line; }

  // Lines of the block.
  void end(uint64_t lines);

  // Where rows are counted: makes one row of those with equal keys, if many are. Only numbers of
  // rows are kept, not where they lie.
  void join_equal_keys();

  uint64_t size() const { return rows_; }
  // Rows that were read: more than size() where some were joined.
  uint64_t rows_read() const { return rows_read_ ? rows_read_ : rows_; }
  uint64_t lines() const { return lines_; }
  KeyColumn keys() const;
  // Copies keys and offsets beside the values, so that they outlive the next block.
  RowColumns take();
  std::string_view row(uint64_t i) const {
    const RowSpan& s = reinterpret_cast<const RowSpan*>(spans_.text().data())[i];
    return text_.substr(s.offset, s.bytes);
  }
  uint64_t line(uint64_t i) const {
    uint32_t line;
    std::memcpy(&line, line_numbers_.text().data() + 4 * i, 4);
    return line;
  }
  std::vector<BadRow>& bad() { return bad_; }
  // Whether values are rows of the plan's schema; also before begin().
  bool makes_rows(const RowPlan& plan) const { return wanted_.values && plan.options.schema; }
  bool wants_values() const { return wanted_.values && !plan_->options.counts; }

 private:
  struct RowSpan {
    uint32_t offset, bytes;
  };
  // Makes a number of the value of a row, which is complete. False: it is no number, and the row
  // was refused.
  bool take_number(std::string_view row);
  // The number 1 for each row of the block.
  ValueColumn ones();
  void keep_rows(const std::vector<uint32_t>& rows);
  bool refuse_key_columns(std::span<const std::string_view> parts, ptrdiff_t bytes,
                          std::string_view row);
  bool refuse_null(size_t column, std::string_view row);
  bool try_cell(size_t column, std::string_view text) {
    const Field& field = plan_->options.schema->values()[column];
    if (!parse_cell(field, text, column, &*writer_)) return false;
    // Nobody has said that these are floats.
    if (!plan_->options.schema_is_guess || field.type != FieldType::f64 || field.count != 0)
      return true;
    double number;
    std::memcpy(&number, writer_->cell(column), sizeof number);
    return keeps_digits(text, number);
  }
  std::string schema_advice() const;
  bool refuse_key(std::string_view text, std::string_view row, ptrdiff_t encoded = -1);
  template <class T>
  static void push(TextBuffer* buffer, const T& item) {
    std::memcpy(buffer->room(sizeof item), &item, sizeof item);
    buffer->grow(sizeof item);
  }

  Wanted wanted_;
  const RowPlan* plan_ = nullptr;
  std::string_view text_;
  std::optional<RowWriter> writer_;  // where there is a schema
  Arena arena_;
  std::shared_ptr<Slab> ones_;  // for all blocks
  RepeatedKeys repeated_;
  TextBuffer keys_, key_offsets_, value_offsets_, numbers_, spans_, line_numbers_;
  size_t key_bytes_ = 0;    // of the row in hand
  char* values_ = nullptr;  // of the block
  char* value_begin_ = nullptr;
  char* value_end_ = nullptr;
  uint64_t shortest_ = 0, longest_ = 0;  // value
  uint64_t rows_ = 0, lines_ = 0, line_ = 0;
  uint64_t rows_read_ = 0;  // 0: none were joined
  std::vector<BadRow> bad_;
};

uint64_t count_newlines(std::string_view text);

// Parses a block of whole rows. Rows that cannot be read are in bad(); the others are as given, in
// order.
void parse_rows(const RowPlan& plan, std::string_view text, ParsedRows* rows);

// For JSON; both in json_rows.cc.
void parse_json_rows(const RowPlan& plan, std::string_view text, ParsedRows* rows);

// The same rows, the last one first.
RowColumns reversed(const RowColumns& rows);
// Those rows whose bit is not set.
RowColumns without(const RowColumns& rows, const Bitmap& dropped);

}  // namespace stride::cli
