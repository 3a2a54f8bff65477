#include "adapters/cli/commands/column_groups.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>

namespace stride::cli {
namespace {

bool is_signed_type(FieldType type) { return type >= FieldType::i8 && type <= FieldType::i64; }
bool is_float_type(FieldType type) { return type == FieldType::f32 || type == FieldType::f64; }

}  // namespace

size_t ColumnGroups::Hash::operator()(std::string_view text) const {
  return XXH3_64bits(text.data(), text.size());
}

ColumnGroups::ColumnGroups(std::vector<NamedColumn> by, const std::vector<Aggregate>& aggregates)
    : by_(std::move(by)) {
  for (const NamedColumn& column : by_) compare_.push_back(comparison_of(column.field));
  for (const Aggregate& aggregate : aggregates)
    kept_.push_back({aggregate.kind, aggregate.column, comparison_of(aggregate.column.field),
                     is_float_type(aggregate.column.field.type)});
}

Field ColumnGroups::result_of(const Aggregate& aggregate) {
  Field field = aggregate.column.field;
  field.nullable = true;
  if (aggregate.kind != AggregateKind::sum) return field;
  field.type = is_float_type(field.type)    ? FieldType::f64
               : is_signed_type(field.type) ? FieldType::i64
                                            : FieldType::u64;
  return field;
}

size_t ColumnGroups::group_of(const TableCells& cells) {
  row_.clear();
  for (const NamedColumn& column : by_) {
    const bool is_null = cells.is_null(column);
    row_ += static_cast<char>(!is_null);
    if (is_null) continue;
    const Bytes cell = cells[column];
    const uint64_t length = cell.size();
    if (cell_width(column.field) == 0)
      row_.append(reinterpret_cast<const char*>(&length), sizeof length);
    append_same_bytes(column.field, cell, &row_);
  }
  const auto found = places_.find(std::string_view(row_));
  if (found != places_.end()) return found->second;
  const auto made = places_.emplace(row_, groups_.size()).first;
  groups_.push_back(&made->first);
  counts_.push_back(0);
  states_.resize(states_.size() + kept_.size());
  return made->second;
}

void ColumnGroups::update(const Kept& kept, Bytes cell, State* state) const {
  if (kept.kind == AggregateKind::sum) {
    with_number_of(kept.column.field.type, [&](auto number) {
      std::memcpy(&number, cell.data(), sizeof number);
      if constexpr (std::is_floating_point_v<decltype(number)>) {
        state->real += static_cast<double>(number);
        // Which sign a NaN gets differs from one compiler to the next.
        if (std::isnan(state->real)) state->real = std::numeric_limits<double>::quiet_NaN();
      } else {
        state->integer += number;
      }
    });
  } else {
    const int c = state->any ? kept.compare(cell, as_bytes(state->cell)) : 0;
    const bool better = kept.kind == AggregateKind::min ? c < 0 : c > 0;
    if (better || !state->any) state->cell.assign(as_text(cell));
  }
  state->any = true;
}

void ColumnGroups::add(const TableCells& cells) {
  const size_t group = group_of(cells);
  ++counts_[group];
  for (size_t i = 0; i < kept_.size(); ++i)
    if (!cells.is_null(kept_[i].column))
      update(kept_[i], cells[kept_[i].column], &states_[group * kept_.size() + i]);
}

std::optional<Bytes> ColumnGroups::take_cell(size_t column, Bytes* group) const {
  const bool is_there = std::to_integer<int>((*group)[0]) != 0;
  *group = group->subspan(1);
  if (!is_there) return std::nullopt;
  uint64_t length = cell_width(by_[column].field);
  if (length == 0) {
    std::memcpy(&length, group->data(), sizeof length);
    *group = group->subspan(sizeof length);
  }
  const Bytes cell = group->first(length);
  *group = group->subspan(length);
  return cell;
}

int ColumnGroups::compare_groups(size_t a, size_t b) const {
  Bytes left = as_bytes(*groups_[a]), right = as_bytes(*groups_[b]);
  for (size_t i = 0; i < by_.size(); ++i) {
    const std::optional<Bytes> x = take_cell(i, &left), y = take_cell(i, &right);
    const int c = x && y ? compare_[i](*x, *y) : int{x.has_value()} - int{y.has_value()};
    if (c != 0) return c;
  }
  return 0;
}

int ColumnGroups::compare_ranks(size_t a, size_t b) const {
  if (kept_.empty() || kept_[0].kind != AggregateKind::sum)
    return int{counts_[a] > counts_[b]} - int{counts_[a] < counts_[b]};
  const State &x = state(a, 0), &y = state(b, 0);
  if (!x.any || !y.any) return int{x.any} - int{y.any};
  if (!kept_[0].is_float) return int{x.integer > y.integer} - int{x.integer < y.integer};
  Field f64;
  f64.type = FieldType::f64;
  auto bytes = [](const double& real) { return std::as_bytes(std::span(&real, 1)); };
  return comparison_of(f64)(bytes(x.real), bytes(y.real));
}

std::vector<size_t> ColumnGroups::sorted() const {
  std::vector<size_t> order(groups_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [this](size_t a, size_t b) { return compare_groups(a, b) < 0; });
  return order;
}

std::vector<size_t> ColumnGroups::highest(uint64_t most) const {
  std::vector<size_t> order(groups_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t n = std::min<uint64_t>(most, order.size());
  const auto end = order.begin() + static_cast<ptrdiff_t>(n);
  std::partial_sort(order.begin(), end, order.end(), [this](size_t a, size_t b) {
    const int c = compare_ranks(a, b);
    return c != 0 ? c > 0 : compare_groups(a, b) < 0;
  });
  order.resize(n);
  return order;
}

bool ColumnGroups::cells_of(size_t group, std::vector<std::optional<Bytes>>* cells,
                            size_t* too_large) {
  cells->clear();
  Bytes left = as_bytes(*groups_[group]);
  for (size_t i = 0; i < by_.size(); ++i) cells->push_back(take_cell(i, &left));
  results_.resize(kept_.size());
  bool fits = true;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const State& of = state(group, i);
    if (!of.any) {
      cells->push_back(std::nullopt);
      continue;
    }
    if (kept_[i].kind != AggregateKind::sum) {
      cells->push_back(as_bytes(of.cell));
      continue;
    }
    const bool is_signed = is_signed_type(kept_[i].column.field.type);
    const Wide least = is_signed ? Wide{std::numeric_limits<int64_t>::min()} : Wide{0};
    const Wide most = is_signed ? Wide{std::numeric_limits<int64_t>::max()}
                                : Wide{std::numeric_limits<uint64_t>::max()};
    if (fits && (of.integer < least || of.integer > most)) {
      fits = false;
      *too_large = i;
    }
    results_[i] = static_cast<uint64_t>(of.integer);
    if (kept_[i].is_float) std::memcpy(&results_[i], &of.real, sizeof of.real);
    cells->push_back(std::as_bytes(std::span(&results_[i], 1)));
  }
  return fits;
}

}  // namespace stride::cli
