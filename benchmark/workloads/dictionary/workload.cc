#include "benchmark/workloads/dictionary/workload.h"

#include <algorithm>
#include <optional>

#include "benchmark/datasets/text_source.h"
#include "benchmark/harness/lookup_plan.h"
#include "benchmark/harness/machine.h"

namespace stride::benchmark {
namespace {

constexpr double min_seconds = 0.1;  // that the look-ups of a text take, by repeating them

// The words of a text, and what looking them up must give.
struct Text {
  TextSummary summary;
  TextColumn as_written, lower;  // lower: of the words that are not there as they are written
  std::vector<uint32_t> as_written_ranks, lower_ranks;
};

class Dictionary {
 public:
  Dictionary(const DictionaryOptions& options, const Progress& progress)
      : options_(options), progress_(progress), parallel_(options.threads) {}

  Status load();
  Status run(const EngineConfiguration& engine, std::vector<ResultRow>* rows);
  const std::vector<Text>& texts() const { return texts_; }

 private:
  uint32_t rank_of(std::string_view word) const;
  Text prepare(const std::string& path, const std::string& content) const;
  Status run_phases(EngineRun* run);
  Status check_text(EngineUnderTest* engine, const Text& text);
  Status look_up(EngineUnderTest* engine, const Text& text, uint64_t* words, double* seconds);
  ResultRow prototype() const;

  const DictionaryOptions& options_;
  const Progress& progress_;
  Parallel parallel_;
  TextColumn words_, numbers_;
  Records records_;
  std::optional<Expected> expected_;
  std::vector<Text> texts_;
  LookupResult result_;
  EngineSettings settings_;
};

Status Dictionary::load() {
  progress_.show("reading " + options_.words);
  Result<std::string> list = read_text_file(options_.words);
  if (!list.ok()) return list.status();
  uint64_t line = 0;
  for (std::string_view word : split_lines(*list)) {
    ++line;
    if (word.empty()) continue;  // not every engine has empty keys
    words_.add(word);
    numbers_.add(std::to_string(line));
  }
  if (words_.size() == 0) return Status::invalid("no words in it").with_file(options_.words);
  records_ = Records({Flow{words_.view(), numbers_.view()}});
  expected_.emplace(&records_, &parallel_);
  for (const std::string& path : options_.texts) {
    progress_.show("reading " + path);
    Result<std::string> content = read_text_file(path);
    if (!content.ok()) return content.status();
    texts_.push_back(prepare(path, *content));
  }
  settings_.threads = options_.threads;
  settings_.durability = options_.durability;
  settings_.records = records_.size();
  settings_.bytes = records_.bytes();
  settings_.longest_value = records_.longest_value();
  return {};
}

uint32_t Dictionary::rank_of(std::string_view word) const {
  uint64_t rank = expected_->lower_bound(as_bytes(word));
  bool there = rank < expected_->size() && as_text(expected_->key(rank)) == word;
  return there ? static_cast<uint32_t>(rank) : LookupPlan::none;
}

Text Dictionary::prepare(const std::string& path, const std::string& content) const {
  Text text;
  text.summary.name = text_name(path);
  auto same_name = [&](const Text& t) { return t.summary.name == text.summary.name; };
  while (std::any_of(texts_.begin(), texts_.end(), same_name)) text.summary.name += "_again";
  for (std::string_view word : split_words(content)) {
    text.as_written.add(word);
    text.as_written_ranks.push_back(rank_of(word));
    ++text.summary.words;
    if (text.as_written_ranks.back() != LookupPlan::none) {
      ++text.summary.hits;
      continue;
    }
    std::string lower = to_lower(word);
    text.lower.add(lower);
    text.lower_ranks.push_back(rank_of(lower));
    text.summary.hits += text.lower_ranks.back() != LookupPlan::none;
  }
  return text;
}

ResultRow Dictionary::prototype() const {
  ResultRow row;
  row.workload = "dictionary";
  row.machine = this_machine().to_string();
  row.raw_bytes = expected_->bytes();
  row.numbers = {{"threads", options_.threads},
                 {"dictionary_words", static_cast<double>(expected_->size())}};
  return row;
}

Status Dictionary::run(const EngineConfiguration& engine, std::vector<ResultRow>* rows) {
  return run_engine(
      engine, settings_, options_.directory, prototype(), progress_,
      [this](EngineRun* run) { return run_phases(run); }, rows);
}

Status Dictionary::run_phases(EngineRun* run) {
  EngineUnderTest& engine = run->engine();
  STRIDE_TRY(run->start());
  STRIDE_TRY(run->measure("write", records_.size(), [&] { return engine.write(records_); }));
  for (const Text& text : texts_) {
    STRIDE_TRY(check_text(&engine, text));
    STRIDE_TRY(run->measure_parts(
        "lookup_" + text.summary.name,
        [&](uint64_t* words, double* seconds) { return look_up(&engine, text, words, seconds); }));
  }
  STRIDE_TRY(run->reopen(records_.size()));
  FullCheck check(&*expected_);
  STRIDE_TRY(engine.read(check));
  return check.finish();
}

Status Dictionary::check_text(EngineUnderTest* engine, const Text& text) {
  KeyColumn as_written = text.as_written.view(), lower = text.lower.view();
  STRIDE_TRY(engine->lookup(as_written, &result_));
  STRIDE_TRY(check_answers(*expected_, text.as_written_ranks.data(), as_written, result_));
  STRIDE_TRY(engine->lookup(lower, &result_));
  return check_answers(*expected_, text.lower_ranks.data(), lower, result_);
}

Status Dictionary::look_up(EngineUnderTest* engine, const Text& text, uint64_t* words,
                           double* seconds) {
  KeyColumn as_written = text.as_written.view(), lower = text.lower.view();
  Stopwatch watch;
  *words = 0;
  do {
    STRIDE_TRY(engine->lookup(as_written, &result_));
    STRIDE_TRY(engine->lookup(lower, &result_));
    *words += as_written.size;
  } while (watch.seconds() < min_seconds);
  *seconds = watch.seconds();
  return {};
}

}  // namespace

Status run_dictionary(const DictionaryOptions& options, const Progress& progress,
                      std::vector<TextSummary>* texts, std::vector<ResultRow>* rows) {
  Dictionary dictionary(options, progress);
  STRIDE_TRY(dictionary.load());
  for (const Text& text : dictionary.texts()) texts->push_back(text.summary);
  for (unsigned repeat = 0; repeat < options.repeats; ++repeat) {
    for (const EngineConfiguration& engine : options.engines) {
      if (engine.numbers_only) continue;
      STRIDE_TRY(dictionary.run(engine, rows));
    }
  }
  return {};
}

}  // namespace stride::benchmark
