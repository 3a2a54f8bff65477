#include "engine/lookup.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>

#include "storage/prefetch.h"

namespace stride {
namespace {

// A multiple of 64, so that no two threads share a word of the bitmap. The values of a task's rows
// fit the second-level cache of any machine.
constexpr uint64_t rows_per_task = 2048;
constexpr uint64_t prefetch_distance = 24;

// Keeps the first failure of several threads.
class FirstFailure {
 public:
  void report(Status s) {
    std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(s);
    failed_.store(true, std::memory_order_relaxed);
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  Status take() { return std::move(status_); }

 private:
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  Status status_;
};

// What a gather needs of a segment, in one small struct.
struct Source {
  const IndexedSegment* segment;
  PackedColumn values;
  const uint8_t* kinds;
  bool guarded;
};

Status prepare(const SegmentList& segments, std::vector<IndexView>* indexes,
               std::vector<Source>* sources) {
  for (const auto& s : segments) {
    STRIDE_TRY(s->prepare());
    indexes->push_back(s->index());
    sources->push_back({s.get(), s->values(), s->kinds(), indexes->back().guard != nullptr});
  }
  return {};
}

void prefetch_row(const Source& source, uint32_t rank) {
  const PackedColumn& v = source.values;
  if (v.fixed) {
    prefetch(v.data + uint64_t{rank} * v.width);
  } else {
    auto* deltas = static_cast<const std::byte*>(v.offsets.deltas);
    prefetch(deltas + uint64_t{rank} * v.offsets.delta_width);
    prefetch(v.offsets.bases + (rank >> PackedOffsets::group_bits));
  }
  if (source.kinds) prefetch(source.kinds + rank);
}

// So few that a loop of single lookups is faster than to set up a batch.
constexpr uint64_t few_queries = 4;

// Calls put(i, value) for each query that is found, absent(i) for the others.
template <class Put, class Absent>
Status look_up_each(const SegmentList& segments, const KeyColumn& queries, const Put& put,
                    const Absent& absent) {
  for (uint64_t i = 0; i < queries.size; ++i) {
    auto value = lookup_one(segments, queries[i]);
    if (!value.ok()) return value.status();
    if (*value) {
      put(i, **value);
    } else {
      absent(i);
    }
  }
  return {};
}

// Calls put(i, value) for each row of [begin, end) that was found, absent(i) for the others.
template <class Put, class Absent>
Status resolve(const std::vector<Source>& sources, const uint64_t* locations, uint64_t begin,
               uint64_t end, const Put& put, const Absent& absent) {
  auto location = [&](uint64_t i) { return std::bit_cast<Location>(locations[i]); };
  auto look_ahead = [&](uint64_t i) {
    if (i >= end) return;
    if (Location at = location(i); at.found()) prefetch_row(sources[at.index], at.rank);
  };
  for (uint64_t i = begin; i < begin + prefetch_distance; ++i) look_ahead(i);
  for (uint64_t i = begin; i < end; ++i) {
    look_ahead(i + prefetch_distance);
    Location at = location(i);
    if (!at.found()) {
      absent(i);
      continue;
    }
    const Source& source = sources[at.index];
    if (source.guarded) STRIDE_TRY(source.segment->ensure_rows(at.rank, at.rank + 1));
    if (source.kinds && source.segment->kind(at.rank) == EntryKind::tombstone) {
      absent(i);
    } else {
      put(i, source.values[at.rank]);
    }
  }
  return {};
}

// Where every query's newest entry lies.
Status locate(Backend& backend, std::span<const IndexView> indexes, const KeyColumn& queries,
              ResultBuffer<uint64_t>* scratch) {
  static_assert(sizeof(Location) == sizeof(uint64_t));
  scratch->reset(queries.size);
  auto* locations = reinterpret_cast<Location*>(scratch->data());
  return backend.find(indexes, queries, {locations, queries.size});
}

template <class Body>
Status for_each_task(Backend& backend, uint64_t rows, const Body& body) {
  FirstFailure failure;
  uint64_t tasks = (rows + rows_per_task - 1) / rows_per_task;
  backend.parallel_for(tasks, 1, [&](uint64_t first, uint64_t last) {
    for (uint64_t t = first; t < last && !failure.failed(); ++t) {
      Status s = body(t, t * rows_per_task, std::min(rows, (t + 1) * rows_per_task));
      if (!s.ok()) failure.report(std::move(s));
    }
  });
  return failure.take();
}

// Copies values, each to where the one before it ended. A copy of a short value writes up to 63
// bytes past its end, which the next one overwrites; `out_end` bounds that.
std::byte* copy_value(std::byte* out, const std::byte* out_end, const std::byte* from,
                      uint64_t bytes, const std::byte* from_end) {
  if (bytes <= 64 && out_end - out >= 64 && from_end - from >= 64) {
    std::memcpy(out, from, 32);
    if (bytes > 32) std::memcpy(out + 32, from + 32, 32);
  } else if (bytes) {
    std::memcpy(out, from, bytes);
  }
  return out + bytes;
}

}  // namespace

Result<std::optional<Bytes>> lookup_one(const SegmentList& segments, Bytes key) {
  for (const auto& s : segments) {
    if (segments.size() > 1 &&
        (compare(key, s->first_key()) < 0 || compare(key, s->last_key()) > 0))
      continue;
    STRIDE_TRY(s->prepare());
    uint32_t rank;
    STRIDE_TRY(find_one(s->index(), key, &rank));
    if (rank == Location::absent) continue;
    bool tombstone;
    STRIDE_TRY(s->is_tombstone(rank, &tombstone));
    if (tombstone) return std::optional<Bytes>();
    Bytes value;
    STRIDE_TRY(s->value(rank, &value));
    return std::optional<Bytes>(value);
  }
  return std::optional<Bytes>();
}

Status lookup_references(Backend& backend, const SegmentList& segments, const KeyColumn& queries,
                         FindResult* result) {
  result->found.reset(queries.size);
  result->values.reset(queries.size);
  Bytes* values = result->values.data();
  auto put = [&](uint64_t i, Bytes value) {
    values[i] = value;
    result->found.set(i);
  };
  auto absent = [&](uint64_t i) { values[i] = {}; };
  if (queries.size <= few_queries) return look_up_each(segments, queries, put, absent);

  std::vector<IndexView> indexes;
  std::vector<Source> sources;
  STRIDE_TRY(prepare(segments, &indexes, &sources));
  STRIDE_TRY(locate(backend, indexes, queries, &result->scratch));
  return for_each_task(backend, queries.size, [&](uint64_t, uint64_t begin, uint64_t end) {
    return resolve(sources, result->scratch.data(), begin, end, put, absent);
  });
}

namespace {

// The copies of few values, one after the other.
Status copy_few(const SegmentList& segments, const KeyColumn& queries, GetResult* result) {
  Bytes values[few_queries];
  uint64_t* offsets = result->offsets.data();
  STRIDE_TRY(look_up_each(
      segments, queries,
      [&](uint64_t i, Bytes value) {
        values[i] = value;
        result->found.set(i);
      },
      [&](uint64_t i) { values[i] = {}; }));
  offsets[0] = 0;
  for (uint64_t i = 0; i < queries.size; ++i) offsets[i + 1] = offsets[i] + values[i].size();
  result->data.reset(offsets[queries.size]);
  for (uint64_t i = 0; i < queries.size; ++i)
    if (!values[i].empty())
      std::memcpy(result->data.data() + offsets[i], values[i].data(), values[i].size());
  result->values = Column::variable(result->data.data(), offsets, queries.size);
  return {};
}

}  // namespace

// Two passes: first where each value lies and how long it is, then, once it is known where each
// goes, the copies. Between them only 16 bytes a query are kept.
Status lookup_copies(Backend& backend, const SegmentList& segments, const KeyColumn& queries,
                     GetResult* result) {
  uint64_t n = queries.size;
  result->found.reset(n);
  result->offsets.reset(n + 1);
  if (n <= few_queries) return copy_few(segments, queries, result);

  std::vector<IndexView> indexes;
  std::vector<Source> sources;
  STRIDE_TRY(prepare(segments, &indexes, &sources));
  STRIDE_TRY(locate(backend, indexes, queries, &result->scratch));
  const std::byte* source_end = nullptr;  // shared by all values only where there is one segment
  if (sources.size() == 1) source_end = sources[0].values.data + sources[0].values.data_bytes;
  uint64_t* offsets = result->offsets.data();
  uint64_t* scratch = result->scratch.data();
  std::vector<uint64_t> starts((n + rows_per_task - 1) / rows_per_task + 1);

  STRIDE_TRY(for_each_task(backend, n, [&](uint64_t task, uint64_t begin, uint64_t end) {
    uint64_t sum = 0;
    Status s = resolve(
        sources, scratch, begin, end,
        [&](uint64_t i, Bytes value) {
          // The pointer takes the place of the location, which has been read.
          scratch[i] = reinterpret_cast<uint64_t>(value.data());
          offsets[i + 1] = value.size();
          sum += value.size();
          result->found.set(i);
        },
        [&](uint64_t i) { offsets[i + 1] = 0; });
    starts[task] = sum;
    return s;
  }));
  uint64_t total = 0;
  for (uint64_t& start : starts) {
    uint64_t sum = start;
    start = total;
    total += sum;
  }
  offsets[0] = 0;
  result->data.reset(total);
  std::byte* data = result->data.data();
  STRIDE_TRY(for_each_task(backend, n, [&](uint64_t task, uint64_t begin, uint64_t end) {
    std::byte* out = data + starts[task];
    const std::byte* out_end = data + starts[task + 1];
    auto look_ahead = [&](uint64_t i) {
      if (i >= end || offsets[i + 1] == 0) return;
      auto* p = reinterpret_cast<const std::byte*>(scratch[i]);
      prefetch(p);
      prefetch(p + std::min<uint64_t>(offsets[i + 1] - 1, 64));
    };
    for (uint64_t i = begin; i < begin + prefetch_distance; ++i) look_ahead(i);
    for (uint64_t i = begin; i < end; ++i) {
      look_ahead(i + prefetch_distance);
      uint64_t bytes = offsets[i + 1];
      auto* from = reinterpret_cast<const std::byte*>(scratch[i]);
      if (bytes)
        out = copy_value(out, out_end, from, bytes, source_end ? source_end : from + bytes);
      offsets[i + 1] = static_cast<uint64_t>(out - data);
    }
    return Status();
  }));
  result->values = Column::variable(data, offsets, n);
  return {};
}

}  // namespace stride
