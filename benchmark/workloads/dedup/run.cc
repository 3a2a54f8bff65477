#include "benchmark/workloads/dedup/run.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "benchmark/harness/device_backend.h"
#include "benchmark/harness/machine.h"
#include "benchmark/peers/unordered_peer.h"

namespace stride::benchmark {
namespace {

// An array of numbers or bytes on a side.
template <class T>
struct Placed {
  std::unique_ptr<BackendMemory> memory;
  std::span<T> items;

  static Result<Placed> make(const SetPlace& place, uint64_t n) {
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

// A set with what it is asked and its answers, where they are measured.
struct PlacedSet {
  std::unique_ptr<VectorSet> set;
  KeyColumn vectors;
  std::optional<Placed<std::byte>> copy;  // of the vectors, in the device's memory
  Placed<uint64_t> ids, bits;             // bits: which vectors were new
};

Status place_set(const SetPlace& place, const VectorSetOptions& options, const Checked& checked,
                 const Batches& batches, PlacedSet* placed) {
  auto made = place.backend->sets().make_vector_set(options);
  if (!made.ok()) return made.status();
  placed->set = std::move(*made);
  placed->vectors = checked.data.rows.view();
  KeyColumn& vectors = placed->vectors;
  if (place.backend->has_device()) {
    auto room = Placed<std::byte>::make(place, vectors.bytes());
    if (!room.ok()) return room.status();
    STRIDE_TRY(place.backend->copy(room->items.data(), vectors.data, vectors.bytes()));
    placed->copy = std::move(*room);
    vectors.data = placed->copy->items.data();
  }
  auto ids = Placed<uint64_t>::make(place, vectors.size);
  if (!ids.ok()) return ids.status();
  placed->ids = std::move(*ids);
  auto bits = Placed<uint64_t>::make(place, batches.bit_words());
  if (!bits.ok()) return bits.status();
  placed->bits = std::move(*bits);
  return {};
}

// Puts all vectors, and hands the checked answers over.
Status measure_put(const Checked& checked, VectorForm form, const SetPlace& place,
                   const Batches& batches, PlacedSet* placed, TimedPhases* phases,
                   BulkVector<uint64_t>* ids, BulkVector<uint64_t>* was_new) {
  VectorSet& set = *placed->set;
  auto put = [&](double* seconds) -> Status {
    STRIDE_TRY(set.clear());
    Stopwatch watch;
    Status s = batches.put(placed->vectors, placed->ids.items, placed->bits.items,
                           [&](auto&&... batch) { return set.find_or_put(batch...); });
    *seconds = watch.seconds();
    return s;
  };
  STRIDE_TRY(phases->measure("find_or_put", placed->vectors.size, put));
  STRIDE_TRY(placed->ids.read(place.backend, ids));
  STRIDE_TRY(placed->bits.read(place.backend, was_new));
  STRIDE_TRY(check_put(checked, batches, *ids, *was_new));
  if (form == VectorForm::dense) STRIDE_TRY(check_dense(checked, *ids));
  if (set.size() != checked.first.distinct) return wrong_vector("the size, and not", set.size());
  return {};
}

// put_ids: what find must give.
Status measure_find(const SetPlace& place, const Batches& batches, PlacedSet* placed,
                    const BulkVector<uint64_t>& put_ids, TimedPhases* phases) {
  auto find = [&] {
    return batches.find(placed->vectors, placed->ids.items,
                        [&](auto&&... batch) { return placed->set->find(batch...); });
  };
  STRIDE_TRY(phases->measure("find", placed->vectors.size, timed(find)));
  BulkVector<uint64_t> found_ids;
  STRIDE_TRY(placed->ids.read(place.backend, &found_ids));
  auto wrong = std::mismatch(found_ids.begin(), found_ids.end(), put_ids.begin()).first;
  if (wrong == found_ids.end()) return {};
  return wrong_vector("find", static_cast<uint64_t>(wrong - found_ids.begin()));
}

}  // namespace

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
  Result<std::unique_ptr<Backend>> made = device_backend(options_.backend, options_.threads);
  if (!made.ok()) return made.status();
  device_ = std::move(*made);
  return {};
}

SetPlace DedupRun::host_place(unsigned threads) {
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
                                       const SetPlace& place) {
  auto set = place.host->sets().make_vector_set({.words = checked.data.words(),
                                                 .form = choice.form,
                                                 .capacity = checked.first.distinct,
                                                 .load = choice.load,
                                                 .wide_nodes = choice.wide_nodes});
  if (!set.ok()) return set.status();
  STRIDE_TRY((*set)->find_or_put(checked.data.rows.view(), {}, {}));
  return (*set)->nodes();
}

Status DedupRun::measure_set(const Checked& checked, const SetChoice& choice,
                             const SetPlace& place) {
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
  Batches batches(checked.size(), options_.batch);
  PlacedSet placed;
  STRIDE_TRY(place_set(place, set_options, checked, batches, &placed));
  ResultRow row = prototype(checked, "stride", configuration);
  row.backend = place.backend->name();
  row.texts["form"] = form_name(choice.form);
  TimedPhases phases(options_.timing, row, checked.data.name, &progress_);
  BulkVector<uint64_t> ids, was_new;
  STRIDE_TRY(measure_put(checked, choice.form, place, batches, &placed, &phases, &ids, &was_new));
  STRIDE_TRY(measure_find(place, batches, &placed, ids, &phases));
  VectorSet& set = *placed.set;
  STRIDE_TRY(measure_get(checked, &set, place, batches, ids, was_new, &phases));

  std::map<std::string, double> more = {{"load", choice.load},
                                        {"threads", static_cast<double>(place.threads)}};
  if (choice.form == VectorForm::compressed) more["nodes"] = static_cast<double>(set.nodes());
  if (choice.bucket != 0) more["bucket"] = static_cast<double>(choice.bucket);
  if (choice.neighbours != 0) more["neighbours"] = choice.neighbours;
  return finish(&phases, place.backend, set.memory_bytes(), set.size(), more);
}

// Ids give their vectors back, so that different vectors have different ids.
Status DedupRun::measure_get(const Checked& checked, VectorSet* set, const SetPlace& place,
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

}  // namespace stride::benchmark
