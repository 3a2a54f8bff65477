#include "benchmark/workloads/dedup/workload.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "benchmark/harness/machine.h"
#include "benchmark/harness/placed_memory.h"
#include "benchmark/harness/text_table.h"
#include "benchmark/peers/unordered_peer.h"
#include "gpu/backend.h"

namespace stride::benchmark {
namespace {

uint64_t bitmap_words(uint64_t bits) { return (bits + 63) / 64; }

Status wrong_vector(const std::string& who, uint64_t row) {
  return Status(StatusCode::corruption,
                "wrong answer: " + who + " of vector " + std::to_string(row));
}

// Rows that are handed over in calls of `batch`, each with its own words of bits.
class Batches {
 public:
  Batches(uint64_t rows, uint64_t batch)
      : rows_(rows), batch_(batch == 0 || batch > rows ? std::max<uint64_t>(rows, 1) : batch) {}

  uint64_t bit_words() const { return (rows_ + batch_ - 1) / batch_ * bitmap_words(batch_); }
  bool bit(std::span<const uint64_t> words, uint64_t row) const {
    uint64_t at = row % batch_;
    return words[row / batch_ * bitmap_words(batch_) + at / 64] >> (at % 64) & 1;
  }
  // call(rows, ids, bits) for one batch after the other.
  template <class Call>
  Status put(const KeyColumn& rows, std::span<uint64_t> ids, std::span<uint64_t> bits,
             const Call& call) const {
    for (uint64_t first = 0; first < rows.size; first += batch_) {
      uint64_t n = std::min(batch_, rows.size - first);
      STRIDE_TRY(call(rows.slice(first, n), ids.empty() ? ids : ids.subspan(first, n),
                      bits.subspan(first / batch_ * bitmap_words(batch_), bitmap_words(n))));
    }
    return {};
  }
  template <class Call>
  Status find(const KeyColumn& rows, std::span<uint64_t> ids, const Call& call) const {
    for (uint64_t first = 0; first < rows.size; first += batch_) {
      uint64_t n = std::min(batch_, rows.size - first);
      STRIDE_TRY(call(rows.slice(first, n), ids.subspan(first, n)));
    }
    return {};
  }

 private:
  uint64_t rows_, batch_;
};

// Data and what is right about them.
struct Checked {
  DedupData data;
  FirstRows first;

  uint64_t size() const { return data.rows.rows; }
  double duplication() const {
    return 1 - static_cast<double>(first.distinct) / static_cast<double>(size());
  }
};

// Equal rows have one id, and one of them was new.
Status check_put(const Checked& checked, const Batches& batches, std::span<const uint64_t> ids,
                 std::span<const uint64_t> was_new) {
  std::vector<bool> seen(checked.size());
  uint64_t fresh = 0;
  for (uint64_t i = 0; i < checked.size(); ++i) {
    uint64_t first = checked.first.first[i];
    if (!ids.empty() && ids[i] != ids[first]) return wrong_vector("the id", i);
    if (!batches.bit(was_new, i)) continue;
    if (seen[first]) return wrong_vector("was_new", i);
    seen[first] = true;
    ++fresh;
  }
  if (fresh == checked.first.distinct) return {};
  return Status(StatusCode::corruption,
                "wrong answer: " + std::to_string(fresh) + " new vectors of " +
                    std::to_string(checked.first.distinct) + " different ones");
}

// Ids are 0, 1, 2, ... in the order of first occurrence.
Status check_dense(const Checked& checked, std::span<const uint64_t> ids) {
  uint64_t next = 0;
  for (uint64_t i = 0; i < checked.size(); ++i) {
    if (checked.first.first[i] == i && ids[i] != next++) return wrong_vector("the dense id", i);
  }
  return {};
}

// A backend that sets are made by, and where what they are asked lies.
struct Place {
  Backend* backend = nullptr;
  Backend* host = nullptr;
  const Side* side = nullptr;
  std::string name;  // "device memory", "2 threads"
  unsigned threads = 1;
};

// An array of numbers or bytes on a side.
template <class T>
struct Placed {
  std::unique_ptr<BackendMemory> memory;
  std::span<T> items;

  static Result<Placed> make(const Place& place, uint64_t n) {
    auto memory =
        place.side->allocate(*place.backend, *place.host, std::max<uint64_t>(n, 1) * sizeof(T));
    if (!memory.ok()) return memory.status();
    Placed placed;
    placed.memory = std::move(*memory);
    placed.items = {reinterpret_cast<T*>(placed.memory->data()), n};
    return placed;
  }
  Status read(Backend* backend, BulkVector<std::remove_const_t<T>>* to) const {
    to->resize(items.size());
    return items.empty() ? Status() : backend->copy(to->data(), items.data(), items.size_bytes());
  }
};

// How a set is made.
struct SetChoice {
  VectorForm form = VectorForm::dense;
  double load = 0.8;
  uint64_t bucket = 0;
  uint32_t neighbours = 0;
  bool wide_nodes = false;
};

class DedupRun {
 public:
  DedupRun(const DedupOptions& options, const Progress& progress, std::vector<ResultRow>* rows)
      : options_(options), progress_(progress), rows_(rows), parallel_(options.threads) {}

  // All further rows have these.
  std::map<std::string, std::string> texts;
  std::map<std::string, double> numbers;

  Status make(const DedupDataOptions& options, Checked* checked);
  // The set in one place.
  Status measure_set(const Checked& checked, const SetChoice& choice, const Place& place);
  Status measure_bytes(const Checked& checked, unsigned threads);
  Status measure_unordered(const Checked& checked);
  // The device's, if one is there and wanted.
  Status open_device();
  Backend* device() const { return device_.get(); }
  std::vector<unsigned> thread_counts() const {
    if (options_.threads == 1) return {1};
    return {1, options_.threads};
  }
  Place host_place(unsigned threads);
  Place device_place(const Side& side) {
    return {device_.get(), host_place(options_.threads).backend, &side, side.name,
            options_.threads};
  }

 private:
  ResultRow prototype(const Checked& checked, const std::string& engine,
                      const std::string& configuration) const;
  Result<uint64_t> count_nodes(const Checked& checked, const SetChoice& choice, const Place& place);
  Status measure_get(const Checked& checked, VectorSet* set, const Place& place,
                     const Batches& batches, std::span<const uint64_t> ids,
                     std::span<const uint64_t> was_new, TimedPhases* phases);
  // Adds the rows, with what all of them have.
  Status finish(TimedPhases* phases, Backend* backend, uint64_t bytes, uint64_t distinct,
                const std::map<std::string, double>& numbers);

  const DedupOptions& options_;
  const Progress& progress_;
  std::vector<ResultRow>* rows_;
  Parallel parallel_;
  std::map<unsigned, std::unique_ptr<Backend>> hosts_;
  std::unique_ptr<Backend> device_;
  std::map<std::pair<Backend*, uint64_t>, double> gathers_;  // a second, of a table's bytes
};

ResultRow DedupRun::prototype(const Checked& checked, const std::string& engine,
                              const std::string& configuration) const {
  ResultRow row;
  row.workload = "dedup";
  row.engine = engine;
  row.configuration = configuration;
  row.machine = this_machine().to_string();
  row.backend = "host";
  row.is_database = false;
  row.raw_bytes = checked.data.rows.data.size();
  row.numbers = numbers;
  row.numbers["words"] = checked.data.words();
  row.numbers["distinct"] = static_cast<double>(checked.first.distinct);
  row.numbers["duplication"] = checked.duplication();
  row.numbers["seed"] = static_cast<double>(options_.data.seed);
  if (options_.batch != 0) row.numbers["batch"] = static_cast<double>(options_.batch);
  row.texts = texts;
  row.texts["data"] = checked.data.name;
  return row;
}

Status DedupRun::make(const DedupDataOptions& options, Checked* checked) {
  progress_.show("making " + options.kind);
  Result<DedupData> data = make_dedup_data(options, &parallel_);
  if (!data.ok()) return data.status();
  checked->data = std::move(*data);
  progress_.show("sorting " + options.kind);
  checked->first = find_first_rows(checked->data.rows.view(), &parallel_);
  return {};
}

Status DedupRun::open_device() {
  if (options_.backend == BackendKind::host) return {};
  Result<std::unique_ptr<Backend>> made = Backend::cuda({.host_threads = options_.threads});
  if (!made.ok()) return options_.backend == BackendKind::cuda ? made.status() : Status();
  device_ = std::move(*made);
  return {};
}

Place DedupRun::host_place(unsigned threads) {
  std::unique_ptr<Backend>& backend = hosts_[threads];
  if (backend == nullptr) backend = Backend::host(threads);
  return {backend.get(), backend.get(), &sides[2], threads_name(threads), threads};
}

Status DedupRun::finish(TimedPhases* phases, Backend* backend, uint64_t bytes, uint64_t distinct,
                        const std::map<std::string, double>& more) {
  // Sets of about the same size share a measurement.
  uint64_t table_bytes = std::bit_ceil(std::max<uint64_t>(bytes, 1 << 20));
  auto [known, is_new] = gathers_.try_emplace({backend, table_bytes}, 0);
  if (is_new) {
    BackendLimits limits;
    STRIDE_TRY(backend->measure_limits(table_bytes, &limits));
    known->second = limits.gathers_per_second;
  }
  for (ResultRow& row : phases->rows()) {
    for (const auto& [name, value] : more) row.numbers[name] = value;
    row.numbers["bytes_per_vector"] =
        static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(distinct, 1));
    row.numbers["gathers_per_second"] = known->second;
    rows_->push_back(std::move(row));
  }
  return {};
}

// Nodes that the vectors need, which a set that grows tells.
Result<uint64_t> DedupRun::count_nodes(const Checked& checked, const SetChoice& choice,
                                       const Place& place) {
  auto set = place.host->sets().make_vector_set({.words = checked.data.words(),
                                                 .form = choice.form,
                                                 .capacity = checked.first.distinct,
                                                 .load = choice.load,
                                                 .wide_nodes = choice.wide_nodes});
  if (!set.ok()) return set.status();
  STRIDE_TRY((*set)->find_or_put(checked.data.rows.view(), {}, {}));
  return (*set)->nodes();
}

Status DedupRun::measure_set(const Checked& checked, const SetChoice& choice, const Place& place) {
  Backend& backend = *place.backend;
  VectorSetOptions set_options{.words = checked.data.words(),
                               .form = choice.form,
                               .capacity = checked.first.distinct,
                               .grows = false,
                               .load = choice.load,
                               .wide_nodes = choice.wide_nodes,
                               .bucket_slots = static_cast<uint32_t>(choice.bucket),
                               .neighbours = choice.neighbours};
  std::string configuration =
      std::string(form_name(choice.form)) + (choice.wide_nodes ? " wide, " : ", ") + place.name;
  progress_.show(checked.data.name + " " + configuration);
  if (choice.form == VectorForm::compressed) {
    Result<uint64_t> nodes = count_nodes(checked, choice, place);
    if (!nodes.ok()) return nodes.status();
    set_options.node_capacity = std::max<uint64_t>(*nodes, 1);
  }
  auto made = backend.sets().make_vector_set(set_options);
  if (!made.ok()) return made.status();
  VectorSet& set = **made;

  KeyColumn vectors = checked.data.rows.view();
  std::optional<Placed<std::byte>> there;
  if (place.backend->has_device()) {
    auto room = Placed<std::byte>::make(place, vectors.bytes());
    if (!room.ok()) return room.status();
    STRIDE_TRY(backend.copy(room->items.data(), vectors.data, vectors.bytes()));
    there = std::move(*room);
    vectors.data = there->items.data();
  }
  Batches batches(vectors.size, options_.batch);
  auto ids = Placed<uint64_t>::make(place, vectors.size);
  if (!ids.ok()) return ids.status();
  auto bits = Placed<uint64_t>::make(place, batches.bit_words());
  if (!bits.ok()) return bits.status();

  ResultRow row = prototype(checked, "stride", configuration);
  row.backend = backend.name();
  row.texts["form"] = form_name(choice.form);
  TimedPhases phases(options_.timing, row, checked.data.name, &progress_);
  auto put = [&](double* seconds) -> Status {
    STRIDE_TRY(set.clear());
    Stopwatch watch;
    Status s = batches.put(vectors, ids->items, bits->items,
                           [&](auto&&... batch) { return set.find_or_put(batch...); });
    *seconds = watch.seconds();
    return s;
  };
  STRIDE_TRY(phases.measure("find_or_put", vectors.size, put));
  BulkVector<uint64_t> put_ids, was_new, found_ids;
  STRIDE_TRY(ids->read(&backend, &put_ids));
  STRIDE_TRY(bits->read(&backend, &was_new));
  STRIDE_TRY(check_put(checked, batches, put_ids, was_new));
  if (choice.form == VectorForm::dense) STRIDE_TRY(check_dense(checked, put_ids));
  if (set.size() != checked.first.distinct) return wrong_vector("the size, and not", set.size());

  STRIDE_TRY(phases.measure("find", vectors.size, timed([&] {
                              return batches.find(vectors, ids->items, [&](auto&&... batch) {
                                return set.find(batch...);
                              });
                            })));
  STRIDE_TRY(ids->read(&backend, &found_ids));
  auto wrong = std::mismatch(found_ids.begin(), found_ids.end(), put_ids.begin()).first;
  if (wrong != found_ids.end())
    return wrong_vector("find", static_cast<uint64_t>(wrong - found_ids.begin()));
  STRIDE_TRY(measure_get(checked, &set, place, batches, put_ids, was_new, &phases));

  std::map<std::string, double> more = {{"load", choice.load},
                                        {"threads", static_cast<double>(place.threads)}};
  if (choice.form == VectorForm::compressed) more["nodes"] = static_cast<double>(set.nodes());
  if (choice.bucket != 0) more["bucket"] = static_cast<double>(choice.bucket);
  if (choice.neighbours != 0) more["neighbours"] = choice.neighbours;
  return finish(&phases, &backend, set.memory_bytes(), set.size(), more);
}

// Ids give their vectors back, so that different vectors have different ids.
Status DedupRun::measure_get(const Checked& checked, VectorSet* set, const Place& place,
                             const Batches& batches, std::span<const uint64_t> ids,
                             std::span<const uint64_t> was_new, TimedPhases* phases) {
  KeyColumn vectors = checked.data.rows.view();
  BulkVector<uint64_t> wanted;
  BulkVector<uint32_t> rows;
  for (uint64_t i = 0; i < vectors.size; ++i) {
    if (!batches.bit(was_new, i)) continue;
    wanted.push_back(ids[i]);
    rows.push_back(static_cast<uint32_t>(i));
  }
  auto asked = Placed<uint64_t>::make(place, wanted.size());
  if (!asked.ok()) return asked.status();
  auto room = Placed<std::byte>::make(place, wanted.size() * vectors.width);
  if (!room.ok()) return room.status();
  STRIDE_TRY(
      place.backend->copy(asked->items.data(), wanted.data(), wanted.size() * sizeof(uint64_t)));
  STRIDE_TRY(phases->measure("get", wanted.size(),
                             timed([&] { return set->get(asked->items, room->items); })));
  BulkVector<std::byte> back;
  STRIDE_TRY(room->read(place.backend, &back));
  for (uint64_t i = 0; i < rows.size(); ++i) {
    if (std::memcmp(back.data() + i * vectors.width, vectors[rows[i]].data(), vectors.width) != 0)
      return wrong_vector("get", rows[i]);
  }
  return {};
}

Status DedupRun::measure_bytes(const Checked& checked, unsigned threads) {
  Backend& backend = *host_place(threads).backend;
  KeyColumn strings = checked.data.rows.view();
  Batches batches(strings.size, options_.batch);
  BulkVector<uint64_t> ids(strings.size), bits(batches.bit_words());
  ResultRow row = prototype(checked, "stride", "byte strings, " + threads_name(threads));
  row.backend = backend.name();
  row.texts["form"] = "byte strings";
  TimedPhases phases(options_.timing, row, checked.data.name, &progress_);
  std::unique_ptr<ByteSet> set;
  auto put = [&](double* seconds) -> Status {
    set.reset();
    auto made = backend.sets().make_byte_set();
    if (!made.ok()) return made.status();
    set = std::move(*made);
    Stopwatch watch;
    Status s = batches.put(strings, ids, bits,
                           [&](auto&&... batch) { return set->find_or_put(batch...); });
    *seconds = watch.seconds();
    return s;
  };
  STRIDE_TRY(phases.measure("find_or_put", strings.size, put));
  STRIDE_TRY(check_put(checked, batches, ids, bits));
  STRIDE_TRY(check_dense(checked, ids));
  if (set->size() != checked.first.distinct) return wrong_vector("the size, and not", set->size());
  return finish(&phases, &backend, set->memory_bytes(), set->size(),
                {{"threads", static_cast<double>(threads)}});
}

Status DedupRun::measure_unordered(const Checked& checked) {
  KeyColumn rows = checked.data.rows.view();
  std::unique_ptr<UnorderedPeer> peer =
      UnorderedPeer::make(checked.data.rows.width, checked.first.distinct);
  Batches all(rows.size, 0);
  BulkVector<uint64_t> bits(all.bit_words());
  TimedPhases phases(options_.timing, prototype(checked, "std::unordered_set", "1 thread"),
                     checked.data.name, &progress_);
  auto put = [&](double* seconds) -> Status {
    peer->clear();
    std::fill(bits.begin(), bits.end(), 0);
    Stopwatch watch;
    peer->find_or_put(rows, bits);
    *seconds = watch.seconds();
    return {};
  };
  STRIDE_TRY(phases.measure("find_or_put", rows.size, put));
  STRIDE_TRY(check_put(checked, all, {}, bits));
  uint64_t found = 0;
  STRIDE_TRY(phases.measure("find", rows.size, timed([&] {
                              found = peer->find(rows);
                              return Status();
                            })));
  if (found != rows.size) return wrong_vector("std::unordered_set", found);
  return finish(&phases, host_place(1).backend, peer->memory_bytes(), peer->size(),
                {{"threads", 1}});
}

}  // namespace

const char* form_name(VectorForm form) {
  return form == VectorForm::dense ? "dense" : form == VectorForm::slots ? "slots" : "compressed";
}

Status run_dedup(const DedupOptions& options, const Progress& progress,
                 std::vector<ResultRow>* rows) {
  DedupRun run(options, progress, rows);
  bool text = is_text(options.data.kind);
  if (!text) STRIDE_TRY(run.open_device());
  for (uint64_t words : options.words) {
    DedupDataOptions data = options.data;
    data.words = static_cast<uint32_t>(words);
    Checked checked;
    STRIDE_TRY(run.make(data, &checked));
    if (options.with_stride && text) {
      for (unsigned threads : run.thread_counts()) STRIDE_TRY(run.measure_bytes(checked, threads));
    } else if (options.with_stride) {
      std::vector<Place> places;
      if (options.backend != BackendKind::cuda) {
        for (unsigned threads : run.thread_counts()) places.push_back(run.host_place(threads));
      }
      if (run.device()) {
        for (const Side& side : sides) places.push_back(run.device_place(side));
      }
      for (VectorForm form : options.forms) {
        for (double load : options.loads) {
          for (uint64_t bucket : options.buckets) {
            SetChoice choice{form, load, bucket, options.neighbours, options.wide_nodes};
            for (const Place& place : places) STRIDE_TRY(run.measure_set(checked, choice, place));
          }
        }
      }
    }
    if (options.with_unordered_set) STRIDE_TRY(run.measure_unordered(checked));
  }
  return {};
}

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
  Place place = run.device() ? run.device_place(sides[0]) : run.host_place(options.threads);
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
