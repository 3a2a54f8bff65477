// The tables of a version, by ascending id. Immutable: the list of the next version shares all
// parts of this one but those that it changes, so that a commit beside many tables costs little
// more than one beside few, and so does a drop.
//
//   TableList next = list.with_replaced({{list_position, table}});
//   for (size_t i = 0; i < next.size(); ++i) use(*next[i]);
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace stride {

struct TableVersion;

class TableList {
 public:
  using value_type = std::shared_ptr<const TableVersion>;

  TableList() = default;
  explicit TableList(std::span<const value_type> tables) { add(tables); }

  // Other tables at some positions, which ascend.
  using Replacement = std::pair<size_t, value_type>;
  TableList with_replaced(std::span<const Replacement> replaced) const;
  TableList with_added(std::span<const value_type> tables) const;  // behind all others
  TableList without(std::span<const size_t> positions) const;      // which ascend

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const value_type& operator[](size_t i) const {
    const size_t chunk = chunk_of(i);
    return (*chunks_[chunk])[i - begins_[chunk]];
  }
  std::vector<value_type> all() const;

 private:
  static constexpr size_t chunk_tables = 128;
  using Chunk = std::vector<value_type>;

  void add(std::span<const value_type> tables);
  // Adds a chunk behind all others, or joins it to the last one where both are small. Empty ones
  // are passed over.
  void add_chunk(std::shared_ptr<const Chunk> chunk);
  size_t chunk_of(size_t position) const {
    const auto behind = std::upper_bound(begins_.begin(), begins_.end(), position);
    return static_cast<size_t>(behind - begins_.begin()) - 1;
  }

  std::vector<std::shared_ptr<const Chunk>> chunks_;  // none is empty
  std::vector<size_t> begins_;                        // of the chunks: positions
  size_t size_ = 0;
};

}  // namespace stride
