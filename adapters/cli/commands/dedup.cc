// stride dedup: the rows of files that did not come before.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters/cli/commands/duplicate_rows.h"
#include "adapters/cli/commands/row_arguments.h"
#include "adapters/cli/context.h"
#include "adapters/cli/input/pipeline.h"
#include "adapters/cli/input/rejected_rows.h"
#include "adapters/cli/input/same_file.h"
#include "adapters/cli/output/json_output.h"
#include "adapters/cli/output/progress.h"
#include "adapters/cli/subcommands.h"

namespace stride::cli {
namespace {

struct DedupArguments {
  std::vector<std::string> files;
  RowArguments rows;               // without a key: whole rows
  std::vector<std::string> table;  // database and table that keep what was seen; empty: memory does
  uint64_t commit_every = 0;
  bool count = false;
};

// What all threads share.
struct Dedup {
  Dedup(Context* c, const DedupArguments& a, uint64_t total)
      : context(*c),
        arguments(a),
        rejects(a.rows.rejects, rejects_allowed(a.rows), true),
        progress(c->environment.err, "dedup", total) {}

  Context& context;
  const DedupArguments& arguments;
  std::unique_ptr<DuplicateRows> seen;
  RejectedRows rejects;
  Progress progress;
  bool header_written = false;
};

class DedupWorker final : public BlockWorker {
 public:
  explicit DedupWorker(Dedup* dedup)
      : dedup_(*dedup), rows_({.values = false, .rows = true, .lines = false}) {}

  ExitStatus process(const Block& block) override { return parse_block(block, &rows_); }
  ExitStatus emit(const Block& block) override {
    STRIDE_CLI_TRY(dedup_.rejects.take(block, &rows_));
    if (!dedup_.header_written && !dedup_.arguments.count)
      STRIDE_CLI_TRY(dedup_.context.out.write(block.file->header));
    dedup_.header_written = true;
    STRIDE_CLI_TRY(dedup_.seen->take(block.text, &rows_, block.file->plan.crlf));
    dedup_.progress.update(block.stored_bytes_read, dedup_.seen->rows());
    return {};
  }

 private:
  Dedup& dedup_;
  ParsedRows rows_;
};

ExitStatus find_options(const DedupArguments& arguments, RowOptions* options) {
  STRIDE_CLI_TRY(parse_row_options(arguments.rows, arguments.files[0], options));
  if (options->format == Format::raw || is_columnar(options->format))
    return ExitStatus::usage("dedup reads tsv, csv and jsonl: give rows of one of these");
  if (arguments.rows.key_type == "prefix")
    return ExitStatus::usage(
        "--key-type prefix is for prefix tables, which dedup does not make: leave it out, and "
        "prefixes are compared as text");
  if (!arguments.rows.key_type.empty() && key_form_named(arguments.rows.key_type)->parts() > 1)
    return ExitStatus::usage(
        "dedup knows rows by one column: give one type, or leave --key out for whole rows");
  if (arguments.commit_every && arguments.table.empty())
    return ExitStatus::usage("--commit-every is for --table: give that too, or leave it out");
  options->values_wanted = false;
  options->allow_empty_key = true;
  options->whole_rows = arguments.rows.key.empty();
  if (options->whole_rows) {
    // Every byte counts, in JSON and in lines that end in CR, too.
    if (options->format == Format::jsonl) options->format = Format::tsv;
    if (options->line_ends == LineEnds::automatic) options->line_ends = LineEnds::lf;
  }
  if (arguments.table.empty()) options->key_bytes_limit = options->max_row_bytes;
  return {};
}

ExitStatus make_seen(Context* context, const DedupArguments& arguments, RowOptions* options,
                     std::unique_ptr<DuplicateRows>* seen) {
  Output* out = arguments.count ? nullptr : &context->out;
  unsigned threads = chosen_threads(arguments.rows);
  if (arguments.table.empty()) {
    if (!arguments.rows.key_type.empty())
      options->key_form = *key_form_named(arguments.rows.key_type);
    options->key_width = width_of(options->key_form);
    auto rows = RowSet::make(threads);
    if (!rows.ok()) return rows.status();
    *seen = std::make_unique<DuplicatesInMemory>(std::move(*rows), out);
    return {};
  }
  DuplicatesInTable::Place place{arguments.table[0], arguments.table[1], arguments.commit_every,
                                 threads};
  auto in_table = std::make_unique<DuplicatesInTable>(context, std::move(place), out);
  STRIDE_CLI_TRY(in_table->open(arguments.rows.key_type, options));
  *seen = std::move(in_table);
  return {};
}

ExitStatus report(const Dedup& dedup) {
  const DuplicateRows& seen = *dedup.seen;
  uint64_t rejected = dedup.rejects.count(), again = seen.rows() - seen.fresh();
  if (dedup.arguments.count && dedup.context.json) {
    nlohmann::json result = {
        {"rows", seen.rows()}, {"new", seen.fresh()}, {"seen", again}, {"rejected", rejected}};
    return dedup.context.out.write(text_of(result) + "\n");
  }
  if (dedup.arguments.count)
    STRIDE_CLI_TRY(dedup.context.out.write(std::to_string(seen.fresh()) + "\n"));
  if (again == 0 && rejected == 0) return {};
  std::string line = "stride: " + with_commas(again) + " of " + with_commas(seen.rows()) +
                     " rows were seen before, " + with_commas(seen.fresh()) + " new";
  if (rejected) line += ", " + with_commas(rejected) + " bad rows left out";
  dedup.context.note(line);
  return {};
}

void add_dedup(CLI::App* command, DedupArguments* a) {
  command->add_option("FILE", a->files, "Files to read, one after the other; -: standard input")
      ->required();
  add_row_options(command, &a->rows, "tsv, csv, jsonl; the output is of the same format");
  command->get_option("--key")->description(
      "Rows with the same key count as seen, whatever else they have: the column's number from 1, "
      "its name in the header, or the field of a JSON object. Default: the whole row, byte for "
      "byte");
  command
      ->add_option(
          "--table", a->table,
          "Database and table that keep what was seen, for the next time and for more than "
          "memory holds; made where they are missing. Without it memory does")
      ->expected(2)
      ->type_name("DB TABLE");
  add_count(command, "--commit-every", &a->commit_every,
            "With --table: commit and print whenever N rows have been read, at the end of a block "
            "of input. Default: about 128 MiB of rows");
  command->add_flag("--count", a->count, "Print only how many rows are new");
  command->footer(
      "Prints the rows that did not come before, as they are and in the same order: the first of "
      "each.\n\n"
      "With --table a row is printed once it is durable in the table. After Ctrl-C, SIGTERM, a "
      "bad\n"
      "row or a full disk the table has what was printed and nothing else: the same command goes\n"
      "on there, with its output appended. Where the process is killed, power is lost or a sync\n"
      "fails, what is missing of that batch's output may be in the table, and so is not printed\n"
      "any more. No row is printed twice.\n\n"
      "Examples:\n"
      "  stride dedup words.txt more-words.txt.gz > unique.txt\n"
      "  stride dedup log.csv --header --key user_id > first-of-each-user.csv\n"
      "  zcat urls.gz | stride dedup - --table db urls >> new-urls.txt   # also not those of "
      "before\n"
      "  stride dedup log.jsonl --key ip --count");
}

ExitStatus run_dedup(Context* context, const DedupArguments& arguments) {
  RowOptions options;
  STRIDE_CLI_TRY(find_options(arguments, &options));
  uint64_t total = 0;
  for (const std::string& file : arguments.files) {
    uint64_t bytes = file == "-" ? 0 : stored_bytes_of(file);
    total = bytes == 0 ? 0 : total + bytes;
    if (bytes == 0) break;
  }
  const Environment& environment = context->environment;
  if (context->json && !arguments.count)
    return ExitStatus::usage(
        "--json is for --count, for rows are printed as they are: give both, or leave it out");
  if (!arguments.count)
    STRIDE_CLI_TRY(check_not_read(environment.out, "the output", arguments.files, environment.in));
  Dedup dedup(context, arguments, total);
  STRIDE_CLI_TRY(make_seen(context, arguments, &options, &dedup.seen));
  STRIDE_CLI_TRY(dedup.rejects.open(environment, arguments.files));
  BlockReader reader(arguments.files, options, environment.in);
  std::vector<std::unique_ptr<BlockWorker>> workers;
  for (unsigned i = 0; i < chosen_threads(arguments.rows); ++i)
    workers.push_back(std::make_unique<DedupWorker>(&dedup));
  ExitStatus outcome = run_pipeline(&reader, workers);
  if (outcome.ok()) outcome = dedup.seen->finish();
  dedup.progress.clear();
  // What was found before a failure has been promised: it comes first.
  if (outcome.code() != ExitCode::closed_pipe) {
    ExitStatus flushed = context->out.flush();
    if (outcome.ok()) outcome = flushed;
  }
  STRIDE_CLI_TRY(outcome);
  STRIDE_CLI_TRY(dedup.rejects.flush());
  return report(dedup);
}

const bool dedup_registered = Subcommands::add(
    150, "dedup", "Print the rows of files that did not come before", &add_dedup, &run_dedup);

}  // namespace
}  // namespace stride::cli
