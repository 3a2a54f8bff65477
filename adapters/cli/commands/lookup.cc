#include "adapters/cli/commands/lookup.h"

#include <CLI/CLI.hpp>

#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/input/parsed_rows.h"
#include "adapters/cli/input/pipeline.h"
#include "adapters/cli/input/rejected_rows.h"
#include "adapters/cli/input/same_file.h"
#include "adapters/cli/output/progress.h"
#include "adapters/cli/output/record_writer.h"

namespace stride::cli {
namespace {

enum class Missing : uint8_t { skip, empty, error };

Missing parse_missing(const std::string& name) {
  return name == "skip" ? Missing::skip : name == "empty" ? Missing::empty : Missing::error;
}

// What all threads of a lookup share.
struct Lookup {
  Context* context = nullptr;
  std::unique_ptr<Database> database;
  Table table;
  KeyForm key_form;  // of what is looked up
  Snapshot snapshot;
  Missing missing = Missing::skip;
  Rejects rejects;
  Progress progress;
  std::string header;  // of the value's column
  uint64_t rows = 0, found = 0;
  bool header_written = false;

  Lookup(Context* c, std::unique_ptr<Database> d, const RowArguments& arguments, uint64_t total)
      : context(c),
        database(std::move(d)),
        snapshot(database->snapshot()),
        rejects(arguments.rejects, rejects_allowed(arguments)),
        progress(c->environment.err, "look up", total) {}

  bool of_addresses() const { return key_form.type == KeyType::address; }
  Outcome not_there(const std::string& place, Bytes key) const {
    TextBuffer text;
    decode_key(key_form, key, &text);
    std::string in_table = " table '" + table.name() + "'";
    return Outcome(
        ExitCode::not_found,
        place + (of_addresses() ? "no prefix in" + in_table + " covers " + quoted(text.text())
                                : "key " + quoted(text.text()) + " is not in" + in_table));
  }
  // "3 of 7 keys are not in the table"
  std::string missing_text() const {
    return with_commas(rows - found) + " of " + with_commas(rows) +
           (of_addresses() ? " addresses have no prefix in the table"
                           : " keys are not in the table");
  }
};

class LookupWorker : public BlockWorker {
 public:
  LookupWorker(Lookup* lookup, bool rows_wanted)
      : lookup_(*lookup), rows_({.values = false, .rows = rows_wanted, .lines = true}) {}

  // Looks up keys that lie in any memory. text() then has what is to be written, up to a key that
  // is missing where that is an error.
  Outcome look_up(const KeyColumn& keys) {
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
    return {};
  }

  Outcome process(const Block& block) override {
    STRIDE_CLI_TRY(parse_block(block, &rows_));
    block_ = &block;
    return look_up(rows_.size() ? rows_.keys() : KeyColumn());
  }

  Outcome emit(const Block& block) override {
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

  // Writes what look_up() found. place: of the key that is missing.
  Outcome hand_out(const std::string& place) {
    lookup_.rows += keys_.size;
    lookup_.found += found_;
    STRIDE_CLI_TRY(lookup_.context->out.write(text_.text()));
    return missing_ == none ? Outcome() : lookup_.not_there(place, keys_[missing_]);
  }

 protected:
  // Looks keys_ up, and says which are found.
  virtual Outcome search(const Bitmap** found) = 0;
  // Appends what key i has.
  virtual void write(uint64_t i, bool found) = 0;

  Lookup& lookup_;
  ParsedRows rows_;
  const Block* block_ = nullptr;  // null: keys are of arguments
  KeyColumn keys_;
  TextBuffer text_;

 private:
  static constexpr uint64_t none = ~uint64_t{0};

  // The columns' names, and that of the value's.
  Outcome write_header(const FileRows& file) {
    lookup_.header_written = true;
    std::string header = file.header;
    std::string line_end;
    while (!header.empty() && (header.back() == '\n' || header.back() == '\r')) {
      line_end.insert(0, 1, header.back());
      header.pop_back();
    }
    return lookup_.context->out.write(header + file.plan.options.delimiter + lookup_.header +
                                      (line_end.empty() ? "\n" : line_end));
  }

  uint64_t found_ = 0;
  uint64_t missing_ = none;
};

class ValueWorker : public LookupWorker {
 public:
  using LookupWorker::LookupWorker;

 protected:
  GetResult result_;

 private:
  Outcome search(const Bitmap** found) override {
    *found = &result_.found;
    return lookup_.snapshot.get(lookup_.table, keys_, &result_);
  }
};

class GetWorker final : public ValueWorker {
 public:
  GetWorker(Lookup* lookup, Format format)
      : ValueWorker(lookup, false), writer_(format, lookup->key_form, lookup->table.numbers()) {}

 private:
  void write(uint64_t i, bool found) override {
    writer_.write(keys_[i], result_.values[i], found, &text_);
  }
  RecordWriter writer_;
};

class MatchWorker final : public LookupWorker {
 public:
  MatchWorker(Lookup* lookup, Format format)
      : LookupWorker(lookup, false),
        writer_(format, lookup->table.address_bits(), lookup->table.numbers()) {}

 private:
  Outcome search(const Bitmap** found) override {
    *found = &result_.found;
    return lookup_.snapshot.match(lookup_.table, keys_, &result_);
  }
  void write(uint64_t i, bool found) override {
    writer_.write(keys_[i], result_.prefix(i), result_.value(i), found, &text_);
  }
  MatchResult result_;
  MatchWriter writer_;
};

// Asks for one address after the other: for all its prefixes, a line each, the shortest first. Or
// for the longest: a few addresses are not worth what the first Snapshot::match() builds.
class OneByOneWorker final : public LookupWorker {
 public:
  OneByOneWorker(Lookup* lookup, Format format, bool all)
      : LookupWorker(lookup, false),
        all_(all),
        writer_(format, lookup->table.address_bits(), lookup->table.numbers()) {}

 private:
  Outcome search(const Bitmap** found) override {
    *found = &found_;
    found_.reset(keys_.size);
    entries_.clear();
    first_.assign(1, 0);
    for (uint64_t i = 0; i < keys_.size; ++i) {
      auto entries = lookup_.snapshot.match_all(lookup_.table, keys_[i]);
      if (!entries.ok()) return entries.status();
      if (!entries->empty()) found_.set(i);
      auto first = all_ || entries->empty() ? entries->begin() : entries->end() - 1;
      entries_.insert(entries_.end(), first, entries->end());
      first_.push_back(entries_.size());
    }
    return {};
  }
  void write(uint64_t i, bool found) override {
    if (!found) return writer_.write(keys_[i], {}, {}, false, &text_);
    for (uint64_t e = first_[i]; e < first_[i + 1]; ++e)
      writer_.write(keys_[i], entries_[e].key, entries_[e].value, true, &text_);
  }
  bool all_;
  Bitmap found_;
  std::vector<PrefixEntry> entries_;
  std::vector<uint64_t> first_;  // entry of each address, and the end
  MatchWriter writer_;
};

class JoinWorker final : public ValueWorker {
 public:
  JoinWorker(Lookup* lookup, std::string value_name)
      : ValueWorker(lookup, true),
        value_name_(std::move(value_name)),
        value_(lookup->table.numbers()) {}

 private:
  void write(uint64_t i, bool found) override {
    const RowPlan& plan = block_->file->plan;
    std::string_view row = rows_.row(i);
    if (plan.options.format == Format::jsonl) return write_json(row, result_.values[i], found);
    std::string_view text = value_.of(result_.values[i]);
    if (plan.options.format == Format::csv) {
      text_.append(row);
      text_.append(plan.options.delimiter);
      append_csv_field(text, plan.options.delimiter, &text_);
      return text_.append(plan.crlf ? std::string_view("\r\n") : std::string_view("\n"));
    }
    // The common case: one check for room, and then only copies.
    char* to = text_.room(row.size() + text.size() + 3);
    char* begin = to;
    std::memcpy(to, row.data(), row.size());
    to += row.size();
    *to++ = plan.options.delimiter;
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    to += text.size();
    if (plan.crlf) *to++ = '\r';
    *to++ = '\n';
    text_.grow(static_cast<size_t>(to - begin));
  }

  // The object with one member more.
  void write_json(std::string_view row, Bytes value, bool found) {
    text_.append(row.substr(0, row.rfind('}')));
    text_.append(',');
    value_.append_member(value_name_, value, found, &text_);
    text_.append("}\n");
  }

  std::string value_name_;
  ValueText value_;
};

void add_missing(CLI::App* command, std::string* missing, const std::string& what) {
  command->add_option("--missing", *missing, what)
      ->check(CLI::IsMember({"skip", "empty", "error"}))
      ->capture_default_str()
      ->type_name("RULE");
}

Outcome open_lookup(Context* context, const std::string& path, const std::string& table,
                    const RowArguments& arguments, unsigned threads, uint64_t total,
                    std::unique_ptr<Lookup>* lookup) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, path, Access::read, threads, &database));
  *lookup = std::make_unique<Lookup>(context, std::move(database), arguments, total);
  return open_table(*(*lookup)->database, table, arguments.key_type, &(*lookup)->table,
                    &(*lookup)->key_form);
}

// Through the file, with a worker for each thread.
template <class MakeWorker>
Outcome look_up_file(Lookup* lookup, const RowArguments& arguments, const std::string& file,
                     RowOptions options, const MakeWorker& make_worker) {
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
  Outcome outcome = run_pipeline(&reader, workers);
  lookup->progress.clear();
  // What was found before a failure has been promised: it comes first.
  if (outcome.code() != ExitCode::closed_pipe) {
    Outcome flushed = lookup->context->out.flush();
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

Outcome look_up_arguments(Lookup* lookup, const std::vector<std::string>& texts,
                          LookupWorker* worker) {
  std::string keys;
  std::vector<uint64_t> offsets = {0};
  for (const std::string& text : texts) {
    std::string encoded(encoded_bound(lookup->key_form, text), '\0');
    ptrdiff_t n = encode_key(lookup->key_form, text, reinterpret_cast<std::byte*>(encoded.data()));
    if (n < 0) {
      return Outcome::usage((lookup->of_addresses() ? "address " : "key ") +
                            why_no_key(lookup->key_form, text));
    }
    keys.append(encoded, 0, static_cast<size_t>(n));
    offsets.push_back(keys.size());
  }
  STRIDE_CLI_TRY(worker->look_up(Column::variable(keys.data(), offsets.data(), texts.size())));
  Outcome outcome = worker->hand_out("");
  // What was found before a key that is missing comes first.
  if (!outcome.ok()) {
    STRIDE_CLI_TRY(lookup->context->out.flush());
    return outcome;
  }
  if (lookup->found != lookup->rows) lookup->context->note("stride: " + lookup->missing_text());
  return {};
}

// Looks up the arguments or, where a file is named, the keys of its first column.
template <class MakeWorker>
Outcome look_up_keys(Lookup* lookup, const RowArguments& rows, const std::vector<std::string>& keys,
                     const std::string& file, const MakeWorker& make_worker) {
  if (file.empty()) return look_up_arguments(lookup, keys, make_worker().get());
  RowOptions options;
  options.allow_empty_key = true;
  options.block_bytes = rows.block_bytes;
  std::string input = format_of_file(file);
  if (input == "parquet" || input == "arrow")
    STRIDE_CLI_TRY(find_format(input, file, &options.format));
  return look_up_file(lookup, rows, file, options, make_worker);
}

Format output_format(const Context& context, const std::string& asked) {
  std::string name = context.json ? "jsonl" : asked;
  return name == "csv"     ? Format::csv
         : name == "jsonl" ? Format::jsonl
         : name == "raw"   ? Format::raw
                           : Format::tsv;
}

void add_threads(CLI::App* command, RowArguments* rows) {
  command->add_option("--threads", rows->threads, "That look up; 0: one for each core")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str()
      ->type_name("N");
}

}  // namespace

void add_get(CLI::App* command, GetArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  command->add_option("KEY", a->keys, "Keys to look up");
  command
      ->add_option(
          "--keys", a->file,
          "File with a key a line, or in its first column, which may be of Parquet or Arrow "
          "by its name; -: standard input")
      ->type_name("FILE");
  command->add_option("--format", a->output, "Of the output: tsv (key, value), csv, jsonl, raw")
      ->check(CLI::IsMember({"tsv", "csv", "jsonl", "raw"}))
      ->capture_default_str()
      ->type_name("FORMAT");
  add_missing(command, &a->missing,
              "Keys that are not there: left out, with an empty value, or the end (exit code 4)");
  add_key_type(command, &a->rows.key_type);
  add_threads(command, &a->rows);
  command->footer(
      "Examples:\n"
      "  stride get db users 17 42\n"
      "  stride get db users --keys ids.txt.gz --missing empty > users.tsv\n"
      "  cut -f 3 orders.tsv | stride get db users --keys - --format jsonl");
}

void add_match(CLI::App* command, MatchArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the prefix table")->required();
  command->add_option("ADDRESS", a->addresses, "Addresses to look up");
  command
      ->add_option(
          "--keys", a->file,
          "File with an address a line, or in its first column, which may be of Parquet or Arrow "
          "by its name; -: standard input")
      ->type_name("FILE");
  command->add_flag("--all", a->all,
                    "All prefixes of each address, a line each, the shortest first");
  command
      ->add_option("--format", a->output, "Of the output: tsv (address, prefix, value), csv, jsonl")
      ->check(CLI::IsMember({"tsv", "csv", "jsonl"}))
      ->capture_default_str()
      ->type_name("FORMAT");
  add_missing(command, &a->missing,
              "Addresses without a prefix: left out, with empty fields, or the end (exit code 4)");
  add_threads(command, &a->rows);
  add_block_bytes(command, &a->rows);
  command->footer(
      "Prints each address with the longest prefix that covers it, and that prefix's value.\n\n"
      "Examples:\n"
      "  stride match db routes 10.1.2.3 192.0.2.1\n"
      "  stride match db routes --keys addresses.txt.gz --missing skip > routes.tsv\n"
      "  stride match db routes 10.1.2.3 --all --json");
}

void add_join(CLI::App* command, JoinArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  command->add_option("FILE", a->file, "File whose rows get a value; -: standard input")
      ->required();
  add_row_options(command, &a->rows, "tsv, csv, jsonl; the output is of the same format");
  add_missing(
      command, &a->missing,
      "Rows whose key is not there: left out, with an empty value (null in JSON), or the end "
      "(exit code 4)");
  command
      ->add_option("--value-name", a->value_name, "Of the new column in the header or the object")
      ->capture_default_str()
      ->type_name("NAME");
  command->footer(
      "Each row is written as it is, in the same order, with the value as its last column.\n\n"
      "Examples:\n"
      "  stride join db users orders.tsv --key 3 > orders-with-users.tsv\n"
      "  stride join db users orders.csv.gz --header --key user_id --value-name user\n"
      "  stride join db seen log.jsonl --key ip --missing skip");
}

Outcome run_get(Context* context, const GetArguments& arguments) {
  if (arguments.keys.empty() == arguments.file.empty())
    return Outcome::usage("give keys, or --keys FILE");
  Format format = output_format(*context, arguments.output);
  // Each thread looks up its own blocks; those of a few keys are looked up by none but this one.
  std::unique_ptr<Lookup> lookup;
  STRIDE_CLI_TRY(open_lookup(context, arguments.database, arguments.table, arguments.rows, 1,
                             stored_bytes_of(arguments.file), &lookup));
  lookup->missing = parse_missing(arguments.missing);
  return look_up_keys(lookup.get(), arguments.rows, arguments.keys, arguments.file,
                      [&] { return std::make_unique<GetWorker>(lookup.get(), format); });
}

Outcome run_match(Context* context, const MatchArguments& arguments) {
  if (arguments.addresses.empty() == arguments.file.empty())
    return Outcome::usage("give addresses, or --keys FILE");
  Format format = output_format(*context, arguments.output);
  std::unique_ptr<Lookup> lookup;
  STRIDE_CLI_TRY(open_lookup(context, arguments.database, arguments.table, arguments.rows, 1,
                             stored_bytes_of(arguments.file), &lookup));
  lookup->missing = parse_missing(arguments.missing);
  if (lookup->table.address_bits() == 0)
    return Outcome::usage("table '" + arguments.table + "' is no prefix table");
  lookup->key_form = {KeyType::address, lookup->table.address_bits()};
  bool few = arguments.file.empty() && lookup->table.address_bits() <= 128;
  return look_up_keys(lookup.get(), arguments.rows, arguments.addresses, arguments.file,
                      [&]() -> std::unique_ptr<LookupWorker> {
                        if (arguments.all || few)
                          return std::make_unique<OneByOneWorker>(lookup.get(), format,
                                                                  arguments.all);
                        return std::make_unique<MatchWorker>(lookup.get(), format);
                      });
}

Outcome run_join(Context* context, const JoinArguments& arguments) {
  RowOptions options;
  STRIDE_CLI_TRY(parse_row_options(arguments.rows, arguments.file, &options));
  if (options.format == Format::raw || is_columnar(options.format))
    return Outcome::usage("join reads tsv, csv and jsonl");
  std::unique_ptr<Lookup> lookup;
  STRIDE_CLI_TRY(open_lookup(context, arguments.database, arguments.table, arguments.rows, 1,
                             stored_bytes_of(arguments.file), &lookup));
  lookup->missing = parse_missing(arguments.missing);
  lookup->header = arguments.value_name;
  return look_up_file(lookup.get(), arguments.rows, arguments.file, options, [&] {
    return std::make_unique<JoinWorker>(lookup.get(), arguments.value_name);
  });
}

}  // namespace stride::cli
