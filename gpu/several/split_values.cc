#include "gpu/several/split_values.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/device/spread_memory.h"
#include "gpu/several/range_split.h"
#include "gpu/several/split_rooms.h"
#include "storage/first_failure.h"
#include "storage/work_watch.h"

namespace stride {

namespace {

constexpr uint64_t max_chunk_bytes = uint64_t{1} << 28;  // of values
constexpr uint64_t min_chunk_rows = 1 << 16;
constexpr uint64_t max_chunk_rows = 1 << 23;  // whose keys and places take some 20 bytes a row

// What the chunks of a lane use, one after the other.
struct ValueRooms {
  explicit ValueRooms(size_t parts) : part_keys(parts), part_places(parts) {}

  ChunkRoom keys, rows, split;                    // of the chunk
  std::vector<ChunkRoom> part_keys, part_places;  // of each part, on its device
};

// A device's share of a batch.
class ShareOfValues {
 public:
  // all_reach: memory of the results is such that all devices write to it.
  ShareOfValues(DeviceSet& devices, const PartitionedIndex& index, uint32_t width, bool all_reach,
                size_t device)
      : devices_(devices), index_(index), width_(width), all_reach_(all_reach), device_(device) {}

  Status run(const KeyColumn& queries, const DeviceValues& out) {
    return run_chunks<ValueRooms>(devices_, queries.size, chunk_rows(), index_.parts().size(),
                                  [&](Share chunk, ValueRooms* rooms) {
                                    return run_chunk(queries.slice(chunk.first, chunk.count),
                                                     out.from(chunk.first), rooms);
                                  });
  }

  // What a device of a part has failed with.
  FirstFailure& of_parts() { return of_parts_; }

 private:
  ChunkRows chunk_rows() const {
    return {min_chunk_rows, std::clamp(max_chunk_bytes / width_, min_chunk_rows, max_chunk_rows)};
  }

  // Values go to memory of this device in the order of the queries, and then to the results.
  Status run_chunk(KeyColumn queries, const DeviceValues& out, ValueRooms* rooms) {
    Backend& home = devices_[device_];
    auto brought = bring(devices_, device_, queries.data, queries.bytes(), &rooms->keys);
    if (!brought.ok()) return brought.status();
    queries.data = *brought;
    auto split = split_by_range(*home.cuda_device(), queries, index_.first_keys(), SplitFor::rows,
                                {&devices_.rooms(device_), &rooms->split});
    if (!split.ok()) return split.status();
    DeviceValues rows = out;
    const uint64_t value_bytes = queries.size * width_;
    if (!all_reach_) {
      STRIDE_TRY(rooms->rows.make(devices_.rooms(device_), value_bytes + queries.size));
      rows.values = rooms->rows.data();
      if (out.there) rows.there = reinterpret_cast<uint8_t*>(rows.values + value_bytes);
    }
    STRIDE_TRY(devices_.run_each(index_.parts().size(), [&](uint64_t i) {
      return get_range(i, (*split)->keys(i), (*split)->places(i), rows, rooms);
    }));
    if (all_reach_) return {};
    STRIDE_TRY(home.copy(out.values, rows.values, value_bytes));
    return out.there ? home.copy(out.there, rows.there, queries.size) : Status();
  }

  Status get_range(size_t number, const KeyColumn& queries, const uint32_t* places,
                   const DeviceValues& out, ValueRooms* rooms) {
    if (queries.size == 0) return {};
    const PartitionedIndex::Part& part = index_.parts()[number];
    Status status(StatusCode::unavailable, "values lie on a device that has failed");
    if (devices_.works(part.device)) {
      status =
          get(part, queries, places, out, &rooms->part_keys[number], &rooms->part_places[number]);
      if (!is_loss(status)) return status;
      devices_.lose(part.device, status);
    }
    // It is not the failure of the device that has the share.
    of_parts_.report(std::move(status).with_remedy("use get(), which reads them from the host"));
    return WorkWatch::cancelled();
  }

  // The device of the part searches in memory of its own, and writes values where they belong.
  Status get(const PartitionedIndex::Part& part, KeyColumn queries, const uint32_t* places,
             DeviceValues out, ChunkRoom* keys_there, ChunkRoom* places_there) {
    Backend& there = devices_[part.device];
    out.places = places;
    if (part.device != device_) {
      const uint64_t place_bytes = queries.size * sizeof *places;
      STRIDE_TRY(keys_there->make(devices_.rooms(part.device), queries.bytes()));
      STRIDE_TRY(places_there->make(devices_.rooms(part.device), place_bytes));
      STRIDE_TRY(there.copy(keys_there->data(), queries.data, queries.bytes()));
      STRIDE_TRY(there.copy(places_there->data(), places, place_bytes));
      queries = KeyColumn::fixed(keys_there->data(), queries.width, queries.size);
      out.places = reinterpret_cast<const uint32_t*>(places_there->data());
    }
    IndexView index = part.index->view();
    index.resident = part.index.get();
    return there.tree_index().get_on_device({&index, 1}, queries, out, nullptr);
  }

  DeviceSet& devices_;
  const PartitionedIndex& index_;
  const uint32_t width_;
  const bool all_reach_;
  const size_t device_;
  FirstFailure of_parts_;
};

}  // namespace

Status get_split(DeviceSet& devices, const IndexView& index, const KeyColumn& queries,
                 const DeviceValues& out) {
  const PartitionedIndex& parts = parts_of(index);
  std::vector<CudaDevice*> with_parts;
  for (const PartitionedIndex::Part& part : parts.parts())
    with_parts.push_back(devices[part.device].cuda_device());
  const Result<bool> reach = all_reach_each_other(with_parts);
  if (!reach.ok()) return reach.status();
  if (!*reach)
    return Status(StatusCode::unavailable, "there is no way between the memories of two devices")
        .with_remedy("use get(), whose results lie in host memory");
  // Memory that is spread over the devices is one that all of them write to.
  auto is_spread = [&](const void* p) {
    return devices.home_of(p) != no_device_number && !devices.is_on_one(p);
  };
  const bool all_spread = is_spread(out.values) && (!out.there || is_spread(out.there));
  const SharedBatch batch{.size = queries.size,
                          .home = devices.home_of(queries),
                          .has = [&](size_t device) { return devices[device].cuda_device(); }};
  FirstFailure of_parts;
  Status status = devices.run(batch, [&](size_t device, Share share) {
    ShareOfValues here(devices, parts, out.width, all_spread, device);
    Status done = here.run(queries.slice(share.first, share.count), out.from(share.first));
    if (here.of_parts().failed()) of_parts.report(here.of_parts().status());
    return done;
  });
  return of_parts.failed() ? of_parts.status() : status;
}

}  // namespace stride
