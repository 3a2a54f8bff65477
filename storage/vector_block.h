// Blocks of vectors of 32-bit words, in few bytes where words repeat or are small. Compressed dedup
// tables keep their vectors so (engine/dedup_table.h).
//
//   std::vector<std::byte> block(max_vector_block_bytes(words, n));
//   block.resize(write_vector_block(vectors, words, n, block.data()));
//
//   VectorBlock back;
//   if (!back.open(block, words)) ...                // damaged
//   if (!back.read(i, vector)) ...                   // vector i of back.size(); false: damaged
//
//   0     2      3
//   +-----+------+---------------------+-----------------------------------------+
//   | n   | form | a column for each   | codes of vector 0, of vector 1, ...     |
//   |     | 1    | word                | each `bits` of its column, LSB first    |
//   +-----+------+---------------------+-----------------------------------------+
//
// What a word of each vector is makes a column: all alike, numbers between a base and 2^bits more,
// or one of up to 16 values that the column lists. A code is the word without its base, or the
// place in the list. A block that would not be smaller so has form 0: the vectors as they are. So
// none is more than 3 bytes longer than its vectors. docs/format-dedup.md has every byte.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "storage/column.h"

namespace stride {

inline constexpr uint32_t max_block_words = 64;  // of each vector
inline constexpr uint32_t vector_block_header_bytes = 3;
inline constexpr uint32_t max_listed_words = 16;  // of a column that lists what it has

// How many vectors a full block has: up to 16 KiB of them, a power of two.
inline constexpr uint32_t vectors_of_block(uint32_t words) { return std::bit_floor(4096 / words); }
inline constexpr uint64_t max_vector_block_bytes(uint32_t words, uint32_t n) {
  return vector_block_header_bytes + uint64_t{n} * words * 4;
}

// The byte that begins a column: `bits` or the mark of a list in the low 6, and how many bytes its
// base or each listed word has: 0, 1, 2 or 4.
struct BlockColumnTag {
  static constexpr uint32_t list = 63;
  static constexpr std::array<uint32_t, 4> widths = {0, 1, 2, 4};

  static constexpr uint8_t of(uint32_t low, uint32_t largest) {
    return static_cast<uint8_t>(low | width_code(largest) << 6);
  }
  static constexpr uint32_t low(uint8_t tag) { return tag & 63; }
  static constexpr uint32_t width(uint8_t tag) { return widths[tag >> 6]; }
  // Which of the widths holds the number.
  static constexpr uint32_t width_code(uint32_t number) {
    return number == 0 ? 0 : number < 0x100 ? 1 : number < 0x10000 ? 2 : 3;
  }
};

// Returns how many bytes of `out` the block has; there is room for max_vector_block_bytes().
// Precondition: words is 1 to max_block_words, n is 1 to vectors_of_block(words).
uint64_t write_vector_block(const std::byte* vectors, uint32_t words, uint32_t n, std::byte* out);

// Reads a block where it lies. Whatever its bytes are, nothing outside of them is read.
class VectorBlock {
 public:
  // False: the bytes are no block of vectors of so many words.
  bool open(Bytes block, uint32_t words);
  uint32_t size() const { return size_; }
  // 4 * words bytes. False: the vector has a code that its column does not list. Precondition: i is
  // less than size().
  bool read(uint32_t i, std::byte* vector) const;

 private:
  struct WordColumn {
    uint32_t bits = 0, base = 0;
    uint32_t listed = 0;  // words in the list; 0: there is none
    uint32_t width = 0;   // bytes of each
    const std::byte* list = nullptr;
  };
  bool open_column(WordColumn* column);
  uint32_t take(uint32_t width);
  uint32_t code(uint64_t bit, uint32_t bits) const;

  Bytes rest_;  // what is still to be read of the head, then the codes
  uint32_t words_ = 0, size_ = 0, bits_ = 0;
  bool plain_ = false;
  std::array<WordColumn, max_block_words> columns_;
};

}  // namespace stride
