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
  return static_cast<uint64_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                               a.begin());
}

}  // namespace

Result<std::shared_ptr<const SortedRun>> SortedRun::make(Executor& executor, Rows rows) {
  auto run = std::make_shared<SortedRun>();
  if (rows.size() <= max_compared_rows) {
    run->sort(rows);
  } else {
    STRIDE_TRY(sort_rows(executor, &rows));
    run->set(rows);
  }
  return std::shared_ptr<const SortedRun>(std::move(run));
}

void SortedRun::sort(const Rows& rows) {
  const Bytes first = rows[0]->key();
  shared_ = first.size();
  for (const TailRow* row : rows)
    if (!as_text(row->key()).starts_with(as_text(first.first(shared_))))
      shared_ = shared_bytes_of(first, row->key());
  entries_.reserve(rows.size());
  for (const TailRow* row : rows) entries_.push_back({word_of(row->key(), shared_), row});
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.word != b.word ? a.word < b.word : compare(a.row->key(), b.row->key()) < 0;
  });
  size_t kept = 0;
  for (const Entry& entry : entries_) {
    if (kept > 0 && entries_[kept - 1].word == entry.word &&
        compare(entries_[kept - 1].row->key(), entry.row->key()) == 0)
      --kept;
    entries_[kept++] = entry;
  }
  entries_.resize(kept);
}

void SortedRun::set(const Rows& rows) {
  constexpr size_t prefetch_distance = 16;
  shared_ = shared_bytes_of(rows.front()->key(), rows.back()->key());
  entries_.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + prefetch_distance < rows.size()) prefetch(rows[i + prefetch_distance]);
    entries_.push_back({word_of(rows[i]->key(), shared_), rows[i]});
  }
}

SortedRun::Rows SortedRun::rows() const {
  Rows rows(entries_.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = entries_[i].row;
  return rows;
}

std::span<const SortedRun::Entry> SortedRun::entries_after(uint64_t shared,
                                                           std::vector<Entry>* memory) const {
  if (shared == shared_) return entries_;
  *memory = entries_;
  for (Entry& entry : *memory) entry.word = word_of(entry.row->key(), shared);
  return *memory;
}

// Which row comes next is a coin toss where the runs are of like size, so that no branch depends on
// it. Where there are many older rows for each newer one, whole stretches of them are copied.
std::shared_ptr<const SortedRun> SortedRun::merge(const SortedRun& newer, const SortedRun& older) {
  constexpr size_t stretch = 16;
  auto merged = std::make_shared<SortedRun>();
  merged->shared_ =
      std::min({newer.shared_, older.shared_, shared_bytes_of(newer[0]->key(), older[0]->key())});
  std::vector<Entry> newer_memory, older_memory;
  const std::span<const Entry> newer_all = newer.entries_after(merged->shared_, &newer_memory);
  const std::span<const Entry> older_all = older.entries_after(merged->shared_, &older_memory);
  const Entry *a = newer_all.data(), *const a_end = a + newer_all.size();
  const Entry *b = older_all.data(), *const b_end = b + older_all.size();
  merged->entries_.resize(newer.size() + older.size());
  Entry* out = merged->entries_.data();
  while (a < a_end && b < b_end) {
    if (b_end - b >= ptrdiff_t{stretch} && b[stretch - 1].word < a->word) {
      out = std::copy_n(b, stretch, out);
      b += stretch;
      continue;
    }
    bool takes_older = b->word < a->word;
    if (b->word == a->word) [[unlikely]] {
      const int order = compare(b->row->key(), a->row->key());
      if (order == 0) {
        ++b;
        continue;
      }
      takes_older = order < 0;
    }
    *out++ = *(takes_older ? b : a);
    b += takes_older;
    a += !takes_older;
  }
  out = std::copy(a, a_end, out);
  out = std::copy(b, b_end, out);
  merged->entries_.resize(static_cast<size_t>(out - merged->entries_.data()));
  return merged;
}

uint64_t SortedRun::rank(Bytes key, bool past_equal) const {
  const Bytes first = entries_[0].row->key();
  const int c = compare(key.first(std::min<uint64_t>(key.size(), shared_)), first.first(shared_));
  if (c != 0) return c < 0 ? 0 : size();
  const uint64_t word = word_of(key, shared_);
  // The number of halvings depends on the size alone, and none is a branch.
  const Entry* low = entries_.data();
  const Entry* const end = low + entries_.size();
  for (uint64_t n = entries_.size(); n > 0;) {
    const uint64_t half = (n + 1) / 2;
    low += low[half - 1].word < word ? half : 0;
    n -= half;
  }
  if (low < end && low->word == word) {
    const Entry* equal = std::upper_bound(
        low, end, word, [](uint64_t w, const Entry& entry) { return w < entry.word; });
    low = std::partition_point(low, equal, [&](const Entry& entry) {
      const int order = compare(entry.row->key(), key);
      return order < 0 || (order == 0 && past_equal);
    });
  }
  return static_cast<uint64_t>(low - entries_.data());
}

}  // namespace stride
