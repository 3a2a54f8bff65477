#include "gpu/several/split_values.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/several/range_split.h"
#include "gpu/several/split_rooms.h"
#include "storage/first_failure.h"
#include "storage/work_watch.h"

namespace stride {

namespace {

constexpr uint64_t max_chunk_bytes = uint64_t{1} << 28;  // of values
constexpr uint64_t chunks_under_way = 3;                 // of a device

// What the chunks of a lane use, one after the other.
struct ValueRooms {
  explicit ValueRooms(size_t parts) : part_keys(parts), part_rows(parts) {}

  ChunkRoom rows;                               // of the chunk, part by part
  std::vector<ChunkRoom> part_keys, part_rows;  // of each part, on its device
};

uint64_t bytes_of_rows(uint64_t rows, uint32_t width) { return rows * (uint64_t{width} + 1); }
DeviceValues rows_in(const ChunkRoom& room, uint64_t rows, uint32_t width) {
  return {.values = room.data(),
          .width = width,
          .there = reinterpret_cast<uint8_t*>(room.data() + rows * width)};
}

// A device's share of a batch.
class ShareOfValues {
 public:
  ShareOfValues(DeviceSet& devices, const PartitionedIndex& index, uint32_t width, size_t device)
      : devices_(devices), parts_(index.parts()), index_(index), width_(width), device_(device) {}

  Status run(const KeyColumn& queries, const DeviceValues& out) {
    const uint64_t chunk = chunk_size(queries.size);
    const uint64_t chunks = (queries.size + chunk - 1) / chunk;
    std::atomic<uint64_t> next{0};
    return devices_.run_each(std::min(chunks_under_way, chunks), [&](uint64_t) -> Status {
      ValueRooms rooms(parts_.size());
      for (uint64_t i; (i = next++) < chunks;) {
        const uint64_t first = i * chunk, count = std::min(chunk, queries.size - first);
        STRIDE_TRY(run_chunk(queries.slice(first, count), out.from(first), &rooms));
      }
      return {};
    });
  }

  // What a device of a part has failed with.
  FirstFailure& of_parts() { return of_parts_; }

 private:
  uint64_t chunk_size(uint64_t queries) const {
    const uint64_t even = (queries + chunks_under_way - 1) / chunks_under_way;
    return std::clamp<uint64_t>(even, uint64_t{1} << 16,
                                std::max<uint64_t>(max_chunk_bytes / width_, uint64_t{1} << 16));
  }

  Status run_chunk(const KeyColumn& queries, const DeviceValues& out, ValueRooms* rooms) {
    Backend& home = devices_[device_];
    auto split = split_by_range(*home.cuda_device(), queries, index_.first_keys());
    if (!split.ok()) return split.status();
    STRIDE_TRY(rooms->rows.make(home, bytes_of_rows(queries.size, width_)));
    const DeviceValues rows = rows_in(rooms->rows, queries.size, width_);
    std::vector<uint64_t> begins(parts_.size());
    for (size_t i = 1; i < begins.size(); ++i)
      begins[i] = begins[i - 1] + (*split)->keys(i - 1).size;
    STRIDE_TRY(devices_.run_each(parts_.size(), [&](uint64_t i) {
      return get_range(i, (*split)->keys(i), rows.from(begins[i]), rooms);
    }));
    return (*split)->put_rows(rows.values, rows.there, width_, out.values, out.there);
  }

  Status get_range(size_t number, const KeyColumn& queries, const DeviceValues& rows,
                   ValueRooms* rooms) {
    if (queries.size == 0) return {};
    const PartitionedIndex::Part& part = parts_[number];
    if (!devices_.works(part.device)) {
      of_parts_.report(Status(StatusCode::unavailable, "values lie on a device that has failed")
                           .with_remedy("use get(), which reads them from the host"));
      return WorkWatch::cancelled();
    }
    Status status =
        part.device == device_
            ? get(part, queries, rows)
            : get_elsewhere(part, queries, rows, &rooms->part_keys[number], &rooms->part_rows[number]);
    if (!is_loss(status)) return status;
    // It is not the failure of the device that has the share.
    devices_.lose(part.device, status);
    of_parts_.report(std::move(status));
    return WorkWatch::cancelled();
  }

  // All of it lies on the device of the part.
  Status get(const PartitionedIndex::Part& part, const KeyColumn& queries, const DeviceValues& rows) {
    IndexView index = part.index->view();
    index.resident = part.index.get();
    return devices_[part.device].tree_index().get_on_device({&index, 1}, queries,
                                                            rows, nullptr);
  }

  // Copies the queries to the device of the part as a whole, and the values back: the link is at its
  // fastest then.
  Status get_elsewhere(const PartitionedIndex::Part& part, const KeyColumn& queries,
                       const DeviceValues& rows, ChunkRoom* keys, ChunkRoom* found) {
    Backend& there = devices_[part.device];
    STRIDE_TRY(keys->make(there, queries.bytes()));
    STRIDE_TRY(found->make(there, bytes_of_rows(queries.size, width_)));
    STRIDE_TRY(there.copy(keys->data(), queries.data, queries.bytes()));
    const DeviceValues gathered = rows_in(*found, queries.size, width_);
    STRIDE_TRY(get(part, KeyColumn::fixed(keys->data(), queries.width, queries.size), gathered));
    STRIDE_TRY(there.copy(rows.values, gathered.values, queries.size * width_));
    return there.copy(rows.there, gathered.there, queries.size);
  }

  DeviceSet& devices_;
  const std::vector<PartitionedIndex::Part>& parts_;
  const PartitionedIndex& index_;
  const uint32_t width_;
  const size_t device_;
  FirstFailure of_parts_;
};

}  // namespace

Status get_split(DeviceSet& devices, const IndexView& index, const KeyColumn& queries,
                 const DeviceValues& out) {
  const SharedBatch batch{.size = queries.size,
                          .home = devices.home_of(queries),
                          .has = [&](size_t device) { return devices[device].cuda_device(); }};
  FirstFailure of_parts;
  Status status = devices.run(batch, [&](size_t device, Share share) {
    ShareOfValues here(devices, parts_of(index), out.width, device);
    Status done = here.run(queries.slice(share.first, share.count), out.from(share.first));
    if (here.of_parts().failed()) of_parts.report(here.of_parts().status());
    return done;
  });
  return of_parts.failed() ? of_parts.status() : status;
}

}  // namespace stride
