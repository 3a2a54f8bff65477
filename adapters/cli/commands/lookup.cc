#include "adapters/cli/commands/lookup.h"

#include <CLI/CLI.hpp>
#include <string_view>
#include <unordered_set>

#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/input/same_file.h"
#include "adapters/cli/text/scan_bounds.h"
#include "adapters/cli/text/similar_names.h"

namespace stride::cli {
namespace {

Missing parse_missing(const std::string& name) {
  return name == "skip" ? Missing::skip : name == "empty" ? Missing::empty : Missing::error;
}

ExitStatus look_up_arguments(Lookup* lookup, const std::vector<std::string>& texts,
                             LookupWorker* worker) {
  std::string keys, key;
  std::vector<uint64_t> offsets = {0};
  for (const std::string& text : texts) {
    STRIDE_CLI_TRY(encode_argument(lookup->of_addresses() ? "address " : "key ", lookup->key_form,
                                   text, &key));
    keys += key;
    offsets.push_back(keys.size());
  }
  STRIDE_CLI_TRY(worker->look_up(Column::variable(keys.data(), offsets.data(), texts.size())));
  ExitStatus outcome = worker->hand_out("");
  // What was found before a key that is missing comes first.
  if (!outcome.ok()) {
    STRIDE_CLI_TRY(lookup->context->out.flush());
    return outcome;
  }
  if (lookup->found != lookup->rows) lookup->context->note("stride: " + lookup->missing_text());
  return {};
}

}  // namespace

ExitStatus Lookup::not_there(const std::string& place, Bytes key) const {
  TextBuffer text;
  decode_key(key_form, key, &text);
  std::string in_table = " table '" + table.name() + "'";
  return ExitStatus(
      ExitCode::not_found,
      place + (of_addresses() ? "no prefix in" + in_table + " covers " + in_quotes(text.text())
                              : "key " + in_quotes(text.text()) + " is not in" + in_table));
}

std::string Lookup::missing_text() const {
  return with_commas(rows - found) + " of " + with_commas(rows) +
         (of_addresses() ? " addresses have no prefix in the table" : " keys are not in the table");
}

ExitStatus LookupWorker::look_up(const KeyColumn& keys) {
  text_.clear();
  found_ = 0;
  missing_ = none;
  keys_ = keys;
  if (keys.size == 0) return {};
  const Bitmap* found = nullptr;
  STRIDE_CLI_TRY(search(&found));
  for (uint64_t i = 0; i < keys_.size; ++i) {
    found_ += (*found)[i];
    if (!(*found)[i] && lookup_.missing == Missing::skip) continue;
    if (!(*found)[i] && lookup_.missing == Missing::error) {
      missing_ = i;
      break;
    }
    write(i, (*found)[i]);
  }
  return written();
}

ExitStatus LookupWorker::process(const Block& block) {
  STRIDE_CLI_TRY(parse_block(block, &rows_));
  block_ = &block;
  return look_up(rows_.size() ? rows_.keys() : KeyColumn());
}

ExitStatus LookupWorker::emit(const Block& block) {
  STRIDE_CLI_TRY(lookup_.rejects.take(block, &rows_));
  if (!lookup_.header_written && !lookup_.header.empty() && !block.file->header.empty())
    STRIDE_CLI_TRY(write_header(*block.file));
  std::string place;
  if (missing_ != none) {
    uint64_t line = lookup_.rejects.block_line() + rows_.line(missing_);
    place = block.file->name + ":" + std::to_string(line) + ": ";
  }
  STRIDE_CLI_TRY(hand_out(place));
  lookup_.progress.update(block.stored_bytes_read, lookup_.rows);
  return {};
}

ExitStatus LookupWorker::hand_out(const std::string& place) {
  lookup_.rows += keys_.size;
  lookup_.found += found_;
  STRIDE_CLI_TRY(lookup_.context->out.write(text_.text()));
  return missing_ == none ? ExitStatus() : lookup_.not_there(place, keys_[missing_]);
}

void LookupWorker::note_columns_twice(const FileRows& file) {
  const std::unordered_set<std::string_view> columns(file.plan.columns.begin(),
                                                     file.plan.columns.end());
  std::vector<std::string> twice;
  for (const std::string& name : lookup_.header)
    if (columns.contains(name)) twice.push_back(name);
  if (twice.empty()) return;
  lookup_.context->note("stride: the output has two columns " +
                        std::string(twice.size() == 1 ? "" : "each of ") + names_text(twice) +
                        ", of " + file.name +
                        " and of the table: --columns and --value-name say which the table adds, "
                        "and what a value is called");
}

ExitStatus LookupWorker::write_header(const FileRows& file) {
  lookup_.header_written = true;
  std::string header = file.header;
  std::string line_end;
  while (!header.empty() && (header.back() == '\n' || header.back() == '\r')) {
    line_end.insert(0, 1, header.back());
    header.pop_back();
  }
  note_columns_twice(file);
  const RowOptions& options = file.plan.options;
  TextBuffer names;
  append_names(lookup_.header, options.delimiter, options.format == Format::csv, &names);
  return lookup_.context->out.write(header + options.delimiter + std::string(names.text()) +
                                    (line_end.empty() ? "\n" : line_end));
}

ExitStatus open_lookup(Context* context, const LookupRequest& request, const RowArguments& rows,
                       std::unique_ptr<Lookup>* lookup) {
  std::unique_ptr<Database> database;
  // Each thread looks up its own blocks; those of a few keys are looked up by none but this one.
  STRIDE_CLI_TRY(open_database(*context, request.database, Access::read, 1, &database));
  *lookup =
      std::make_unique<Lookup>(context, std::move(database), rows, stored_bytes_of(request.file));
  (*lookup)->missing = parse_missing(request.missing);
  STRIDE_CLI_TRY(open_table(*(*lookup)->database, request.table, rows.key_type, &(*lookup)->table,
                            &(*lookup)->key_form));
  return find_columns((*lookup)->table, request.columns, &(*lookup)->columns);
}

ExitStatus look_up_file(Lookup* lookup, const RowArguments& arguments, const std::string& file,
                        RowOptions options, const MakeLookupWorker& make_worker) {
  options.key_form = lookup->key_form;
  options.key_width =
      lookup->of_addresses() ? width_of(lookup->key_form) : lookup->table.key_width();
  options.values_wanted = false;
  const Environment& environment = lookup->context->environment;
  STRIDE_CLI_TRY(check_not_read(environment.out, "the output", {file}, environment.in));
  STRIDE_CLI_TRY(lookup->rejects.open(environment, {file}));
  BlockReader reader({file}, options, environment.in);
  std::vector<std::unique_ptr<BlockWorker>> workers;
  for (unsigned i = 0; i < chosen_threads(arguments); ++i) workers.push_back(make_worker());
  ExitStatus outcome = run_pipeline(&reader, workers);
  lookup->progress.clear();
  for (const std::string& told : reader.told()) lookup->context->note("stride: " + told);
  // What was found before a failure has been promised: it comes first.
  if (outcome.code() != ExitCode::closed_pipe) {
    ExitStatus flushed = lookup->context->out.flush();
    if (outcome.ok()) outcome = flushed;
  }
  STRIDE_CLI_TRY(outcome);
  STRIDE_CLI_TRY(lookup->rejects.flush());
  if (lookup->found != lookup->rows || lookup->rejects.count() != 0) {
    std::string line = lookup->missing_text();
    if (lookup->rejects.count())
      line += ", " + with_commas(lookup->rejects.count()) + " bad rows left out";
    lookup->context->note("stride: " + line);
  }
  return {};
}

ExitStatus look_up_keys(Lookup* lookup, const RowArguments& rows,
                        const std::vector<std::string>& keys, const std::string& file,
                        const MakeLookupWorker& make_worker) {
  if (file.empty()) return look_up_arguments(lookup, keys, make_worker().get());
  RowOptions options;
  STRIDE_CLI_TRY(parse_row_options(rows, file, &options));
  if (options.format == Format::raw)
    return ExitStatus::usage("--keys reads no raw records: give another --keys-format");
  options.allow_empty_key = true;
  return look_up_file(lookup, rows, file, options, make_worker);
}

void add_missing(CLI::App* command, std::string* missing, const std::string& what) {
  command->add_option("--missing", *missing, what)
      ->check(CLI::IsMember({"skip", "empty", "error"}))
      ->capture_default_str()
      ->type_name("RULE");
}

void add_threads(CLI::App* command, RowArguments* rows) {
  command->add_option("--threads", rows->threads, "That look up; 0: one for each core")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str()
      ->type_name("N");
}

}  // namespace stride::cli
