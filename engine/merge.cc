#include "engine/merge.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

namespace stride {

namespace {

// Keys with different prefixes order as those do; a key that is shorter goes on with zeros.
uint64_t prefix_of(Bytes key) {
  uint64_t x = 0;
  if (!key.empty()) std::memcpy(&x, key.data(), std::min<size_t>(key.size(), 8));
  return std::endian::native == std::endian::little ? __builtin_bswap64(x) : x;
}

}  // namespace

RunMerger::RunMerger(std::vector<Input> inputs, bool reverse) : reverse_(reverse) {
  for (const Input& input : inputs) {
    Cursor cursor{input, 0, {}};
    if (load(&cursor)) heap_.push_back(cursor);
  }
  std::make_heap(heap_.begin(), heap_.end(),
                 [this](const Cursor& a, const Cursor& b) { return after(a, b); });
}

bool RunMerger::after(const Cursor& a, const Cursor& b) const {
  if (a.prefix != b.prefix) return (a.prefix > b.prefix) != reverse_;
  int c = compare(a.key, b.key);
  if (c != 0) return reverse_ ? c < 0 : c > 0;
  return a.input.index > b.input.index;
}

bool RunMerger::load(Cursor* cursor) {
  if (cursor->input.first >= cursor->input.last) return false;
  uint64_t r = rank(*cursor);
  if (Status s = cursor->input.segment->ensure_rows(r, r + 1); !s.ok()) {
    status_ = std::move(s);
    return false;
  }
  cursor->key = cursor->input.segment->keys()[r];
  cursor->prefix = prefix_of(cursor->key);
  return true;
}

void RunMerger::sift_down() {
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap_.size()) return;
    if (child + 1 < heap_.size() && after(heap_[child], heap_[child + 1])) ++child;
    if (!after(heap_[at], heap_[child])) return;
    std::swap(heap_[at], heap_[child]);
    at = child;
  }
}

void RunMerger::advance(Cursor* cursor) {
  if (reverse_) {
    --cursor->input.last;
  } else {
    ++cursor->input.first;
  }
  if (!load(cursor)) {
    *cursor = heap_.back();
    heap_.pop_back();
  }
  sift_down();
}

bool RunMerger::superseded(const Cursor& c) const {
  return any_ && c.prefix == last_prefix_ && compare(c.key, last_key_) == 0;
}

bool RunMerger::next(Location* location) {
  while (status_.ok() && !heap_.empty()) {
    const Cursor& top = heap_.front();
    bool skip = superseded(top);
    if (!skip) {
      *location = {top.input.index, static_cast<uint32_t>(rank(top))};
      last_key_ = top.key;
      last_prefix_ = top.prefix;
      any_ = true;
    }
    advance(&heap_.front());
    // Damage ends the merge at once: an entry after it might be missing a newer one.
    if (!skip) return status_.ok();
  }
  return false;
}

namespace {

constexpr uint64_t rows_per_part = 1 << 16;

// The ranks of the parts' first keys in every segment; part p is [ranks[p], ranks[p + 1]).
using Ranks = std::vector<std::vector<uint64_t>>;

Status cut_into_parts(const SegmentList& segments, Ranks* ranks) {
  const IndexedSegment& widest =
      **std::max_element(segments.begin(), segments.end(),
                         [](auto& a, auto& b) { return a->rows() < b->rows(); });
  uint64_t parts = widest.rows() / rows_per_part + 1;
  ranks->assign(parts + 1, std::vector<uint64_t>(segments.size(), 0));
  for (uint64_t p = 1; p < parts; ++p) {
    Bytes splitter;
    STRIDE_TRY(widest.key(widest.rows() * p / parts, &splitter));
    for (size_t s = 0; s < segments.size(); ++s) {
      uint32_t rank;
      STRIDE_TRY(lower_bound_one(segments[s]->index(), splitter, &rank));
      (*ranks)[p][s] = rank;
    }
  }
  for (size_t s = 0; s < segments.size(); ++s) ranks->back()[s] = segments[s]->rows();
  return {};
}

Status merge_part(const SegmentList& segments, const std::vector<uint64_t>& first,
                  const std::vector<uint64_t>& last, std::vector<Location>* out) {
  std::vector<RunMerger::Input> inputs;
  for (uint32_t s = 0; s < segments.size(); ++s)
    inputs.push_back({segments[s].get(), s, first[s], last[s]});
  RunMerger merger(std::move(inputs), /*reverse=*/false);
  Location location;
  while (merger.next(&location))
    if (segments[location.index]->kind(location.rank) == EntryKind::put) out->push_back(location);
  return merger.status();
}

}  // namespace

Status merge_all(Backend& backend, const SegmentList& segments, MergedRows* merged) {
  merged->segments = segments;
  merged->order.clear();
  if (segments.empty()) return {};
  for (const auto& s : segments) STRIDE_TRY(s->prepare());
  Ranks ranks;
  STRIDE_TRY(cut_into_parts(segments, &ranks));
  std::vector<std::vector<Location>> parts(ranks.size() - 1);
  std::mutex mutex;
  Status failure;
  backend.parallel_for(parts.size(), 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t p = begin; p < end; ++p) {
      Status s = merge_part(segments, ranks[p], ranks[p + 1], &parts[p]);
      std::lock_guard lock(mutex);
      if (!s.ok()) failure = std::move(s);
    }
  });
  STRIDE_TRY(failure);
  uint64_t total = 0;
  for (const auto& part : parts) total += part.size();
  merged->order.reserve(total);
  for (auto& part : parts) {
    merged->order.insert(merged->order.end(), part.begin(), part.end());
    part = {};
  }
  return {};
}

}  // namespace stride
