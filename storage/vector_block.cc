#include "storage/vector_block.h"

#include <algorithm>
#include <cstring>

namespace stride {
namespace {

constexpr uint32_t max_words_of_block = vectors_of_block(1);
enum BlockForm : uint8_t { plain_block = 0, packed_block = 1 };

uint32_t block_word(const std::byte* at) {
  uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// How a column will be written.
struct ColumnPlan {
  uint32_t bits = 0, base = 0, listed = 0;
  uint32_t largest = 0;  // of the list
  std::array<uint32_t, max_listed_words> list;

  uint64_t head_bytes() const {
    return listed ? 2 + uint64_t{listed} * list_width()
                  : 1 + BlockColumnTag::widths[BlockColumnTag::width_code(base)];
  }
  uint32_t list_width() const {
    return BlockColumnTag::widths[BlockColumnTag::width_code(largest)];
  }
  uint64_t total_bits(uint32_t n) const { return head_bytes() * 8 + uint64_t{n} * bits; }
};

class BlockWriter {
 public:
  BlockWriter(const std::byte* vectors, uint32_t words, uint32_t n)
      : vectors_(vectors), words_(words), n_(n) {}

  uint64_t write(std::byte* out) {
    const uint64_t plain_bytes = uint64_t{n_} * words_ * 4;
    uint64_t bits = 0, head = 0;
    find_bounds();
    for (uint32_t w = 0; w < words_; ++w) {
      plan(w);
      bits += uint64_t{n_} * plans_[w].bits;
      head += plans_[w].head_bytes();
    }
    const uint64_t packed_bytes = head + (bits + 7) / 8;
    const bool packed = packed_bytes < plain_bytes;
    const auto n16 = static_cast<uint16_t>(n_);
    std::memcpy(out, &n16, sizeof n16);
    out[2] = std::byte{packed ? packed_block : plain_block};
    out += vector_block_header_bytes;
    if (!packed) {
      std::memcpy(out, vectors_, plain_bytes);
      return vector_block_header_bytes + plain_bytes;
    }
    for (uint32_t w = 0; w < words_; ++w) out = write_head(plans_[w], out);
    write_codes(out);
    return vector_block_header_bytes + packed_bytes;
  }

 private:
  uint32_t word(uint32_t i, uint32_t w) const {
    return block_word(vectors_ + (uint64_t{i} * words_ + w) * 4);
  }

  // The least and the largest word of each column, vector by vector as they lie in memory.
  void find_bounds() {
    for (uint32_t w = 0; w < words_; ++w) least_[w] = most_[w] = word(0, w);
    for (uint32_t i = 1; i < n_; ++i) {
      for (uint32_t w = 0; w < words_; ++w) {
        least_[w] = std::min(least_[w], word(i, w));
        most_[w] = std::max(most_[w], word(i, w));
      }
    }
  }
  void plan(uint32_t w) {
    ColumnPlan& p = plans_[w];
    p.listed = 0;
    p.bits = static_cast<uint32_t>(std::bit_width(most_[w] - least_[w]));
    // A base that spares no bits takes bytes for nothing.
    p.base = p.bits == static_cast<uint32_t>(std::bit_width(most_[w])) ? 0 : least_[w];
    if (p.bits > 1) try_list(w, &p);
  }
  // Where a list of the words is shorter, it is the plan, and place_ has each one's place.
  void try_list(uint32_t w, ColumnPlan* p) {
    ColumnPlan listed;
    uint32_t at = 0;
    for (uint32_t i = 0; i < n_; ++i) {
      const uint32_t x = word(i, w);
      if (listed.listed == 0 || listed.list[at] != x)
        at = static_cast<uint32_t>(
            std::find(listed.list.begin(), listed.list.begin() + listed.listed, x) -
            listed.list.begin());
      if (at == listed.listed) {
        if (at == max_listed_words) return;
        listed.list[listed.listed++] = x;
        listed.largest = std::max(listed.largest, x);
      }
      place_[i * words_ + w] = static_cast<uint8_t>(at);
    }
    listed.bits = static_cast<uint32_t>(std::bit_width(listed.listed - 1));
    if (listed.total_bits(n_) < p->total_bits(n_)) *p = listed;
  }

  static std::byte* write_head(const ColumnPlan& p, std::byte* out) {
    if (!p.listed) {
      const uint8_t tag = BlockColumnTag::of(p.bits, p.base);
      *out++ = std::byte{tag};
      std::memcpy(out, &p.base, BlockColumnTag::width(tag));
      return out + BlockColumnTag::width(tag);
    }
    const uint8_t tag = BlockColumnTag::of(BlockColumnTag::list, p.largest);
    *out++ = std::byte{tag};
    *out++ = static_cast<std::byte>(p.listed);
    for (uint32_t k = 0; k < p.listed; ++k, out += BlockColumnTag::width(tag))
      std::memcpy(out, &p.list[k], BlockColumnTag::width(tag));
    return out;
  }
  void write_codes(std::byte* out) {
    uint64_t bits = 0;
    uint32_t held = 0;
    for (uint32_t i = 0; i < n_; ++i) {
      for (uint32_t w = 0; w < words_; ++w) {
        const ColumnPlan& p = plans_[w];
        const uint32_t code = p.listed ? place_[i * words_ + w] : word(i, w) - p.base;
        bits |= uint64_t{code} << held;
        held += p.bits;
        if (held < 32) continue;
        std::memcpy(out, &bits, 4);
        out += 4;
        bits >>= 32;
        held -= 32;
      }
    }
    std::memcpy(out, &bits, (held + 7) / 8);
  }

  const std::byte* vectors_;
  const uint32_t words_, n_;
  std::array<ColumnPlan, max_block_words> plans_;
  std::array<uint32_t, max_block_words> least_, most_;
  std::array<uint8_t, max_words_of_block> place_;  // in the list of its column, of each word
};

}  // namespace

uint64_t write_vector_block(const std::byte* vectors, uint32_t words, uint32_t n, std::byte* out) {
  return BlockWriter(vectors, words, n).write(out);
}

// Precondition: there are so many bytes.
uint32_t VectorBlock::take(uint32_t width) {
  uint32_t number = 0;
  std::memcpy(&number, rest_.data(), width);
  rest_ = rest_.subspan(width);
  return number;
}

bool VectorBlock::open_column(WordColumn* column) {
  if (rest_.empty()) return false;
  const auto tag = static_cast<uint8_t>(take(1));
  const uint32_t low = BlockColumnTag::low(tag), width = BlockColumnTag::width(tag);
  *column = {};
  if (low != BlockColumnTag::list) {
    if (low > 32 || rest_.size() < width) return false;
    column->bits = low;
    column->base = take(width);
    return true;
  }
  if (rest_.empty()) return false;
  column->listed = take(1);
  column->width = width;
  if (column->listed == 0 || column->listed > max_listed_words) return false;
  if (rest_.size() < uint64_t{column->listed} * width) return false;
  column->bits = static_cast<uint32_t>(std::bit_width(column->listed - 1));
  column->list = rest_.data();
  rest_ = rest_.subspan(uint64_t{column->listed} * width);
  return true;
}

bool VectorBlock::open(Bytes block, uint32_t words) {
  if (block.size() < vector_block_header_bytes) return false;
  rest_ = block;
  words_ = words;
  size_ = take(2);
  const uint32_t form = take(1);
  if (size_ == 0 || size_ > vectors_of_block(words) || form > packed_block) return false;
  plain_ = form == plain_block;
  if (plain_) return rest_.size() == uint64_t{size_} * words * 4;
  bits_ = 0;
  for (uint32_t w = 0; w < words; ++w) {
    if (!open_column(&columns_[w])) return false;
    bits_ += columns_[w].bits;
  }
  return rest_.size() == (uint64_t{size_} * bits_ + 7) / 8;
}

uint32_t VectorBlock::code(uint64_t bit, uint32_t bits) const {
  uint64_t eight = 0;
  const uint64_t at = bit / 8;
  if (at + 8 <= rest_.size()) {
    std::memcpy(&eight, rest_.data() + at, 8);
  } else {
    std::memcpy(&eight, rest_.data() + at, rest_.size() - at);
  }
  return static_cast<uint32_t>(eight >> bit % 8 & ((uint64_t{1} << bits) - 1));
}

bool VectorBlock::read(uint32_t i, std::byte* vector) const {
  if (plain_) {
    std::memcpy(vector, rest_.data() + uint64_t{i} * words_ * 4, words_ * 4);
    return true;
  }
  uint64_t bit = uint64_t{i} * bits_;
  for (uint32_t w = 0; w < words_; ++w) {
    const WordColumn& c = columns_[w];
    uint32_t word = c.bits ? code(bit, c.bits) : 0;
    bit += c.bits;
    if (c.listed) {
      if (word >= c.listed) return false;
      uint32_t found = 0;
      std::memcpy(&found, c.list + uint64_t{word} * c.width, c.width);
      word = found;
    } else {
      word += c.base;
    }
    std::memcpy(vector + uint64_t{w} * 4, &word, sizeof word);
  }
  return true;
}

}  // namespace stride
