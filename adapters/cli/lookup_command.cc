#include "adapters/cli/lookup_command.h"

#include <CLI/CLI.hpp>

#include "adapters/cli/notes.h"
#include "adapters/cli/parsed_rows.h"
#include "adapters/cli/pipeline.h"
#include "adapters/cli/progress.h"
#include "adapters/cli/record_writer.h"
#include "adapters/cli/rejects.h"

namespace stride::cli {
namespace {

enum class Missing : uint8_t { skip, empty, error };

Missing parse_missing(const std::string& name) {
  return name == "skip" ? Missing::skip : name == "empty" ? Missing::empty : Missing::error;
}

Outcome not_there(const std::string& place, const Table& table, KeyType type, Bytes key) {
  TextBuffer text;
  decode_key(type, key, &text);
  return Outcome(ExitCode::not_found,
                 place + "key " + quoted(text.text()) + " is not in table '" + table.name() + "'");
}

// What all threads of a lookup share.
struct Lookup {
  Context* context = nullptr;
  std::unique_ptr<Database> database;
  Table table;
  KeyType key_type = KeyType::bytes;
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
        rejects(arguments.rejects, most_rejects(arguments)),
        progress(c->environment.err, "look up", total) {}
};

class LookupWorker : public BlockWorker {
 public:
  LookupWorker(Lookup* lookup, bool rows_wanted)
      : lookup_(*lookup), rows_({.values = false, .rows = rows_wanted, .lines = true}) {}

  Outcome process(const Block& block) override {
    STRIDE_CLI_TRY(parse_block(block, &rows_));
    text_.clear();
    found_ = 0;
    missing_line_ = none;
    if (rows_.size() == 0) return {};
    keys_ = rows_.keys();
    STRIDE_CLI_TRY(lookup_.snapshot.get(lookup_.table, keys_, &result_));
    for (uint64_t i = 0; i < keys_.size; ++i) {
      bool found = result_.found[i];
      found_ += found;
      if (!found && lookup_.missing == Missing::skip) continue;
      if (!found && lookup_.missing == Missing::error) {
        missing_line_ = rows_.line(i);
        missing_key_ = keys_[i];
        break;
      }
      write(block, i, result_.values[i], found);
    }
    return {};
  }

  Outcome emit(const Block& block) override {
    STRIDE_CLI_TRY(lookup_.rejects.take(block, &rows_));
    if (!lookup_.header_written && !lookup_.header.empty() && !block.file->header.empty())
      STRIDE_CLI_TRY(write_header(*block.file));
    lookup_.rows += rows_.size();
    lookup_.found += found_;
    STRIDE_CLI_TRY(lookup_.context->out.write(text_.text()));
    if (missing_line_ != none) {
      return not_there(block.file->name + ":" +
                           std::to_string(lookup_.rejects.block_line() + missing_line_) + ": ",
                       lookup_.table, lookup_.key_type, missing_key_);
    }
    lookup_.progress.update(block.stored_bytes_read, lookup_.rows);
    return {};
  }

 protected:
  // Appends row i.
  virtual void write(const Block& block, uint64_t i, Bytes value, bool found) = 0;

  Lookup& lookup_;
  ParsedRows rows_;
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

  GetResult result_;
  uint64_t found_ = 0;
  uint64_t missing_line_ = none;
  Bytes missing_key_;
};

class GetWorker final : public LookupWorker {
 public:
  GetWorker(Lookup* lookup, Format format)
      : LookupWorker(lookup, false), writer_(format, lookup->key_type) {}

 private:
  void write(const Block&, uint64_t i, Bytes value, bool found) override {
    writer_.write(keys_[i], value, found, &text_);
  }
  RecordWriter writer_;
};

class JoinWorker final : public LookupWorker {
 public:
  JoinWorker(Lookup* lookup, std::string value_name)
      : LookupWorker(lookup, true), value_name_(std::move(value_name)) {}

 private:
  void write(const Block& block, uint64_t i, Bytes value, bool found) override {
    const RowPlan& plan = block.file->plan;
    std::string_view row = rows_.row(i), text = as_text(value);
    if (plan.options.format == Format::jsonl) return write_json(row, text, found);
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
  void write_json(std::string_view row, std::string_view value, bool found) {
    text_.append(row.substr(0, row.rfind('}')));
    text_.append(',');
    if (found) {
      append_json_member(value_name_, value, &text_);
    } else {
      text_.append('"');
      text_.append(value_name_);
      text_.append("\":null");
    }
    text_.append("}\n");
  }

  std::string value_name_;
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
                    &(*lookup)->key_type);
}

// Through the file, with a worker for each thread.
template <class MakeWorker>
Outcome look_up_file(Lookup* lookup, const RowArguments& arguments, const std::string& file,
                     RowOptions options, const MakeWorker& make_worker) {
  options.key_type = lookup->key_type;
  options.key_width = lookup->table.key_width();
  options.values_wanted = false;
  STRIDE_CLI_TRY(lookup->rejects.open(false, 0, 0, 0));
  BlockReader reader({file}, options, lookup->context->environment.in);
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
    std::string line = with_commas(lookup->rows - lookup->found) + " of " +
                       with_commas(lookup->rows) + " keys are not in the table";
    if (lookup->rejects.count())
      line += ", " + with_commas(lookup->rejects.count()) + " bad rows left out";
    lookup->context->note("stride: " + line);
  }
  return {};
}

Outcome get_arguments(Lookup* lookup, const GetArguments& arguments, Format format) {
  RecordWriter writer(format, lookup->key_type);
  std::string keys;
  std::vector<uint64_t> offsets = {0};
  for (const std::string& text : arguments.keys) {
    std::string encoded(encoded_bound(text), '\0');
    ptrdiff_t n = encode_key(lookup->key_type, text, reinterpret_cast<std::byte*>(encoded.data()));
    if (n < 0) return Outcome::usage("key " + why_no_key(lookup->key_type, text));
    keys.append(encoded, 0, static_cast<size_t>(n));
    offsets.push_back(keys.size());
  }
  KeyColumn column = Column::variable(keys.data(), offsets.data(), arguments.keys.size());
  GetResult result;
  STRIDE_CLI_TRY(lookup->snapshot.get(lookup->table, column, &result));
  TextBuffer text;
  for (uint64_t i = 0; i < column.size; ++i) {
    bool found = result.found[i];
    if (!found && lookup->missing == Missing::skip) continue;
    if (!found && lookup->missing == Missing::error) {
      STRIDE_CLI_TRY(lookup->context->out.write(text.text()));
      STRIDE_CLI_TRY(lookup->context->out.flush());
      return not_there("", lookup->table, lookup->key_type, column[i]);
    }
    writer.write(column[i], result.values[i], found, &text);
  }
  uint64_t missing = column.size - result.found.count();
  if (missing) {
    lookup->context->note("stride: " + with_commas(missing) + " of " + with_commas(column.size) +
                          " keys are not in the table");
  }
  return lookup->context->out.write(text.text());
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
  command->add_option("--threads", a->rows.threads, "That look up; 0: one for each core")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str()
      ->type_name("N");
  command->footer(
      "Examples:\n"
      "  stride get db users 17 42\n"
      "  stride get db users --keys ids.txt.gz --missing empty > users.tsv\n"
      "  cut -f 3 orders.tsv | stride get db users --keys - --format jsonl");
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
  std::string output = context->json ? "jsonl" : arguments.output;
  Format format = output == "csv"     ? Format::csv
                  : output == "jsonl" ? Format::jsonl
                  : output == "raw"   ? Format::raw
                                      : Format::tsv;
  // Each thread looks up its own blocks; those of a few keys are looked up by none but this one.
  std::unique_ptr<Lookup> lookup;
  STRIDE_CLI_TRY(open_lookup(context, arguments.database, arguments.table, arguments.rows, 1,
                             stored_bytes_of(arguments.file), &lookup));
  lookup->missing = parse_missing(arguments.missing);
  if (arguments.file.empty()) return get_arguments(lookup.get(), arguments, format);
  RowOptions options;
  options.allow_empty_key = true;
  std::string input = format_of_file(arguments.file);
  if (input == "parquet" || input == "arrow")
    STRIDE_CLI_TRY(find_format(input, arguments.file, &options.format));
  return look_up_file(lookup.get(), arguments.rows, arguments.file, options,
                      [&] { return std::make_unique<GetWorker>(lookup.get(), format); });
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
