// The templates of run_builder.h, for those that instantiate them for rows of their own.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/build/run_builder.h"
#include "engine/build/segment_builder_body.h"
#include "engine/catalog/reserve_one_more.h"

namespace stride {
namespace segment_building {

// A run that is cut into segments is cut into such that are no smaller.
inline constexpr uint64_t min_part_bytes = 16 << 20;

template <class Rows>
ExpiryRange expiry_range(const Rows& rows, const TableRecord& table) {
  if (!table.expiry) return {};
  ExpiryRange range = ExpiryRange::of_no_rows();
  const ExpiryCheck cell = table.expiry->at(0);
  for (uint64_t i = 0; i < rows.size(); ++i)
    if (rows.kind(i) == EntryKind::put) range.add(cell.end_of(rows.value(i)));
  return range;
}

inline WaitFor wait_for(Durability durability) {
  switch (durability) {
    case Durability::sync:
      return WaitFor::sync;
    case Durability::flush:
      return WaitFor::write;
    case Durability::none:
      break;
  }
  return WaitFor::space;
}

}  // namespace segment_building

template <class Rows>
Status RunBuilder::build(const Rows& rows, const TableRecord& table, RunFilters filters,
                         Durability durability, PendingEdit* pending) {
  const uint64_t budget = resident_budget(*pending);
  // While it is built a segment is in memory as a whole.
  const uint64_t part =
      std::max(context_.options.memory_limit_bytes / 8, segment_building::min_part_bytes);
  if (rows.max_bytes() <= std::max(budget, part) && rows.size() <= max_index_keys)
    return build_one(RowRange<Rows>{rows, 0, rows.size()}, table, filters, durability, budget,
                     pending);
  std::vector<uint64_t> firsts = cut_rows(rows, part, max_index_keys);
  for (size_t i = 0; i < firsts.size(); ++i) {
    uint64_t end = i + 1 < firsts.size() ? firsts[i + 1] : rows.size();
    STRIDE_TRY(build_one(RowRange<Rows>{rows, firsts[i], end - firsts[i]}, table, filters,
                         durability, /*resident_budget=*/0, pending));
  }
  return {};
}

template <class Rows>
Status RunBuilder::build_one(const RowRange<Rows>& rows, const TableRecord& table,
                             RunFilters filters, Durability durability, uint64_t resident_budget,
                             PendingEdit* pending) {
  SegmentBuildOptions options;
  options.fs = context_.fs.get();
  options.executor = context_.executor.get();
  options.id = versions_.new_id();
  options.path = context_.segment_path(options.id);
  options.tree = &context_.options.tree;
  options.share_equal_values = table.share_equal_values;
  options.key_filter = filters == RunFilters::build && table.address_bits == 0;
  options.resident_budget_bytes = resident_budget;
  options.io = context_.io;
  options.wait = segment_building::wait_for(durability);
  options.stop = pending->stop;
  const bool sync = durability == Durability::sync;
  reserve_one_more(&pending->segments);
  reserve_one_more(&pending->edit.added);
  if (!sync) reserve_one_more(&pending->unsynced);
  auto segment = build_segment(rows, options);
  if (!segment.ok()) {
    Status s = segment.status();
    return sync && s.code() == StatusCode::io_error ? poison_.set(std::move(s)) : s;
  }
  if (!sync) pending->unsynced.push_back({*segment, std::move(options.path)});
  pending->edit.added.push_back({options.id,
                                 table.id,
                                 0,
                                 (*segment)->rows(),
                                 (*segment)->tombstones(),
                                 (*segment)->bytes_on_disk(),
                                 {},
                                 segment_building::expiry_range(rows, table)});
  pending->resident_bytes += (*segment)->resident_bytes();
  pending->segments.push_back(std::move(*segment));
  return {};
}

}  // namespace stride
