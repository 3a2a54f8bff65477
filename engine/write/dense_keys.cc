#include "engine/write/dense_keys.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <vector>

namespace stride {
namespace {

// A bit for each code, which keys in a hash table would take several times.
constexpr uint64_t codes_a_row = 64;
// Looking at all bytes of fewer rows twice is no gain.
constexpr uint64_t least_rows = 1 << 12;
constexpr uint64_t first_look_rows = 1 << 11;
constexpr uint64_t rows_per_task = 1 << 16;

uint64_t rows_of(std::span<const KeyColumn> columns) {
  uint64_t rows = 0;
  for (const KeyColumn& keys : columns) rows += keys.size;
  return rows;
}

}  // namespace

bool DenseKeys::Seen::add(const KeyColumn& keys) {
  for (uint64_t i = 0; i < keys.size; ++i) {
    const Bytes key = keys[i];
    if (key.size() > max_bytes) return false;
    shortest = std::min(shortest, static_cast<uint32_t>(key.size()));
    longest = std::max(longest, static_cast<uint32_t>(key.size()));
    for (size_t place = 0; place < key.size(); ++place)
      bytes[place][static_cast<uint8_t>(key[place])] = true;
  }
  return true;
}

void DenseKeys::Seen::add(const Seen& other) {
  shortest = std::min(shortest, other.shortest);
  longest = std::max(longest, other.longest);
  for (uint32_t place = 0; place < longest; ++place)
    for (uint32_t byte = 0; byte < 256; ++byte) bytes[place][byte] |= other.bytes[place][byte];
}

uint64_t DenseKeys::Seen::codes(uint64_t most) const {
  uint64_t codes = 1;
  for (uint32_t place = 0; place < longest && codes <= most; ++place)
    codes *=
        static_cast<uint64_t>(std::count(bytes[place], bytes[place] + 256, true)) + ends_at(place);
  return codes;
}

bool DenseKeys::look(std::span<const KeyColumn> columns) {
  const uint64_t rows = rows_of(columns);
  if (rows < least_rows) return false;
  const uint64_t most = std::min<uint64_t>(rows * codes_a_row, UINT32_MAX);
  Seen first;
  for (const KeyColumn& keys : columns) {
    if (keys.size == 0) continue;
    if (!first.add(keys.slice(0, std::min(keys.size, first_look_rows)))) return false;
    break;
  }
  if (first.codes(most) > most) return false;
  std::mutex mutex;
  std::atomic<bool> few{true};
  backend_.parallel_for(columns.size(), 1 + columns.size() / 64, [&](uint64_t begin, uint64_t end) {
    Seen seen;
    for (uint64_t c = begin; c < end && few; ++c)
      if (!seen.add(columns[c]) || seen.codes(most) > most) few = false;
    std::lock_guard lock(mutex);
    seen_.add(seen);
  });
  const uint64_t codes = few ? seen_.codes(most) : 0;
  if (!few || codes > most) return false;
  make_codes();
  bits_.resize(codes / 64 + 1);
  std::fill(bits_.begin(), bits_.end(), 0);
  before_.resize(bits_.size());
  return true;
}

// The last place counts singly.
void DenseKeys::make_codes() {
  uint64_t next = 1;
  for (uint32_t place = seen_.longest; place-- > 0;) {
    uint32_t rank = seen_.ends_at(place);
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (!seen_.bytes[place][byte]) continue;
      byte_of_[place][rank] = static_cast<uint8_t>(byte);
      part_[place][byte] = static_cast<uint32_t>(next * rank++);
    }
    kinds_[place] = rank;
    next *= rank;
  }
}

void DenseKeys::mark(const KeyColumn& keys, uint32_t* codes) {
  for (uint64_t i = 0; i < keys.size; ++i) {
    const Bytes key = keys[i];
    uint32_t code = 0;
    for (size_t place = 0; place < key.size(); ++place)
      code += part_[place][static_cast<uint8_t>(key[place])];
    codes[i] = code;
    const uint64_t bit = uint64_t{1} << code % 64;
    std::atomic_ref<uint64_t> word(bits_[code / 64]);
    if (!(word.load(std::memory_order_relaxed) & bit))
      word.fetch_or(bit, std::memory_order_relaxed);
  }
}

// The key of one code after the other, as bytes.
class DenseKeys::Walk {
 public:
  explicit Walk(const DenseKeys& keys) : keys_(keys), places_(keys.seen_.longest) {
    for (uint32_t place = 0; place < places_; ++place) set(place, 0);
  }
  // Precondition: `code` is not less than the last one.
  Bytes to(uint64_t code) {
    uint64_t carry = code - code_;
    code_ = code;
    for (uint32_t place = places_; carry > 0 && place-- > 0;) {
      const uint64_t sum = ranks_[place] + carry, kinds = keys_.kinds_[place];
      carry = sum < kinds ? 0 : sum / kinds;
      set(place, static_cast<uint32_t>(sum - carry * kinds));
    }
    uint32_t length = places_;
    while (length > 0 && ranks_[length - 1] == 0 && keys_.seen_.ends_at(length - 1)) --length;
    return {bytes_, length};
  }

 private:
  void set(uint32_t place, uint32_t rank) {
    ranks_[place] = rank;
    bytes_[place] = static_cast<std::byte>(keys_.byte_of_[place][rank]);
  }

  const DenseKeys& keys_;
  const uint32_t places_;
  uint64_t code_ = 0;
  uint32_t ranks_[max_bytes];
  std::byte bytes_[max_bytes];
};

template <class Use>
void DenseKeys::for_each_key(uint64_t piece, const Use& use) const {
  const uint64_t first = piece * words_of_piece;
  const uint64_t end = std::min<uint64_t>(bits_.size(), first + words_of_piece);
  Walk walk(*this);
  uint64_t number = before_[first];
  for (uint64_t w = first; w < end; ++w)
    for (uint64_t left = bits_[w]; left; left &= left - 1)
      use(number++, walk.to(w * 64 + static_cast<uint64_t>(std::countr_zero(left))));
}

void DenseKeys::count_before() {
  for (uint64_t w = 0; w < bits_.size(); ++w) {
    before_[w] = static_cast<uint32_t>(size_);
    size_ += static_cast<uint64_t>(std::popcount(bits_[w]));
  }
}

void DenseKeys::copy_keys(KeyCopies* keys) const {
  // Where the keys of each piece begin.
  std::vector<uint64_t> begins(pieces() + 1);
  const bool one_length = seen_.shortest == seen_.longest;
  backend_.parallel_for(pieces(), 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t piece = begin; piece < end; ++piece) {
      if (one_length) {
        const uint64_t next = (piece + 1) * words_of_piece;
        const uint64_t after = next < bits_.size() ? before_[next] : size_;
        begins[piece + 1] = (after - before_[piece * words_of_piece]) * seen_.longest;
      } else {
        for_each_key(piece, [&](uint64_t, Bytes key) { begins[piece + 1] += key.size(); });
      }
    }
  });
  for (uint64_t piece = 0; piece < pieces(); ++piece) begins[piece + 1] += begins[piece];
  const KeyCopies::Room room = keys->resize(size_, begins.back());
  backend_.parallel_for(pieces(), 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t piece = begin; piece < end; ++piece) {
      uint64_t at = begins[piece];
      for_each_key(piece, [&](uint64_t number, Bytes key) {
        if (!key.empty()) std::memcpy(room.bytes + at, key.data(), key.size());
        at += key.size();
        if (room.ends) room.ends[number] = at;
      });
    }
  });
}

void DenseKeys::finish(std::span<uint32_t> codes, KeyCopies* keys) {
  count_before();
  backend_.parallel_for(codes.size(), rows_per_task, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t word = codes[i] / 64, below = (uint64_t{1} << codes[i] % 64) - 1;
      codes[i] = before_[word] + static_cast<uint32_t>(std::popcount(bits_[word] & below));
    }
  });
  copy_keys(keys);
}

}  // namespace stride
