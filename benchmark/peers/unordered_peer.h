// std::unordered_set as a plain peer of sets of vectors and of byte strings.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "storage/column.h"

namespace stride::benchmark {

// Holds copies of rows, on the calling thread. Vectors of up to 2 words are hashed as one integer,
// others, filled up with zeros to 4, 8, 16, 32 or 64 words, as 64 bits at a time; byte strings are
// std::string.
class UnorderedPeer {
 public:
  // Room for so many different rows. width: 4 to 256 bytes a row, a multiple of 4; 0: byte strings.
  static std::unique_ptr<UnorderedPeer> make(uint32_t width, uint64_t distinct);
  virtual ~UnorderedPeer() = default;

  // Sets the bits of rows that came for the first time; they are 0 before.
  virtual void find_or_put(const KeyColumn& rows, std::span<uint64_t> was_new) = 0;
  // How many of the rows are there.
  virtual uint64_t find(const KeyColumn& rows) const = 0;
  // Keeps the room.
  virtual void clear() = 0;
  virtual uint64_t size() const = 0;
  // With what the allocator takes around each node.
  virtual uint64_t memory_bytes() const = 0;
};

}  // namespace stride::benchmark
