#include "adapters/cli/input/parsed_rows.h"

#include <algorithm>

#include "adapters/cli/text/number_text.h"

namespace stride::cli {

// In pieces whose sums fit into a byte, of which compilers add up many at once.
uint64_t count_newlines(std::string_view text) {
  constexpr size_t piece = 128;
  uint64_t newlines = 0;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, piece);
    uint8_t sum = 0;
    for (char c : part) sum = static_cast<uint8_t>(sum + (c == '\n'));
    newlines += sum;
    text.remove_prefix(part.size());
  }
  return newlines;
}

void ParsedRows::begin(const RowPlan& plan, std::string_view text) {
  const bool rows = makes_rows(plan);
  begin(plan, text, text.size(), rows ? 1 + count_newlines(text) : 0);
}

void ParsedRows::begin(const RowPlan& plan, std::string_view text, uint64_t value_bytes,
                       uint64_t max_rows) {
  if (makes_rows(plan)) {
    const Schema& schema = *plan.options.schema;
    if (!writer_ || !plan_ || plan_->options.schema != plan.options.schema) writer_.emplace(schema);
    value_bytes += max_rows * (schema.fixed_bytes() + schema.variable().size() * max_length_bytes);
  }
  plan_ = &plan;
  text_ = text;
  keys_.clear();
  key_offsets_.clear();
  value_offsets_.clear();
  numbers_.clear();
  spans_.clear();
  line_numbers_.clear();
  bad_.clear();
  rows_ = lines_ = line_ = rows_read_ = 0;
  shortest_ = ~uint64_t{0};
  longest_ = 0;
  push(&key_offsets_, uint64_t{0});
  push(&value_offsets_, uint64_t{0});
  if (wanted_.values) {
    // Values of text are pieces of rows, with tabs where there were delimiters, and never take more
    // room than the text.
    values_ = reinterpret_cast<char*>(arena_.reserve(value_bytes + 64));
    value_begin_ = value_end_ = values_;
  }
}

bool ParsedRows::refuse_key(std::string_view text, std::string_view row, ptrdiff_t encoded) {
  const RowOptions& options = plan_->options;
  if (text.empty()) {
    refuse("empty key", row);
  } else if (encoded < 0 && (options.key_form.type != KeyType::bytes ||
                             (options.key_form.address_bits && text.size() <= max_key_bytes))) {
    refuse(why_no_key(options.key_form, text), row,
           options.key_form.address_bits
               ? ""
               : "name the key's column with --key, or give another --key-type");
  } else {
    uint64_t bytes = encoded < 0 ? text.size() : static_cast<uint64_t>(encoded);
    refuse("key " + in_quotes(text) + " has " + std::to_string(bytes) + " bytes, " +
               (options.key_width ? "every key has " + std::to_string(options.key_width)
                                  : "at most " + std::to_string(max_key_bytes) + " are possible"),
           row);
  }
  return false;
}

bool ParsedRows::refuse_key_columns(std::span<const std::string_view> parts, ptrdiff_t bytes,
                                    std::string_view row) {
  const RowOptions& options = plan_->options;
  if (bytes >= 0) {
    refuse("the key has " + std::to_string(bytes) + " bytes, " +
               (options.key_width ? "every key has " + std::to_string(options.key_width)
                                  : "at most " + std::to_string(max_key_bytes) + " are possible"),
           row);
  } else {
    refuse("key: " + why_no_key_parts(*options.key_form.columns, parts), row,
           "name the key's columns with --key, or give another --key-type");
  }
  return false;
}

std::string ParsedRows::schema_advice() const {
  return plan_->options.schema_is_guess
             ? "the type was told from the first rows: give --schema with another one for the "
               "column, or --schema none, which keeps rows as text"
             : "";
}

bool ParsedRows::refuse_cell(size_t column, std::string_view text, std::string_view row) {
  const Field& field = plan_->options.schema->values()[column];
  refuse("column " + in_quotes(field.name) + ": " + why_no_cell(field, text), row, schema_advice());
  return false;
}

bool ParsedRows::refuse_null(size_t column, std::string_view row) {
  const Field& field = plan_->options.schema->values()[column];
  refuse(
      "column " + in_quotes(field.name) + ": null, and the type " + type_text(field) + " has none",
      row, schema_advice());
  return false;
}

bool ParsedRows::take_number(std::string_view row) {
  const NumberType type = plan_->options.numbers;
  const size_t width = width_of(type);
  std::string_view text(value_begin_, static_cast<size_t>(value_end_ - value_begin_));
  char* to = numbers_.room(max_number_bytes);
  if (plan_->options.format == Format::raw) {
    if (text.size() != width) {
      refuse("the value has " + std::to_string(text.size()) + " bytes, and a number of type " +
                 std::string(to_string(type)) + " has " + std::to_string(width),
             row);
      return false;
    }
    std::memcpy(to, text.data(), width);
  } else if (!parse_number(type, text, reinterpret_cast<std::byte*>(to))) {
    refuse(why_no_number(type, text), row, "name the number's column with --value");
    return false;
  }
  numbers_.grow(width);
  value_end_ = value_begin_;
  return true;
}

bool ParsedRows::end_row(std::string_view row, uint64_t line) {
  const bool numbers = wanted_.values && plan_->options.numbers != NumberType::none;
  if (numbers && !plan_->options.counts && !take_number(row)) return false;
  keys_.grow(key_bytes_);
  if (plan_->options.key_width == 0) push(&key_offsets_, uint64_t{keys_.size()});
  if (wanted_.values && plan_->options.schema && plan_->options.format != Format::raw) {
    value_end_ =
        reinterpret_cast<char*>(writer_->write(reinterpret_cast<std::byte*>(value_begin_)));
  }
  if (wanted_.values && !numbers) {
    uint64_t bytes = static_cast<uint64_t>(value_end_ - value_begin_);
    shortest_ = std::min(shortest_, bytes);
    longest_ = std::max(longest_, bytes);
    push(&value_offsets_, static_cast<uint64_t>(value_end_ - values_));
    value_begin_ = value_end_;
  }
  if (wanted_.rows) {
    push(&spans_, RowSpan{static_cast<uint32_t>(row.data() - text_.data()),
                          static_cast<uint32_t>(row.size())});
  }
  if (wanted_.lines) push(&line_numbers_, static_cast<uint32_t>(line));
  ++rows_;
  return true;
}

void ParsedRows::refuse(std::string reason, std::string_view row, std::string advice) {
  constexpr size_t kept_bytes = 1 << 20;
  value_end_ = value_begin_;
  bad_.push_back(
      {line_, std::move(reason), std::string(row.substr(0, kept_bytes)), std::move(advice)});
}

void ParsedRows::end(uint64_t lines) { lines_ = lines; }

KeyColumn ParsedRows::keys() const {
  uint32_t width = plan_->options.key_width;
  if (width) return Column::fixed(keys_.text().data(), width, rows_);
  return Column::variable(keys_.text().data(),
                          reinterpret_cast<const uint64_t*>(key_offsets_.text().data()), rows_);
}

void ParsedRows::join_equal_keys() {
  const NumberType type = plan_->options.numbers;
  // Floats are cut to a share of what is added at once, so that the result would be another one.
  if (!plan_->options.counts || wanted_.rows || wanted_.lines || !is_integer(type)) return;
  if (!repeated_.count(keys())) return;
  rows_read_ = rows_;
  keep_rows(repeated_.rows());
  for (const uint32_t times : repeated_.times()) {
    if (type == NumberType::i32) {
      push(&numbers_, static_cast<int32_t>(times));
    } else {
      push(&numbers_, int64_t{times});
    }
  }
}

// rows: ascending, so that none is written over before it is read.
void ParsedRows::keep_rows(const std::vector<uint32_t>& rows) {
  const KeyColumn all = keys();
  keys_.clear();
  key_offsets_.clear();
  char *const bytes = keys_.room(0), *const offsets = key_offsets_.room(0);
  uint64_t end = 0, kept = 0;
  for (const uint32_t row : rows) {
    const Bytes key = all[row];
    if (!key.empty()) std::memmove(bytes + end, key.data(), key.size());
    end += key.size();
    ++kept;
    if (!all.is_fixed()) std::memcpy(offsets + kept * sizeof end, &end, sizeof end);
  }
  keys_.grow(end);
  key_offsets_.grow(all.is_fixed() ? 0 : (kept + 1) * sizeof end);
  rows_ = kept;
}

ValueColumn ParsedRows::ones() {
  const NumberType type = plan_->options.numbers;
  const uint32_t width = width_of(type);
  if (!ones_ || ones_->size() < rows_ * width) {
    auto made = std::make_shared<Slab>(std::max<uint64_t>(2 * rows_, 1024) * width);
    parse_number(type, "1", made->data());
    for (size_t done = width; done < made->size(); done *= 2)
      std::memcpy(made->data() + done, made->data(), std::min(done, made->size() - done));
    ones_ = std::move(made);
  }
  return Column::fixed(ones_->data(), width, rows_);
}

RowColumns ParsedRows::take() {
  RowColumns result;
  bool fixed = !wanted_.values || (rows_ != 0 && shortest_ == longest_);
  if (wanted_.values) {
    arena_.take(static_cast<uint64_t>(value_end_ - values_));
    result.memory.push_back(arena_.slab());
  }
  auto keep = [&](std::string_view bytes) {
    std::byte* to = arena_.reserve(bytes.size());
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    arena_.take(bytes.size());
    if (result.memory.empty() || result.memory.back() != arena_.slab())
      result.memory.push_back(arena_.slab());
    return to;
  };
  const NumberType numbers = plan_->options.numbers;
  if (wanted_.values && plan_->options.counts && rows_read_ == 0) {
    result.values = ones();
    result.memory.push_back(ones_);
  } else if (wanted_.values && numbers != NumberType::none) {
    result.values = Column::fixed(keep(numbers_.text()), width_of(numbers), rows_);
  } else if (fixed) {
    result.values = Column::fixed(values_, static_cast<uint32_t>(longest_), rows_);
  } else {
    result.values = Column::variable(
        values_, reinterpret_cast<const uint64_t*>(keep(value_offsets_.text())), rows_);
  }
  result.keys = keys();
  result.keys.data = keep(keys_.text());
  if (!result.keys.is_fixed())
    result.keys.offsets = reinterpret_cast<const uint64_t*>(keep(key_offsets_.text()));
  return result;
}

namespace {

// Rows picked in any order, copied one by one.
class RowPicker {
 public:
  explicit RowPicker(const RowColumns& from)
      : from_(from), keys_(from.keys), values_(from.values) {}
  void pick(uint64_t row) {
    keys_.pick(row);
    values_.pick(row);
  }
  RowColumns take() {
    RowColumns result;
    result.memory = {keys_.slab(), values_.slab()};
    result.keys = keys_.column();
    result.values = values_.column();
    return result;
  }

 private:
  class Picked {
   public:
    explicit Picked(const Column& from)
        : from_(from),
          offset_bytes_((from.size + 1) * sizeof(uint64_t)),
          slab_(std::make_shared<Slab>(offset_bytes_ + from.bytes() + 1)) {
      offsets()[0] = 0;
    }
    void pick(uint64_t row) {
      Bytes bytes = from_[row];
      uint64_t begin = offsets()[rows_];
      if (!bytes.empty())
        std::memcpy(slab_->data() + offset_bytes_ + begin, bytes.data(), bytes.size());
      offsets()[++rows_] = begin + bytes.size();
    }
    Column column() const {
      const std::byte* data = slab_->data() + offset_bytes_;
      return from_.is_fixed() ? Column::fixed(data, from_.width, rows_)
                              : Column::variable(data, offsets(), rows_);
    }
    const std::shared_ptr<Slab>& slab() const { return slab_; }

   private:
    uint64_t* offsets() const { return reinterpret_cast<uint64_t*>(slab_->data()); }
    Column from_;
    size_t offset_bytes_;
    std::shared_ptr<Slab> slab_;
    uint64_t rows_ = 0;
  };

  const RowColumns& from_;
  Picked keys_, values_;
};

}  // namespace

RowColumns reversed(const RowColumns& rows) {
  RowPicker picker(rows);
  for (uint64_t i = rows.keys.size; i-- > 0;) picker.pick(i);
  return picker.take();
}

RowColumns without(const RowColumns& rows, const Bitmap& dropped) {
  RowPicker picker(rows);
  for (uint64_t i = 0; i < rows.keys.size; ++i)
    if (!dropped[i]) picker.pick(i);
  return picker.take();
}

}  // namespace stride::cli
