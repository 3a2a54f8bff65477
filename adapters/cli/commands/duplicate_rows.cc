#include "adapters/cli/commands/duplicate_rows.h"

#include <algorithm>
#include <bit>

#include "adapters/cli/interrupt.h"
#include "adapters/cli/output/progress.h"

namespace stride::cli {
namespace {

bool is_set(const std::vector<uint64_t>& bits, uint64_t i) { return bits[i / 64] >> i % 64 & 1; }

uint64_t count(const std::vector<uint64_t>& bits) {
  uint64_t n = 0;
  for (uint64_t word : bits) n += static_cast<uint64_t>(std::popcount(word));
  return n;
}

// The row and the line end that follows it in the text.
std::string_view with_line_end(std::string_view text, std::string_view row) {
  const char* p = row.data() + row.size();
  const char* end = text.data() + text.size();
  if (p < end && *p == '\r') ++p;
  if (p < end && *p == '\n') ++p;
  return {row.data(), static_cast<size_t>(p - row.data())};
}

// What the last row of a file may lack.
std::string_view missing_line_end(std::string_view row, bool crlf) {
  if (row.ends_with('\n')) return {};
  return crlf && !row.ends_with('\r') ? "\r\n" : "\n";
}

}  // namespace

ExitStatus DuplicatesInMemory::take(std::string_view text, ParsedRows* rows, bool crlf) {
  if (rows->size() == 0) return {};
  was_new_.resize((rows->size() + 63) / 64);
  STRIDE_CLI_TRY(seen_.put(rows->keys(), was_new_));
  rows_ += rows->size();
  fresh_ += count(was_new_);
  if (!out_) return {};
  // New rows that follow one another are written as one piece.
  std::string_view piece;
  for (uint64_t i = 0; i < rows->size(); ++i) {
    if (!is_set(was_new_, i)) continue;
    std::string_view row = with_line_end(text, rows->row(i));
    if (!piece.empty() && piece.data() + piece.size() == row.data()) {
      piece = {piece.data(), piece.size() + row.size()};
      continue;
    }
    STRIDE_CLI_TRY(out_->write(piece));
    piece = row;
  }
  STRIDE_CLI_TRY(out_->write(piece));
  uint64_t last = rows->size() - 1;
  if (!is_set(was_new_, last)) return {};
  return out_->write(missing_line_end(with_line_end(text, rows->row(last)), crlf));
}

ExitStatus DuplicatesInTable::open(const std::string& asked, RowOptions* options) {
  if (place_.table == notes_table)
    return ExitStatus::usage("table '.stride' belongs to this program");
  key_ = options->header || options->format == Format::jsonl ? options->key : "";
  key_form_ = asked.empty() ? KeyType::bytes : *key_form_named(asked);
  key_width_ = width_of(key_form_);
  ExitStatus opened =
      open_database(context_, place_.database, Access::write, place_.threads, &database_);
  if (!opened.ok() && opened.code() != ExitCode::not_found) return opened;
  if (database_) {
    Table table;
    ExitStatus found = cli::open_table(*database_, place_.table, asked, &table, &key_form_);
    if (!found.ok() && found.code() != ExitCode::not_found) return found;
    if (found.ok()) table_ = table;
  }
  if (table_ && table_->address_bits())
    return ExitStatus::usage("table '" + place_.table +
                             "' is a prefix table: dedup keeps rows in ordinary ones");
  if (table_ && table_->schema().has_values())
    return ExitStatus::usage("table '" + place_.table +
                             "' has columns, and dedup keeps keys alone: give another table");
  if (table_ && table_->numbers() != NumberType::none)
    return ExitStatus::usage("table '" + place_.table +
                             "' has numbers, and dedup keeps keys alone: give another table");
  if (table_) key_width_ = table_->key_width();
  options->key_form = key_form_;
  options->key_width = key_width_;
  // What is in the table was printed: that is not to be cut short.
  if (out_) out_->ignore_interrupts();
  return {};
}

ExitStatus DuplicatesInTable::take(std::string_view text, ParsedRows* rows, bool crlf) {
  rows_ += rows->size();
  waiting_rows_ += rows->size();
  for (uint64_t i = 0; out_ && i < rows->size(); ++i) {
    std::string_view row = with_line_end(text, rows->row(i));
    text_.append(row);
    text_.append(missing_line_end(row, crlf));
    ends_.push_back(text_.size());
  }
  if (rows->size() != 0) {
    waiting_.push_back({rows->take(), {}});
    waiting_bytes_ += waiting_.back().rows.bytes();
  }
  bool full = place_.commit_every ? waiting_rows_ >= place_.commit_every
                                  : waiting_bytes_ + text_.size() >= batch_bytes;
  return full ? commit() : ExitStatus();
}

ExitStatus DuplicatesInTable::finish() {
  STRIDE_CLI_TRY(commit());
  return database_->close();
}

ExitStatus DuplicatesInTable::commit() {
  if (interrupted()) return ExitStatus::interrupted();
  if (!database_) {
    STRIDE_CLI_TRY(
        open_database(context_, place_.database, Access::create, place_.threads, &database_));
  }
  STRIDE_CLI_TRY(write());
  if (out_) STRIDE_CLI_TRY(print());
  for (const Waiting& waiting : waiting_) fresh_ += count(waiting.was_new);
  waiting_.clear();
  waiting_rows_ = waiting_bytes_ = 0;
  text_.clear();
  ends_.clear();
  for (const TableStatistics& t : database_->tables())
    if (t.name == place_.table && t.runs > max_runs) return database_->compact();
  return {};
}

ExitStatus DuplicatesInTable::write() {
  WriteTransaction transaction = database_->begin();
  std::optional<Table> made;  // if it is missing
  if (!table_) {
    auto table = transaction.create_table(place_.table, {.key_width = key_width_});
    if (!table.ok()) return table.status();
    made = *table;
  }
  for (Waiting& waiting : waiting_) {
    const KeyColumn& keys = waiting.rows.keys;
    waiting.was_new.resize((keys.size + 63) / 64);
    STRIDE_CLI_TRY(transaction.put_if_absent(made ? *made : *table_, keys, waiting.rows.values,
                                             waiting.was_new));
  }
  if (made) {
    STRIDE_CLI_TRY(write_notes(&transaction, place_.table,
                               {.key_type = name_of(key_form_), .key = key_, .values = {}}));
  }
  STRIDE_CLI_TRY(transaction.commit());
  if (made) table_ = made;
  return {};
}

template <class Use>
void DuplicatesInTable::for_each_new(const Use& use) const {
  uint64_t first = 0;
  for (const Waiting& waiting : waiting_) {
    for (uint64_t i = 0; i < waiting.rows.keys.size; ++i)
      if (is_set(waiting.was_new, i)) use(waiting, i, first + i);
    first += waiting.rows.keys.size;
  }
}

ExitStatus DuplicatesInTable::print() {
  ExitStatus outcome = out_->flush();
  uint64_t before = out_->written_bytes();
  for_each_new([&](const Waiting&, uint64_t, uint64_t row) {
    uint64_t begin = row ? ends_[row - 1] : 0;
    if (outcome.ok()) outcome = out_->write(text_.text().substr(begin, ends_[row] - begin));
  });
  if (outcome.ok()) outcome = out_->flush();
  return outcome.ok() ? outcome : take_back(out_->written_bytes() - before, std::move(outcome));
}

// Erases the new rows of the batch that were not printed as a whole.
ExitStatus DuplicatesInTable::take_back(uint64_t printed_bytes, ExitStatus failure) {
  WriteTransaction transaction = database_->begin();
  uint64_t bytes = 0, rows = 0;
  ExitStatus erased;
  for_each_new([&](const Waiting& waiting, uint64_t i, uint64_t row) {
    bytes += ends_[row] - (row ? ends_[row - 1] : 0);
    if (bytes <= printed_bytes) return;
    ++rows;
    if (erased.ok()) erased = transaction.erase(*table_, waiting.rows.keys[i]);
  });
  if (erased.ok()) erased = transaction.commit();
  if (erased.ok() || failure.code() == ExitCode::closed_pipe) return failure;
  return ExitStatus(failure.code(), failure.message() + "\n" + with_commas(rows) +
                                        " rows are in table '" + place_.table +
                                        "' that were not written: " + erased.message());
}

}  // namespace stride::cli
