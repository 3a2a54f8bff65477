// Chunks that are worked on one after the other, each while the next one comes in and the one
// before goes out.
//
//   run_in_order(chunks, [&](uint64_t i) { copy_in(i, room[i % chunk_rooms]); },
//                [&](uint64_t i) { work(i, room[i % chunk_rooms]); },
//                [&](uint64_t i) { copy_out(i, room[i % chunk_rooms]); });
#pragma once

#include <cstdint>
#include <functional>

namespace stride {

// A chunk comes in once the one that so many before it had its room has gone out.
inline constexpr uint64_t chunk_rooms = 3;

using ChunkStage = std::function<void(uint64_t chunk)>;

// Calls each stage for 0, 1, ..., chunks - 1 in this order; `work` on the caller's thread, the
// others on threads of their own. The first exception ends it and is thrown. Where the system has
// no more threads the caller's does all, and `in` may be called twice for the first chunks.
void run_in_order(uint64_t chunks, const ChunkStage& in, const ChunkStage& work,
                  const ChunkStage& out);

}  // namespace stride
