// The segments of a table in one version, newest first. Immutable: the list of the next version
// shares all but the newest part of this one, so that adding to a long list costs little more than
// adding to a short one.
//
//   SegmentList next = list.with_newer(added);
//   for (const auto& segment : next) ...
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace stride {

class IndexedSegment;

class SegmentList {
 public:
  using value_type = std::shared_ptr<IndexedSegment>;
  class const_iterator;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;

  SegmentList() = default;
  explicit SegmentList(std::span<const value_type> newest_first) { add(newest_first); }
  SegmentList(const_iterator first, const_iterator last);

  SegmentList with_newer(std::span<const value_type> newest_first) const;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const value_type& operator[](size_t i) const {
    size_t position = size_ - 1 - i;
    return (*chunks_[position / chunk_segments])[position % chunk_segments];
  }
  const_iterator begin() const;
  const_iterator end() const;
  const_reverse_iterator rbegin() const;
  const_reverse_iterator rend() const;

  // All segments together.
  uint64_t file_bytes() const { return file_bytes_; }
  uint64_t resident_bytes() const { return resident_bytes_; }

 private:
  static constexpr size_t chunk_segments = 128;
  using Chunk = std::vector<value_type>;  // oldest first

  void add(std::span<const value_type> newest_first);

  // Oldest first. All but the last one are full.
  std::vector<std::shared_ptr<const Chunk>> chunks_;
  size_t size_ = 0;
  uint64_t file_bytes_ = 0, resident_bytes_ = 0;
};

class SegmentList::const_iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = SegmentList::value_type;
  using difference_type = ptrdiff_t;
  using pointer = const value_type*;
  using reference = const value_type&;

  const_iterator() = default;
  const_iterator(const SegmentList* list, size_t i) : list_(list), i_(i) {}
  reference operator*() const { return (*list_)[i_]; }
  pointer operator->() const { return &(*list_)[i_]; }
  reference operator[](difference_type n) const { return *(*this + n); }
  const_iterator& operator+=(difference_type n) {
    i_ += static_cast<size_t>(n);
    return *this;
  }
  const_iterator& operator-=(difference_type n) { return *this += -n; }
  const_iterator& operator++() { return *this += 1; }
  const_iterator& operator--() { return *this += -1; }
  const_iterator operator++(int) { return std::exchange(*this, *this + 1); }
  const_iterator operator--(int) { return std::exchange(*this, *this - 1); }
  friend const_iterator operator+(const_iterator a, difference_type n) { return a += n; }
  friend const_iterator operator+(difference_type n, const_iterator a) { return a += n; }
  friend const_iterator operator-(const_iterator a, difference_type n) { return a -= n; }
  friend difference_type operator-(const_iterator a, const_iterator b) {
    return static_cast<difference_type>(a.i_) - static_cast<difference_type>(b.i_);
  }
  friend bool operator==(const_iterator a, const_iterator b) { return a.i_ == b.i_; }
  friend auto operator<=>(const_iterator a, const_iterator b) { return a.i_ <=> b.i_; }

 private:
  const SegmentList* list_ = nullptr;
  size_t i_ = 0;
};

inline SegmentList::const_iterator SegmentList::begin() const { return {this, 0}; }
inline SegmentList::const_iterator SegmentList::end() const { return {this, size_}; }
inline SegmentList::const_reverse_iterator SegmentList::rbegin() const {
  return const_reverse_iterator(end());
}
inline SegmentList::const_reverse_iterator SegmentList::rend() const {
  return const_reverse_iterator(begin());
}

}  // namespace stride
