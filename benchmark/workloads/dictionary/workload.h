// A dictionary: a list of words is loaded, and every word of some texts is looked up in it.
//
// A word is tried as it is written, all of a text in one batch, and those that were not found once
// more in lower case. Only the look-ups are timed, not the splitting of the text.
#pragma once

#include <string>
#include <vector>

#include "benchmark/harness/engine_workload.h"

namespace stride::benchmark {

struct DictionaryOptions {
  std::string words;               // file: a word a line
  std::vector<std::string> texts;  // files
  std::vector<EngineConfiguration> engines;
  Durability durability = Durability::sync;
  unsigned repeats = 3;
  unsigned threads = 1;
  std::string directory = ".";
};

// What a text holds, whatever engine looks it up.
struct TextSummary {
  std::string name;
  uint64_t words = 0, hits = 0;
};

// Appends the rows of all repeats: the phases write, lookup_NAME for each text, and open. Engines
// that take only 8-byte keys are left out. The first failure or wrong answer ends it.
Status run_dictionary(const DictionaryOptions& options, const Progress& progress,
                      std::vector<TextSummary>* texts, std::vector<ResultRow>* rows);

}  // namespace stride::benchmark
