// The templates of segment_builder.h, for those that instantiate them for rows of their own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/build/equal_values.h"
#include "engine/build/filter_builder.h"
#include "engine/build/segment_builder.h"
#include "gpu/plan/tree_planner.h"
#include "storage/key_filter.h"
#include "storage/prefetch.h"
#include "storage/work_watch.h"

namespace stride {
namespace segment_building {

// What it takes to index and to write a row, beside the 4 units of a sort (WorkWatch).
inline constexpr uint64_t index_units = 2, write_units = 4;

inline constexpr uint64_t group_rows = uint64_t{1} << PackedOffsets::group_bits;
inline constexpr uint64_t groups_per_task = 64;
inline constexpr uint64_t prefetch_distance = 16;

// A sample of fewer rows would take more room than it is worth.
inline constexpr uint64_t min_sampled_rows = 1 << 16;

// The lengths of a column's rows and where each group of 128 begins.
struct ColumnShape {
  BulkVector<uint32_t> lengths;
  std::vector<uint64_t> bases;  // (rows >> 7) + 1, and the total behind them
  uint64_t total = 0;
  uint32_t width = 0;  // of all rows, where fixed
  bool fixed = true;
  uint32_t delta_width = 2;

  uint64_t groups() const { return (lengths.size() + group_rows - 1) / group_rows; }
  uint64_t stored_bases() const { return (lengths.size() >> PackedOffsets::group_bits) + 1; }
  // The bytes of the sections.
  uint64_t stored_bytes() const {
    return fixed ? total : total + stored_bases() * 8 + (lengths.size() + 1) * delta_width;
  }
};

struct Extremes {
  std::atomic<uint32_t> shortest{0xFFFFFFFF}, longest{0};
  std::atomic<uint64_t> widest_group{0};

  template <class T>
  static void raise(std::atomic<T>& to, T value) {
    T seen = to.load(std::memory_order_relaxed);
    while (seen < value && !to.compare_exchange_weak(seen, value)) {
    }
  }
  static void lower(std::atomic<uint32_t>& to, uint32_t value) {
    uint32_t seen = to.load(std::memory_order_relaxed);
    while (value < seen && !to.compare_exchange_weak(seen, value)) {
    }
  }
};

// One pass over the rows' lengths.
template <class Length, class Prefetch>
ColumnShape measure(Backend& backend, uint64_t rows, const Length& length,
                    const Prefetch& prefetch_source) {
  ColumnShape shape;
  shape.lengths.resize(rows);
  shape.bases.resize((rows >> PackedOffsets::group_bits) + 2);
  Extremes extremes;
  backend.parallel_for(shape.groups(), groups_per_task, [&](uint64_t begin, uint64_t end) {
    uint32_t shortest = 0xFFFFFFFF, longest = 0;
    uint64_t widest = 0;
    for (uint64_t g = begin; g < end; ++g) {
      uint64_t sum = 0;
      for (uint64_t i = g * group_rows; i < std::min(rows, (g + 1) * group_rows); ++i) {
        if (i + prefetch_distance < rows) prefetch_source(i + prefetch_distance);
        uint32_t n = length(i);
        shape.lengths[i] = n;
        shortest = std::min(shortest, n);
        longest = std::max(longest, n);
        sum += n;
      }
      shape.bases[g] = sum;
      widest = std::max(widest, sum);
    }
    Extremes::lower(extremes.shortest, shortest);
    Extremes::raise(extremes.longest, longest);
    Extremes::raise(extremes.widest_group, widest);
  });
  for (uint64_t& base : shape.bases) {
    uint64_t sum = base;
    base = shape.total;
    shape.total += sum;
  }
  shape.fixed = extremes.shortest == extremes.longest;
  shape.width = shape.fixed ? extremes.longest.load() : 0;
  uint64_t widest = extremes.widest_group;
  shape.delta_width = widest <= 0xFFFF ? 2 : widest <= 0xFFFFFFFF ? 4 : 8;
  return shape;
}

template <class Delta>
void fill_deltas_of(Backend& backend, const ColumnShape& shape, std::span<std::byte> section) {
  auto* deltas = reinterpret_cast<Delta*>(section.data());
  uint64_t rows = shape.lengths.size();
  // Row `rows` begins where the column ends, so there is one delta more than rows.
  uint64_t groups = (rows >> PackedOffsets::group_bits) + 1;
  backend.parallel_for(groups, groups_per_task, [&](uint64_t begin, uint64_t end) {
    for (uint64_t g = begin; g < end; ++g) {
      uint64_t at = 0;
      for (uint64_t i = g * group_rows; i <= std::min(rows, (g + 1) * group_rows - 1); ++i) {
        deltas[i] = static_cast<Delta>(at);
        if (i < rows) at += shape.lengths[i];
      }
    }
  });
}

inline void fill_deltas(Backend& backend, const ColumnShape& shape, std::span<std::byte> deltas) {
  switch (shape.delta_width) {
    case 2:
      fill_deltas_of<uint16_t>(backend, shape, deltas);
      break;
    case 4:
      fill_deltas_of<uint32_t>(backend, shape, deltas);
      break;
    default:
      fill_deltas_of<uint64_t>(backend, shape, deltas);
      break;
  }
}

// Copies rows to where the shape says, in tasks of whole groups; calls done(piece) for each that is
// finished.
template <class Row, class Prefetch, class Done>
void gather(Backend& backend, const ColumnShape& shape, std::byte* out, const Row& row,
            const Prefetch& prefetch_source, const Done& done) {
  uint64_t rows = shape.lengths.size();
  backend.parallel_for(shape.groups(), groups_per_task, [&](uint64_t begin, uint64_t end) {
    Bytes ahead[prefetch_distance];
    uint64_t first = begin * group_rows, last = std::min(rows, end * group_rows);
    auto look_ahead = [&](uint64_t i) {
      Bytes b = row(i);
      ahead[i % prefetch_distance] = b;
      for (uint64_t at = 0; at < b.size() && at < 256; at += 64) prefetch(b.data() + at);
      if (!b.empty()) prefetch(b.data() + std::min<uint64_t>(b.size() - 1, 255));
    };
    for (uint64_t i = first; i < std::min(last, first + 2 * prefetch_distance); ++i)
      prefetch_source(i);
    for (uint64_t i = first; i < std::min(last, first + prefetch_distance); ++i) look_ahead(i);
    std::byte* piece = out + shape.bases[begin];
    std::byte* to = piece;
    for (uint64_t i = first; i < last; ++i) {
      Bytes b = ahead[i % prefetch_distance];
      if (!b.empty()) std::memcpy(to, b.data(), b.size());
      to += b.size();
      if (i + prefetch_distance < last) look_ahead(i + prefetch_distance);
      if (i + 2 * prefetch_distance < last) prefetch_source(i + 2 * prefetch_distance);
    }
    done(std::span<const std::byte>(piece, to));
  });
}

// The key column in memory of its own, for the tree is built over it before the size of the segment
// is known.
struct KeyMemory {
  ColumnShape shape;
  BulkVector<std::byte> data;  // not used where the rows have keys8
  std::vector<std::byte> deltas;
  PackedColumn column;
};

template <class Rows>
void collect_keys(const Rows& rows, Backend& backend, KeyMemory* keys) {
  ColumnShape& shape = keys->shape;
  PackedColumn& column = keys->column;
  column.size = rows.size();
  if (const uint64_t* keys8 = rows.keys8()) {
    shape.width = column.width = 8;
    column.data = reinterpret_cast<const std::byte*>(keys8);
    column.data_bytes = rows.size() * 8;
    return;
  }
  shape = measure(
      backend, rows.size(), [&](uint64_t i) { return static_cast<uint32_t>(rows.key(i).size()); },
      [&](uint64_t i) { rows.prefetch_offsets(i); });
  keys->data.resize(shape.total);
  gather(
      backend, shape, keys->data.data(), [&](uint64_t i) { return rows.key(i); },
      [&](uint64_t i) { rows.prefetch_offsets(i); }, [](std::span<const std::byte>) {});
  column.data = keys->data.data();
  column.data_bytes = shape.total;
  column.width = shape.width;
  column.fixed = shape.fixed;
  if (shape.fixed) return;
  keys->deltas.resize((rows.size() + 1) * shape.delta_width);
  fill_deltas(backend, shape, keys->deltas);
  column.offsets = {shape.bases.data(), keys->deltas.data(), shape.delta_width};
}

// With the bulk backend; sample: what the tree was planned from, for the file, if it was.
inline Status build_tree(const PackedColumn& keys, const TreeOptions& options, Backend& host,
                         Backend& bulk, std::vector<std::byte>* tree, std::string* sample) {
  if (!options.strides.empty() || keys.size < min_sampled_rows)
    return bulk.tree_index().build_tree(keys, options, tree);
  KeyStatistics statistics;
  STRIDE_TRY(host.tree_index().measure_keys(keys, {}, &statistics));
  *sample = statistics.serialize();
  auto run_each = [&](uint64_t n, const auto& body) { host.parallel_for(n, 1, body); };
  return bulk.tree_index().build_tree(
      keys, with_strides(statistics, bulk.tree_index().access_costs(), options, run_each), tree);
}

inline void write_section(Backend& backend, SegmentWriter& writer, SectionType type,
                          const void* from, uint64_t bytes) {
  std::span<std::byte> section = writer.add_section(type, bytes);
  backend.parallel_for(bytes, 1 << 20, [&](uint64_t begin, uint64_t end) {
    std::memcpy(section.data() + begin, static_cast<const std::byte*>(from) + begin, end - begin);
    writer.complete(section.subspan(begin, end - begin));
  });
}

inline void write_keys(const KeyMemory& keys, Backend& backend, SegmentWriter& writer,
                       SegmentSummary* summary) {
  const PackedColumn& column = keys.column;
  write_section(backend, writer, SectionType::key_data, column.data, column.data_bytes);
  summary->fixed_keys = column.fixed;
  summary->key_width = column.width;
  summary->first_key = column[0];
  summary->last_key = column[column.size - 1];
  if (column.fixed) return;
  summary->key_delta_width = column.offsets.delta_width;
  write_section(backend, writer, SectionType::key_bases, column.offsets.bases,
                keys.shape.stored_bases() * 8);
  write_section(backend, writer, SectionType::key_deltas, keys.deltas.data(), keys.deltas.size());
}

inline void write_filter(const PackedColumn& keys, Backend& backend, SegmentWriter& writer,
                         uint64_t bytes) {
  if (bytes == 0) return;
  std::span<std::byte> blocks = writer.add_section(SectionType::key_filter, bytes);
  build_filter(keys, backend, blocks);
  writer.complete(blocks);
}

template <class Rows>
void write_kinds(const Rows& rows, Backend& backend, SegmentWriter& writer,
                 SegmentSummary* summary) {
  std::atomic<uint64_t> tombstones{0};
  backend.parallel_for(rows.size(), 1 << 16, [&](uint64_t begin, uint64_t end) {
    uint64_t n = 0;
    for (uint64_t i = begin; i < end; ++i) n += rows.kind(i) != EntryKind::put;
    tombstones += n;
  });
  summary->tombstones = tombstones;
  if (tombstones == 0) return;
  std::span<std::byte> section = writer.add_section(SectionType::kinds, rows.size());
  backend.parallel_for(rows.size(), 1 << 16, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) section[i] = static_cast<std::byte>(rows.kind(i));
  });
  writer.complete(section);
}

// The column of values, and where it has each value once: which of them each row has.
struct ValueMemory {
  ColumnShape shape;
  EqualValues equal;  // empty: each row has its own
  uint64_t unshared_bytes = 0;
};

template <class Rows>
ColumnShape measure_values(const Rows& rows, Backend& backend) {
  return measure(
      backend, rows.size(), [&](uint64_t i) { return static_cast<uint32_t>(rows.value(i).size()); },
      [&](uint64_t i) { rows.prefetch_offsets(i); });
}

// Shares equal values, unless that makes the segment no smaller.
template <class Rows>
Status share_values(const Rows& rows, Backend& backend, ValueMemory* values) {
  uint64_t unshared = values->shape.stored_bytes();
  EqualValues equal;
  STRIDE_TRY(find_equal_values(
      rows, [&](uint64_t row) { return values->shape.lengths[row]; }, backend, unshared, &equal));
  if (equal.empty()) return {};
  ColumnShape shape = measure_values(DistinctRows<Rows>{rows, equal}, backend);
  if (shape.stored_bytes() + equal.stored_bytes() >= unshared) return {};
  *values = {std::move(shape), std::move(equal), unshared};
  return {};
}

inline void write_numbers(const EqualValues& equal, Backend& backend, SegmentWriter& writer) {
  std::span<std::byte> section =
      writer.add_section(SectionType::value_numbers, equal.stored_bytes());
  uint32_t width = ValueRows::width_for(equal.firsts.size());
  backend.parallel_for(equal.numbers.size(), 1 << 16, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i)
      std::memcpy(section.data() + i * width, &equal.numbers[i], width);
    writer.complete(section.subspan(begin * width, (end - begin) * width));
  });
}

template <class Rows>
void write_values(const Rows& rows, const ColumnShape& shape, Backend& backend,
                  SegmentWriter& writer, SegmentSummary* summary) {
  if (!shape.fixed) {
    auto bases = writer.add_section(SectionType::value_bases, shape.stored_bases() * 8);
    auto deltas =
        writer.add_section(SectionType::value_deltas, (rows.size() + 1) * shape.delta_width);
    std::memcpy(bases.data(), shape.bases.data(), bases.size());
    fill_deltas(backend, shape, deltas);
    writer.complete(bases);
    writer.complete(deltas);
    summary->value_delta_width = shape.delta_width;
  }
  std::span<std::byte> data = writer.add_section(SectionType::value_data, shape.total);
  WorkWatch* watch = WorkWatch::current();
  gather(
      backend, shape, data.data(), [&](uint64_t i) { return rows.value(i); },
      [&](uint64_t i) { rows.prefetch_offsets(i); },
      [&](std::span<const std::byte> piece) {
        writer.complete(piece);
        if (watch) watch->add(piece.size());
      });
  summary->fixed_values = shape.fixed;
  summary->value_width = shape.width;
}

inline Status check_stop(const SegmentBuildOptions& options) {
  if (!options.stop || !*options.stop) return WorkWatch::check();
  return Status(StatusCode::closed, "the database is being closed").with_file(options.path);
}

}  // namespace segment_building

template <class Rows>
Result<std::shared_ptr<Segment>> build_segment(const Rows& rows,
                                               const SegmentBuildOptions& options) {
  using namespace segment_building;
  Backend& backend = *options.executor->host();
  WorkWatch* watch = WorkWatch::current();
  if (watch) watch->begin_step(index_units * rows.size(), 0);
  KeyMemory keys;
  collect_keys(rows, backend, &keys);
  std::vector<std::byte> tree;
  std::string sample;
  if (options.tree)
    STRIDE_TRY(options.executor->run_bulk(rows.size(), [&](Backend& bulk) {
      return build_tree(keys.column, *options.tree, backend, bulk, &tree, &sample);
    }));
  STRIDE_TRY(check_stop(options));
  ValueMemory values{measure_values(rows, backend), {}};
  if (options.share_equal_values) STRIDE_TRY(share_values(rows, backend, &values));
  STRIDE_TRY(check_stop(options));
  const bool shared = !values.equal.empty();
  const uint64_t filter_bytes = options.key_filter ? KeyFilter::bytes_for(rows.size()) : 0;
  // Offsets of at most 8.1 bytes for both columns, kinds, and a few more for the last of each.
  uint64_t bytes = keys.column.data_bytes + tree.size() + values.shape.total +
                   values.equal.stored_bytes() + sample.size() + filter_bytes + rows.size() * 18 +
                   256;
  auto writer =
      options.fs ? SegmentWriter::create(*options.fs, options.path, options.id,
                                         {.max_bytes = bytes,
                                          .keep_resident = bytes <= options.resident_budget_bytes,
                                          .io = options.io})
                 : SegmentWriter::create_in_memory(bytes);
  if (!writer.ok()) return writer.status();

  // Values are gathered, and all is written.
  if (watch)
    watch->begin_step(write_units * rows.size(), values.shape.total + bytes - 18 * rows.size(),
                      rows.size());
  SegmentSummary summary;
  summary.rows = rows.size();
  write_keys(keys, backend, **writer, &summary);
  if (!tree.empty()) write_section(backend, **writer, SectionType::tree, tree.data(), tree.size());
  if (!sample.empty())
    write_section(backend, **writer, SectionType::key_sample, sample.data(), sample.size());
  write_filter(keys.column, backend, **writer, filter_bytes);
  write_kinds(rows, backend, **writer, &summary);
  if (shared) {
    write_numbers(values.equal, backend, **writer);
    summary.distinct_values = values.equal.firsts.size();
    summary.unshared_bytes = values.unshared_bytes;
    DistinctRows<Rows> distinct{rows, values.equal};
    write_values(distinct, values.shape, backend, **writer, &summary);
  } else {
    write_values(rows, values.shape, backend, **writer, &summary);
  }
  STRIDE_TRY(check_stop(options));
  auto segment = (*writer)->finish(summary, options.wait);
  if (watch) watch->end_step();
  return segment;
}

}  // namespace stride
