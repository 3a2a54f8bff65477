#include "engine/memtable/tail_merger.h"

#include <algorithm>
#include <utility>

#include "engine/read/scan_interval.h"
#include "storage/prefetch.h"

namespace stride {
namespace {

// Few rows are prefetched at first, for many scans end soon.
constexpr uint64_t first_prefetched_rows = 4;
constexpr uint64_t max_prefetched_rows = 16;
constexpr uint64_t prefetched_bytes = 192;

// A row's head, and what follows it: the whole row, if it is short.
void prefetch_row(const TailRow* row) {
  auto* bytes = reinterpret_cast<const std::byte*>(row);
  for (uint64_t at = 0; at < prefetched_bytes; at += 64) prefetch(bytes + at);
}

}  // namespace

TailMerger::TailMerger(const std::vector<OrderedTail>& tails, const ScanOptions& options)
    : reverse_(options.reverse), expiry_(tails.empty() ? ExpiryCheck() : tails[0].expiry) {
  size_t runs = 0;
  for (const OrderedTail& tail : tails) runs += tail.runs->newest_first.size();
  sources_.reserve(runs);
  uint32_t age = 0;
  for (const OrderedTail& tail : tails) {
    for (const auto& run : tail.runs->newest_first) {
      Source source{run, tail.tail, tail.commit, age++, 0, 0, 0, nullptr};
      auto rank_of = [&](const std::string& key, bool past_equal, uint64_t* rank) {
        *rank = run->rank(as_bytes(key), past_equal);
        return Status();
      };
      Status ignored = scan_interval(run->size(), options, rank_of, &source.first, &source.last);
      prefetch_ahead(&source, first_prefetched_rows);
      sources_.push_back(std::move(source));
    }
  }
  std::erase_if(sources_, [&](Source& source) { return !load(&source); });
  std::sort(sources_.begin(), sources_.end(),
            [&](const Source& a, const Source& b) { return is_before(a, b); });
  if (!sources_.empty()) row_ = sources_.front().row;
}

void TailMerger::prefetch_ahead(Source* source, uint64_t rows) const {
  const uint64_t most = std::min(max_prefetched_rows, source->last - source->first);
  for (; rows > 0 && source->ahead < most; --rows, ++source->ahead)
    prefetch_row((
        *source->run)[reverse_ ? source->last - 1 - source->ahead : source->first + source->ahead]);
}

bool TailMerger::load(Source* source) const {
  const SortedRun& run = *source->run;
  while (source->first < source->last) {
    const uint64_t i = reverse_ ? --source->last : source->first++;
    --source->ahead;
    prefetch_ahead(source, 2);
    source->row = source->tail->row_at(run[i], source->commit);
    if (source->row) return true;
  }
  return false;
}

bool TailMerger::is_before(const Source& a, const Source& b) const {
  const int order = compare(a.row->key(), b.row->key());
  return order == 0 ? a.age < b.age : (order < 0) != reverse_;
}

void TailMerger::advance_first() {
  if (!load(&sources_.front())) {
    sources_.erase(sources_.begin());
    return;
  }
  for (size_t i = 1; i < sources_.size() && is_before(sources_[i], sources_[i - 1]); ++i)
    std::swap(sources_[i], sources_[i - 1]);
}

void TailMerger::next() {
  const Bytes last = row_->key();
  do {
    advance_first();
  } while (!sources_.empty() && equal(sources_.front().row->key(), last));
  row_ = sources_.empty() ? nullptr : sources_.front().row;
}

}  // namespace stride
