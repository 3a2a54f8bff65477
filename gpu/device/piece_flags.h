// Batches that a device works on while the host still copies them to where it reads them, and
// already takes results: one kernel is started for the whole batch, and each of its blocks waits
// for one *piece*.
//
// Pieces lie in rings of slots in pinned memory, one of what comes in and one of what goes out. The
// host brings a piece once it has taken what came out of the one that had the slot before.
#pragma once

#include <cstdint>

namespace stride {

// How host and device tell each other of pieces. A flag is up when it is `round`, another number
// for each batch, so that nobody has to take flags down.
struct PieceFlags {
  const uint32_t* ready;  // in host memory: the host has put a piece there
  uint32_t* done;         // in host memory: the device has put its results there: at done_flag()
  uint32_t* relayed;      // in the device's memory: what one block has read of `ready`
  uint32_t* tickets;      // in the device's memory: how many blocks have begun, ever
  uint32_t first_ticket;  // of this batch
  uint32_t round;
  uint32_t pieces;
  uint32_t slots;
  uint32_t done_columns;

  // Flags of done pieces lie in a matrix, whose rows are lines of a cache at least, and pieces go
  // down its columns: who waits for a piece shares no line with those who wait for the next ones.
  static constexpr uint32_t done_rows = 32;
  static constexpr uint32_t done_columns_for(uint32_t max_pieces) {
    constexpr uint32_t flags_of_line = 16;
    return max_pieces / done_rows < flags_of_line ? flags_of_line : max_pieces / done_rows;
  }
  static constexpr uint64_t done_flag(uint64_t piece, uint32_t columns) {
    return piece % done_rows * columns + piece / done_rows;
  }

  // A kernel has one for each piece, and one that relays.
  uint32_t blocks() const { return pieces + 1; }
};

// A piece of queries, of up to 16 bytes each and with as many bytes of results, fills a slot.
inline constexpr uint32_t piece_queries = 2048;
inline constexpr uint32_t slot_bytes = piece_queries * 16;

// A batch of queries in pieces. What lies in no ring lies all in one column.
struct QueryPieces {
  PieceFlags flags;
  bool queries_in_ring;
  bool results_in_ring;
};

}  // namespace stride
