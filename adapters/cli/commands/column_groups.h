// Groups of rows that have equal cells, with counts, sums and extremes.
//
//   ColumnGroups groups(by, {{AggregateKind::sum, amount}});
//   while (...) groups.add(cells);                       // the row that was read last
//   for (size_t g : groups.sorted()) ...
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "adapters/cli/commands/table_cells.h"
#include "storage/column.h"

namespace stride::cli {

// What is made of the cells of a column. Cells that are null do not count.
enum class AggregateKind : uint8_t { sum, min, max };
struct Aggregate {
  AggregateKind kind = AggregateKind::sum;
  NamedColumn column;
};

class ColumnGroups {
 public:
  // Precondition: sums are of columns of one integer, float or boolean.
  ColumnGroups(std::vector<NamedColumn> by, const std::vector<Aggregate>& aggregates);

  void add(const TableCells& cells);
  // Numbers of groups, ascending by their cells, of which a null comes before all others.
  std::vector<size_t> sorted() const;
  // Those with the highest counts, or with the largest sums where the first aggregate is a sum; as
  // many as `most`, the highest first.
  std::vector<size_t> highest(uint64_t most) const;

  // The cells of a group, then those of its aggregates; nothing where they are null. Views, valid
  // until the next call. False: 64 bits do not hold a sum, whose place among the aggregates
  // *too_large is then.
  bool cells_of(size_t group, std::vector<std::optional<Bytes>>* cells, size_t* too_large);
  uint64_t count_of(size_t group) const { return counts_[group]; }
  // The type of an aggregate's cells.
  static Field result_of(const Aggregate& aggregate);

 private:
  __extension__ using Wide = __int128;
  struct Kept {
    AggregateKind kind;
    NamedColumn column;
    CompareCells compare;
    bool is_float;
  };
  struct State {
    bool any = false;
    Wide integer = 0;  // holds the sum of as many 64-bit numbers as there can be rows
    double real = 0;
    std::string cell;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const;
  };

  size_t group_of(const TableCells& cells);
  void update(const Kept& kept, Bytes cell, State* state) const;
  // Takes the cell at the beginning of a group's bytes off.
  std::optional<Bytes> take_cell(size_t column, Bytes* group) const;
  int compare_groups(size_t a, size_t b) const;
  // They are ordered by count or by the first sum.
  int compare_ranks(size_t a, size_t b) const;
  const State& state(size_t group, size_t aggregate) const {
    return states_[group * kept_.size() + aggregate];
  }

  std::vector<NamedColumn> by_;
  std::vector<CompareCells> compare_;
  std::vector<Kept> kept_;
  // Each cell as a byte that says whether it is there, its length where lengths differ, its bytes.
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> places_;
  std::vector<const std::string*> groups_;
  std::vector<uint64_t> counts_;
  std::vector<State> states_;
  std::string row_;                // of the row that is added, its group's bytes
  std::vector<uint64_t> results_;  // of sums, for cells_of()
};

}  // namespace stride::cli
