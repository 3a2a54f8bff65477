#include "engine/read/lookup.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "engine/read/cold_read.h"
#include "engine/read/row_tasks.h"
#include "engine/read/row_writer.h"
#include "storage/prefetch.h"
#include "storage/stream_store.h"

namespace stride {
namespace {

constexpr uint64_t prefetch_distance = 24;

// What a gather needs of a segment, in one small struct.
struct Source {
  const IndexedSegment* segment;
  ValueRows values;
  const uint8_t* kinds;
  bool guarded;
};

// What tells where a row's value is, and whether it is a tombstone.
void prefetch_place(const Source& source, uint32_t rank) {
  const PackedColumn& v = source.values.column;
  if (source.values.shared()) {
    auto* numbers = static_cast<const std::byte*>(source.values.numbers);
    prefetch(numbers + uint64_t{rank} * source.values.number_width);
  } else if (!v.fixed) {
    auto* deltas = static_cast<const std::byte*>(v.offsets.deltas);
    prefetch(deltas + uint64_t{rank} * v.offsets.delta_width);
    prefetch(v.offsets.bases + (rank >> PackedOffsets::group_bits));
  }
  if (source.kinds) prefetch(source.kinds + rank);
}

// For so few keys a loop of single lookups is faster than to set up a batch.
constexpr uint64_t few_queries = 4;

// Calls put(first + i, value) for each of the locations where something was found, absent(first +
// i) for the others.
template <class Put, class Absent>
Status resolve(std::span<const Source> sources, uint64_t first, std::span<const Location> locations,
               const Put& put, const Absent& absent) {
  auto look_ahead = [&](uint64_t i) {
    if (i >= locations.size()) return;
    if (Location at = locations[i]; at.found()) prefetch_place(sources[at.index], at.rank);
  };
  for (uint64_t i = 0; i < prefetch_distance; ++i) look_ahead(i);
  for (uint64_t i = 0; i < locations.size(); ++i) {
    look_ahead(i + prefetch_distance);
    Location at = locations[i];
    if (!at.found()) {
      absent(first + i);
      continue;
    }
    const Source& source = sources[at.index];
    if (source.guarded) STRIDE_TRY(source.segment->ensure_rows(at.rank, at.rank + 1));
    if (source.kinds && source.segment->kind(at.rank) == EntryKind::tombstone) {
      absent(first + i);
    } else {
      put(first + i, at, source.values[at.rank]);
    }
  }
  return {};
}

// Queries that the host can read.
class HostQueries {
 public:
  explicit HostQueries(const KeyColumn& queries) : column_(queries) {}
  const KeyColumn& column() const { return column_; }

  // Brings them from a device, where they lie there.
  Status bring(Backend& device) {
    const void* p = column_.is_fixed() ? static_cast<const void*>(column_.data) : column_.offsets;
    if (column_.size == 0 || !device.is_on_device(p)) return {};
    uint64_t first = 0, end = column_.size * column_.width;
    if (!column_.is_fixed()) {
      offsets_.resize(column_.size + 1);
      STRIDE_TRY(device.copy(offsets_.data(), column_.offsets, offsets_.size() * 8));
      column_.offsets = offsets_.data();
      first = offsets_.front();
      end = offsets_.back();
    }
    bytes_.resize(end - first);
    STRIDE_TRY(device.copy(bytes_.data(), column_.data + first, bytes_.size()));
    column_.data = bytes_.data() - first;
    return {};
  }

 private:
  KeyColumn column_;
  std::vector<std::byte> bytes_;
  std::vector<uint64_t> offsets_;
};

// A batch on its way through the segments of a table.
class Search {
 public:
  Search(Executor& executor, const SegmentList& segments, uint64_t queries)
      : executor_(executor),
        segments_(segments),
        cold_(segments_of(segments), {.queries = queries}) {}

  // queries: brought to the host where the device does not take them there.
  Status prepare(HostQueries* queries) {
    for (const auto& s : segments_) STRIDE_TRY(s->prepare());
    batch_ = executor_.batch(segments_, queries->column().size);
    for (size_t i = 0; i < segments_.size(); ++i) {
      const IndexedSegment& s = *segments_[i];
      sources_.push_back({&s, s.values(), s.kinds(), batch_.indexes()[i].guard != nullptr});
    }
    if (!batch_.all_on_device()) {
      if (auto device = executor_.device_if_known()) STRIDE_TRY(queries->bring(*device));
      STRIDE_TRY(cold_.prefetch_search(queries->column().size));
    }
    return {};
  }

  // Hands over where the newest entry of every query lies. What a device fails to do the host does
  // again from the start.
  Status locate(HostQueries* queries, const TakeLocations& take) {
    if (batch_.any_on_device()) {
      Status status = batch_.all_on_device() ? batch_.device().tree_index().find_blocks(
                                                   batch_.indexes(), queries->column(), take)
                                             : locate_mixed(queries->column(), take);
      if (!executor_.failed(status)) return status;
      STRIDE_TRY(leave_device(queries));
    }
    return host().tree_index().find_blocks(batch_.indexes(), queries->column(), take);
  }

  // After a failure of the device.
  Status leave_device(HostQueries* queries) {
    if (batch_.all_on_device()) STRIDE_TRY(queries->bring(batch_.device()));
    batch_.leave_device();
    return {};
  }

  Backend& host() const { return *executor_.host(); }
  const Executor::Batch& batch() const { return batch_; }
  std::span<const Source> sources() const { return sources_; }
  ColdReader& cold() { return cold_; }
  // The width of all values; 0: they differ, are shared, or there are none.
  uint64_t value_width() const {
    uint64_t width = sources_.empty() ? 0 : sources_[0].values.column.width;
    for (const Source& s : sources_)
      if (s.values.shared() || !s.values.column.fixed || s.values.column.width != width) return 0;
    return width;
  }
  // Neither checksums nor tombstones are in the way of a row.
  bool is_plain() const {
    return std::none_of(sources_.begin(), sources_.end(),
                        [](const Source& s) { return s.guarded || s.kinds; });
  }

 private:
  static std::vector<const Segment*> segments_of(const SegmentList& segments) {
    std::vector<const Segment*> list;
    for (const auto& s : segments) list.push_back(&s->segment());
    return list;
  }

  // The device searches what it has and the host what is left; the newer of two entries wins.
  Status locate_mixed(const KeyColumn& queries, const TakeLocations& take) {
    std::vector<IndexView> parts[2];  // of the host, of the device
    std::vector<uint32_t> numbers[2];
    for (uint32_t i = 0; i < batch_.indexes().size(); ++i) {
      const IndexView& index = batch_.indexes()[i];
      parts[index.resident != nullptr].push_back(index);
      numbers[index.resident != nullptr].push_back(i);
    }
    BulkVector<Location> there(queries.size);
    STRIDE_TRY(batch_.device().tree_index().find_blocks(
        parts[1], queries, [&](uint64_t first, std::span<const Location> locations) {
          for (uint64_t i = 0; i < locations.size(); ++i) {
            Location at = locations[i];
            if (at.found()) at.index = numbers[1][at.index];
            there[first + i] = at;
          }
          return Status();
        }));
    return host().tree_index().find_blocks(
        parts[0], queries, [&](uint64_t first, std::span<const Location> locations) {
          for (uint64_t i = 0; i < locations.size(); ++i) {
            Location here = locations[i];
            if (!here.found()) continue;
            here.index = numbers[0][here.index];
            if (here.index < there[first + i].index) there[first + i] = here;
          }
          return take(first, {&there[first], locations.size()});
        });
  }

  Executor& executor_;
  const SegmentList& segments_;
  ColdReader cold_;
  Executor::Batch batch_;
  std::vector<Source> sources_;
};

// Puts a block of locations where it belongs, and what was found into the bitmap.
void put_block(uint64_t first, std::span<const Location> block, Location* locations,
               uint64_t total_bytes, std::span<uint64_t> found) {
  copy_result(locations + first, block.data(), block.size_bytes(), total_bytes);
  set_bits(found, first, block.size(), [&](uint64_t i) { return block[i].found(); });
}

void prefetch_value(const std::byte* value, uint64_t bytes) {
  prefetch(value);
  if (bytes > 1) prefetch(value + std::min<uint64_t>(bytes - 1, 64));
}

}  // namespace

// Where a key's newest entry lies, if it is no tombstone.
static Status locate_one(const SegmentList& segments, Bytes key, Location* out) {
  *out = {Location::absent, Location::absent};
  for (uint32_t i = 0; i < segments.size(); ++i) {
    const IndexedSegment& s = *segments[i];
    if (segments.size() > 1 && s.is_outside(key)) continue;
    STRIDE_TRY(s.prepare());
    uint32_t rank;
    STRIDE_TRY(find_one(s.index(), key, &rank));
    if (rank == Location::absent) continue;
    bool tombstone;
    STRIDE_TRY(s.is_tombstone(rank, &tombstone));
    if (!tombstone) *out = {i, rank};
    return {};
  }
  return {};
}

Result<std::optional<Bytes>> lookup_one(const SegmentList& segments, Bytes key) {
  Location at;
  STRIDE_TRY(locate_one(segments, key, &at));
  if (!at.found()) return std::optional<Bytes>();
  Bytes value;
  STRIDE_TRY(segments[at.index]->value(at.rank, &value));
  return std::optional<Bytes>(value);
}

namespace {

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

Status lookup_references(Executor& executor, const SegmentList& segments, const KeyColumn& given,
                         FindResult* result) {
  uint64_t n = given.size;
  result->found.reset(n);
  result->locations.reset(n);
  result->columns.clear();
  for (const auto& s : segments) result->columns.push_back(s->values());
  HostQueries queries(given);
  if (n <= few_queries) {
    if (auto device = executor.device_if_known()) STRIDE_TRY(queries.bring(*device));
    return find_few(segments, queries.column(), result);
  }
  Search search(executor, segments, n);
  STRIDE_TRY(search.prepare(&queries));
  Location* locations = result->locations.data();
  auto settle = [&](uint64_t first, std::span<const Location> found) {
    return resolve(
        search.sources(), first, found, [&](uint64_t i, Location at, Bytes) { locations[i] = at; },
        [&](uint64_t i) {
          locations[i] = {Location::absent, Location::absent};
        });
  };
  bool settled = search.is_plain();
  STRIDE_TRY(search.locate(&queries, [&](uint64_t first, std::span<const Location> block) {
    if (settled) {
      put_block(first, block, locations, n * sizeof(Location), result->found.words());
    } else {
      std::memcpy(locations + first, block.data(), block.size_bytes());
    }
    return Status();
  }));
  for (uint64_t begin = 0, end; begin < n && !settled; begin = end) {
    STRIDE_TRY(search.cold().prefetch_places({locations, n}, begin, &end));
    Status s = for_each_task(search.host(), begin, end, [&](uint64_t from, uint64_t to) {
      Status of_task = settle(from, {locations + from, to - from});
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
  uint64_t* offsets = result->offsets.data();
  offsets[0] = 0;
  for (uint64_t i = 0; i < queries.size; ++i) {
    auto value = lookup_one(segments, queries[i]);
    if (!value.ok()) return value.status();
    if (*value) {
      values[i] = **value;
      result->found.set(i);
    }
    offsets[i + 1] = offsets[i] + values[i].size();
  }
  result->data.reset(offsets[queries.size]);
  for (uint64_t i = 0; i < queries.size; ++i)
    if (!values[i].empty())
      std::memcpy(result->data.data() + offsets[i], values[i].data(), values[i].size());
  result->values = Column::variable(result->data.data(), offsets, queries.size);
  return {};
}

// The values are on the device, and gathered there.
Status copy_from_device(Search& search, const KeyColumn& queries, GetResult* result) {
  auto values = search.batch().device().tree_index().find_values(
      search.batch().indexes(), queries, result->found.words(),
      {result->offsets.data(), result->offsets.size()});
  if (!values.ok()) return values.status();
  result->data.reset((*values)->bytes());
  STRIDE_TRY((*values)->copy(result->data.data()));
  result->values = Column::variable(result->data.data(), result->offsets.data(), queries.size);
  return {};
}

}  // namespace

namespace {

// All values have one width, and nothing has to be looked at but the bitmap to know where each
// goes.
Status copy_fixed(Search& search, HostQueries* queries, uint64_t width, GetResult* result) {
  uint64_t n = queries->column().size;
  result->scratch.reset(n);
  auto* locations = reinterpret_cast<Location*>(result->scratch.data());
  std::span<uint64_t> found = result->found.words();
  STRIDE_TRY(search.locate(queries, [&](uint64_t first, std::span<const Location> block) {
    put_block(first, block, locations, /*total_bytes=*/0, found);  // they are read at once
    return Status();
  }));
  static_assert(rows_per_task % 64 == 0);
  std::vector<uint64_t> starts;  // of each task, in values
  uint64_t count = 0;
  for (uint64_t word = 0; word < found.size(); ++word) {
    if (word % (rows_per_task / 64) == 0) starts.push_back(count);
    count += static_cast<uint64_t>(std::popcount(found[word]));
  }
  result->data.reset(count * width);
  std::byte* data = result->data.data();
  uint64_t* offsets = result->offsets.data();
  offsets[0] = 0;
  result->values = Column::variable(data, offsets, n);
  return for_each_task(search.host(), 0, n, [&](uint64_t begin, uint64_t end) {
    uint64_t at = starts[begin / rows_per_task] * width;
    RowWriter out(data + at, count * width > cached_bytes);
    auto value = [&](Location location) {
      return search.sources()[location.index].values.column.data + location.rank * width;
    };
    auto look_ahead = [&](uint64_t i) {
      if (i < end && locations[i].found()) prefetch_value(value(locations[i]), width);
    };
    for (uint64_t i = begin; i < begin + prefetch_distance; ++i) look_ahead(i);
    for (uint64_t i = begin; i < end; ++i) {
      look_ahead(i + prefetch_distance);
      if (locations[i].found()) {
        out.add(value(locations[i]), width);
        at += width;
      }
      offsets[i + 1] = at;
    }
    return Status();
  });
}

}  // namespace

// Two passes: first where each value lies and how long it is, then, once it is known where each
// goes, the copies. Between them only 16 bytes a query are kept.
Status lookup_copies(Executor& executor, const SegmentList& segments, const KeyColumn& given,
                     GetResult* result) {
  uint64_t n = given.size;
  result->found.reset(n);
  result->offsets.reset(n + 1);
  HostQueries queries(given);
  if (n <= few_queries) {
    if (auto device = executor.device_if_known()) STRIDE_TRY(queries.bring(*device));
    return copy_few(segments, queries.column(), result);
  }

  Search search(executor, segments, n);
  STRIDE_TRY(search.prepare(&queries));
  if (search.batch().all_values_on_device()) {
    Status status = copy_from_device(search, queries.column(), result);
    if (!executor.failed(status)) return status;
    result->found.reset(n);
    STRIDE_TRY(search.leave_device(&queries));
  }
  ColdReader& cold = search.cold();
  if (uint64_t width = search.value_width(); width > 0 && cold.idle() && search.is_plain())
    return copy_fixed(search, &queries, width, result);
  result->scratch.reset(n);
  uint64_t* offsets = result->offsets.data();
  uint64_t* scratch = result->scratch.data();
  std::vector<uint64_t> starts((n + rows_per_task - 1) / rows_per_task + 1);

  // May be called again with the same locations: nothing adds up here.
  auto measure = [&](uint64_t first, std::span<const Location> locations) -> Status {
    // An empty value is never read; any address but null marks it as found.
    STRIDE_TRY(resolve(
        search.sources(), first, locations,
        [&](uint64_t i, Location, Bytes value) {
          scratch[i] = value.empty() ? 1 : reinterpret_cast<uint64_t>(value.data());
          offsets[i + 1] = value.size();
        },
        [&](uint64_t i) { scratch[i] = offsets[i + 1] = 0; }));
    set_bits(result->found.words(), first, locations.size(),
             [&](uint64_t i) { return scratch[first + i] != 0; });
    return {};
  };
  if (cold.idle()) {
    STRIDE_TRY(search.locate(&queries, measure));
  } else {
    // The places of all are known before the first is read, so that they can be read in order.
    static_assert(sizeof(Location) == sizeof(uint64_t));
    auto* locations = reinterpret_cast<Location*>(scratch);
    STRIDE_TRY(search.locate(&queries, [&](uint64_t first, std::span<const Location> found) {
      std::memcpy(locations + first, found.data(), found.size_bytes());
      return Status();
    }));
    for (uint64_t begin = 0, end; begin < n; begin = end) {
      STRIDE_TRY(cold.prefetch_places({locations, n}, begin, &end));
      STRIDE_TRY(for_each_task(search.host(), begin, end, [&](uint64_t from, uint64_t to) {
        return measure(from, {locations + from, to - from});
      }));
    }
  }
  STRIDE_TRY(for_each_task(search.host(), 0, n, [&](uint64_t begin, uint64_t end) {
    starts[begin / rows_per_task] =
        std::accumulate(offsets + begin + 1, offsets + end + 1, uint64_t{0});
    return Status();
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
  auto copy = [&](uint64_t begin, uint64_t end) -> Status {
    uint64_t at = starts[begin / rows_per_task];
    RowWriter out(data + at, total > cached_bytes);
    auto look_ahead = [&](uint64_t i) {
      if (i >= end || offsets[i + 1] == 0) return;
      prefetch_value(reinterpret_cast<const std::byte*>(scratch[i]), offsets[i + 1]);
    };
    for (uint64_t i = begin; i < begin + prefetch_distance; ++i) look_ahead(i);
    for (uint64_t i = begin; i < end; ++i) {
      look_ahead(i + prefetch_distance);
      uint64_t bytes = offsets[i + 1];
      if (bytes) out.add(reinterpret_cast<const std::byte*>(scratch[i]), bytes);
      offsets[i + 1] = at += bytes;
    }
    return {};
  };
  auto value = [&](uint64_t i) {
    return Bytes{reinterpret_cast<const std::byte*>(scratch[i]), offsets[i + 1]};
  };
  for (uint64_t begin = 0, end; begin < n; begin = end) {
    STRIDE_TRY(cold.prefetch_values(begin, n, value, &end));
    STRIDE_TRY(for_each_task(search.host(), begin, end, copy));
  }
  result->values = Column::variable(data, offsets, n);
  return {};
}

Result<std::shared_ptr<Backend>> device_that_holds(Executor& executor, const KeyColumn& queries,
                                                   const void* out) {
  auto device = executor.device();
  if (!device)
    return Status(StatusCode::unavailable, "there is no device, or it has failed")
        .with_remedy("use find() or get(), or reopen the database where there is a device");
  const void* source =
      queries.is_fixed() ? static_cast<const void*>(queries.data) : queries.offsets;
  if (queries.size > 0 && !(device->is_on_device(source) && device->is_on_device(out)))
    return Status::invalid("queries or results are not in the memory of " + device->name())
        .with_remedy("copy them there, or use find() or get()");
  return device;
}

namespace {

// Calls work(device, indexes) with all segments on the device. out: where results go.
template <class Work>
Status with_all_on_device(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                          const void* out, bool values, const Work& work) {
  auto found = device_that_holds(executor, queries, out);
  if (!found.ok()) return found.status();
  Backend& device = **found;
  for (const auto& s : segments) STRIDE_TRY(s->prepare());
  Executor::Batch batch = executor.batch(segments, queries.size, /*insist=*/true);
  bool there = segments.empty() || (values ? batch.all_values_on_device() : batch.all_on_device());
  if (!there)
    return Status(StatusCode::unavailable, values ? "the table's values are not all on the device"
                                                  : "the table is not all on the device")
        .with_remedy(values ? "set value_placement to device and raise gpu_memory_limit_bytes, or "
                              "use get(), as for a table with share_equal_values"
                            : "raise gpu_memory_limit_bytes, or use find()");
  Status status = work(device, batch.indexes());
  (void)executor.failed(status);
  return status;
}

}  // namespace

Status find_on_device(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                      Location* out, void* stream) {
  return with_all_on_device(executor, segments, queries, out, /*values=*/false,
                            [&](Backend& device, std::span<const IndexView> indexes) {
                              return device.tree_index().find_on_device(indexes, queries, out,
                                                                        stream);
                            });
}

Status get_on_device(Executor& executor, const SegmentList& segments, const KeyColumn& queries,
                     const DeviceValues& out, void* stream) {
  return with_all_on_device(executor, segments, queries, out.offsets, /*values=*/true,
                            [&](Backend& device, std::span<const IndexView> indexes) {
                              return device.tree_index().get_on_device(indexes, queries, out,
                                                                       stream);
                            });
}

}  // namespace stride
