// The tables of a version, by ascending id. Immutable: the list of the next version shares all
// parts of this one but those that it changes, so that a commit beside many tables costs little
// more than one beside few.
//
//   TableList next = list.with_replaced({{list_position, table}});
//   for (size_t i = 0; i < next.size(); ++i) use(*next[i]);
#pragma once

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

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const value_type& operator[](size_t i) const {
    return (*chunks_[i / chunk_tables])[i % chunk_tables];
  }
  std::vector<value_type> all() const;

 private:
  static constexpr size_t chunk_tables = 128;
  using Chunk = std::vector<value_type>;

  void add(std::span<const value_type> tables);

  std::vector<std::shared_ptr<const Chunk>> chunks_;  // all but the last one are full
  size_t size_ = 0;
};

}  // namespace stride
