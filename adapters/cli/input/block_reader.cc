#include "adapters/cli/input/block_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "adapters/cli/input/sniff.h"
#include "storage/quoted.h"

namespace stride::cli {
namespace {

size_t find(std::string_view text, char c, size_t from) {
  const void* at =
      from < text.size() ? std::memchr(text.data() + from, c, text.size() - from) : nullptr;
  return at ? static_cast<size_t>(static_cast<const char*>(at) - text.data())
            : std::string_view::npos;
}

constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";

std::string with_place(const std::string& name, const std::string& message) {
  return name + ":1: " + message;
}

}  // namespace

BlockReader::BlockReader(std::vector<std::string> files, RowOptions options, int standard_input,
                         ReadFrom from)
    : files_(std::move(files)),
      options_(std::move(options)),
      standard_input_(standard_input),
      from_(from),
      opened_(from.file) {
  limit_blocks();
  header_ = options_.header;
  delimiter_ = options_.delimiter;
}

ExitStatus BlockReader::open_next_file() {
  if (stream_) stored_before_ += stream_->stored_bytes_read();
  auto file = std::make_shared<FileRows>();
  file->index = static_cast<uint32_t>(opened_);
  STRIDE_CLI_TRY(
      InputStream::open(files_[opened_], standard_input_, options_.compression, &stream_));
  ++opened_;
  file->name = stream_->name();
  ended_ = false;
  read_ = 0;
  carry_.clear();
  STRIDE_CLI_TRY(look_ahead(file.get()));
  STRIDE_CLI_TRY(read_header(file.get()));
  if (from_.offset != 0) STRIDE_CLI_TRY(skip_to(from_.offset, file->name));
  from_.offset = 0;
  file_ = std::move(file);
  return {};
}

// A short row takes all of its columns' widths: of wide ones fewer rows make a block.
void BlockReader::limit_blocks() {
  constexpr uint64_t max_memory = 128 << 20, min_block = 4096;
  if (!options_.schema) return;
  const uint64_t row_bytes = std::max<uint64_t>(1, options_.schema->fixed_bytes());
  const uint64_t text_bytes = 2 + options_.schema->values().size() / 2;  // of a row, at least
  options_.block_bytes =
      std::min(options_.block_bytes, std::max(min_block, max_memory / row_bytes * text_bytes));
}

ExitStatus BlockReader::look_ahead(FileRows* file) {
  options_.header = header_;
  options_.delimiter = delimiter_;
  array_.reset();
  ahead_.clear();
  ahead_used_ = 0;
  const bool delimited = options_.format == Format::tsv || options_.format == Format::csv;
  const bool sniffs = delimited && (options_.sniffs_header || options_.sniffs_delimiter);
  if (!sniffs && options_.format != Format::jsonl) return {};
  STRIDE_CLI_TRY(read_more(&ahead_, sniffed_bytes));
  while (sniffs && !ended_ && ahead_.size() <= options_.max_row_bytes &&
         !has_two_rows(ahead_.text(), options_)) {
    ahead_used_ = ahead_.size();  // it is no input of its own
    STRIDE_CLI_TRY(read_more(&ahead_, ahead_.size()));
  }
  ahead_used_ = 0;
  std::string_view sample = ahead_.text();
  if (sample.starts_with(utf8_mark)) sample.remove_prefix(utf8_mark.size());
  if (delimited && sample.find('\n') == std::string_view::npos &&
      sample.find('\r') < sample.size() - 1 && options_.line_ends != LineEnds::lf &&
      (header_ || options_.sniffs_header))
    return ExitStatus(ExitCode::bad_input,
                      file->name +
                          ": lines end with CR alone: make LF of these first, as tr '\\r' "
                          "'\\n' does, or give --line-ends lf where a CR is data");
  if (sniffs) {
    const Sniffed told = sniff(sample, ended_, options_);
    if (told.delimiter != delimiter_)
      told_.push_back(
          file->name + ": between the columns is " +
          (told.delimiter == '\t' ? "a tab" : in_quotes(std::string(1, told.delimiter))) +
          " (--delimiter says another one)");
    if (told.header && !header_)
      told_.push_back(file->name + ": the first row names the columns (--no-header: it is a row)");
    options_.delimiter = told.delimiter;
    options_.header = header_ || told.header;
  } else if (const size_t first = sample.find_first_not_of(" \t\r\n");
             first != std::string_view::npos && sample[first] == '[') {
    array_.emplace();
    told_.push_back(file->name +
                    ": the elements of a JSON array are rows, and are counted as lines");
  }
  read_ -= ahead_.size();
  ended_ = false;
  return {};
}

// Reads as far as the end of the first row, which is in carry_ then, without the mark of UTF-8.
// *end: past the row; 0: it has none, or it is beyond max_row_bytes.
ExitStatus BlockReader::read_first_row(size_t* end) {
  const size_t piece = std::min<uint64_t>(options_.block_bytes, 64 << 10);
  while (!ended_ && carry_.size() < utf8_mark.size()) STRIDE_CLI_TRY(read_more(&carry_, piece));
  if (carry_.text().starts_with(utf8_mark)) drop_carried(utf8_mark.size());
  QuoteState quotes;
  for (size_t searched = 0;;) {
    std::string_view text = carry_.text();
    // Line by line, for the first row end is wanted and not the last.
    for (size_t at = find(text, '\n', searched); at != std::string_view::npos;
         at = find(text, '\n', at + 1)) {
      *end = last_row_end(text.substr(0, at + 1), &quotes);
      if (*end != 0) return {};
    }
    searched = text.size();
    if (ended_ || carry_.size() > options_.max_row_bytes) return {};
    STRIDE_CLI_TRY(read_more(&carry_, piece));
  }
}

// Looks at the first row, which says how lines end and, in a header, what columns are called.
ExitStatus BlockReader::read_header(FileRows* file) {
  std::vector<std::string> columns;
  size_t end = 0;
  if (options_.format != Format::raw) STRIDE_CLI_TRY(read_first_row(&end));
  std::string_view text = carry_.text();
  // Where the first row is too long, or nothing closes a quote in it, its first line has to do.
  size_t first_end = end == 0 && !ended_ ? find(text, '\n', 0) + 1 : end;
  bool crlf = first_end > 1 && text[first_end - 2] == '\r';
  if (options_.header && !text.empty()) {
    if (end == 0 && !ended_)
      return ExitStatus(ExitCode::bad_input, with_place(file->name, "the header has no end"));
    if (end == 0) end = text.size();
    file->header = text.substr(0, end);
    file->first_line =
        1 + static_cast<uint64_t>(std::count(file->header.begin(), file->header.end(), '\n'));
    ExitStatus split = split_header(file->header, options_, &columns);
    if (!split.ok()) return ExitStatus(split.code(), with_place(file->name, split.message()));
    drop_carried(end);
  }
  ExitStatus planned = RowPlan::make(options_, columns, &file->plan);
  // An empty file has no header, and no rows that would need one.
  if (!planned.ok() && options_.header && columns.empty()) planned = ExitStatus();
  if (!planned.ok())
    return ExitStatus(planned.code(), options_.header ? with_place(file->name, planned.message())
                                                      : file->name + ": " + planned.message());
  if (options_.line_ends == LineEnds::automatic) file->plan.crlf = crlf;
  if (file->plan.value_is_rest && !options_.header && !carry_.text().empty()) {
    const std::string_view first = carry_.text().substr(0, end == 0 ? carry_.size() : end);
    if (split_header(first, options_, &columns).ok() && columns.size() == 1)
      file->plan.take_one_column();
  }
  return {};
}

void BlockReader::drop_carried(size_t bytes) {
  std::string rest(carry_.text().substr(bytes));
  carry_.clear();
  carry_.append(rest);
}

ExitStatus BlockReader::skip_to(uint64_t offset, const std::string& name) {
  std::string_view have = carry_.text();
  uint64_t carried_from = read_ - have.size();
  if (offset < carried_from)
    return ExitStatus(ExitCode::bad_input,
                      name + ": is not as it was when the job was interrupted");
  uint64_t left = offset - carried_from;
  if (left <= have.size()) {
    drop_carried(left);
    return {};
  }
  left -= have.size();
  while (left != 0) {
    carry_.clear();
    STRIDE_CLI_TRY(read_more(&carry_, std::min<uint64_t>(left, options_.block_bytes)));
    if (carry_.size() > left) {  // an array's lines come as they are read
      drop_carried(left);
      return {};
    }
    left -= carry_.size();
    if (ended_ && left != 0)
      return ExitStatus(ExitCode::bad_input,
                        name + ": is shorter than when the job was interrupted");
  }
  carry_.clear();
  return {};
}

ExitStatus BlockReader::read_more(TextBuffer* memory, size_t bytes) {
  if (array_) return read_array(memory, bytes);
  const size_t from_ahead = std::min(bytes, ahead_.size() - ahead_used_);
  memory->append(ahead_.text().substr(ahead_used_, from_ahead));
  ahead_used_ += from_ahead;
  bytes -= from_ahead;
  size_t got = 0;
  STRIDE_CLI_TRY(stream_->read(reinterpret_cast<std::byte*>(memory->room(bytes)), bytes, &got));
  memory->grow(got);
  read_ += from_ahead + got;
  ended_ = got < bytes;
  return {};
}

// Bytes of lines, not of the array.
ExitStatus BlockReader::read_array(TextBuffer* memory, size_t bytes) {
  const size_t before = memory->size();
  TextBuffer piece;
  piece.append(ahead_.text().substr(ahead_used_));
  ahead_used_ = ahead_.size();
  ended_ = false;
  for (;;) {
    std::string_view text = piece.text();
    if (text.starts_with(utf8_mark)) text.remove_prefix(utf8_mark.size());
    if (!array_->feed(text, memory) || (ended_ && !array_->end()))
      return ExitStatus(ExitCode::bad_input, stream_->name() + ": " + array_->error() +
                                                 ": correct the file, or write an object a line");
    if (ended_ || memory->size() - before >= bytes) break;
    piece.clear();
    size_t got = 0;
    constexpr size_t piece_bytes = 64 << 10;
    STRIDE_CLI_TRY(
        stream_->read(reinterpret_cast<std::byte*>(piece.room(piece_bytes)), piece_bytes, &got));
    piece.grow(got);
    ended_ = got < piece_bytes;
  }
  read_ += memory->size() - before;
  return {};
}

size_t BlockReader::last_row_end_of_csv(std::string_view text, QuoteState* quotes) const {
  constexpr size_t none = std::string_view::npos;
  size_t at = quotes->scanned;
  while (at < text.size()) {
    size_t quote = find(text, '"', at);
    if (!quotes->inside) {
      size_t end = quote == none ? text.size() : quote;
      const void* newline = memrchr(text.data() + at, '\n', end - at);
      if (newline)
        quotes->last_end = static_cast<size_t>(static_cast<const char*>(newline) - text.data()) + 1;
      if (quote == none) {
        at = text.size();
        break;
      }
      // Only at the start of a field does a quote mean anything.
      char before = quote == 0 ? '\n' : text[quote - 1];
      quotes->inside = before == '\n' || before == options_.delimiter;
      at = quote + 1;
    } else if (quote == none) {
      at = text.size();
    } else if (quote + 1 == text.size()) {
      at = quote;  // what follows decides: another quote, or the end of the field
      break;
    } else if (text[quote + 1] == '"') {
      at = quote + 2;
    } else {
      quotes->inside = false;
      at = quote + 1;
    }
  }
  quotes->scanned = at;
  return quotes->last_end;
}

size_t BlockReader::last_row_end_of_raw(std::string_view text) const {
  if (options_.raw_key_bytes != 0)
    return text.size() - text.size() % (options_.raw_key_bytes + options_.raw_value_bytes);
  constexpr size_t lengths_bytes = 8;
  size_t at = 0;
  while (text.size() - at >= lengths_bytes) {
    uint32_t lengths[2];
    std::memcpy(lengths, text.data() + at, lengths_bytes);
    uint64_t bytes = lengths_bytes + uint64_t{lengths[0]} + lengths[1];
    if (text.size() - at < bytes) break;
    at += bytes;
  }
  return at;
}

size_t BlockReader::last_row_end(std::string_view text, QuoteState* quotes) const {
  if (options_.format == Format::csv) return last_row_end_of_csv(text, quotes);
  if (options_.format == Format::raw) return last_row_end_of_raw(text);
  const void* newline = memrchr(text.data() + quotes->scanned, '\n', text.size() - quotes->scanned);
  quotes->scanned = text.size();
  return newline ? static_cast<size_t>(static_cast<const char*>(newline) - text.data()) + 1 : 0;
}

void BlockReader::finish(Block* block, std::string_view text) {
  block->file = file_;
  block->text = text;
  block->too_long = false;
  block->end_offset = read_ - carry_.size();
  block->stored_bytes_read = stored_bytes_read();
}

// Drops the rest of the line and goes on after it.
ExitStatus BlockReader::too_long(TextBuffer* memory, Block* block) {
  std::string_view text = memory->text();
  if (options_.format == Format::raw) {
    return ExitStatus(ExitCode::bad_input, file_->name +
                                               ": a record is longer than --max-row-bytes (" +
                                               std::to_string(options_.max_row_bytes) + ")");
  }
  block->too_long_lines = static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  carry_.clear();
  while (!ended_) {
    carry_.clear();
    STRIDE_CLI_TRY(read_more(&carry_, std::min<uint64_t>(options_.block_bytes, 1 << 20)));
    size_t end = find(carry_.text(), '\n', 0);
    if (end == std::string_view::npos) continue;
    drop_carried(end + 1);
    finish(block, text);
    block->too_long = true;
    return {};
  }
  carry_.clear();
  finish(block, text);
  block->too_long = true;
  return {};
}

ExitStatus BlockReader::open_next_batches() {
  auto file = std::make_shared<FileRows>();
  file->index = static_cast<uint32_t>(opened_);
  file->name = files_[opened_] == "-" ? "standard input" : files_[opened_];
  STRIDE_CLI_TRY(BatchFile::open(files_[opened_], standard_input_, options_, from_.offset,
                                 &batches_, &file->plan));
  ++opened_;
  read_ = from_.offset;
  from_.offset = 0;
  file_ = std::move(file);
  return {};
}

ExitStatus BlockReader::next_batch(Block* block, bool* more) {
  for (;;) {
    if (batches_) {
      STRIDE_CLI_TRY(batches_->next(&block->batch));
      if (block->batch) break;
      stored_before_ += batches_->stored_bytes_read();
      batches_.reset();
    }
    if (opened_ == files_.size()) return {};
    STRIDE_CLI_TRY(open_next_batches());
  }
  read_ += block->batch->size();
  finish(block, {});
  *more = true;
  return {};
}

ExitStatus BlockReader::peek(Block* block, bool* more) {
  Peeked peeked;
  STRIDE_CLI_TRY(read_next(&peeked.memory, block, more));
  if (!*more) return {};
  peeked.block = *block;
  peeked_.push_back(std::move(peeked));
  return {};
}

void BlockReader::set_key_form(const KeyForm& form, uint32_t key_width) {
  auto set = [&](RowOptions* options) {
    options->key_form = form;
    options->key_width = key_width;
  };
  set(&options_);
  if (file_) set(&file_->plan.options);
}

void BlockReader::set_schema(std::shared_ptr<const Schema> schema, bool guess) {
  options_.schema = schema;
  options_.schema_is_guess = guess;
  limit_blocks();
  if (!file_) return;
  file_->plan.set_schema(std::move(schema));
  file_->plan.options.schema_is_guess = guess;
}

ExitStatus BlockReader::next(TextBuffer* memory, Block* block, bool* more) {
  if (peeked_.empty()) return read_next(memory, block, more);
  std::swap(*memory, peeked_.front().memory);
  *block = std::move(peeked_.front().block);
  peeked_.pop_front();
  *more = true;
  return {};
}

ExitStatus BlockReader::read_next(TextBuffer* memory, Block* block, bool* more) {
  *more = false;
  if (is_columnar(options_.format)) return next_batch(block, more);
  bool header = false;  // which is told by a block, and be it one without rows
  while (!stream_ || (ended_ && carry_.size() == 0 && !header)) {
    if (opened_ == files_.size()) return {};
    STRIDE_CLI_TRY(open_next_file());
    header = !file_->header.empty();
  }
  memory->clear();
  memory->append(carry_.text());
  carry_.clear();
  *more = true;
  QuoteState quotes;
  size_t end = 0;
  while (!ended_) {
    size_t missing = options_.block_bytes > memory->size() ? options_.block_bytes - memory->size()
                                                           : options_.block_bytes;
    STRIDE_CLI_TRY(read_more(memory, missing));
    end = last_row_end(memory->text(), &quotes);
    if (end != 0) break;
    if (memory->size() > options_.max_row_bytes) return too_long(memory, block);
  }
  if (ended_) end = memory->size();
  carry_.append(memory->text().substr(end));
  finish(block, memory->text().substr(0, end));
  *more = end != 0 || header || opened_ < files_.size();
  return {};
}

}  // namespace stride::cli
