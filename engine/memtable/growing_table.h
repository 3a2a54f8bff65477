// A hash table of 64-bit words with linear probing, which some threads fill while any number read
// it.
//
// It grows by a copy, while nobody fills it; readers of the one before go on there, for it lives as
// long as the table.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "storage/prefetch.h"

namespace stride {

// A slot is empty where it is 0. The upper half of a word says where it belongs, and its bits
// should be spread evenly.
class GrowingTable {
 public:
  // Calls is_it(word) for each word whose upper half is `tag` until it says yes, and returns that
  // one; 0: there is none. Any thread.
  template <class IsIt>
  uint64_t find(uint32_t tag, const IsIt& is_it) const {
    const Slots* slots = current_.load(std::memory_order_acquire);
    if (!slots) return 0;
    for (size_t i = slots->home(tag);; i = slots->next(i)) {
      uint64_t word = slots->words[i].load(std::memory_order_acquire);
      if (word == 0 || (word >> 32 == tag && is_it(word))) return word;
    }
  }

  // Prefetches where find() begins. Any thread.
  void prefetch_find(uint32_t tag) const noexcept {
    const Slots* slots = current_.load(std::memory_order_acquire);
    if (slots) prefetch(slots->words.data() + slots->home(tag));
  }

  // Makes room for so many words besides those that were counted. Throws std::bad_alloc.
  // Precondition: nobody is in put().
  void reserve(size_t more) {
    Slots* slots = current_.load(std::memory_order_relaxed);
    const size_t wanted = size_ + more;
    if (slots && wanted * 4 <= slots->words.size() * 3) return;
    unsigned bits = slots ? slots->bits : min_bits;
    while (wanted * 4 > (size_t{3} << bits)) ++bits;
    all_.reserve(all_.size() + 1);
    auto grown = std::make_unique<Slots>(bits);
    for (size_t i = 0; slots && i < slots->words.size(); ++i)
      if (uint64_t word = slots->words[i].load(std::memory_order_relaxed)) grown->add(word);
    current_.store(grown.get(), std::memory_order_release);
    memory_bytes_ += sizeof(uint64_t) << bits;
    all_.push_back(std::move(grown));
  }
  enum class Met : uint8_t { another, replaced, kept };
  // Puts the word where no word is yet, unless meet(there), which is called for words of its tag,
  // says that it takes that one's place, or that that one stays and the word has no place. Returns
  // whether it was put where none was: call count() for these. Any number of threads.
  // Precondition: reserve() has made room.
  template <class Meet>
  bool put(uint64_t word, const Meet& meet) noexcept {
    Slots* slots = current_.load(std::memory_order_relaxed);
    const auto tag = static_cast<uint32_t>(word >> 32);
    for (size_t i = slots->home(tag);; i = slots->next(i)) {
      uint64_t there = slots->words[i].load(std::memory_order_acquire);
      for (;;) {  // whoever comes first has the slot, and others look again
        if (there != 0) {
          const Met met = there >> 32 == tag ? meet(there) : Met::another;
          if (met == Met::kept) return false;
          if (met == Met::another) break;
        }
        const bool is_new = there == 0;
        if (slots->words[i].compare_exchange_weak(there, word, std::memory_order_release,
                                                  std::memory_order_acquire))
          return is_new;
      }
    }
  }
  // Counts words that put() has put where none were. The same precondition as for reserve().
  void count(size_t words) { size_ += words; }
  // Counts the slots, those of smaller tables that readers may still be in included.
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  static constexpr unsigned min_bits = 4;
  struct Slots {
    explicit Slots(unsigned slot_bits) : bits(slot_bits), words(size_t{1} << slot_bits) {}
    size_t home(uint32_t tag) const { return bits >= 32 ? tag : tag >> (32 - bits); }
    size_t next(size_t i) const { return (i + 1) & (words.size() - 1); }
    void add(uint64_t word) {
      size_t i = home(static_cast<uint32_t>(word >> 32));
      while (words[i].load(std::memory_order_relaxed) != 0) i = next(i);
      words[i].store(word, std::memory_order_relaxed);
    }
    const unsigned bits;
    std::vector<std::atomic<uint64_t>> words;
  };

  std::atomic<Slots*> current_{nullptr};
  std::vector<std::unique_ptr<Slots>> all_;
  size_t size_ = 0;
  uint64_t memory_bytes_ = 0;
};

}  // namespace stride
