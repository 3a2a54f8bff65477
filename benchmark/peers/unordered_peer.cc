#include "benchmark/peers/unordered_peer.h"

#include <malloc.h>

#include <array>
#include <new>
#include <string>
#include <unordered_set>
#include <utility>

namespace stride::benchmark {
namespace {

// Counts what it has given, with the word that malloc keeps before each block.
template <class T>
struct CountingAllocator {
  using value_type = T;
  explicit CountingAllocator(uint64_t* counter) : bytes(counter) {}
  template <class U>
  CountingAllocator(const CountingAllocator<U>& other) : bytes(other.bytes) {}  // NOLINT: implicit
  T* allocate(size_t n) {
    void* p = ::operator new(n * sizeof(T));
    *bytes += malloc_usable_size(p) + sizeof(size_t);
    return static_cast<T*>(p);
  }
  void deallocate(T* p, size_t) {
    *bytes -= malloc_usable_size(p) + sizeof(size_t);
    ::operator delete(p);
  }
  bool operator==(const CountingAllocator& other) const { return bytes == other.bytes; }

  uint64_t* bytes;
};

struct NumberRow {
  using Key = uint64_t;
  using Hash = std::hash<uint64_t>;
  static Key key(Bytes row) {
    uint64_t number = 0;
    std::memcpy(&number, row.data(), row.size());
    return number;
  }
};

template <size_t Halves>
struct WordsRow {
  using Key = std::array<uint64_t, Halves>;
  struct Hash {
    size_t operator()(const Key& key) const {
      uint64_t hash = 0;
      for (uint64_t part : key) {
        hash = (hash ^ part) * 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 32;
      }
      return hash;
    }
  };
  static Key key(Bytes row) {
    Key key{};
    std::memcpy(key.data(), row.data(), row.size());
    return key;
  }
};

struct TextRow {
  using Key = std::string;
  using Hash = std::hash<std::string>;
  static Key key(Bytes row) { return std::string(as_text(row)); }
};

template <class Row>
class Peer final : public UnorderedPeer {
 public:
  explicit Peer(uint64_t distinct) { set_.reserve(distinct); }
  void find_or_put(const KeyColumn& rows, std::span<uint64_t> was_new) override {
    for (uint64_t i = 0; i < rows.size; ++i) {
      if (set_.insert(Row::key(rows[i])).second) was_new[i / 64] |= uint64_t{1} << (i % 64);
    }
  }
  uint64_t find(const KeyColumn& rows) const override {
    uint64_t found = 0;
    for (uint64_t i = 0; i < rows.size; ++i) found += set_.contains(Row::key(rows[i]));
    return found;
  }
  void clear() override { set_.clear(); }
  uint64_t size() const override { return set_.size(); }
  uint64_t memory_bytes() const override {
    uint64_t bytes = bytes_;
    if constexpr (std::is_same_v<typename Row::Key, std::string>) {
      // Short strings lie in the node itself.
      for (const std::string& text : set_) {
        if (text.capacity() > std::string().capacity())
          bytes += text.capacity() + 1 + sizeof(size_t);
      }
    }
    return bytes;
  }

 private:
  using Key = typename Row::Key;
  uint64_t bytes_ = 0;
  std::unordered_set<Key, typename Row::Hash, std::equal_to<Key>, CountingAllocator<Key>> set_{
      CountingAllocator<Key>(&bytes_)};
};

}  // namespace

std::unique_ptr<UnorderedPeer> UnorderedPeer::make(uint32_t width, uint64_t distinct) {
  if (width == 0) return std::make_unique<Peer<TextRow>>(distinct);
  if (width <= 8) return std::make_unique<Peer<NumberRow>>(distinct);
  if (width <= 16) return std::make_unique<Peer<WordsRow<2>>>(distinct);
  if (width <= 32) return std::make_unique<Peer<WordsRow<4>>>(distinct);
  if (width <= 64) return std::make_unique<Peer<WordsRow<8>>>(distinct);
  if (width <= 128) return std::make_unique<Peer<WordsRow<16>>>(distinct);
  return std::make_unique<Peer<WordsRow<32>>>(distinct);
}

}  // namespace stride::benchmark
