#include <algorithm>
#include <optional>

#include "benchmark/harness/text_table.h"
#include "benchmark/workloads/dedup/run.h"
#include "benchmark/workloads/dedup/workload.h"

namespace stride::benchmark {
namespace {

// What is tried in a sweep besides the ordinary choice.
struct Variation {
  std::string sweep, value;
  bool is_default = false;
  DedupDataOptions data;
  SetChoice choice;
};

std::vector<Variation> variations(const DedupOptions& options) {
  DedupDataOptions data = options.data;
  data.words = static_cast<uint32_t>(options.words[0]);
  SetChoice ordinary{options.forms[0], options.loads[0], 0, 0, false};
  std::vector<Variation> all;
  auto add = [&](const std::string& sweep, const std::string& value, bool is_default) {
    all.push_back({sweep, value, is_default, data, ordinary});
    return &all.back();
  };
  for (uint32_t neighbours : {0u, 1u}) {
    std::string sweep = neighbours ? "bucket, no neighbours" : "bucket";
    add(sweep, "default", true);
    for (uint64_t slots = 2; slots <= 64; slots *= 2) {
      Variation* v = add(sweep, std::to_string(slots) + " slots", false);
      v->choice.bucket = slots;
      v->choice.neighbours = neighbours;
    }
  }
  if (has_words(data.kind)) {
    std::vector<uint32_t> lengths{1, 2, 4, 8, 16, 32, 64};
    if (ordinary.form == VectorForm::slots) lengths = {1, 2, 4};
    // Any length that was asked for is the one to compare with.
    if (std::find(lengths.begin(), lengths.end(), data.words) == lengths.end())
      lengths.insert(std::upper_bound(lengths.begin(), lengths.end(), data.words), data.words);
    for (uint32_t words : lengths)
      add("words", std::to_string(words), words == data.words)->data.words = words;
  }
  std::vector<double> loads{0.5, 0.8, 0.95};
  if (std::find(loads.begin(), loads.end(), ordinary.load) == loads.end())
    loads.insert(std::upper_bound(loads.begin(), loads.end(), ordinary.load), ordinary.load);
  for (double load : loads)
    add("load", three_digits(load), load == ordinary.load)->choice.load = load;
  if (data.kind == "random") {
    std::vector<double> shares{0, 0.5, 0.9};
    if (std::find(shares.begin(), shares.end(), data.duplication) == shares.end())
      shares.insert(std::upper_bound(shares.begin(), shares.end(), data.duplication),
                    data.duplication);
    for (double share : shares) {
      add("duplication", three_digits(share), share == data.duplication)->data.duplication = share;
    }
  }
  for (bool wide : {false, true}) {
    Variation* v = add("nodes of 16-word states", wide ? "64 bits" : "32 bits", !wide);
    v->data.kind = "states";
    v->data.words = 16;
    v->choice.form = VectorForm::compressed;
    v->choice.wide_nodes = wide;
  }
  return all;
}

bool same_data(const DedupDataOptions& a, const DedupDataOptions& b) {
  return a.kind == b.kind && a.words == b.words && a.duplication == b.duplication;
}

}  // namespace

Status run_dedup_sweep(const DedupOptions& options, const Progress& progress,
                       std::vector<ResultRow>* rows) {
  DedupRun run(options, progress, rows);
  STRIDE_TRY(run.open_device());
  SetPlace place = run.device() ? run.device_place(sides[0]) : run.host_place(options.threads);
  std::optional<DedupDataOptions> made;
  Checked checked;
  for (const Variation& variation : variations(options)) {
    if (!made || !same_data(*made, variation.data)) {
      checked = {};
      STRIDE_TRY(run.make(variation.data, &checked));
      made = variation.data;
    }
    run.texts = {{"sweep", variation.sweep}, {"value", variation.value}};
    run.numbers = {{"is_default", variation.is_default ? 1.0 : 0.0}};
    STRIDE_TRY(run.measure_set(checked, variation.choice, place));
  }
  return {};
}

}  // namespace stride::benchmark
