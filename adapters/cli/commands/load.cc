// stride load: rows of files into a table.
#include "adapters/cli/commands/load.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "adapters/cli/commands/loader.h"
#include "adapters/cli/commands/output_arguments.h"
#include "adapters/cli/input/pipeline.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/output/json_output.h"
#include "adapters/cli/output/progress.h"
#include "adapters/cli/subcommands.h"
#include "adapters/cli/text/number_text.h"

namespace stride::cli {
namespace {

class LoadWorker final : public BlockWorker {
 public:
  LoadWorker(Loader* loader, Progress* progress)
      : loader_(*loader),
        progress_(*progress),
        rows_({.values = true, .rows = false, .lines = loader->wants_lines()}) {}

  ExitStatus process(const Block& block) override {
    STRIDE_CLI_TRY(parse_block(block, &rows_));
    rows_.join_equal_keys();
    return {};
  }
  ExitStatus emit(const Block& block) override {
    STRIDE_CLI_TRY(loader_.take(block, &rows_));
    progress_.update(block.stored_bytes_read, loader_.rows());
    return {};
  }

 private:
  Loader& loader_;
  Progress& progress_;
  ParsedRows rows_;
};

// It counts this command alone, without rows before it that --resume goes on after.
uint64_t loaded_rows(const LoadArguments& arguments, const Loader& loader) {
  return arguments.dry_run ? loader.rows() : loader.committed_rows() - loader.rows_before();
}

// "59 new keys, 41,990 rows replaced another one with the same key"
std::string keys_text(const LoadArguments& arguments, const Loader& loader) {
  const uint64_t keys = loader.new_keys();
  const uint64_t others = loader.committed_rows() - loader.rows_before() - keys;
  std::string text = with_commas(keys) + (keys == 1 ? " new key" : " new keys");
  if (others == 0) return text;
  return text + ", " + with_commas(others) + (others == 1 ? " row " : " rows ") +
         (arguments.accumulate                          ? "added to keys that were there"
          : loader.on_duplicate() == OnDuplicate::first ? "left out whose key came before"
                                                        : "replaced another one of the same key");
}

void report(Context* context, const LoadArguments& arguments, const Loader& loader, double seconds,
            uint64_t bytes) {
  const uint64_t rows = loaded_rows(arguments, loader);
  std::string line =
      std::string(arguments.dry_run ? "read " : "loaded ") + with_commas(rows) + " rows from " +
      byte_text(bytes) + " in " + seconds_text(seconds) + " (" +
      with_commas(static_cast<uint64_t>(static_cast<double>(rows) / std::max(seconds, 1e-9))) +
      " rows/s)";
  if (!arguments.dry_run) line += ": " + keys_text(arguments, loader);
  if (loader.rows_before())
    line += ", behind " + with_commas(loader.rows_before()) + " rows that were there already";
  if (loader.rejected()) line += ", " + with_commas(loader.rejected()) + " bad rows left out";
  if (loader.skipped())
    line += ", " + with_commas(loader.skipped()) + " left out whose keys were there";
  context->note(line);
  if (loader.made_schema() && loader.schema())
    context->note("columns: " + printable(loader.schema()->to_string()));
}

// How the rows are read, and what makes keys and values.
void add_load_rows(CLI::App* command, LoadArguments* a) {
  add_row_options(
      command, &a->rows,
      "tsv, csv (RFC 4180), jsonl (an object a line), raw (binary records), parquet, arrow "
      "(IPC file or stream, Feather 2)");
  add_names(command, "--value", &a->rows.values,
            "The columns that make the value. Default: all but the key", "COLUMNS");
}

// What the table is, and what it does with the rows.
void add_load_table(CLI::App* command, LoadArguments* a) {
  command
      ->add_option(
          "--key-width", a->rows.key_width,
          "Every key has so many bytes: smaller and faster than keys of any length, and only "
          "when the table is made")
      ->check(CLI::Range(1u, max_key_bytes))
      ->type_name("BYTES");
  command
      ->add_option(
          "--address-bits", a->address_bits,
          "Of a prefix table: how many bits the addresses have (32: IPv4, 128: IPv6), or bytes for "
          "prefixes of byte strings; only when the table is made. Default: what the first key says")
      ->check([](const std::string& text) {
        return address_bits_named(text) ? std::string()
                                        : "must be a number from 1 to 65535, or bytes";
      })
      ->type_name("BITS");
  command
      ->add_option("--schema", a->schema,
                   "The columns that the table has, when it is made: auto (those of the file, "
                   "where it names "
                   "them, of the types that their first rows have), none (values are text with "
                   "tabs between, "
                   "of jsonl whole lines), or a file, or text, with names and types: 'name string, "
                   "age i32?'")
      ->capture_default_str()
      ->type_name("SCHEMA");
  command->add_flag("--share-equal-values", a->share_equal_values,
                    "Equal values are stored once and numbered: smaller where many rows have the "
                    "same ones, such as country codes; only when the table is made");
  command
      ->add_option(
          "--expires", a->expires,
          "The column of the schema, of type timestamp, that says when a row ends: from then "
          "on it is not found, and it goes when the database is compacted. An empty cell: it "
          "does not end; only when the table is made")
      ->type_name("COLUMN");
  command
      ->add_option(
          "--ttl", a->ttl,
          "With --expires: rows whose cell is empty end so long after they are loaded or put: "
          "a number with s, m, h or d behind it; only when the table is made")
      ->check([](const std::string& text) {
        return microseconds_of(text) ? std::string()
                                     : "must be a time above 0 with s, m, h or d behind it, as 24h";
      })
      ->type_name("TIME");
  command
      ->add_option("--numbers", a->numbers,
                   "Of a table of numbers, their type: values are decimal numbers, which "
                   "--accumulate adds to; only when the table is made")
      ->check(CLI::IsMember({"i32", "i64", "f32", "f64"}))
      ->type_name("TYPE");
  command->add_flag("--accumulate", a->accumulate,
                    "Each row's number is added to what its key has, or to 0. A table that is made "
                    "has numbers of type i64, or what --numbers says");
  command->add_flag(
      "--count", a->count,
      "Each row adds 1 to the number of its key, whatever else is in the row: a table "
      "that is made has numbers of type i64, or what --numbers says");
  command->add_flag("--wrap", a->wrap,
                    "Sums of integers that do not fit wrap around. Default: they are an error; "
                    "only when the table is made");
  command->add_flag("--mask-host-bits", a->mask_host_bits,
                    "Bits that are set behind a prefix are cleared, and are no bad row");
}

// Raw records, and rows that are bad otherwise.
void add_load_records(CLI::App* command, LoadArguments* a) {
  command->add_flag("--allow-empty-key", a->rows.allow_empty_key, "An empty key is no bad row");
  command->add_option("--key-bytes", a->rows.key_bytes, "Of each raw record's key")
      ->check(CLI::Range(1u, max_key_bytes))
      ->type_name("BYTES");
  command
      ->add_option("--value-bytes", a->rows.value_bytes,
                   "Of each raw record's value. Without these two a record is the lengths of key "
                   "and value (4 bytes each, little-endian), key and value")
      ->check(CLI::Range(0u, 1u << 30))
      ->type_name("BYTES");
}

// When rows are committed.
void add_load_commits(CLI::App* command, LoadArguments* a) {
  command
      ->add_option(
          "--on-duplicate", a->on_duplicate,
          "Of rows with one key, in the files or in the table: the last one counts, the first "
          "one, or it is an error. Default: error where the table is made or replaced, last where "
          "it is there")
      ->check(CLI::IsMember({"last", "first", "error"}))
      ->type_name("RULE");
  command->add_flag("--replace", a->replace,
                    "What the table has is erased, in the commit that brings the first rows");
  add_count(
      command, "--commit-every", &a->commit_every,
      "Commit whenever N rows have been read, at the end of a block of input. Default: once, all "
      "or nothing");
  command->add_flag("--resume", a->resume,
                    "Go on after the last commit of an interrupted load with --commit-every");
  command->add_flag("--dry-run", a->dry_run, "Read and check the files, and write nothing");
  add_count(command, "--max-memory", &a->max_memory,
            "Bytes of rows that may wait for a commit. Default: 45 % of the free memory");
}

void add_load(CLI::App* command, LoadArguments* a) {
  command->add_option("DB", a->database, "Directory of the database; made where it is missing")
      ->required();
  command->add_option("TABLE", a->table, "Name of the table; made where it is missing")->required();
  command->add_option("FILE", a->files, "Files to read, one after the other; -: standard input")
      ->required();
  add_load_rows(command, a);
  add_load_table(command, a);
  add_load_records(command, a);
  add_load_commits(command, a);
  command->footer(
      "Examples:\n"
      "  stride load db words words.tsv\n"
      "  stride load db users users.csv.gz --header --key id --key-type u64 --value name,city\n"
      "  stride load db users more.csv --header --key id --schema 'name string, score f64?'\n"
      "  stride load db routes routes.tsv --key-type prefix\n"
      "  stride load db countries geo.tsv --key-type prefix --share-equal-values\n"
      "  stride load db sessions s.csv --schema 'user string, until timestamp?' --expires until "
      "--ttl "
      "24h\n"
      "  stride load db hits day1.tsv day2.tsv --accumulate\n"
      "  stride load db words words.txt --count          # how often each line comes\n"
      "  zstdcat log.jsonl.zst | stride load db log - --format jsonl --key request_id\n"
      "  stride load db big big.tsv --commit-every 50m --rejects bad.tsv   # interrupted?\n"
      "  stride load db big big.tsv --commit-every 50m --rejects bad.tsv --resume");
}

ExitStatus run_load(Context* context, const LoadArguments& given) {
  LoadArguments arguments = given;
  arguments.rows.sniffs = true;
  RowOptions options;
  STRIDE_CLI_TRY(parse_row_options(arguments.rows, arguments.files[0], &options));
  if (arguments.count) {
    if (!options.values.empty() || arguments.accumulate)
      return ExitStatus::usage("--count adds 1 for each row: leave --value and --accumulate out");
    arguments.accumulate = options.counts = true;
    options.values_wanted = false;
  }
  if (arguments.table == notes_table)
    return ExitStatus::usage("table '.stride' belongs to this program");
  if (arguments.resume && arguments.commit_every == 0)
    return ExitStatus::usage("--resume goes on with a load that had --commit-every: give that too");
  if (arguments.dry_run && arguments.commit_every)
    return ExitStatus::usage("--dry-run commits nothing: leave --commit-every out");
  Loader loader(context, arguments, options);
  ReadFrom from;
  STRIDE_CLI_TRY(loader.prepare(&from));
  uint64_t total = 0;
  for (const std::string& file : arguments.files) {
    if (file != "-" && stored_bytes_of(file) == 0) {
      total = 0;
      break;
    }
    total += stored_bytes_of(file);
  }
  Progress progress(context->environment.err, "load", total);
  loader.show_commits(&progress);
  BlockReader reader(arguments.files, loader.options(), context->environment.in, from);
  STRIDE_CLI_TRY(loader.look_at_first_rows(&reader));
  std::vector<std::unique_ptr<BlockWorker>> workers;
  for (unsigned i = 0; i < chosen_threads(arguments.rows); ++i)
    workers.push_back(std::make_unique<LoadWorker>(&loader, &progress));
  ExitStatus outcome = run_pipeline(&reader, workers);
  for (const std::string& told : reader.told()) context->note("stride: " + told);
  if (outcome.ok()) outcome = loader.finish();
  progress.clear();
  if (!outcome.ok()) {
    if (loader.commits() == 0) return outcome;
    return ExitStatus(outcome.code(), outcome.message() + "\n" +
                                          with_commas(loader.committed_rows()) +
                                          " rows are committed; --resume goes on after them");
  }
  if (!arguments.dry_run) context->done = all_done;
  double seconds = progress.seconds();
  report(context, arguments, loader, seconds, reader.stored_bytes_read());
  if (!context->json) return {};
  nlohmann::json result = {{"table", arguments.table},
                           {"rows", loaded_rows(arguments, loader)},
                           {"rows_before", loader.rows_before()},
                           {"rejected", loader.rejected()},
                           {"skipped", loader.skipped()},
                           {"new_keys", loader.new_keys()},
                           {"commits", loader.commits()},
                           {"seconds", seconds}};
  if (loader.schema()) result["schema"] = loader.schema()->to_string();
  return context->out.write(text_of(result) + "\n");
}

const bool load_registered =
    Subcommands::add(110, "load", "Read rows of files into a table", &add_load, &run_load);

}  // namespace
}  // namespace stride::cli
