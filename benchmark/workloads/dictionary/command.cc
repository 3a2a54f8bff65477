// The command `stride-bench dictionary`.
#include <CLI/CLI.hpp>
#include <iostream>

#include "benchmark/harness/text_table.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/dictionary/workload.h"
#include "benchmark/workloads/measurement.h"

namespace stride::benchmark {
namespace {

struct DictionaryArguments {
  CommonArguments common;
  std::string words = "benchmark/data/words_en_scowl_insane.txt.zst";
  std::vector<std::string> texts = {"benchmark/data/text_austen_sensesensibility.txt.zst",
                                    "benchmark/data/text_austen_prideprejudice.txt.zst",
                                    "benchmark/data/text_austen_mansfieldpark.txt.zst",
                                    "benchmark/data/text_kjv_bible.txt.zst"};
};

void add_dictionary(CLI::App* command, DictionaryArguments* dictionary) {
  command->add_option("--words", dictionary->words, "File with a word a line (.zst is unpacked)")
      ->capture_default_str();
  command
      ->add_option("--text", dictionary->texts,
                   "Files whose words are looked up: as written, then in lower case")
      ->capture_default_str();
  add_common(command, &dictionary->common);
  command->footer(
      "Words are ASCII letters with apostrophes inside. A text's words are looked up\n"
      "in one batch, and those that are not there once more in lower case; splitting\n"
      "the text is not timed. The defaults are found from the source tree's root.");
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

Status run_dictionary_command(const DictionaryArguments& dictionary) {
  const CommonArguments& common = dictionary.common;
  Result<std::vector<EngineConfiguration>> engines = choose_engines(common.engines);
  if (!engines.ok()) return engines.status();
  DictionaryOptions options;
  options.words = dictionary.words;
  options.texts = dictionary.texts;
  options.engines = *engines;
  options.durability = parse_durability(common.durability);
  options.repeats = common.repeats;
  options.threads = chosen_threads(common);
  options.directory = common.directory;
  return measure_and_compare(common, "Dictionary: median of " + std::to_string(options.repeats),
                             [&](const Progress& progress, ResultRows* rows) {
                               std::vector<TextSummary> texts;
                               STRIDE_TRY(run_dictionary(options, progress, &texts, rows));
                               progress.show("");
                               std::cout << summary(texts);
                               return Status();
                             });
}

const bool dictionary_registered = WorkloadCommands::add(
    20, "dictionary", "Words of books in a word list", &add_dictionary, &run_dictionary_command);

}  // namespace
}  // namespace stride::benchmark
