#include "engine/read/lookup.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "engine/read/batch_search.h"
#include "engine/read/fixed_copy.h"
#include "engine/read/fixed_rows.h"
#include "engine/read/result_writer.h"
#include "engine/read/row_tasks.h"
#include "storage/key_filter.h"
#include "storage/stream_store.h"

namespace stride {
namespace {

// For so few keys a loop of single lookups is faster than to set up a batch.
constexpr uint64_t few_queries = 4;

// What the filters of segments say of one key. Its hash is made when the first of them is asked.
class FilteredKey {
 public:
  FilteredKey(const SegmentList& segments, Bytes key) : segments_(segments), key_(key) {}

  // Precondition: the segment is prepared.
  bool denied_by(uint32_t segment) {
    const KeyFilter& filter = segments_[segment]->filter();
    if (!filter.is_there()) return false;
    if (prefetched_ == 0) hash_ = hash_key(key_);
    if (filter.may_contain(hash_)) return false;
    prefetch_after(segment);
    return true;
  }

 private:
  // The filters of the next segments, so that their misses overlap.
  void prefetch_after(uint32_t segment) {
    constexpr uint32_t ahead = 8;
    const auto last = static_cast<uint32_t>(std::min<size_t>(segments_.size(), segment + ahead));
    for (prefetched_ = std::max(prefetched_, segment + 1); prefetched_ < last; ++prefetched_)
      if (const KeyFilter& next = segments_[prefetched_]->filter(); next.is_there())
        next.prefetch(hash_);
  }

  const SegmentList& segments_;
  const Bytes key_;
  uint64_t hash_ = 0;
  uint32_t prefetched_ = 0;  // those of segments before this one have been
};

// Where a key's newest entry lies, if it is no tombstone and not erased.
Status locate_one(const SegmentList& segments, Bytes key, Location* out) {
  *out = {Location::absent, Location::absent};
  FilteredKey filtered(segments, key);
  for (uint32_t i = 0; i < segments.size(); ++i) {
    const IndexedSegment& s = *segments[i];
    if (segments.size() > 1 && s.is_outside(key)) continue;
    STRIDE_TRY(s.prepare());
    if (filtered.denied_by(i)) continue;
    uint32_t rank;
    STRIDE_TRY(find_one(s.index(), key, &rank));
    if (rank == Location::absent) continue;
    if (s.is_erased(rank)) return {};
    bool tombstone;
    STRIDE_TRY(s.is_tombstone(rank, &tombstone));
    if (!tombstone) *out = {i, rank};
    return {};
  }
  return {};
}

Status find_few(const SegmentList& segments, const KeyColumn& queries, FindResult* result) {
  for (uint64_t i = 0; i < queries.size; ++i) {
    Location& at = result->locations[i];
    STRIDE_TRY(locate_one(segments, queries[i], &at));
    if (!at.found()) continue;
    Bytes checked;
    STRIDE_TRY(segments[at.index]->value(at.rank, &checked));
    result->found.set(i);
  }
  return {};
}

}  // namespace

Result<std::optional<Bytes>> lookup_one(const SegmentList& segments, Bytes key,
                                        const ExpiryCheck& expiry) {
  Location at;
  STRIDE_TRY(locate_one(segments, key, &at));
  if (!at.found()) return std::optional<Bytes>();
  Bytes value;
  STRIDE_TRY(segments[at.index]->value(at.rank, &value));
  if (expiry.hides(value)) return std::optional<Bytes>();
  return std::optional<Bytes>(value);
}

Status lookup_references(Executor& executor, const SegmentList& segments, const KeyColumn& given,
                         FindResult* result) {
  uint64_t n = given.size;
  result->found.reset(n);
  result->locations.reset(n);
  result->columns.clear();
  for (const auto& s : segments) result->columns.push_back(s->values());
  HostQueries queries(given);
  if (n <= few_queries) {
    if (auto device = executor.device_if_known()) STRIDE_TRY(queries.copy_from(*device));
    return find_few(segments, queries.column(), result);
  }
  BatchSearch search(executor, segments, n);
  STRIDE_TRY(search.prepare(&queries));
  Location* locations = result->locations.data();
  auto drop_tombstones = [&](uint64_t first, std::span<const Location> found) {
    return resolve(
        search.sources(), first, found, [&](uint64_t i, Location at, Bytes) { locations[i] = at; },
        [&](uint64_t i) {
          locations[i] = {Location::absent, Location::absent};
        });
  };
  bool plain = search.is_plain();
  STRIDE_TRY(search.locate(&queries, [&](uint64_t first, std::span<const Location> block) {
    if (plain) {
      put_block(first, block, locations, n * sizeof(Location), result->found.words());
    } else {
      std::memcpy(locations + first, block.data(), block.size_bytes());
    }
    return Status();
  }));
  for (uint64_t begin = 0, end; begin < n && !plain; begin = end) {
    STRIDE_TRY(search.cold().prefetch_positions({locations, n}, begin, &end));
    Status s = for_each_task(search.host(), begin, end, [&](uint64_t from, uint64_t to) {
      Status of_task = drop_tombstones(from, {locations + from, to - from});
      if (of_task.ok())
        set_bits(result->found.words(), from, to - from,
                 [&](uint64_t i) { return locations[from + i].found(); });
      return of_task;
    });
    if (!s.ok()) return s;
  }
  return {};
}

namespace {

// The copies of few values, one after the other.
Status copy_few(const SegmentList& segments, const KeyColumn& queries, GetResult* result) {
  Bytes values[few_queries];
  const uint64_t width = result->row_width;
  bool one_width = width != 0;
  uint64_t* offsets = result->offsets.data();
  offsets[0] = 0;
  for (uint64_t i = 0; i < queries.size; ++i) {
    auto value = lookup_one(segments, queries[i]);
    if (!value.ok()) return value.status();
    if (*value) {
      values[i] = **value;
      result->found.set(i);
      one_width &= values[i].size() == width;
    }
    offsets[i + 1] = offsets[i] + values[i].size();
  }
  if (one_width) {
    reset_rows(queries.size, result);
    copy_rows(0, queries.size, result, [&](uint64_t i) { return values[i].data(); });
    return {};
  }
  result->data.reset(offsets[queries.size]);
  for (uint64_t i = 0; i < queries.size; ++i)
    if (!values[i].empty())
      std::memcpy(result->data.data() + offsets[i], values[i].data(), values[i].size());
  result->values = Column::variable(result->data.data(), offsets, queries.size);
  return {};
}

// Values of the wanted width lie one after the other at the end of the data, and go to their rows.
// No row lies behind its value, so that none is written over before it has been moved.
void spread_rows(GetResult* result) {
  const uint64_t width = result->row_width, rows = result->values.size;
  const uint64_t count = result->found.count();
  if (count == rows) return;
  const std::byte* value = result->data.data() + (rows - count) * width;
  for (uint64_t i = 0; i < rows; ++i) {
    std::byte* row = result->data.data() + i * width;
    if (!result->found[i]) {
      std::memset(row, 0, width);
      continue;
    }
    std::memmove(row, value, width);
    value += width;
  }
}

// The values are on the device, and gathered there.
Status copy_from_device(BatchSearch& search, const KeyColumn& queries, GetResult* result) {
  uint64_t* const offsets = result->offsets.data();
  offsets[0] = 0;
  auto values = search.batch().device().tree_index().find_values(
      search.batch().indexes(), queries, result->found.words(), {offsets + 1, queries.size});
  if (!values.ok()) return values.status();
  if (result->row_width != 0 && (*values)->have_width(result->row_width)) {
    const uint64_t bytes = (*values)->bytes();
    reset_rows(queries.size, result);
    STRIDE_TRY((*values)->copy(result->data.data() + result->data.size() - bytes));
    spread_rows(result);
    return {};
  }
  result->data.reset((*values)->bytes());
  STRIDE_TRY((*values)->copy(result->data.data()));
  result->values = Column::variable(result->data.data(), result->offsets.data(), queries.size);
  return {};
}

// All values have the width that is wanted, and the host searches: they go to their places as soon
// as they are found.
Status copy_wanted(BatchSearch& search, HostQueries* queries, GetResult* result) {
  reset_rows(queries->column().size, result);
  return search.locate(queries, [&](uint64_t first, std::span<const Location> block) {
    set_bits(result->found.words(), first, block.size(),
             [&](uint64_t i) { return block[i].found(); });
    copy_rows(first, first + block.size(), result, [&](uint64_t i) -> const std::byte* {
      const Location at = block[i - first];
      if (!at.found()) return nullptr;
      return search.sources()[at.index].values.column.data + at.rank * uint64_t{result->row_width};
    });
    return Status();
  });
}

// Copies the values of a batch in two passes: first it is found out where each value lies and how
// long it is, then, once it is known where each goes, they are copied. Between the passes 16 bytes
// a query are kept.
class CopyPasses {
 public:
  CopyPasses(BatchSearch& search, uint64_t queries, GetResult* result)
      : search_(search),
        n_(queries),
        result_(*result),
        starts_((queries + rows_per_task - 1) / rows_per_task + 1) {
    result_.scratch.reset(n_);
    addresses_ = result_.scratch.data();
    offsets_ = result_.offsets.data();
  }

  Status run(HostQueries* queries) {
    STRIDE_TRY(search_.cold().idle() ? measure_all(queries) : measure_cold(queries));
    uint64_t total = 0;
    STRIDE_TRY(find_starts(&total));
    if (one_width_) {
      reset_rows(n_, &result_);
      return copy_all(result_.data.size());
    }
    result_.data.reset(total);
    result_.values = Column::variable(result_.data.data(), offsets_, n_);
    return copy_all(total);
  }

 private:
  // Sets the address of each value and, in offsets_[i + 1], its length. It may be called again with
  // the same locations: nothing adds up here.
  Status measure(uint64_t first, std::span<const Location> locations) {
    // An empty value is never read; any address but null marks it as found.
    STRIDE_TRY(resolve(
        search_.sources(), first, locations,
        [&](uint64_t i, Location, Bytes value) {
          addresses_[i] = value.empty() ? 1 : reinterpret_cast<uint64_t>(value.data());
          offsets_[i + 1] = value.size();
        },
        [&](uint64_t i) { addresses_[i] = offsets_[i + 1] = 0; }));
    set_bits(result_.found.words(), first, locations.size(),
             [&](uint64_t i) { return addresses_[first + i] != 0; });
    return {};
  }

  Status measure_all(HostQueries* queries) {
    return search_.locate(queries, [&](uint64_t first, std::span<const Location> locations) {
      return measure(first, locations);
    });
  }

  // All locations are known before the first is read, so that they can be read in order.
  Status measure_cold(HostQueries* queries) {
    static_assert(sizeof(Location) == sizeof(uint64_t));
    auto* locations = reinterpret_cast<Location*>(addresses_);
    STRIDE_TRY(search_.locate(queries, [&](uint64_t first, std::span<const Location> found) {
      std::memcpy(locations + first, found.data(), found.size_bytes());
      return Status();
    }));
    for (uint64_t begin = 0, end; begin < n_; begin = end) {
      STRIDE_TRY(search_.cold().prefetch_positions({locations, n_}, begin, &end));
      STRIDE_TRY(for_each_task(search_.host(), begin, end, [&](uint64_t from, uint64_t to) {
        return measure(from, {locations + from, to - from});
      }));
    }
    return {};
  }

  // Where the values of each task begin in the result, and whether all have the width that is
  // wanted.
  Status find_starts(uint64_t* total) {
    const uint64_t width = result_.row_width;
    std::atomic<bool> one_width = width != 0;
    STRIDE_TRY(for_each_task(search_.host(), 0, n_, [&](uint64_t begin, uint64_t end) {
      uint64_t bytes = 0;
      bool equal = true;
      for (uint64_t i = begin; i < end; ++i) {
        bytes += offsets_[i + 1];
        equal &= offsets_[i + 1] == width || addresses_[i] == 0;
      }
      starts_[begin / rows_per_task] = bytes;
      if (!equal) one_width.store(false, std::memory_order_relaxed);
      return Status();
    }));
    one_width_ = one_width;
    std::exclusive_scan(starts_.begin(), starts_.end(), starts_.begin(), uint64_t{0});
    *total = starts_.back();  // the last one is of no task
    return {};
  }

  Status copy_all(uint64_t total) {
    offsets_[0] = 0;
    auto value = [&](uint64_t i) {
      return Bytes{reinterpret_cast<const std::byte*>(addresses_[i]), offsets_[i + 1]};
    };
    for (uint64_t begin = 0, end; begin < n_; begin = end) {
      STRIDE_TRY(search_.cold().prefetch_values(begin, n_, value, &end));
      STRIDE_TRY(for_each_task(search_.host(), begin, end, [&](uint64_t from, uint64_t to) {
        if (one_width_)
          copy_rows(from, to, &result_, [&](uint64_t i) { return value(i).data(); });
        else
          copy(from, to, total > cached_bytes);
        return Status();
      }));
    }
    return {};
  }

  // The values of one task; their lengths become offsets.
  void copy(uint64_t begin, uint64_t end, bool past_caches) {
    const uint64_t* const addresses = addresses_;
    uint64_t* const offsets = offsets_;
    uint64_t at = starts_[begin / rows_per_task];
    ResultWriter out(result_.data.data() + at, past_caches);
    auto look_ahead = [&](uint64_t i) {
      if (i >= end || offsets[i + 1] == 0) return;
      prefetch_row(reinterpret_cast<const std::byte*>(addresses[i]), offsets[i + 1]);
    };
    for (uint64_t i = begin; i < begin + copies_ahead; ++i) look_ahead(i);
    for (uint64_t i = begin; i < end; ++i) {
      look_ahead(i + copies_ahead);
      uint64_t bytes = offsets[i + 1];
      if (bytes) out.add(reinterpret_cast<const std::byte*>(addresses[i]), bytes);
      offsets[i + 1] = at += bytes;
    }
  }

  BatchSearch& search_;
  const uint64_t n_;
  GetResult& result_;
  std::vector<uint64_t> starts_;  // of each task
  uint64_t* addresses_;           // of each value; 0: not found
  uint64_t* offsets_;
  bool one_width_ = false;  // the one that is wanted
};

}  // namespace

Status lookup_copies(Executor& executor, const SegmentList& segments, const KeyColumn& given,
                     GetResult* result) {
  uint64_t n = given.size;
  result->found.reset(n);
  result->offsets.reset(n + 1);
  HostQueries queries(given);
  if (n <= few_queries) {
    if (auto device = executor.device_if_known()) STRIDE_TRY(queries.copy_from(*device));
    return copy_few(segments, queries.column(), result);
  }
  BatchSearch search(executor, segments, n);
  STRIDE_TRY(search.prepare(&queries));
  if (search.batch().all_values_on_device()) {
    Status status = copy_from_device(search, queries.column(), result);
    if (status.ok()) executor.count_device_keys(n);
    if (!executor.failed(status)) return status;
    result->found.reset(n);
    STRIDE_TRY(search.leave_device(&queries));
  }
  if (uint64_t width = search.value_width();
      width > 0 && search.cold().idle() && search.is_plain()) {
    if (width == result->row_width && !search.batch().any_on_device())
      return copy_wanted(search, &queries, result);
    return copy_fixed(search, &queries, width, result);
  }
  return CopyPasses(search, n, result).run(&queries);
}

}  // namespace stride
