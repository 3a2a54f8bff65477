#include "gpu/several/several_sets.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/several/split_rooms.h"
#include "gpu/several/vector_split.h"
#include "storage/first_failure.h"
#include "storage/work_watch.h"

namespace stride {

namespace {

constexpr uint64_t max_set_chunk_bytes = uint64_t{1} << 28;  // of vectors
constexpr uint64_t min_set_chunk_rows = 1 << 16;
// Chunks for which a device has no room are halved down to this.
constexpr uint64_t least_set_rows = 1 << 12;

// What the chunks of a lane use, one after the other.
struct SetRooms {
  explicit SetRooms(size_t parts) : part_rows(parts), part_results(parts) {}

  ChunkRoom in, out, split;                        // of the chunk
  std::vector<ChunkRoom> part_rows, part_results;  // of each part, on its device
};

// Where the results of a chunk go: ids and bits, either null where it is not wanted.
struct SetResults {
  uint64_t* ids = nullptr;
  uint64_t* was_new = nullptr;

  SetResults from(uint64_t row) const {  // a multiple of 64
    return {ids ? ids + row : nullptr, was_new ? was_new + row / 64 : nullptr};
  }
};

uint64_t bits_bytes(uint64_t rows) { return (rows + 63) / 64 * sizeof(uint64_t); }

}  // namespace

// A part is a device's set. Its calls that put vectors come one after the other.
class SplitVectorSet final : public VectorSet {
 public:
  struct Part {
    size_t device = 0;
    std::unique_ptr<VectorSet> set;
    std::mutex mutex;  // of calls that put
  };

  SplitVectorSet(DeviceSet& devices, const VectorSetOptions& options,
                 std::vector<std::unique_ptr<Part>> parts)
      : VectorSet(options.words),
        devices_(devices),
        hash_{mix_bits(options.seed + VectorHash::step)},
        parts_(std::move(parts)) {}

  uint64_t size() const override { return sum(&VectorSet::size); }
  uint64_t nodes() const override { return sum(&VectorSet::nodes); }
  uint64_t memory_bytes() const override { return sum(&VectorSet::memory_bytes); }
  uint64_t id_limit() const override {
    uint64_t limit = 0;
    for (const auto& part : parts_) limit = std::max(limit, part->set->id_limit());
    return limit * parts_.size();
  }

 private:
  // A call that is under way.
  struct Call {
    FirstFailure failure;  // which ends it: what was put is not put again
    std::atomic<uint64_t> did_not_fit{0};
  };

  uint64_t sum(uint64_t (VectorSet::*number)() const) const {
    uint64_t total = 0;
    for (const auto& part : parts_) total += (part->set.get()->*number)();
    return total;
  }
  uint64_t width() const { return uint64_t{words_} * 4; }

  Result<uint64_t> put_vectors(const KeyColumn& vectors, uint64_t* ids, uint64_t* was_new) override;
  Status find_vectors(const KeyColumn& vectors, uint64_t* ids) override;
  Result<uint64_t> get_vectors(std::span<const uint64_t> ids, std::byte* vectors) override;
  Status clear_vectors() override;

  // io_error: a part was on a device that has failed.
  Status check_parts() const;
  // Calls work(home, first, rows, rooms) for the chunks of all shares, and returns the first
  // failure. A device that fails takes its part with it, so that no other one does its share.
  template <class Work>
  Status each_chunk(uint64_t rows, const void* data, Call* call, const Work& work);

  // What is allocated for rows of a share before anything is put.
  struct Prepared {
    std::unique_ptr<VectorSplit> split;
    SetResults results;  // on the device
  };
  // put: or else find.
  Status search_chunk(size_t home, bool put, const KeyColumn& vectors, SetResults out,
                      SetRooms* rooms, Call* call);
  Status prepare(size_t home, KeyColumn vectors, SetResults out, SetRooms* rooms, Call* call,
                 Prepared* here);
  Status blame_part(const Part& part, Call* call, Status status);
  // Room on the device of a part.
  Status make_rooms(const Part& part, uint64_t rows, ChunkRoom* vectors, ChunkRoom* results);
  Status search_part(size_t number, size_t home, bool put, const Prepared& here, SetRooms* rooms,
                     Call* call);
  Status call_part(Part* part, bool put, const KeyColumn& vectors, SetResults out, Call* call);

  // bad: the least row whose id was never given, if there is one.
  Status get_chunk(size_t home, std::span<const uint64_t> ids, std::byte* vectors, SetRooms* rooms,
                   Call* call, uint64_t* bad);
  Status get_part(size_t number, size_t home, IdSplit* split, SetRooms* rooms, uint64_t* bad);

  DeviceSet& devices_;
  const VectorHash hash_;
  const std::vector<std::unique_ptr<Part>> parts_;
};

Status SplitVectorSet::check_parts() const {
  for (const auto& part : parts_)
    if (!devices_.works(part->device))
      return Status(StatusCode::io_error, "a set had vectors on a device that has failed")
          .with_remedy("make the set anew, on the devices that are left");
  return {};
}

template <class Work>
Status SplitVectorSet::each_chunk(uint64_t rows, const void* data, Call* call, const Work& work) {
  STRIDE_TRY(check_parts());
  const uint64_t most = std::max(min_set_chunk_rows, max_set_chunk_bytes / width());
  const SharedBatch batch{.size = rows, .home = devices_.home_of(data)};
  Status status = devices_.run(batch, [&](size_t home, Share share) {
    Status done =
        run_chunks<SetRooms>(devices_, share.count, {min_set_chunk_rows, most}, parts_.size(),
                             [&](Share part, SetRooms* rooms) {
                               return work(home, share.first + part.first, part.count, rooms);
                             });
    if (is_loss(done)) devices_.lose(home, done);
    call->failure.report(std::move(done));
    return call->failure.failed() ? WorkWatch::cancelled() : Status();
  });
  return call->failure.failed() ? call->failure.status() : status;
}

Result<uint64_t> SplitVectorSet::put_vectors(const KeyColumn& vectors, uint64_t* ids,
                                             uint64_t* was_new) {
  Call call;
  STRIDE_TRY(each_chunk(vectors.size, vectors.data, &call,
                        [&](size_t home, uint64_t first, uint64_t rows, SetRooms* rooms) {
                          return search_chunk(home, /*put=*/true, vectors.slice(first, rows),
                                              SetResults{ids, was_new}.from(first), rooms, &call);
                        }));
  return call.did_not_fit.load();
}

Status SplitVectorSet::find_vectors(const KeyColumn& vectors, uint64_t* ids) {
  Call call;
  return each_chunk(vectors.size, vectors.data, &call,
                    [&](size_t home, uint64_t first, uint64_t rows, SetRooms* rooms) {
                      return search_chunk(home, /*put=*/false, vectors.slice(first, rows),
                                          SetResults{ids, nullptr}.from(first), rooms, &call);
                    });
}

// Nothing has been put where there is no room for the rows: each half is tried.
Status SplitVectorSet::search_chunk(size_t home, bool put, const KeyColumn& vectors, SetResults out,
                                    SetRooms* rooms, Call* call) {
  Backend& device = devices_[home];
  Prepared here;
  const Status status = prepare(home, vectors, out, rooms, call, &here);
  if (status.code() == StatusCode::resource_exhausted && vectors.size >= 2 * least_set_rows) {
    here.split.reset();
    const uint64_t half = vectors.size / 128 * 64;
    STRIDE_TRY(search_chunk(home, put, vectors.slice(0, half), out, rooms, call));
    return search_chunk(home, put, vectors.slice(half, vectors.size - half), out.from(half), rooms,
                        call);
  }
  STRIDE_TRY(status);
  STRIDE_TRY(devices_.run_each(
      parts_.size(), [&](uint64_t i) { return search_part(i, home, put, here, rooms, call); }));
  STRIDE_TRY(here.split->put_ids(here.results.ids, here.results.was_new));
  if (here.results.ids != out.ids)
    STRIDE_TRY(device.copy(out.ids, here.results.ids, vectors.size * sizeof *out.ids));
  if (here.results.was_new != out.was_new)
    STRIDE_TRY(device.copy(out.was_new, here.results.was_new, bits_bytes(vectors.size)));
  return {};
}

Status SplitVectorSet::prepare(size_t home, KeyColumn vectors, SetResults out, SetRooms* rooms,
                               Call* call, Prepared* here) {
  Backend& device = devices_[home];
  auto brought = bring(devices_, home, vectors.data, vectors.bytes(), &rooms->in);
  if (!brought.ok()) return brought.status();
  vectors.data = *brought;
  const uint64_t ids_bytes = vectors.size * sizeof(uint64_t);
  const bool ids_elsewhere = out.ids && !device.is_on_device(out.ids);
  const bool bits_elsewhere = out.was_new && !device.is_on_device(out.was_new);
  if (ids_elsewhere || bits_elsewhere) {
    STRIDE_TRY(rooms->out.make(devices_.rooms(home), ids_bytes + bits_bytes(vectors.size)));
    auto* results = reinterpret_cast<uint64_t*>(rooms->out.data());
    if (ids_elsewhere) out.ids = results;
    if (bits_elsewhere) out.was_new = results + vectors.size;
  }
  here->results = out;
  auto split = split_vectors(device, vectors, hash_, parts_.size(), /*in_order=*/false,
                             {&devices_.rooms(home), &rooms->split});
  if (!split.ok()) return split.status();
  here->split = std::move(*split);
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i]->device == home) continue;
    STRIDE_TRY(blame_part(*parts_[i], call,
                          make_rooms(*parts_[i], here->split->rows(i).size, &rooms->part_rows[i],
                                     &rooms->part_results[i])));
  }
  return {};
}

Status SplitVectorSet::make_rooms(const Part& part, uint64_t rows, ChunkRoom* vectors,
                                  ChunkRoom* results) {
  STRIDE_TRY(vectors->make(devices_.rooms(part.device), rows * width()));
  return results->make(devices_.rooms(part.device), rows * sizeof(uint64_t) + bits_bytes(rows));
}

// What the device of a part has failed with is not the failure of the one that has the share.
Status SplitVectorSet::blame_part(const Part& part, Call* call, Status status) {
  if (!is_loss(status)) return status;
  devices_.lose(part.device, status);
  call->failure.report(std::move(status));
  return WorkWatch::cancelled();
}

// Vectors are copied to the device of the part as a whole, and what it finds is copied back.
Status SplitVectorSet::search_part(size_t number, size_t home, bool put, const Prepared& here,
                                   SetRooms* rooms, Call* call) {
  Part& part = *parts_[number];
  KeyColumn vectors = here.split->rows(number);
  if (vectors.size == 0) return {};
  const std::span<uint64_t> ids = here.split->ids(number), bits = here.split->was_new(number);
  SetResults out{here.results.ids ? ids.data() : nullptr,
                 here.results.was_new ? bits.data() : nullptr};
  if (part.device == home) return call_part(&part, put, vectors, out, call);
  Status status = [&]() -> Status {
    Backend& there = devices_[part.device];
    std::byte* rows = rooms->part_rows[number].data();
    auto* results = reinterpret_cast<uint64_t*>(rooms->part_results[number].data());
    STRIDE_TRY(there.copy(rows, vectors.data, vectors.bytes()));
    vectors.data = rows;
    const SetResults found{out.ids ? results : nullptr,
                           out.was_new ? results + vectors.size : nullptr};
    STRIDE_TRY(call_part(&part, put, vectors, found, call));
    if (out.ids) STRIDE_TRY(there.copy(out.ids, found.ids, ids.size_bytes()));
    return out.was_new ? there.copy(out.was_new, found.was_new, bits.size_bytes()) : Status();
  }();
  return blame_part(part, call, std::move(status));
}

Status SplitVectorSet::call_part(Part* part, bool put, const KeyColumn& vectors, SetResults out,
                                 Call* call) {
  if (!put) return part->set->find_vectors(vectors, out.ids);
  std::lock_guard lock(part->mutex);
  Result<uint64_t> failed = part->set->put_vectors(vectors, out.ids, out.was_new);
  if (!failed.ok()) return failed.status();
  call->did_not_fit += *failed;
  return {};
}

Result<uint64_t> SplitVectorSet::get_vectors(std::span<const uint64_t> ids, std::byte* vectors) {
  Call call;
  std::mutex mutex;
  uint64_t first_bad = absent;
  const Status status =
      each_chunk(ids.size(), ids.data(), &call,
                 [&](size_t home, uint64_t first, uint64_t rows, SetRooms* rooms) -> Status {
                   uint64_t bad = absent;
                   STRIDE_TRY(get_chunk(home, ids.subspan(first, rows), vectors + first * width(),
                                        rooms, &call, &bad));
                   std::lock_guard lock(mutex);
                   if (bad != absent) first_bad = std::min(first_bad, first + bad);
                   return {};
                 });
  STRIDE_TRY(status);
  return first_bad;
}

Status SplitVectorSet::get_chunk(size_t home, std::span<const uint64_t> ids, std::byte* vectors,
                                 SetRooms* rooms, Call* call, uint64_t* bad) {
  Backend& device = devices_[home];
  auto brought = bring(devices_, home, reinterpret_cast<const std::byte*>(ids.data()),
                       ids.size_bytes(), &rooms->in);
  if (!brought.ok()) return brought.status();
  ids = {reinterpret_cast<const uint64_t*>(*brought), ids.size()};
  auto split =
      split_ids(device, ids, words_, parts_.size(), {&devices_.rooms(home), &rooms->split});
  if (!split.ok()) return split.status();
  std::vector<uint64_t> bad_of_part(parts_.size(), absent);
  STRIDE_TRY(devices_.run_each(parts_.size(), [&](uint64_t i) {
    Status status = get_part(i, home, split->get(), rooms, &bad_of_part[i]);
    return parts_[i]->device == home ? status : blame_part(*parts_[i], call, std::move(status));
  }));
  for (uint64_t row : bad_of_part) *bad = std::min(*bad, row);
  std::byte* out = vectors;
  if (!device.is_on_device(vectors)) {
    STRIDE_TRY(rooms->out.make(devices_.rooms(home), ids.size() * width()));
    out = rooms->out.data();
  }
  STRIDE_TRY((*split)->put_vectors(out));
  return out == vectors ? Status() : device.copy(vectors, out, ids.size() * width());
}

Status SplitVectorSet::get_part(size_t number, size_t home, IdSplit* split, SetRooms* rooms,
                                uint64_t* bad) {
  const Part& part = *parts_[number];
  std::span<const uint64_t> ids = split->ids(number);
  if (ids.empty()) return {};
  const std::span<std::byte> vectors = split->vectors(number);
  std::byte* out = vectors.data();
  Backend& there = devices_[part.device];
  if (part.device != home) {
    STRIDE_TRY(rooms->part_rows[number].make(devices_.rooms(part.device), ids.size_bytes()));
    STRIDE_TRY(rooms->part_results[number].make(devices_.rooms(part.device), vectors.size()));
    STRIDE_TRY(there.copy(rooms->part_rows[number].data(), ids.data(), ids.size_bytes()));
    ids = {reinterpret_cast<const uint64_t*>(rooms->part_rows[number].data()), ids.size()};
    out = rooms->part_results[number].data();
  }
  Result<uint64_t> row = part.set->get_vectors(ids, out);
  if (!row.ok()) return row.status();
  if (out != vectors.data()) STRIDE_TRY(there.copy(vectors.data(), out, vectors.size()));
  if (*row == absent) return {};
  Result<uint64_t> given = split->row(number, *row);
  if (!given.ok()) return given.status();
  *bad = *given;
  return {};
}

Status SplitVectorSet::clear_vectors() {
  STRIDE_TRY(check_parts());
  return devices_.run_each(parts_.size(),
                           [&](uint64_t i) { return parts_[i]->set->clear_vectors(); });
}

namespace {

class SeveralSets final : public Sets {
 public:
  explicit SeveralSets(DeviceSet& devices) : devices_(devices) {}

  Result<std::unique_ptr<VectorSet>> make_vector_set(const VectorSetOptions& options) override {
    const std::vector<size_t> working = devices_.working();
    const bool is_spread = options.form != VectorForm::dense && working.size() > 1 &&
                           working.size() <= max_vector_parts &&
                           options.capacity / working.size() >= devices_.options().min_device_share;
    if (is_spread) return make_split(options, working);
    return devices_.make_on_first(
        [&](Backend& device) { return device.sets().make_vector_set(options); });
  }
  Result<std::unique_ptr<ByteSet>> make_byte_set() override {
    return devices_.make_on_first([](Backend& device) { return device.sets().make_byte_set(); });
  }

 private:
  // A part hardly ever gets more of n vectors.
  static uint64_t share_of(uint64_t n, size_t parts) {
    const double even = static_cast<double>(n) / static_cast<double>(parts);
    return static_cast<uint64_t>(even + 8 * std::sqrt(even)) + 64;
  }
  Result<std::unique_ptr<VectorSet>> make_split(VectorSetOptions options,
                                                const std::vector<size_t>& working) {
    VectorSetOptions of_part = options;
    of_part.capacity = share_of(options.capacity, working.size());
    if (options.node_capacity != 0)
      of_part.node_capacity = share_of(options.node_capacity, working.size());
    std::vector<std::unique_ptr<SplitVectorSet::Part>> parts(devices_.size());
    const Status status = devices_.run_on_all([&](size_t device) {
      auto part = std::make_unique<SplitVectorSet::Part>();
      part->device = device;
      auto set = devices_[device].sets().make_vector_set(of_part);
      if (!set.ok()) return set.status();
      part->set = std::move(*set);
      parts[device] = std::move(part);
      return Status();
    });
    STRIDE_TRY(status);
    std::erase(parts, nullptr);
    // Where a device has failed meanwhile, the others need more room.
    if (parts.size() < working.size()) return make_vector_set(options);
    return std::unique_ptr<VectorSet>(
        std::make_unique<SplitVectorSet>(devices_, options, std::move(parts)));
  }

  DeviceSet& devices_;
};

}  // namespace

std::unique_ptr<Sets> make_several_sets(DeviceSet& devices) {
  return std::make_unique<SeveralSets>(devices);
}

}  // namespace stride
