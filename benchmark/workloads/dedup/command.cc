// The command `stride-bench dedup`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/workload_commands.h"
#include "benchmark/workloads/common_arguments.h"
#include "benchmark/workloads/dedup/report.h"
#include "benchmark/workloads/dedup/workload.h"
#include "benchmark/workloads/measurement.h"

namespace stride::benchmark {
namespace {

struct DedupArguments {
  CommonArguments common{.engines = "stride,unordered_set"};
  StrideArguments stride;
  std::string data = "random";
  std::string n;
  std::string words = "2";
  std::string duplication = "0.5";
  std::string values = "4";
  std::string form = "dense";
  std::string compressed;
  std::string load = "0.8";
  std::string bucket;
  uint32_t neighbours = 0;
  std::string batch;
  bool wide = false;
  bool sweep = false;
  uint64_t seed = 1;
};

constexpr uint64_t max_values = 1'000'000;
// Ids, places of the same rows among others and what sorts them, beside the vectors.
constexpr uint64_t bytes_a_row = 56;

Result<double> parse_share(const std::string& what, const std::string& text, double min,
                           bool min_included) {
  char* end = nullptr;
  double share = std::strtod(text.c_str(), &end);
  bool is_number = !text.empty() && *end == '\0' && !std::isnan(share);
  if (is_number && share <= 1 && (share > min || (min_included && share == min))) return share;
  return Status::invalid(what + " must be a number " + (min_included ? "from 0" : "above 0") +
                         " to 1 (0.8, say), not '" + text + "'");
}

Result<std::vector<VectorForm>> parse_forms(const DedupArguments& dedup) {
  std::vector<VectorForm> forms;
  if (dedup.compressed == "yes") return std::vector{VectorForm::compressed};
  for (const std::string& name : split_list(dedup.form, ',')) {
    if (dedup.compressed == "no" && name == "compressed") {
      return Status::invalid("--form compressed and --compressed no")
          .with_remedy("give one of the two");
    }
    bool known = false;
    for (VectorForm form : {VectorForm::dense, VectorForm::slots, VectorForm::compressed}) {
      if (name != form_name(form)) continue;
      forms.push_back(form);
      known = true;
    }
    if (!known) {
      return Status::invalid("--form: unknown form '" + name +
                             "': there are dense, slots and compressed");
    }
  }
  if (forms.empty()) return Status::invalid("--form is empty: dense, slots or compressed");
  return forms;
}

// What is to be measured beside what.
Status parse_engines(const std::string& list, DedupOptions* options) {
  options->with_stride = options->with_unordered_set = false;
  for (const std::string& name : split_list(list, ',')) {
    if (name == "stride") {
      options->with_stride = true;
    } else if (name == "unordered_set" || name == "std::unordered_set") {
      options->with_unordered_set = true;
    } else {
      return Status::invalid("--engines: unknown engine '" + name +
                             "': there are stride and unordered_set");
    }
  }
  if (options->with_stride || options->with_unordered_set) return {};
  return Status::invalid("--engines is empty: stride, unordered_set");
}

Status parse_data(const DedupArguments& dedup, DedupOptions* options) {
  options->data.kind = dedup.data;
  options->data.seed = dedup.seed;
  const std::string& kind = dedup.data;
  bool known = has_words(kind) || kind == "kmers" || kind == "urls" || kind == "lines";
  if (!known && !std::filesystem::is_regular_file(kind)) {
    return Status::invalid("--data: there is no file '" + kind + "'")
        .with_remedy("give random, states, kmers, urls, lines, or a file of text");
  }
  if (!dedup.n.empty()) {
    Result<uint64_t> n = parse_count("--n", dedup.n, max_dedup_rows);
    if (!n.ok()) return n.status();
    options->data.n = *n;
  }
  Result<double> duplication = parse_share("--duplication", dedup.duplication, 0, true);
  if (!duplication.ok()) return duplication.status();
  options->data.duplication = *duplication;
  Result<uint64_t> values = parse_count("--values", dedup.values, max_values, 2);
  if (!values.ok()) return values.status();
  options->data.values = static_cast<uint32_t>(*values);
  Result<std::vector<uint64_t>> words =
      parse_counts("a length in --words", dedup.words, max_vector_words);
  if (!words.ok()) return words.status();
  if (words->empty()) return Status::invalid("--words is empty: lengths from 1 to 64");
  options->words = *words;
  // Others have a length of their own.
  if (!has_words(kind)) options->words = {2};
  return {};
}

Status parse_sets(const DedupArguments& dedup, DedupOptions* options) {
  Result<std::vector<VectorForm>> forms = parse_forms(dedup);
  if (!forms.ok()) return forms.status();
  options->forms = *forms;
  bool slots = std::count(forms->begin(), forms->end(), VectorForm::slots) > 0;
  auto fits_slot = [](uint64_t words) { return words == 1 || words == 2 || words == 4; };
  if (slots && !std::all_of(options->words.begin(), options->words.end(), fits_slot)) {
    return Status::invalid("--form slots is for vectors of 1, 2 or 4 words")
        .with_remedy("use --form dense, or --words 1,2,4");
  }
  options->loads.clear();
  for (const std::string& text : split_list(dedup.load, ',')) {
    Result<double> load = parse_share("a share in --load", text, 0, false);
    if (!load.ok()) return load.status();
    options->loads.push_back(*load);
  }
  if (options->loads.empty()) return Status::invalid("--load is empty: shares up to 1");
  if (!dedup.bucket.empty()) {
    Result<std::vector<uint64_t>> buckets =
        parse_counts("a number of slots in --bucket", dedup.bucket, 64);
    if (!buckets.ok()) return buckets.status();
    for (uint64_t slots_of_bucket : *buckets) {
      if (slots_of_bucket >= 2 && std::has_single_bit(slots_of_bucket)) continue;
      return Status::invalid("--bucket: " + std::to_string(slots_of_bucket) + " slots")
          .with_remedy("give powers of two from 2 to 64");
    }
    options->buckets = *buckets;
  }
  options->neighbours = dedup.neighbours;
  options->wide_nodes = dedup.wide;
  if (dedup.batch.empty()) return {};
  Result<uint64_t> batch = parse_count("--batch", dedup.batch, max_dedup_rows);
  if (!batch.ok()) return batch.status();
  options->batch = *batch;
  return {};
}

Result<DedupOptions> parse(const DedupArguments& dedup) {
  DedupOptions options;
  STRIDE_TRY(parse_engines(dedup.common.engines, &options));
  STRIDE_TRY(parse_data(dedup, &options));
  STRIDE_TRY(parse_sets(dedup, &options));
  if (dedup.sweep && is_text(dedup.data)) {
    return Status::invalid("--sweep is for vectors, and --data " + dedup.data + " is text")
        .with_remedy("give random, states or kmers");
  }
  options.backend = parse_backend(dedup.stride.backend);
  options.threads = chosen_threads(dedup.common);
  options.timing.repeats = dedup.common.repeats;
  return options;
}

void add_dedup_data(CLI::App* command, DedupArguments* dedup) {
  command
      ->add_option(
          "--data", dedup->data,
          "What is put:\n"
          "  random: vectors of random words\n"
          "  states: each differs from the one before in 1 to 3 words\n"
          "  kmers: the 31-mers of a bacterium's genome, 2 bits a base, the smaller of\n"
          "    each and its reverse complement, as vectors of 2 words\n"
          "  urls: of web specifications; lines: of four books; byte strings, on the host\n"
          "  FILE: its lines (.zst is unpacked), likewise")
      ->capture_default_str();
  command->add_option("--n", dedup->n,
                      "Vectors in all; those of a file come over and over [10m, or all of a file]");
  command
      ->add_option("--words", dedup->words,
                   "Words of 32 bits of a vector, 1 to 64, with commas between: of random and "
                   "states")
      ->capture_default_str();
  command
      ->add_option("--duplication", dedup->duplication,
                   "Of random: share of vectors that came before, 0 to 1; they lie anywhere")
      ->capture_default_str();
  command->add_option("--values", dedup->values, "Of states: values that a word takes")
      ->capture_default_str();
}

void add_dedup_set(CLI::App* command, DedupArguments* dedup) {
  command
      ->add_option("--form", dedup->form,
                   "Of the set, with commas between: dense (ids 0, 1, 2, ...), slots (in the hash "
                   "table itself; 1, 2 or 4 words), compressed (trees of pairs)")
      ->capture_default_str();
  command->add_option("--compressed", dedup->compressed, "yes: the same as --form compressed")
      ->check(CLI::IsMember({"yes", "no"}));
  command
      ->add_option("--load", dedup->load,
                   "Share of the slots that are taken in the end, above 0, with commas between")
      ->capture_default_str();
  command->add_option(
      "--bucket", dedup->bucket,
      "Slots of a bucket, powers of two from 2 to 64, with commas between [chosen]");
  command
      ->add_option("--neighbours", dedup->neighbours,
                   "Buckets that are tried for each hash function; 1: no linear probing; 0: chosen")
      ->check(CLI::IsMember({0, 1, 2, 4, 8}))
      ->capture_default_str();
  command->add_flag("--wide", dedup->wide, "Nodes of compressed sets are pairs of 64 bits");
}

void add_dedup(CLI::App* command, DedupArguments* dedup) {
  add_dedup_data(command, dedup);
  add_dedup_set(command, dedup);
  command->add_option("--batch", dedup->batch, "Vectors of one call [all]");
  command->add_flag("--sweep", dedup->sweep,
                    "Instead: one thing changed at a time (slots of a bucket, with neighbours and "
                    "without; words; load; duplication; width of nodes), and ratios");
  command->add_option("--engines,--engine", dedup->common.engines, "stride, unordered_set")
      ->capture_default_str();
  command->add_option("--seed", dedup->seed, "Equal seeds give equal vectors")
      ->capture_default_str();
  add_backend(command, &dedup->stride);
  add_measuring(command, &dedup->common);
  command->footer(
      "Vectors are made, and lie where they are searched, before the clock starts; a time is that\n"
      "of one call (or of all batches), a median. Sets have room for just the different vectors,\n"
      "and are empty when find_or_put begins; emptying is not timed. Words, loads, forms and\n"
      "buckets are combined. On the host, but with --backend cuda: with one thread and with all;\n"
      "on a device: with all in its memory, in pinned and in plain host memory. "
      "std::unordered_set\n"
      "has room reserved, and one thread. All answers are checked against sorted vectors. A plot\n"
      "FILE.svg of the rates has one of the bytes beside it, FILE-bytes.svg. Files that are read\n"
      "by default are found from the source tree's root.");
}

Status run_dedup_command(const DedupArguments& dedup) {
  Result<DedupOptions> options = parse(dedup);
  if (!options.ok()) return options.status();
  if (!is_text(options->data.kind)) {
    uint64_t n = std::max<uint64_t>(options->data.n, 10'000'000);
    // Vectors, those in a set, and those that come back.
    uint64_t max_words = *std::max_element(options->words.begin(), options->words.end());
    STRIDE_TRY(
        check_memory(n * (max_words * 4 * 3 + bytes_a_row), "the vectors", "lower --n or --words"));
  }
  return measure_and_show(
      dedup.common, {.title = "Find or put: " + options->data.kind + ", seed " +
                              std::to_string(options->data.seed) + stride_title(dedup.stride),
                     .run =
                         [&](const Progress& progress, ResultRows* rows) {
                           return dedup.sweep ? run_dedup_sweep(*options, progress, rows)
                                              : run_dedup(*options, progress, rows);
                         },
                     .tables = dedup.sweep ? &dedup_sweep_tables : &dedup_tables,
                     .plots = {{.rows = &dedup_rate_plot},
                               {.rows = &dedup_bytes_plot,
                                .axis = {.label = "bytes a vector (logarithmic)", .unit = "bytes"},
                                .suffix = "-bytes"}}});
}

const bool dedup_registered = WorkloadCommands::add(
    70, "dedup", "Bulk find-or-put of vectors and byte strings", &add_dedup, &run_dedup_command);

}  // namespace
}  // namespace stride::benchmark
