#include "benchmark/harness/sorted_rows.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace stride::benchmark {
namespace {

// Rows are spread over buckets by the leading bits of their prefixes, and each bucket is sorted
// alone, small enough for a core's own cache.
constexpr unsigned max_bucket_bits = 12;
constexpr uint64_t rows_per_bucket = 512;
constexpr uint64_t min_rows_per_part = 16384;

struct BucketOf {
  uint64_t smallest = 0;
  unsigned shift = 0;
  uint64_t count = 1;
  uint64_t operator()(const SortedRow& row) const { return (row.prefix - smallest) >> shift; }
};

BucketOf choose_buckets(const SortedRow* rows, uint64_t n, Parallel* parallel) {
  std::vector<uint64_t> low(parallel->max_parts(), ~uint64_t{0}), high(parallel->max_parts(), 0);
  parallel->for_parts(n, min_rows_per_part, [&](unsigned part, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      low[part] = std::min(low[part], rows[i].prefix);
      high[part] = std::max(high[part], rows[i].prefix);
    }
  });
  BucketOf bucket_of;
  bucket_of.smallest = *std::min_element(low.begin(), low.end());
  uint64_t range = *std::max_element(high.begin(), high.end()) - bucket_of.smallest;
  unsigned wanted = std::min<unsigned>(max_bucket_bits,
                                       static_cast<unsigned>(std::bit_width(n / rows_per_bucket)));
  unsigned range_bits = static_cast<unsigned>(std::bit_width(range));
  bucket_of.shift = std::min(63u, range_bits > wanted ? range_bits - wanted : 0);
  bucket_of.count = (range >> bucket_of.shift) + 1;
  return bucket_of;
}

// Moves rows to `to` bucket by bucket, in their order, and returns where each bucket begins.
std::vector<uint64_t> scatter(const SortedRow* rows, uint64_t n, const BucketOf& bucket_of,
                              Parallel* parallel, SortedRow* to) {
  unsigned parts = parallel->max_parts();
  std::vector<std::vector<uint64_t>> at(parts, std::vector<uint64_t>(bucket_of.count));
  parallel->for_parts(n, min_rows_per_part, [&](unsigned part, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) ++at[part][bucket_of(rows[i])];
  });
  std::vector<uint64_t> begins(bucket_of.count + 1);
  uint64_t next = 0;
  for (uint64_t b = 0; b < bucket_of.count; ++b) {
    begins[b] = next;
    for (unsigned part = 0; part < parts; ++part) next += std::exchange(at[part][b], next);
  }
  begins[bucket_of.count] = next;
  parallel->for_parts(n, min_rows_per_part, [&](unsigned part, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) to[at[part][bucket_of(rows[i])]++] = rows[i];
  });
  return begins;
}

// `rows` holds each row with its prefix. key_of(row) is asked only where equal prefixes do not
// mean equal keys.
template <class KeyOf>
void sort_by_key(bool prefix_is_key, const KeyOf& key_of, Parallel* parallel,
                 ResultBuffer<SortedRow>* rows) {
  uint64_t n = rows->size();
  if (n == 0) return;
  ResultBuffer<SortedRow> spread;
  spread.reset(n);
  BucketOf bucket_of = choose_buckets(rows->data(), n, parallel);
  std::vector<uint64_t> begins = scatter(rows->data(), n, bucket_of, parallel, spread.data());
  auto less = [&](const SortedRow& a, const SortedRow& b) {
    if (a.prefix != b.prefix) return a.prefix < b.prefix;
    int order = prefix_is_key ? 0 : compare(key_of(a.row), key_of(b.row));
    return order ? order < 0 : a.row < b.row;
  };
  // Parts are sized by rows, and take the buckets that begin in their range.
  parallel->for_parts(n, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
    auto bucket = std::lower_bound(begins.begin(), begins.end() - 1, begin);
    for (; bucket != begins.end() - 1 && *bucket < end; ++bucket) {
      std::sort(spread.data() + bucket[0], spread.data() + bucket[1], less);
    }
  });
  std::swap(*rows, spread);
}

bool holds_only_numbers(const KeyColumn& keys) { return keys.is_fixed() && keys.width == 8; }

void fill(const KeyColumn& keys, uint64_t first_row, Parallel* parallel, SortedRow* rows) {
  parallel->for_parts(keys.size, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      rows[i] = {key_prefix(keys[i]), static_cast<uint32_t>(first_row + i)};
    }
  });
}

}  // namespace

void sort_rows(const Records& records, Parallel* parallel, ResultBuffer<SortedRow>* rows) {
  rows->reset(records.size());
  for (uint64_t f = 0; f < records.flows().size(); ++f) {
    uint64_t start = records.start(f);
    fill(records.flows()[f].keys, start, parallel, rows->data() + start);
  }
  sort_by_key(
      records.key_width() == 8, [&](uint32_t row) { return records.key(row); }, parallel, rows);
}

void sort_rows(const KeyColumn& keys, Parallel* parallel, ResultBuffer<SortedRow>* rows) {
  rows->reset(keys.size);
  fill(keys, 0, parallel, rows->data());
  sort_by_key(
      holds_only_numbers(keys), [&](uint32_t row) { return keys[row]; }, parallel, rows);
}

uint64_t keep_last_of_equal(const Records& records, ResultBuffer<SortedRow>* rows) {
  bool prefix_is_key = records.key_width() == 8;
  uint64_t kept = 0;
  for (uint64_t i = 0; i < rows->size(); ++i) {
    const SortedRow& row = (*rows)[i];
    bool replaced =
        i + 1 < rows->size() && (*rows)[i + 1].prefix == row.prefix &&
        (prefix_is_key || compare(records.key((*rows)[i + 1].row), records.key(row.row)) == 0);
    if (!replaced) (*rows)[kept++] = row;
  }
  return kept;
}

}  // namespace stride::benchmark
