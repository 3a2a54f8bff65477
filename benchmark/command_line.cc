#include "benchmark/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>

#include "benchmark/dictionary_workload.h"
#include "benchmark/machine.h"
#include "benchmark/peers/engines.h"
#include "benchmark/plot.h"
#include "benchmark/report.h"
#include "benchmark/sts_workload.h"
#include "benchmark/text_table.h"

namespace stride::benchmark {
namespace {

// What every workload takes.
struct CommonArguments {
  std::string engines = default_engines();
  std::string durability = "sync";
  unsigned repeats = 3;
  unsigned threads = 0;
  std::string directory = ".";
  std::string json, plot;
};

struct StsArguments {
  std::string records = "1m";
  uint32_t flows = 4;
  double randomness = 1;
  uint64_t seed = 1;
  std::string batches = "1,1k,100k,1m";
};

struct DictionaryArguments {
  std::string words = "benchmark/data/words_en_scowl_insane.txt.zst";
  std::vector<std::string> texts = {"benchmark/data/text_austen_sensesensibility.txt.zst",
                                    "benchmark/data/text_austen_prideprejudice.txt.zst",
                                    "benchmark/data/text_austen_mansfieldpark.txt.zst",
                                    "benchmark/data/text_kjv_bible.txt.zst"};
};

// "1000", "100k", "1m": whole numbers, in thousands or millions.
Result<uint64_t> parse_count(const std::string& what, const std::string& text, uint64_t largest) {
  size_t digits = text.find_first_not_of("0123456789");
  std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  uint64_t factor = unit.empty()                 ? 1
                    : unit == "k" || unit == "K" ? 1000
                    : unit == "m" || unit == "M" ? 1'000'000
                                                 : 0;
  std::string number = text.substr(0, digits);
  if (factor == 0 || number.empty() || number.size() > 15 ||
      std::stoull(number) * factor > largest || std::stoull(number) == 0) {
    return Status::invalid(what + " must be a number from 1 to " + std::to_string(largest) +
                           " (10k and 1m are understood), not '" + text + "'");
  }
  return std::stoull(number) * factor;
}

Result<std::vector<uint64_t>> parse_batches(std::string_view list) {
  std::vector<uint64_t> batches;
  while (!list.empty()) {
    std::string text(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(list.size(), text.size() + 1));
    Result<uint64_t> batch = parse_count("a size in --batches", text, 16'000'000);
    if (!batch.ok()) return batch.status();
    batches.push_back(*batch);
  }
  return batches;
}

Durability parse_durability(const std::string& name) {
  return name == "sync" ? Durability::sync : name == "flush" ? Durability::flush : Durability::none;
}

std::string engines_help() {
  std::string text =
      "Engines to compare, with commas between; an engine's name means all its "
      "configurations:";
  for (const EngineConfiguration& e : all_engines()) {
    text += "\n  " + e.name() + ": " + e.description;
  }
  return text;
}

void add_common(CLI::App* command, CommonArguments* common) {
  command->add_option("--engines", common->engines, engines_help())->capture_default_str();
  command
      ->add_option("--durability", common->durability,
                   "What a commit survives: sync (power loss), flush (a killed process), none")
      ->check(CLI::IsMember({"sync", "flush", "none"}))
      ->capture_default_str();
  command->add_option("--repeat", common->repeats, "How often; medians are shown")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command->add_option("--threads", common->threads, "For lookups and loads; 0: one for each core")
      ->check(CLI::Range(0u, 4096u))
      ->capture_default_str();
  command
      ->add_option("--directory", common->directory,
                   "Where the databases are made, each in a new directory that is removed")
      ->capture_default_str();
  command->add_option("--json", common->json, "File for the results as JSON rows");
  command->add_option("--plot", common->plot, "File for a plot of the results (SVG)");
}

void add_sts(CLI::App* command, StsArguments* sts) {
  command->add_option("--records", sts->records, "Records of all flows together")
      ->capture_default_str();
  command->add_option("--flows", sts->flows, "Flows that write at once, a transaction each")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  command
      ->add_option("--randomness", sts->randomness,
                   "Chance that a key is random; otherwise it is the one before plus 1")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--seed", sts->seed, "Equal seeds give equal records and lookups")
      ->capture_default_str();
  command->add_option("--batches", sts->batches, "Sizes of the batches that are looked up")
      ->capture_default_str();
  command->footer(
      "Records are made in memory, in columns, before the clock starts, for every engine alike.\n"
      "Looked up keys are random, 10 % of them are not there; values are copied out. Memory is\n"
      "what a phase needs beyond the records that the benchmark itself holds.");
}

void add_dictionary(CLI::App* command, DictionaryArguments* dictionary) {
  command->add_option("--words", dictionary->words, "File with a word a line (.zst is unpacked)")
      ->capture_default_str();
  command
      ->add_option("--text", dictionary->texts,
                   "Files whose words are looked up: as written, then in lower case")
      ->capture_default_str();
  command->footer(
      "Words are ASCII letters with apostrophes inside. A text's words are looked up\n"
      "in one batch, and those that are not there once more in lower case; splitting\n"
      "the text is not timed. The defaults are found from the source tree's root.");
}

unsigned chosen_threads(const CommonArguments& common) {
  return common.threads ? common.threads : this_machine().cores;
}

Status write_files(const CommonArguments& common, const std::string& title,
                   const std::vector<ResultRow>& rows) {
  if (!common.json.empty()) STRIDE_TRY(write_json(common.json, rows));
  if (!common.plot.empty()) STRIDE_TRY(write_text_file(common.plot, plot_svg(title, rows)));
  return {};
}

// An error now rather than after minutes of work.
Status check_output_files(const CommonArguments& common) {
  for (const std::string& path : {common.json, common.plot}) {
    if (path.empty()) continue;
    if (!std::ofstream(path, std::ios::app)) return Status::from_errno(errno, "open", path);
  }
  return {};
}

// What run_sts itself holds: the records, their order, and the queries.
Status check_memory(uint64_t records) {
  constexpr uint64_t bytes_a_record = 100;
  uint64_t memory = this_machine().memory_bytes;
  if (memory == 0 || records * bytes_a_record < memory) return {};
  return Status(StatusCode::resource_exhausted,
                std::to_string(records) + " records take about " +
                    std::to_string(records * bytes_a_record >> 30) +
                    " GiB before any engine runs, and this machine has " +
                    std::to_string(memory >> 30) + " GiB")
      .with_remedy("lower --records");
}

// Prints the medians of all repeats, and writes the files that were asked for.
Status show(const CommonArguments& common, const std::string& title,
            const std::vector<ResultRow>& all_rows) {
  std::vector<ResultRow> rows = medians(all_rows);
  std::cout << title << "\n" << this_machine().to_string() << "\n\n" << comparison(rows);
  if (std::string note = rocksdb_note(); !note.empty()) std::cout << "\n" << note << "\n";
  std::cout << std::flush;
  return write_files(common, title, rows);
}

// 1,000,000
std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string sts_title(const StsWorkloadOptions& options, const CommonArguments& common) {
  return "STS workload: " + with_commas(options.records) + " records, " +
         std::to_string(options.flows) + " flows, randomness " +
         CLI::detail::to_string(options.randomness) + ", seed " + std::to_string(options.seed) +
         ", durability " + common.durability + ", median of " + std::to_string(options.repeats);
}

Status run_sts_command(const CommonArguments& common, const StsArguments& sts) {
  StsWorkloadOptions options;
  Result<uint64_t> records =
      parse_count("--records", sts.records, std::numeric_limits<uint32_t>::max() - 1);
  if (!records.ok()) return records.status();
  Result<std::vector<uint64_t>> batches = parse_batches(sts.batches);
  if (!batches.ok()) return batches.status();
  Result<std::vector<EngineConfiguration>> engines = choose_engines(common.engines);
  if (!engines.ok()) return engines.status();
  if (std::isnan(sts.randomness)) return Status::invalid("--randomness must be from 0 to 1");
  STRIDE_TRY(check_memory(*records));
  STRIDE_TRY(check_output_files(common));
  options.records = *records;
  options.flows = sts.flows;
  options.randomness = sts.randomness;
  options.seed = sts.seed;
  options.engines = *engines;
  options.durability = parse_durability(common.durability);
  options.repeats = common.repeats;
  options.threads = chosen_threads(common);
  options.directory = common.directory;
  options.batches = *batches;
  std::vector<ResultRow> rows;
  STRIDE_TRY(run_sts(options, Progress(isatty(STDERR_FILENO) != 0), &rows));
  return show(common, sts_title(options, common), rows);
}

std::string summary(const std::vector<TextSummary>& texts) {
  TextTable table;
  table.add({"text", "words", "found", "%"});
  table.add_rule();
  for (const TextSummary& text : texts) {
    double share =
        text.words ? static_cast<double>(text.hits) / static_cast<double>(text.words) : 0;
    table.add({text.name, std::to_string(text.words), std::to_string(text.hits),
               three_digits(100 * share)});
  }
  return table.to_string() + "\n";
}

Status run_dictionary_command(const CommonArguments& common,
                              const DictionaryArguments& dictionary) {
  Result<std::vector<EngineConfiguration>> engines = choose_engines(common.engines);
  if (!engines.ok()) return engines.status();
  STRIDE_TRY(check_output_files(common));
  DictionaryOptions options;
  options.words = dictionary.words;
  options.texts = dictionary.texts;
  options.engines = *engines;
  options.durability = parse_durability(common.durability);
  options.repeats = common.repeats;
  options.threads = chosen_threads(common);
  options.directory = common.directory;
  std::vector<TextSummary> texts;
  std::vector<ResultRow> rows;
  STRIDE_TRY(run_dictionary(options, Progress(isatty(STDERR_FILENO) != 0), &texts, &rows));
  std::cout << summary(texts);
  return show(common, "Dictionary: median of " + std::to_string(options.repeats), rows);
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App app("StrideDB and its peers side by side", "stride-bench");
  app.require_subcommand(1);
  CommonArguments common;
  StsArguments sts;
  CLI::App* sts_command = app.add_subcommand("sts", "The STS DatabaseBenchmark workload");
  add_sts(sts_command, &sts);
  add_common(sts_command, &common);
  DictionaryArguments dictionary;
  CLI::App* dictionary_command = app.add_subcommand("dictionary", "Words of books in a word list");
  add_dictionary(dictionary_command, &dictionary);
  add_common(dictionary_command, &common);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Status status =
      *sts_command ? run_sts_command(common, sts) : run_dictionary_command(common, dictionary);
  if (status.ok()) return 0;
  std::cerr << "stride-bench: " << status.to_string() << "\n";
  return status.code() == StatusCode::invalid_argument ? 2 : 1;
}

}  // namespace stride::benchmark
