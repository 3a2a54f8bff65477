// A blocked Bloom filter over the keys of a segment: of a key that is not there it nearly always
// says so, for one cache line.
//
//   std::span<std::byte> blocks = ...;           // KeyFilter::bytes_for(keys) zeros, at a multiple
//   of 64 KeyFilter::add(blocks, hash_key(key));       // each key if
//   (!KeyFilter(blocks).may_contain(hash_key(query))) ...   // it is none of the keys
//
// A hash leads to a block of 64 bytes, and to one bit in each of the block's 8 words; a key's bits
// are set there.
//
//   hash            h                          h * multiplier
//                   |top 32 bits|              |6|6|6|6|6|6|6|6|  from the top
//                        v                      v v v v v v v v
//   block  h >> 32 times blocks >> 32          bit of word 0 to 7
//
// After Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters" (WEA 2007),
// with a bit in each word of the block, so that a probe has no branch.
#pragma once

#include <cstdint>
#include <span>

#include "storage/column.h"
#include "storage/prefetch.h"

namespace stride {

// XXH3, 64 bits, seed 0: files depend on it.
uint64_t hash_key(Bytes key);
// Those of rows [first, first + hashes.size()).
void hash_keys(const PackedColumn& keys, uint64_t first, std::span<uint64_t> hashes);
// hashes[row], of each of the rows.
void hash_keys(const KeyColumn& keys, std::span<const uint32_t> rows, uint64_t* hashes);

// A view of the blocks, which it does not own.
class KeyFilter {
 public:
  static constexpr uint64_t block_bytes = 64;
  static constexpr uint64_t words = block_bytes / 8;
  // One probe in a hundred of a key that is not there says that it may be (measured: 1.0 %).
  static constexpr uint64_t bits_per_key = 10;

  static constexpr uint64_t blocks_for(uint64_t keys) {
    constexpr uint64_t block_bits = block_bytes * 8;
    return keys ? (keys * bits_per_key + block_bits - 1) / block_bits : 1;
  }
  static constexpr uint64_t bytes_for(uint64_t keys) { return blocks_for(keys) * block_bytes; }
  // Which of so many blocks a hash leads to.
  static constexpr uint64_t block_of(uint64_t hash, uint64_t blocks) {
    return (hash >> 32) * blocks >> 32;
  }
  // Precondition: blocks are whole ones, no more than 2^32.
  static void add(std::span<std::byte> blocks, uint64_t hash) {
    auto* block = reinterpret_cast<uint64_t*>(
        blocks.data() + block_of(hash, blocks.size() / block_bytes) * block_bytes);
    const uint64_t bits = hash * multiplier;
    for (uint32_t i = 0; i < words; ++i) block[i] |= uint64_t{1} << bit_of(bits, i);
  }

  KeyFilter() = default;  // none
  // Precondition: as for add().
  explicit KeyFilter(Bytes blocks)
      : blocks_(reinterpret_cast<const uint64_t*>(blocks.data())),
        count_(blocks.size() / block_bytes) {}

  bool is_there() const { return count_ != 0; }
  uint64_t bytes() const { return count_ * block_bytes; }
  // What follows has the precondition is_there().
  void prefetch(uint64_t hash) const { stride::prefetch(block(hash)); }
  // False: none of the keys has this hash.
  bool may_contain(uint64_t hash) const {
    const uint64_t* const words_of_key = block(hash);
    const uint64_t bits = hash * multiplier;
    uint64_t set = 1;
    for (uint32_t i = 0; i < words; ++i) set &= words_of_key[i] >> bit_of(bits, i);
    return set != 0;
  }

 private:
  static constexpr uint64_t multiplier = 0x9E3779B97F4A7C15;

  static constexpr uint32_t bit_of(uint64_t bits, uint32_t word) {
    return static_cast<uint32_t>(bits >> (58 - 6 * word)) & 63;
  }
  const uint64_t* block(uint64_t hash) const { return blocks_ + block_of(hash, count_) * words; }

  const uint64_t* blocks_ = nullptr;
  uint64_t count_ = 0;
};

}  // namespace stride
