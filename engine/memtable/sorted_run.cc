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

const uint64_t* SortedRun::words_after(uint64_t shared, std::vector<uint64_t>* memory) const {
  if (shared == shared_) return words_.data();
  memory->resize(rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) (*memory)[i] = word_of(rows_[i]->key(), shared);
  return memory->data();
}

// Looks for each newer row from where the last one was, in steps that double, so that few newer
// rows cost little more than a copy of the older ones.
std::shared_ptr<const SortedRun> SortedRun::merge(const SortedRun& newer, const SortedRun& older) {
  auto merged = std::make_shared<SortedRun>();
  merged->shared_ = std::min({newer.shared_, older.shared_,
                              shared_bytes_of(newer.rows_[0]->key(), older.rows_[0]->key())});
  std::vector<uint64_t> newer_memory, older_memory;
  const uint64_t* const newer_words = newer.words_after(merged->shared_, &newer_memory);
  const uint64_t* const older_words = older.words_after(merged->shared_, &older_memory);
  merged->rows_.reserve(newer.size() + older.size());
  merged->words_.reserve(newer.size() + older.size());
  auto append = [&](const SortedRun& from, const uint64_t* words, size_t begin, size_t end) {
    merged->rows_.insert(merged->rows_.end(), from.rows_.data() + begin, from.rows_.data() + end);
    merged->words_.insert(merged->words_.end(), words + begin, words + end);
  };
  size_t at = 0;  // of the older rows
  for (size_t i = 0; i < newer.size(); ++i) {
    const uint64_t word = newer_words[i];
    const Bytes key = newer.rows_[i]->key();
    auto is_before = [&](size_t o) {
      if (older_words[o] != word) return older_words[o] < word;
      return compare(older.rows_[o]->key(), key) < 0;
    };
    size_t low = at, step = 1;
    while (low + step <= older.size() && is_before(low + step - 1)) {
      low += step;
      step *= 2;
    }
    for (size_t high = std::min(low + step - 1, older.size()); low < high;) {
      const size_t middle = (low + high) / 2;
      if (is_before(middle))
        low = middle + 1;
      else
        high = middle;
    }
    append(older, older_words, at, low);
    append(newer, newer_words, i, i + 1);
    const bool equal = low < older.size() && older_words[low] == word &&
                       compare(older.rows_[low]->key(), key) == 0;
    at = low + equal;
  }
  append(older, older_words, at, older.size());
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
