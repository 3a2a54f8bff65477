// Numbers the keys of a batch without a hash table, where so few keys are possible that each can
// have a bit: 11 bases of a genome, dates, country codes, numbers that are close together.
//
// A key's code is the number of possible keys before it, if the byte at each place may be any of
// those that come at that place in some key. Past a key's end there is a byte less than all others.
// Codes are in the order of the keys then:
//
//   keys            at place 0: a c    at place 1: (end) b d    codes: 3 * place 0 + place 1
//   a ab cd ab      a = 0, c = 1       end = 0, b = 1, d = 2    0 1 5 1
//   bits            1 1 0 0 0 1        numbers: 0 1 2 1
#pragma once

#include <cstdint>
#include <span>

#include "engine/write/collect_deltas.h"
#include "gpu/backend.h"
#include "gpu/bulk_vector.h"
#include "storage/column.h"

namespace stride {

// Call look(), then mark() for each column, then finish().
class DenseKeys {
 public:
  explicit DenseKeys(Backend& backend) : backend_(backend) {}
  DenseKeys(const DenseKeys&) = delete;
  DenseKeys& operator=(const DenseKeys&) = delete;

  // Whether keys that are so can be numbered here: there are many of them, and few possible ones.
  // Where there are many that is known after the first few.
  bool look(std::span<const KeyColumn> columns);
  // codes: room for one for each key. From several threads at once.
  void mark(const KeyColumn& keys, uint32_t* codes);
  // Makes numbers of codes: 0 is the smallest key, 1 the next one. keys: all that there are, in
  // this order.
  void finish(std::span<uint32_t> codes, KeyCopies* keys);

 private:
  static constexpr uint32_t max_bytes = 32;
  // Which bytes come at each place, and how long keys are.
  struct Seen {
    bool bytes[max_bytes][256] = {};
    uint32_t shortest = max_bytes, longest = 0;

    // False: a key is too long.
    bool add(const KeyColumn& keys);
    void add(const Seen& other);
    // Whether some key has ended before that place.
    bool ends_at(uint32_t place) const { return shortest <= place; }
    // How many codes there are, or some number above `most` where that is exceeded.
    uint64_t codes(uint64_t most) const;
  };
  class Walk;  // from key to key

  void make_codes();
  void count_before();
  // Calls use(number, key) for the keys of a piece of the bits.
  template <class Use>
  void for_each_key(uint64_t piece, const Use& use) const;
  void copy_keys(KeyCopies* keys) const;

  static constexpr uint64_t words_of_piece = 1 << 10;
  uint64_t pieces() const { return (bits_.size() + words_of_piece - 1) / words_of_piece; }

  Backend& backend_;
  Seen seen_;
  uint32_t part_[max_bytes][256];    // of a code, by place and byte
  uint32_t kinds_[max_bytes];        // of bytes at a place, the end among them
  uint8_t byte_of_[max_bytes][257];  // by its rank at a place; the end's is 0
  BulkVector<uint64_t> bits_;        // of each code, whether some key has it
  BulkVector<uint32_t> before_;      // how many keys have their bits in the words before each
  uint64_t size_ = 0;                // different keys
};

}  // namespace stride
