#include "engine/memtable/sorted_run.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/memtable/tail_rows.h"
#include "storage/prefetch.h"

namespace stride {
namespace {

// More rows are sorted by all threads, or on a device.
constexpr size_t max_compared_rows = 1 << 15;

uint64_t word_of(Bytes key, uint64_t skip) {
  std::byte padded[8] = {};
  if (key.size() > skip)
    std::memcpy(padded, key.data() + skip, std::min<uint64_t>(key.size() - skip, 8));
  const auto word = std::bit_cast<uint64_t>(padded);
  return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
}

uint64_t shared_bytes_of(Bytes a, Bytes b) {
  return static_cast<uint64_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

Result<std::shared_ptr<const SortedRun>> SortedRun::make(Executor& executor, Rows rows) {
  auto run = std::make_shared<SortedRun>();
  if (rows.size() <= max_compared_rows) {
    run->sort(std::move(rows));
  } else {
    STRIDE_TRY(sort_rows(executor, &rows));
    run->set(std::move(rows));
  }
  return std::shared_ptr<const SortedRun>(std::move(run));
}

void SortedRun::sort(Rows rows) {
  const Bytes first = rows[0]->key();
  shared_ = first.size();
  for (const TailRow* row : rows)
    if (!as_text(row->key()).starts_with(as_text(first.first(shared_))))
      shared_ = shared_bytes_of(first, row->key());
  struct Entry {
    uint64_t word;
    uint32_t row;
  };
  std::vector<Entry> entries(rows.size());
  for (uint32_t i = 0; i < rows.size(); ++i) entries[i] = {word_of(rows[i]->key(), shared_), i};
  // Of equal keys the newest comes first.
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    if (a.word != b.word) return a.word < b.word;
    const int order = compare(rows[a.row]->key(), rows[b.row]->key());
    return order == 0 ? a.row > b.row : order < 0;
  });
  rows_.reserve(rows.size());
  words_.reserve(rows.size());
  for (const Entry& entry : entries) {
    const TailRow* row = rows[entry.row];
    if (!rows_.empty() && words_.back() == entry.word &&
        compare(rows_.back()->key(), row->key()) == 0)
      continue;
    rows_.push_back(row);
    words_.push_back(entry.word);
  }
}

void SortedRun::set(Rows rows) {
  constexpr size_t prefetch_distance = 16;
  rows_ = std::move(rows);
  shared_ = shared_bytes_of(rows_.front()->key(), rows_.back()->key());
  words_.resize(rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (i + prefetch_distance < rows_.size()) prefetch(rows_[i + prefetch_distance]);
    words_[i] = word_of(rows_[i]->key(), shared_);
  }
}

SortedRun::Span SortedRun::span_after(uint64_t shared, std::vector<uint64_t>* memory) const {
  if (shared == shared_) return {rows_.data(), words_.data(), rows_.size()};
  memory->resize(rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) (*memory)[i] = word_of(rows_[i]->key(), shared);
  return {rows_.data(), memory->data(), rows_.size()};
}

// Which row comes next is a coin toss where the runs are of like size, so that no branch depends on
// it. Where there are many older rows for each newer one, whole stretches of them are copied.
std::shared_ptr<const SortedRun> SortedRun::merge(const SortedRun& newer, const SortedRun& older) {
  constexpr size_t stretch = 16;
  auto merged = std::make_shared<SortedRun>();
  merged->shared_ = std::min({newer.shared_, older.shared_,
                              shared_bytes_of(newer.rows_[0]->key(), older.rows_[0]->key())});
  std::vector<uint64_t> newer_memory, older_memory;
  Span a = newer.span_after(merged->shared_, &newer_memory);
  Span b = older.span_after(merged->shared_, &older_memory);
  merged->rows_.resize(newer.size() + older.size());
  merged->words_.resize(newer.size() + older.size());
  const TailRow** rows = merged->rows_.data();
  uint64_t* words = merged->words_.data();
  auto copy = [&](Span* from, size_t n) {
    rows = std::copy_n(from->rows, n, rows);
    words = std::copy_n(from->words, n, words);
    from->skip(n);
  };
  while (a.size > 0 && b.size > 0) {
    if (b.size >= stretch && b.words[stretch - 1] < a.words[0]) {
      copy(&b, stretch);
      continue;
    }
    bool takes_older = b.words[0] < a.words[0];
    if (b.words[0] == a.words[0]) [[unlikely]] {
      const int order = compare(b.rows[0]->key(), a.rows[0]->key());
      if (order == 0) {
        b.skip(1);
        continue;
      }
      takes_older = order < 0;
    }
    *rows++ = *(takes_older ? b.rows : a.rows);
    *words++ = *(takes_older ? b.words : a.words);
    b.skip(takes_older);
    a.skip(!takes_older);
  }
  copy(&a, a.size);
  copy(&b, b.size);
  merged->rows_.resize(static_cast<size_t>(rows - merged->rows_.data()));
  merged->words_.resize(merged->rows_.size());
  return merged;
}

uint64_t SortedRun::rank(Bytes key, bool past_equal) const {
  const Bytes first = rows_[0]->key();
  const int c = compare(key.first(std::min<uint64_t>(key.size(), shared_)), first.first(shared_));
  if (c != 0) return c < 0 ? 0 : size();
  const uint64_t word = word_of(key, shared_);
  // The number of halvings depends on the size alone, and none is a branch.
  const uint64_t* low = words_.data();
  for (uint64_t n = words_.size(); n > 0;) {
    const uint64_t half = (n + 1) / 2;
    low += low[half - 1] < word ? half : 0;
    n -= half;
  }
  const auto begin = rows_.begin() + (low - words_.data());
  if (begin == rows_.end() || *low != word) return static_cast<uint64_t>(begin - rows_.begin());
  const auto end = rows_.begin() + (std::upper_bound(low, words_.data() + size(), word) -
                                    words_.data());
  const auto found = std::partition_point(begin, end, [&](const TailRow* row) {
    const int order = compare(row->key(), key);
    return order < 0 || (order == 0 && past_equal);
  });
  return static_cast<uint64_t>(found - rows_.begin());
}

}  // namespace stride
