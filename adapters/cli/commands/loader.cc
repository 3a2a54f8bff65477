#include "adapters/cli/commands/loader.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "adapters/cli/commands/machine_memory.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/text/number_text.h"

namespace stride::cli {
namespace {

// Only the size and the time of the last change: reading it all would cost as much as loading it.
nlohmann::json identity(const std::string& path) {
  struct stat info {};
  if (path == "-" || stat(path.c_str(), &info) != 0) return {path};
  return {path, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

}  // namespace

Loader::Loader(Context* context, const LoadArguments& arguments, RowOptions options)
    : context_(*context),
      arguments_(arguments),
      options_(std::move(options)),
      rejects_(arguments.rows.rejects, rejects_allowed(arguments.rows), true),
      max_bytes_(arguments.max_memory ? arguments.max_memory
                                      : memory_for_rows(context->environment.meminfo)) {}

OnDuplicate Loader::rule_for_duplicates() const {
  if (arguments_.on_duplicate == "first") return OnDuplicate::first;
  if (arguments_.on_duplicate == "error") return OnDuplicate::error;
  if (arguments_.on_duplicate == "last" || arguments_.accumulate) return OnDuplicate::last;
  return table_is_there_ && !arguments_.replace ? OnDuplicate::last : OnDuplicate::error;
}

ExitStatus Loader::prepare(ReadFrom* from) {
  ExitStatus opened = open_database(context_, arguments_.database,
                                    arguments_.dry_run ? Access::read : Access::write,
                                    arguments_.rows.threads, &database_);
  if (!opened.ok() && opened.code() != ExitCode::not_found) return opened;
  Table table;
  if (database_) {
    auto found = database_->open_table(arguments_.table);
    table_is_there_ = found.ok();
    if (!found.ok() && found.status().code() != StatusCode::not_found) return found.status();
    if (table_is_there_) STRIDE_CLI_TRY(read_notes(*database_, *found, &notes_));
    if (table_is_there_) table = *found;
  }
  on_duplicate_ = rule_for_duplicates();
  if (table_is_there_ && arguments_.share_equal_values && !table.share_equal_values())
    return ExitStatus::usage("table '" + arguments_.table +
                             "' was made without --share-equal-values, which cannot be changed: "
                             "leave it out, or load into another table");
  STRIDE_CLI_TRY(find_numbers(table_is_there_ ? &table : nullptr));
  STRIDE_CLI_TRY(find_key_form(table_is_there_ ? &table : nullptr));
  STRIDE_CLI_TRY(find_schema(table_is_there_ ? &table : nullptr));
  STRIDE_CLI_TRY(check_expiry(table_is_there_ ? &table : nullptr));
  const uint32_t of_type = width_of(key_form_), asked = arguments_.rows.key_width;
  if (of_type && asked && asked != of_type && key_form_.type != KeyType::prefix)
    return ExitStatus::usage("--key-width " + std::to_string(asked) +
                             " does not go with keys of type " + name_of(key_form_) +
                             ", which have " + std::to_string(of_type) + " bytes: leave it out");
  if (asked && of_type == 0 && key_form_.parts() > 1)
    return ExitStatus::usage("--key-width does not go with keys of several columns: leave it out");
  uint32_t wanted = of_type ? of_type : asked;
  if (options_.raw_key_bytes && !wanted && !table_is_there_) wanted = options_.raw_key_bytes;
  bool any = wanted == 0;
  if (table_is_there_ && !any && wanted != table.key_width()) {
    auto text = [](uint32_t w) { return w ? std::to_string(w) + " bytes" : "any length"; };
    return ExitStatus::usage("table '" + arguments_.table + "' has keys of " +
                             text(table.key_width()) + ", and this load makes keys of " +
                             text(wanted) + " (--key-type " + name_of(key_form_) +
                             "): leave --key-type and --key-width out, or load into another table");
  }
  set_key_form();
  if (key_form_.type != KeyType::prefix)
    options_.key_width = table_is_there_ ? table.key_width() : wanted;
  return find_position(from);
}

ExitStatus Loader::find_position(ReadFrom* from) {
  std::optional<LoadPosition> position;
  if (arguments_.resume && table_is_there_) {
    auto table = database_->open_table(arguments_.table);
    if (!table.ok()) return table.status();
    STRIDE_CLI_TRY(read_position(*database_, *table, &position));
  }
  if (position && position->is_last && position->job != job()) position.reset();
  if (position && (position->job != job() || position->file >= arguments_.files.size())) {
    return ExitStatus::usage("the interrupted load of table '" + arguments_.table +
                             "' was of other files or with other options, or a file has changed");
  }
  if (arguments_.resume && !position)
    context_.note("stride: no interrupted load of table '" + arguments_.table +
                  "': starting at the beginning");
  if (position && position->is_last)
    context_.note("stride: this load of table '" + arguments_.table +
                  "' had come to its end: nothing of it is loaded again");
  if (position) {
    position_ = *position;
    rows_before_ = position_.rows;
    // As it was when the table was made.
    if (position->refuses_duplicates && arguments_.on_duplicate.empty())
      on_duplicate_ = OnDuplicate::error;
  }
  position_.refuses_duplicates = on_duplicate_ == OnDuplicate::error;
  position_.job = job();
  *from = reached_ = {position_.file, position_.offset};
  return rejects_.open(context_.environment, arguments_.files,
                       {position.has_value(), position_.file, position_.line, position_.rejected,
                        position_.rejects_bytes});
}

std::string Loader::job() const {
  nlohmann::json job = {std::string(name_of(options_.format)),
                        std::string(1, options_.delimiter),
                        options_.header,
                        static_cast<int>(options_.line_ends),
                        options_.key,
                        options_.values,
                        name_of(key_form_),
                        options_.raw_key_bytes,
                        options_.raw_value_bytes,
                        arguments_.on_duplicate};
  if (arguments_.mask_host_bits) job.push_back("mask");
  if (arguments_.accumulate) job.push_back(arguments_.count ? "count" : "accumulate");
  if (arguments_.replace) job.push_back("replace");
  for (const std::string& file : arguments_.files) job.push_back(identity(file));
  return job.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ExitStatus Loader::take(const Block& block, ParsedRows* rows) {
  STRIDE_CLI_TRY(rejects_.take(block, rows));
  reached_ = {block.file->index, block.end_offset};
  if (arguments_.dry_run || rows->size() == 0) {
    waiting_rows_ += rows->rows_read();
    return {};
  }
  WaitingRows waiting;
  waiting.file = block.file;
  waiting.first_line = rejects_.block_line();
  if (wants_lines()) {
    waiting.lines.resize(rows->size());
    for (uint64_t i = 0; i < rows->size(); ++i)
      waiting.lines[i] = static_cast<uint32_t>(rows->line(i));
  }
  waiting_rows_ += rows->rows_read();
  waiting.rows = rows->take();
  if (on_duplicate_ == OnDuplicate::first) waiting.rows = reversed(waiting.rows);
  waiting_bytes_ += waiting.rows.bytes();
  waiting_.push_back(std::move(waiting));
  if (arguments_.commit_every && waiting_rows_ >= arguments_.commit_every) return commit(false);
  return check_memory();
}

ExitStatus Loader::check_memory() const {
  if (waiting_bytes_ <= max_bytes_) return {};
  return ExitStatus(ExitCode::no_room, "the rows need more than " + byte_text(max_bytes_) +
                                           " of memory before they can be committed as a whole; "
                                           "give --commit-every N to commit them in parts");
}

ExitStatus Loader::finish() {
  STRIDE_CLI_TRY(rejects_.flush());
  if (arguments_.dry_run) return {};
  STRIDE_CLI_TRY(commit(true));
  return database_->close();
}

ExitStatus Loader::commit(bool last) {
  STRIDE_CLI_TRY(rejects_.flush());
  STRIDE_CLI_TRY(look_at_keys());
  if (interrupted()) return ExitStatus::interrupted();
  if (!database_) {
    STRIDE_CLI_TRY(open_database(context_, arguments_.database, Access::create,
                                 arguments_.rows.threads, &database_));
  }
  STRIDE_CLI_TRY(write(last));
  table_is_there_ = true;
  ++commits_;
  new_keys_ += written_keys_ - stored_keys_;
  position_.rows += waiting_rows_;
  waiting_.clear();
  waiting_rows_ = waiting_bytes_ = 0;
  return {};
}

// Before anything is made or written.
ExitStatus Loader::look_at_keys() {
  stored_keys_ = 0;
  if (on_duplicate_ == OnDuplicate::error && is_small()) STRIDE_CLI_TRY(check_no_duplicates());
  if (table_is_there_ && !replaces_table()) {
    auto table = database_->open_table(arguments_.table);
    if (!table.ok()) return table.status();
    STRIDE_CLI_TRY(on_duplicate_ == OnDuplicate::error   ? check_not_stored(*table)
                   : on_duplicate_ == OnDuplicate::first ? drop_stored(*table)
                                                         : count_stored(*table));
  }
  if (is_small()) written_keys_ = count_keys(waiting_);
  return {};
}

Result<Table> Loader::open_table(WriteTransaction* transaction) const {
  // One that somebody has made meanwhile is another: its columns and keys were not looked at.
  if (table_is_there_) return database_->open_table(arguments_.table);
  bool of_prefixes = key_form_.type == KeyType::prefix;
  return transaction->create_table(arguments_.table,
                                   {.key_width = of_prefixes ? 0 : options_.key_width,
                                    .address_bits = key_form_.address_bits,
                                    .share_equal_values = arguments_.share_equal_values,
                                    .numbers = options_.numbers,
                                    .overflow = arguments_.wrap ? Overflow::wrap : Overflow::error,
                                    .schema = table_schema(),
                                    .expiry_column = arguments_.expires,
                                    .time_to_live = microseconds_of(arguments_.ttl).value_or(0)});
}

// Commits, and says how many keys the rows have.
ExitStatus Loader::commit(WriteTransaction* transaction) {
  const bool refuses = on_duplicate_ == OnDuplicate::error;
  if (is_small()) {
    STRIDE_CLI_TRY(in_shell_words(transaction->commit()));
    return {};
  }
  CommitReport report;
  auto progress = [&](const CommitProgress& p) {
    // The rows that say how the load is doing are not counted.
    if (progress_)
      progress_->update_phase("committing", p.share, std::min(p.rows, waiting_rows_),
                              waiting_rows_);
    return !interrupted();
  };
  Status committed =
      transaction->commit({.refuse_equal_keys = refuses, .progress = progress}, &report);
  if (committed.code() == StatusCode::cancelled) return ExitStatus::interrupted();
  if (committed.code() == StatusCode::already_exists) STRIDE_CLI_TRY(check_no_duplicates());
  STRIDE_CLI_TRY(in_shell_words(committed));
  written_keys_ = report.keys[arguments_.table];
  return {};
}

// A sum that does not fit is what a load adds up wrongly, and what the engine advises is a call.
ExitStatus Loader::in_shell_words(const Status& status) const {
  if (!arguments_.accumulate || status.code() != StatusCode::invalid_argument) return status;
  std::string message = status.message();
  if (status.key()) {
    TextBuffer key;
    decode_key(key_form_, as_bytes(*status.key()), &key);
    message = status.message_with_key(in_quotes(key.text()));
  }
  return ExitStatus::usage(message + ": add less, or load into a new table with --wrap, " +
                           (options_.numbers == NumberType::i32 ? "--numbers i64 " : "") +
                           "or --numbers f64");
}

ExitStatus Loader::write(bool last) {
  WriteTransaction transaction = database_->begin();
  STRIDE_CLI_TRY(check_expiry_column());
  auto table = open_table(&transaction);
  if (!table.ok()) return table.status();
  if (replaces_table()) STRIDE_CLI_TRY(transaction.erase_range(*table, {}, {}));
  // The engine keeps the one of equal keys that was put last.
  if (on_duplicate_ == OnDuplicate::first) std::reverse(waiting_.begin(), waiting_.end());
  for (WaitingRows& waiting : waiting_) {
    if (!arguments_.accumulate) {
      STRIDE_CLI_TRY(transaction.put_view(*table, waiting.rows.keys, waiting.rows.values));
      continue;
    }
    STRIDE_CLI_TRY(in_shell_words(
        transaction.accumulate_view(*table, waiting.rows.keys, waiting.rows.values)));
  }
  const bool named = !key_columns_.empty() || options_.header || options_.format == Format::jsonl ||
                     is_columnar(options_.format);
  TableNotes notes{name_of(key_form_), named ? options_.key : "", options_.values};
  if (!notes_ || notes_->key_type != notes.key_type) {
    STRIDE_CLI_TRY(write_notes(&transaction, arguments_.table, notes));
  }
  LoadPosition position = position_;
  position.file = reached_.file;
  position.offset = reached_.offset;
  position.line = rejects_.next_line();
  position.rows = position_.rows + waiting_rows_;
  position.rejected = rejects_.count();
  position.rejects_bytes = rejects_.bytes();
  position.is_last = last;
  // That of a load whose rows are replaced leads nowhere.
  if (arguments_.commit_every || replaces_table())
    STRIDE_CLI_TRY(
        write_position(&transaction, *table, arguments_.commit_every ? &position : nullptr));
  if (commits_ == 0) STRIDE_CLI_TRY(end_restoring(*database_, *table, &transaction));
  STRIDE_CLI_TRY(commit(&transaction));
  notes_ = notes;
  return {};
}

ExitStatus Loader::check_no_duplicates() const {
  const auto found = find_equal_keys(waiting_);
  if (!found) return {};
  const WaitingRows& again = waiting_[found->again.block];
  TextBuffer key;
  decode_key(key_form_, again.rows.keys[found->again.row], &key);
  return ExitStatus(ExitCode::bad_input,
                    again.place(found->again.row) + ": key " + in_quotes(key.text()) +
                        " of table '" + arguments_.table + "' is in " +
                        waiting_[found->before.block].place(found->before.row) +
                        " already: give --on-duplicate last or first to keep one row of each key, "
                        "or another --key");
}

ExitStatus Loader::check_not_stored(const Table& table) const {
  Snapshot snapshot = database_->snapshot();
  FindResult result;
  for (const WaitingRows& waiting : waiting_) {
    if (interrupted()) return ExitStatus::interrupted();
    STRIDE_CLI_TRY(snapshot.find(table, waiting.rows.keys, &result));
    if (result.found.count() == 0) continue;
    uint64_t row = 0;
    while (!result.found[row]) ++row;
    TextBuffer key;
    decode_key(key_form_, waiting.rows.keys[row], &key);
    return ExitStatus(ExitCode::bad_input, waiting.place(row) + ": key " + in_quotes(key.text()) +
                                               " is in table '" + table.name() +
                                               "' already: give --on-duplicate last or first to "
                                               "keep the new row or the old one");
  }
  return {};
}

ExitStatus Loader::drop_stored(const Table& table) {
  Snapshot snapshot = database_->snapshot();
  FindResult result;
  for (WaitingRows& waiting : waiting_) {
    if (interrupted()) return ExitStatus::interrupted();
    STRIDE_CLI_TRY(snapshot.find(table, waiting.rows.keys, &result));
    uint64_t found = result.found.count();
    if (found == 0) continue;
    waiting.rows = without(waiting.rows, result.found);
    skipped_ += found;
    waiting_rows_ -= found;
  }
  return {};
}

// How many keys of the rows are in the table.
ExitStatus Loader::count_stored(const Table& table) {
  Snapshot snapshot = database_->snapshot();
  FindResult result;
  std::vector<RowPlace> found;
  for (uint32_t b = 0; b < waiting_.size(); ++b) {
    if (interrupted()) return ExitStatus::interrupted();
    STRIDE_CLI_TRY(snapshot.find(table, waiting_[b].rows.keys, &result));
    if (result.found.count() == 0) continue;
    for (uint32_t i = 0; i < waiting_[b].rows.keys.size; ++i)
      if (result.found[i]) found.push_back({b, i});
  }
  stored_keys_ = count_keys(waiting_, found);
  return {};
}

}  // namespace stride::cli
