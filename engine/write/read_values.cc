#include "engine/write/read_values.h"

#include <algorithm>
#include <optional>
#include <string>

#include "engine/lookup_result.h"
#include "engine/prefix/matcher.h"
#include "engine/read/lookup.h"
#include "engine/read/snapshot_reads.h"
#include "storage/quoted.h"

namespace stride {
namespace {

using State = std::shared_ptr<const SnapshotState>;

// Fewer keys are looked up one by one, which makes no segments of a memtable's rows.
constexpr uint64_t min_batch_keys = 512;
constexpr uint64_t max_batch_keys = 1 << 16;

// what: was read of the key.
Status conflict_about(const TableRecord& table, Bytes key, const char* what) {
  return Status(StatusCode::conflict, "key " + in_quotes(key) + " of table '" + table.name +
                                          "', which " + what + ", was changed by another commit")
      .with_key(std::string(as_text(key)))
      .with_remedy("begin another transaction and do it again, as retry() does");
}

Table handle_of(const TableReads& reads, const State& state) {
  return TableParts::make(reads.table(), state->version()->database, nullptr);
}

Status compare_few_keys(const TableReads& reads, const Table& table, const State& before,
                        const State& now) {
  for (uint64_t i = 0; i < reads.keys().size(); ++i) {
    const Bytes key = reads.keys()[i];
    auto then = get_newest(*before, table, key);
    if (!then.ok()) return then.status();
    auto value = get_newest(*now, table, key);
    if (!value.ok()) return value.status();
    if (then->has_value() != value->has_value() || (then->has_value() && !equal(**then, **value)))
      return changed_key(*reads.table(), key);
  }
  return {};
}

Status compare_many_keys(const TableReads& reads, const Table& table, const State& before,
                         const State& now) {
  auto old_table = before->table(table);
  if (!old_table.ok()) return old_table.status();
  auto new_table = now->table(table);
  if (!new_table.ok()) return new_table.status();
  const KeyColumn keys = reads.keys().column();
  Executor& executor = *now->version()->executor;
  GetResult then, value;
  for (uint64_t begin = 0; begin < keys.size; begin += max_batch_keys) {
    const KeyColumn batch = keys.slice(begin, std::min(max_batch_keys, keys.size - begin));
    STRIDE_TRY(lookup_copies(executor, (*old_table)->segments, batch, &then));
    STRIDE_TRY(lookup_copies(executor, (*new_table)->segments, batch, &value));
    for (uint64_t i = 0; i < batch.size; ++i)
      if (then.found[i] != value.found[i] || !equal(then.values[i], value.values[i]))
        return changed_key(*reads.table(), batch[i]);
  }
  return {};
}

ScanOptions bounds_of(const KeyInterval& interval) {
  ScanOptions bounds;
  bounds.from = std::string(as_text(interval.from));
  if (interval.to) bounds.to = std::string(as_text(*interval.to));
  return bounds;
}

Status compare_interval(const TableReads& reads, const Table& table, const KeyInterval& interval,
                        const State& before, const State& now) {
  auto old_rows = scan_newest(before, table, bounds_of(interval));
  if (!old_rows.ok()) return old_rows.status();
  auto new_rows = scan_newest(now, table, bounds_of(interval));
  if (!new_rows.ok()) return new_rows.status();
  Iterator then(std::move(*old_rows)), row(std::move(*new_rows));
  for (; then.valid() && row.valid(); then.next(), row.next()) {
    const int order = compare(then.key(), row.key());
    if (order != 0) return changed_interval(*reads.table(), order < 0 ? then.key() : row.key());
    if (!equal(then.value(), row.value())) return changed_interval(*reads.table(), row.key());
  }
  STRIDE_TRY(then.status());
  STRIDE_TRY(row.status());
  if (!then.valid() && !row.valid()) return {};
  return changed_interval(*reads.table(), then.valid() ? then.key() : row.key());
}

Status match_at(const Table& table, const State& state, const KeyColumn& addresses,
                MatchResult* result) {
  auto found = state->table(table);
  if (!found.ok()) return found.status();
  Executor& executor = *state->version()->executor;
  std::shared_ptr<const Matcher> matcher;
  STRIDE_TRY((*found)->matcher->get(executor, **found, &matcher));
  return matcher->match(executor, addresses, result);
}

// All prefixes that cover the address and have so many bits at least.
Status covering(const State& state, const Table& table, Bytes address, uint32_t least,
                std::vector<PrefixEntry>* out) {
  auto found = state->table(table);
  if (!found.ok()) return found.status();
  STRIDE_TRY(match_all(*state->version()->executor, **found, address, out));
  std::erase_if(*out, [&](const PrefixEntry& entry) { return entry.length < least; });
  return {};
}

// An address for which the transaction has erased longer prefixes than the one that it was given.
Status compare_covering(const TableReads& reads, uint64_t i, const Table& table,
                        const State& before, const State& now) {
  std::vector<PrefixEntry> then, found;
  const uint32_t least = reads.length_found(i);
  STRIDE_TRY(covering(before, table, reads.addresses()[i], least, &then));
  STRIDE_TRY(covering(now, table, reads.addresses()[i], least, &found));
  const auto [a, b] = std::mismatch(then.begin(), then.end(), found.begin(), found.end(),
                                    [](const PrefixEntry& x, const PrefixEntry& y) {
                                      return x.length == y.length && equal(x.value, y.value);
                                    });
  if (a == then.end() && b == found.end()) return {};
  return changed_key(*reads.table(), a == then.end() ? b->key : a->key);
}

// What an address was given stays as long as the prefixes that cover it and are no shorter do:
// those alone may take its place. Where the longest one of `before` is shorter, the transaction has
// put the one that was found. Addresses of one width are searched as such.
Status compare_addresses(const TableReads& reads, const Table& table, const State& before,
                         const State& now) {
  KeyColumn addresses = reads.addresses().column();
  const uint32_t bits = reads.table()->address_bits;
  if (bits != byte_strings)
    addresses = Column::fixed(addresses.data, address_bytes(bits), addresses.size);
  MatchResult then, found;
  STRIDE_TRY(match_at(table, before, addresses, &then));
  STRIDE_TRY(match_at(table, now, addresses, &found));
  auto length = [](const MatchResult& result, uint64_t i) {
    return result.found[i] ? int64_t{result.lengths[i]} : -1;
  };
  for (uint64_t i = 0; i < addresses.size; ++i) {
    const int64_t least = reads.length_found(i), before_it = length(then, i);
    if (before_it > least) {
      STRIDE_TRY(compare_covering(reads, i, table, before, now));
    } else if (before_it < least
                   ? length(found, i) >= least
                   : length(found, i) != before_it || !equal(then.value(i), found.value(i))) {
      return changed_key(*reads.table(), found.found[i] ? found.prefix(i) : then.prefix(i));
    }
  }
  return {};
}

}  // namespace

Status changed_key(const TableRecord& table, Bytes key) {
  return conflict_about(table, key, "the transaction has read");
}

Status changed_interval(const TableRecord& table, Bytes key) {
  return conflict_about(table, key, "lies in an interval that the transaction has read");
}

Status compare_reads(const TableReads& reads, const std::vector<KeyInterval>& intervals,
                     const State& before, const State& now) {
  const Table table = handle_of(reads, now);
  if (!reads.keys().empty())
    STRIDE_TRY(reads.keys().size() < min_batch_keys ? compare_few_keys(reads, table, before, now)
                                                    : compare_many_keys(reads, table, before, now));
  for (const KeyInterval& interval : intervals)
    STRIDE_TRY(compare_interval(reads, table, interval, before, now));
  return reads.addresses().empty() ? Status() : compare_addresses(reads, table, before, now);
}

}  // namespace stride
