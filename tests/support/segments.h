// Segments made from rows, for the tests of what reads them.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/key_filter.h"
#include "storage/segment.h"
#include "storage/segment_writer.h"
#include "tests/support/catch.h"

namespace stride::test {

struct Row {
  std::string key;
  std::string value{};
  EntryKind kind = EntryKind::put;
};

struct SegmentOptions {
  bool fixed_keys = false;
  bool fixed_values = false;
  uint32_t delta_width = 2;
  std::string tree{};
  std::string key_sample{};
  bool key_filter = false;
  bool keep_resident = true;
  unsigned io_threads = 2;
  WaitFor wait = WaitFor::sync;
  bool share_values = false;
};

struct Packed {
  std::string data;
  std::vector<uint64_t> bases;
  std::string deltas;
};

inline Packed pack(const std::vector<std::string>& strings, uint32_t delta_width) {
  Packed packed;
  for (size_t row = 0; row <= strings.size(); ++row) {
    if (row % 128 == 0) packed.bases.push_back(packed.data.size());
    uint64_t delta = packed.data.size() - packed.bases.back();
    packed.deltas.append(reinterpret_cast<const char*>(&delta), delta_width);
    if (row < strings.size()) packed.data += strings[row];
  }
  return packed;
}

inline std::string_view bytes_of(const std::vector<uint64_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * 8};
}

// Adds sections and completes each of them.
class SectionFiller {
 public:
  explicit SectionFiller(SegmentWriter& writer) : writer_(writer) {}
  void add(SectionType type, std::string_view bytes) {
    std::span<std::byte> out = writer_.add_section(type, bytes.size());
    REQUIRE(out.size() == bytes.size());
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    writer_.complete(out);
  }
  void add_column(SectionType data, bool fixed, const std::vector<std::string>& strings,
                  uint32_t delta_width) {
    Packed packed = pack(strings, delta_width);
    add(data, packed.data);
    if (fixed) return;
    add(SectionType{static_cast<uint32_t>(data) + 1}, bytes_of(packed.bases));
    add(SectionType{static_cast<uint32_t>(data) + 2}, packed.deltas);
  }

 private:
  SegmentWriter& writer_;
};

inline uint64_t bound(const std::vector<Row>& rows, const SegmentOptions& options) {
  uint64_t bytes = 64 + options.tree.size() + options.key_sample.size();
  for (const Row& row : rows) bytes += row.key.size() + row.value.size() + 33;
  if (options.key_filter) bytes += KeyFilter::bytes_for(rows.size());
  return bytes;
}

inline Result<std::shared_ptr<Segment>> write_segment(FileSystem& fs, const std::string& path,
                                                      uint64_t id, const std::vector<Row>& rows,
                                                      const SegmentOptions& options = {}) {
  auto writer = SegmentWriter::create(fs, path, id,
                                      {bound(rows, options), options.keep_resident,
                                       std::make_shared<IoThreads>(options.io_threads)});
  if (!writer.ok()) return writer.status();
  SegmentSummary summary{.rows = rows.size(),
                         .fixed_keys = options.fixed_keys,
                         .fixed_values = options.fixed_values,
                         .key_delta_width = options.delta_width,
                         .value_delta_width = options.delta_width};
  std::vector<std::string> keys, values;
  std::string kinds;
  for (const Row& row : rows) {
    keys.push_back(row.key);
    values.push_back(row.value);
    kinds.push_back(static_cast<char>(row.kind));
    summary.tombstones += row.kind == EntryKind::tombstone;
  }
  if (!rows.empty()) {
    summary.key_width = static_cast<uint32_t>(keys[0].size());
    summary.value_width = static_cast<uint32_t>(values[0].size());
    summary.first_key = as_bytes(keys.front());
    summary.last_key = as_bytes(keys.back());
  }
  std::string numbers;
  if (options.share_values) {
    std::vector<std::string> distinct;
    std::vector<size_t> of_row;
    for (const std::string& value : values) {
      auto found = std::find(distinct.begin(), distinct.end(), value);
      of_row.push_back(static_cast<size_t>(found - distinct.begin()));
      if (found == distinct.end()) distinct.push_back(value);
    }
    for (size_t number : of_row)
      numbers.append(reinterpret_cast<const char*>(&number), ValueRows::width_for(distinct.size()));
    summary.distinct_values = distinct.size();
    Packed unshared = pack(values, options.delta_width);
    summary.unshared_bytes = unshared.data.size();
    if (!options.fixed_values)
      summary.unshared_bytes += bytes_of(unshared.bases).size() + unshared.deltas.size();
    values = distinct;
  }
  SectionFiller filler(**writer);
  filler.add_column(SectionType::key_data, options.fixed_keys, keys, options.delta_width);
  filler.add_column(SectionType::value_data, options.fixed_values, values, options.delta_width);
  if (options.share_values) filler.add(SectionType::value_numbers, numbers);
  bool all_puts = kinds.find_first_not_of('\0') == std::string::npos;
  if (!all_puts) filler.add(SectionType::kinds, kinds);
  if (!options.tree.empty()) filler.add(SectionType::tree, options.tree);
  if (!options.key_sample.empty()) filler.add(SectionType::key_sample, options.key_sample);
  if (options.key_filter) {
    std::span<std::byte> blocks =
        (*writer)->add_section(SectionType::key_filter, KeyFilter::bytes_for(rows.size()));
    for (const std::string& key : keys) KeyFilter::add(blocks, hash_key(as_bytes(key)));
  }
  return (*writer)->finish(summary, options.wait);
}

// What a reader sees, guard and all, in the form that write_segment takes.
inline Status read_rows(Segment& segment, std::vector<Row>* rows) {
  auto ensured = [&](Bytes bytes) {
    return segment.ensure(bytes.data(), bytes.size()) ? Status() : segment.failure();
  };
  for (auto type : {SectionType::key_bases, SectionType::key_deltas, SectionType::value_bases,
                    SectionType::value_deltas, SectionType::kinds, SectionType::value_numbers,
                    SectionType::key_filter}) {
    STRIDE_TRY(ensured(segment.section(type)));
  }
  if (!segment.ensure_section(SectionType::key_sample)) return segment.failure();
  PackedColumn keys = segment.keys();
  ValueRows values = segment.values();
  for (uint64_t i = 0; i < segment.rows(); ++i) {
    STRIDE_TRY(ensured(keys[i]));
    STRIDE_TRY(ensured(values[i]));
    EntryKind kind = segment.kinds() ? EntryKind{segment.kinds()[i]} : EntryKind::put;
    rows->push_back({std::string(as_text(keys[i])), std::string(as_text(values[i])), kind});
  }
  return {};
}

inline bool operator==(const Row& a, const Row& b) {
  return a.key == b.key && a.value == b.value && a.kind == b.kind;
}

}  // namespace stride::test
