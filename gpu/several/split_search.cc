#include "gpu/several/split_search.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/several/range_split.h"
#include "gpu/several/split_rooms.h"
#include "storage/first_failure.h"
#include "storage/work_watch.h"

namespace stride {

namespace {

constexpr ChunkRows searched_together{1 << 18, 1 << 23};

// What the chunks of a lane use, one after the other.
struct LaneRooms {
  explicit LaneRooms(size_t parts) : part_keys(parts), part_ranks(parts) {}

  ChunkRoom keys, ranks, split;                  // of the chunk
  std::vector<ChunkRoom> part_keys, part_ranks;  // of each part, on its device
};

// A device's share of a batch.
class ShareSearch {
 public:
  ShareSearch(DeviceSet& devices, const IndexView& index, RankSearch op, size_t device)
      : devices_(devices), index_(index), parts_(parts_of(index)), op_(op), device_(device) {}

  Status run(const KeyColumn& queries, std::span<uint32_t> out) {
    return run_chunks<LaneRooms>(devices_, queries.size, searched_together, parts_.parts().size(),
                                 [&](Share chunk, LaneRooms* rooms) {
                                   return run_chunk(queries.slice(chunk.first, chunk.count),
                                                    out.subspan(chunk.first, chunk.count), rooms);
                                 });
  }

  // What a device of a part has failed with.
  FirstFailure& of_parts() { return of_parts_; }

 private:
  Status run_chunk(KeyColumn queries, std::span<uint32_t> out, LaneRooms* rooms) {
    Backend& home = devices_[device_];
    auto brought = bring(devices_, device_, queries.data, queries.bytes(), &rooms->keys);
    if (!brought.ok()) return brought.status();
    queries.data = *brought;
    auto split = split_by_range(*home.cuda_device(), queries, parts_.first_keys(), SplitFor::ranks,
                                {&devices_.rooms(device_), &rooms->split});
    if (!split.ok()) return split.status();
    std::vector<uint32_t> first_ranks(parts_.parts().size());
    STRIDE_TRY(devices_.run_each(first_ranks.size(), [&](uint64_t i) {
      return search_range(i, (*split)->keys(i), (*split)->ranks(i), rooms, &first_ranks[i]);
    }));
    if (home.is_on_device(out.data())) return (*split)->put_ranks(first_ranks, out.data());
    STRIDE_TRY(rooms->ranks.make(devices_.rooms(device_), out.size_bytes()));
    STRIDE_TRY((*split)->put_ranks(first_ranks, reinterpret_cast<uint32_t*>(rooms->ranks.data())));
    return home.copy(out.data(), rooms->ranks.data(), out.size_bytes());
  }

  Status search_range(size_t number, const KeyColumn& queries, std::span<uint32_t> ranks,
                      LaneRooms* rooms, uint32_t* first_rank) {
    if (queries.size == 0) return {};
    const PartitionedIndex::Part& part = parts_.parts()[number];
    bool is_whole = false;
    Status status = part.device == device_
                        ? search_part(devices_, index_, part, op_, queries, ranks, &is_whole)
                        : search_elsewhere(part, queries, ranks, &rooms->part_keys[number],
                                           &rooms->part_ranks[number], &is_whole);
    *first_rank = static_cast<uint32_t>(is_whole ? 0 : part.first);
    if (!is_loss(status)) return status;
    // It is not the failure of the device that has the share.
    of_parts_.report(std::move(status));
    return WorkWatch::cancelled();
  }

  // Copies the queries to the device of the part as a whole, and the ranks back: the link is at its
  // fastest then. Where that fails, the device of the part is given what lies here.
  Status search_elsewhere(const PartitionedIndex::Part& part, const KeyColumn& queries,
                          std::span<uint32_t> ranks, ChunkRoom* keys, ChunkRoom* found,
                          bool* is_whole) {
    *is_whole = false;
    if (devices_.works(part.device) &&
        search_copies(part, queries, ranks, devices_[part.device], keys, found).ok())
      return {};
    return search_part(devices_, index_, part, op_, queries, ranks, is_whole);
  }
  Status search_copies(const PartitionedIndex::Part& part, const KeyColumn& queries,
                       std::span<uint32_t> ranks, Backend& there, ChunkRoom* keys,
                       ChunkRoom* found) {
    STRIDE_TRY(keys->make(devices_.rooms(part.device), queries.bytes()));
    STRIDE_TRY(found->make(devices_.rooms(part.device), ranks.size_bytes()));
    STRIDE_TRY(there.copy(keys->data(), queries.data, queries.bytes()));
    const std::span<uint32_t> answers{reinterpret_cast<uint32_t*>(found->data()), ranks.size()};
    IndexView index = part.index->view();
    index.resident = part.index.get();
    STRIDE_TRY((there.tree_index().*op_)(
        index, KeyColumn::fixed(keys->data(), queries.width, queries.size), answers));
    return there.copy(ranks.data(), answers.data(), ranks.size_bytes());
  }

  DeviceSet& devices_;
  const IndexView& index_;
  const PartitionedIndex& parts_;
  const RankSearch op_;
  const size_t device_;
  FirstFailure of_parts_;
};

}  // namespace

bool can_split(const DeviceSet& devices, const IndexView& index, const KeyColumn& queries) {
  const PartitionedIndex& all = parts_of(index);
  const PackedColumn& keys = all.view().keys;
  if (!queries.is_fixed() || !keys.fixed || queries.width != keys.width || queries.size == 0)
    return false;
  if (all.parts().size() > RangeSplit::max_ranges) return false;
  return std::all_of(all.parts().begin(), all.parts().end(), [&](const auto& part) {
    return devices.works(part.device) && devices[part.device].cuda_device();
  });
}

Status search_split(DeviceSet& devices, const IndexView& index, RankSearch search,
                    const KeyColumn& queries, std::span<uint32_t> out) {
  const size_t home = devices.home_of(queries);
  const SharedBatch batch{.size = queries.size,
                          .home = home != no_device_number ? home : devices.home_of(out.data()),
                          .has = [&](size_t device) { return devices[device].cuda_device(); }};
  FirstFailure of_parts;
  Status status = devices.run(batch, [&](size_t device, Share share) {
    ShareSearch here(devices, index, search, device);
    Status done =
        here.run(queries.slice(share.first, share.count), out.subspan(share.first, share.count));
    if (here.of_parts().failed()) of_parts.report(here.of_parts().status());
    return done;
  });
  return of_parts.failed() ? of_parts.status() : status;
}

}  // namespace stride
