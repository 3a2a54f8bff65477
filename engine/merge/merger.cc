#include "engine/merge/merger.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "storage/segment_format.h"

namespace stride {

namespace {

// The first window of a source is small, for a merge may end after a row; each next one is larger.
constexpr uint16_t first_window_rows = 4;
constexpr uint64_t largest_window_rows = 256;  // a power of 2
constexpr uint64_t all_window_rows = 8192;     // of many sources together: these stay in the cache

constexpr uint8_t put_kind = static_cast<uint8_t>(EntryKind::put);
constexpr uint8_t tombstone_kind = static_cast<uint8_t>(EntryKind::tombstone);

// Comparisons of these are a subtraction with borrow, and no branch.
__extension__ using Wide = unsigned __int128;
Wide wide(uint64_t high, uint64_t low) { return Wide{high} << 64 | low; }
template <class Prefix>
Wide wide(const Prefix& prefix) {
  return wide(prefix.high, prefix.low);
}

uint64_t load_big_endian(const std::byte* p) {
  uint64_t x;
  std::memcpy(&x, p, sizeof x);
  return std::endian::native == std::endian::little ? __builtin_bswap64(x) : x;
}

// 8 bytes of a key that lies before `end`, from byte `skip` on; zeros where it is shorter.
uint64_t word_of(Bytes key, uint64_t skip, const std::byte* end) {
  if (key.size() >= skip + 8) return load_big_endian(key.data() + skip);
  if (key.size() <= skip) return 0;
  const std::byte* p = key.data() + skip;
  const uint64_t bytes = key.size() - skip;
  if (end - p >= 8) return load_big_endian(p) & ~(~uint64_t{0} >> (8 * bytes));
  std::byte padded[8] = {};
  std::memcpy(padded, p, bytes);
  return load_big_endian(padded);
}

uint64_t shared_bytes_of(Bytes a, Bytes b) {
  return static_cast<uint64_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                               a.begin());
}

}  // namespace

RunMerger::RunMerger(const std::vector<Input>& inputs, bool reverse, uint64_t shared_bytes,
                     Tombstones tombstones)
    : reverse_(reverse), flip_(reverse ? ~uint64_t{0} : 0), tombstones_(tombstones) {
  find_shared_bytes(inputs, shared_bytes);
  window_capacity_ =
      std::clamp(all_window_rows / (inputs.size() + 1), uint64_t{16}, largest_window_rows);
  windows_ = std::make_unique_for_overwrite<uint64_t[]>(2 * window_capacity_ * inputs.size());
  sources_.reserve(inputs.size());
  limits_.reserve(inputs.size());
  for (const Input& input : inputs)
    if (input.first < input.last) add_source(input);
  leaves_ = std::bit_ceil(std::max<size_t>(sources_.size(), 1));
  tree_memory_ = std::make_unique_for_overwrite<uint64_t[]>(3 * leaves_);
  tree_ = {tree_memory_.get(), tree_memory_.get() + leaves_, tree_memory_.get() + 2 * leaves_};
  if (status_.ok()) top_ = play(1);
  last_prefix_ = {~top_.prefix.high, 0};
}

// All keys lie between the first and the last keys of their segments.
void RunMerger::find_shared_bytes(const std::vector<Input>& inputs, uint64_t known) {
  if (inputs.empty()) return;
  const uint32_t width = inputs[0].segment->keys().width;
  const bool fixed = std::all_of(inputs.begin(), inputs.end(), [&](const Input& input) {
    return input.segment->keys().fixed && input.segment->keys().width == width;
  });
  if (!fixed || width > 8) {
    Bytes shared = inputs[0].segment->first_key();
    for (const Input& input : inputs) {
      shared = shared.first(shared_bytes_of(shared, input.segment->first_key()));
      shared = shared.first(shared_bytes_of(shared, input.segment->last_key()));
    }
    skip_ = std::max<uint64_t>(shared.size(), known);
  }
  if (fixed && width <= skip_ + 16)
    ties_ = width <= skip_ + 8 ? Ties::equal_in_one_word : Ties::equal_in_two_words;
}

void RunMerger::add_source(const Input& input) {
  const IndexedSegment& segment = *input.segment;
  Source s{};
  s.segment = input.segment;
  s.index = input.index;
  s.rank = static_cast<uint32_t>(reverse_ ? input.last - 1 : input.first);
  s.left = segment.erased().empty() ? input.last - input.first : 0;
  bool look = segment.has_tombstones() && tombstones_ == Tombstones::drop;
  s.kinds = look ? segment.kinds() : &put_kind;
  s.kind_mask = look ? ~uint32_t{0} : 0;
  window_kinds_.emplace_back();
  if (look && segment.may_expire()) {
    window_kinds_.back() = std::make_unique_for_overwrite<uint8_t[]>(largest_window_rows);
    s.kinds = window_kinds_.back().get();
    s.kind_mask = largest_window_rows - 1;
  }
  s.window = windows_.get() + 2 * window_capacity_ * sources_.size();
  // Checks reach no more than about a block further than what is read.
  uint64_t row_bytes =
      (segment.keys().data_bytes + segment.values().column.data_bytes) / segment.rows();
  s.max_window_rows = static_cast<uint16_t>(
      std::clamp(segment_block_bytes / (row_bytes + 1), uint64_t{1}, window_capacity_));
  s.window_rows = std::min(first_window_rows, s.max_window_rows);
  limits_.push_back(reverse_ ? input.first : input.last);
  sources_.push_back(s);
  fill(&sources_.back());
}

// Moves a source whose rows up to erased ones are used up to those behind them. False: there are
// none.
bool RunMerger::find_next_stretch(Source* s) const {
  const RowIntervals& erased = s->segment->erased();
  if (erased.empty()) return false;
  const uint64_t limit = limits_[static_cast<size_t>(s - sources_.data())];
  if (reverse_) {
    const uint64_t end = erased.skip_back(s->rank + 1);  // 0 where the rank has passed the first
    if (end <= limit) return false;
    s->rank = static_cast<uint32_t>(end - 1);
    s->left = end - erased.previous(end, limit);
  } else {
    const uint64_t first = erased.skip(s->rank);
    if (first >= limit) return false;
    s->rank = static_cast<uint32_t>(first);
    s->left = erased.next(first, limit) - first;
  }
  return true;
}

inline RunMerger::Prefix RunMerger::prefix(const Source& source, uint64_t rank) const {
  const PackedColumn& keys = source.segment->keys();
  const std::byte* end = keys.data + keys.data_bytes;
  Bytes key = keys[rank];
  return {word_of(key, skip_, end) ^ flip_, word_of(key, skip_ + 8, end) ^ flip_};
}

// How many of the next rows are there and intact: a window of them at most, and one at least unless
// it is damaged.
Status RunMerger::check_ahead(const Source& s, uint64_t* rows) const {
  for (*rows = std::min<uint64_t>(s.window_rows, s.left);; *rows /= 2) {
    uint64_t first = reverse_ ? s.rank + 1 - *rows : s.rank;
    Status status = s.segment->ensure_rows(first, first + *rows);
    if (status.ok() || *rows == 1) return status;
  }
}

void RunMerger::look_at_kinds(const Source& s, uint64_t rows) {
  uint8_t* const kinds = window_kinds_[static_cast<size_t>(&s - sources_.data())].get();
  if (!kinds) return;
  for (uint64_t i = 0; i < rows; ++i) {
    const uint32_t rank = s.rank + static_cast<uint32_t>(i) * step();
    kinds[rank & s.kind_mask] = static_cast<uint8_t>(s.segment->kind(rank));
  }
}

void RunMerger::grow_window(Source* s) {
  s->window_rows = std::min<uint16_t>(s->window_rows * 4, s->max_window_rows);
}

// Loads the next window; it stays empty at the end and where the next row is damaged.
void RunMerger::fill(Source* s) {
  s->next = s->end = s->window;
  if (s->left == 0 && !find_next_stretch(s)) return;
  uint64_t rows;
  if (Status status = check_ahead(*s, &rows); !status.ok()) {
    status_ = std::move(status);
    return;
  }
  look_at_kinds(*s, rows);
  const PackedColumn& keys = s->segment->keys();
  uint64_t* const low = s->window + window_capacity_;
  if (ties_ == Ties::equal_in_one_word && keys.width == skip_ + 8) {
    const std::byte* at = keys.data + uint64_t{s->rank} * keys.width + skip_;
    const int64_t by = reverse_ ? -int64_t{keys.width} : int64_t{keys.width};
    for (uint64_t i = 0; i < rows; ++i) {
      s->window[i] = load_big_endian(at + static_cast<int64_t>(i) * by) ^ flip_;
      low[i] = flip_;
    }
  } else {
    for (uint64_t i = 0; i < rows; ++i) {
      Prefix p = prefix(*s, reverse_ ? s->rank - i : s->rank + i);
      s->window[i] = p.high;
      low[i] = p.low;
    }
  }
  s->end = s->window + rows;
  s->left -= rows;
  grow_window(s);
}

RunMerger::Entry RunMerger::entry(uint64_t source) const {
  const Source& s = sources_[source];
  if (s.next == s.end) return {nothing.prefix, source + ended};
  return {{s.next[0], s.next[window_capacity_]}, source};
}

// The winner below a node, whose losers take their places.
RunMerger::Entry RunMerger::play(size_t node) {
  if (node >= leaves_) return node - leaves_ < sources_.size() ? entry(node - leaves_) : nothing;
  Entry a = play(2 * node), b = play(2 * node + 1);
  bool b_wins = before(b, a);
  const Entry& loser = b_wins ? a : b;
  tree_.high[node] = loser.prefix.high;
  tree_.low[node] = loser.prefix.low;
  tree_.source[node] = loser.source;
  return b_wins ? b : a;
}

bool RunMerger::before(const Entry& a, const Entry& b) const {
  if (wide(a.prefix) != wide(b.prefix)) return wide(a.prefix) < wide(b.prefix);
  return ties_ == Ties::compare_keys ? before_by_key(a.source, b.source) : a.source < b.source;
}

bool RunMerger::before_by_key(uint64_t a, uint64_t b) const {
  if (a >= ended || b >= ended) return a < b;
  int c = compare(key(a, sources_[a].rank), key(b, sources_[b].rank));
  return c != 0 ? (c < 0) != reverse_ : a < b;
}

// Whether its key has been handed out, where its high word has.
bool RunMerger::handed_out_low(const Entry& e) const {
  if (ties_ == Ties::equal_in_one_word) return true;
  return e.prefix.low == last_prefix_.low &&
         (ties_ != Ties::compare_keys ||
          compare(key(e.source, sources_[e.source].rank), key(last_.index, last_.rank)) == 0);
}

// The smallest prefix of all other sources, where `source` is the winner: on its way up it has
// beaten each of them, or one that has.
RunMerger::Prefix RunMerger::challenger(uint64_t source) const {
  Prefix smallest = nothing.prefix;
  for (size_t node = (leaves_ + source) / 2; node > 0; node /= 2)
    if (wide(tree_.high[node], tree_.low[node]) < wide(smallest))
      smallest = {tree_.high[node], tree_.low[node]};
  if (ties_ == Ties::equal_in_one_word) smallest.low = 0;
  return smallest;
}

// Makes the next entry of the last winner's source the new winner.
template <RunMerger::Ties ties>
inline void RunMerger::replay(Entry* next) {
  uint64_t high = next->prefix.high, low = next->prefix.low, source = next->source;
  const Tree tree = tree_;
  for (size_t node = (leaves_ + (source & (ended - 1))) / 2; node > 0; node /= 2) {
    bool loses;
    if constexpr (ties == Ties::equal_in_one_word) {
      loses = wide(tree.high[node], tree.source[node]) < wide(high, source);
    } else {
      loses = wide(tree.high[node], tree.low[node]) < wide(high, low);
      if (tree.high[node] == high && tree.low[node] == low) [[unlikely]]
        loses = ties == Ties::compare_keys ? before_by_key(tree.source[node], source)
                                           : tree.source[node] < source;
    }
    // Whether to swap is a coin toss: a branch would go wrong every other time.
    const uint64_t mask = -static_cast<uint64_t>(loses);
    auto swap = [mask](uint64_t& a, uint64_t& b) {
      const uint64_t change = (a ^ b) & mask;
      a ^= change;
      b ^= change;
    };
    swap(high, tree.high[node]);
    if constexpr (ties != Ties::equal_in_one_word) swap(low, tree.low[node]);
    swap(source, tree.source[node]);
  }
  *next = {{high, low}, source};
}

void RunMerger::replay_top() {
  switch (ties_) {
    case Ties::equal_in_one_word:
      return replay<Ties::equal_in_one_word>(&top_);
    case Ties::equal_in_two_words:
      return replay<Ties::equal_in_two_words>(&top_);
    case Ties::compare_keys:
      return replay<Ties::compare_keys>(&top_);
  }
}

template <RunMerger::Ties ties>
uint64_t RunMerger::merge(std::span<Location> out) {
  uint64_t n = 0;
  Source* const sources = sources_.data();
  const uint32_t by = step();
  Entry top = top_;
  uint64_t last_high = last_prefix_.high;
  while (n < out.size() && top.source < ended) {
    Source& s = sources[top.source];
    const bool superseded =
        top.prefix.high == last_high && (ties == Ties::equal_in_one_word || handed_out_low(top));
    out[n] = {s.index, s.rank};
    n += !superseded & (s.kinds[s.rank & s.kind_mask] != tombstone_kind);
    last_high = top.prefix.high;
    if constexpr (ties != Ties::equal_in_one_word) {
      last_prefix_.low = top.prefix.low;
      last_ = {static_cast<uint32_t>(top.source), s.rank};
    }
    s.rank += by;
    if (++s.next == s.end) [[unlikely]] {
      n += pop_windows(top.source, out.subspan(n));
      fill(&s);
      // Damage ends the merge at once: an entry after it might be missing a newer one.
      if (!status_.ok()) {
        top = nothing;
        break;
      }
      top = entry(top.source);
    } else {
      top.prefix.high = s.next[0];
      if constexpr (ties != Ties::equal_in_one_word) top.prefix.low = s.next[window_capacity_];
    }
    replay<ties>(&top);
  }
  top_ = top;
  last_prefix_.high = last_high;
  return n;
}

// Hands out whole windows of the winner that come before every other source.
uint64_t RunMerger::pop_windows(uint64_t source, std::span<Location> out) {
  Source& s = sources_[source];
  const Prefix limit = challenger(source);
  const uint32_t by = step();
  uint64_t n = 0, rows;
  while (s.left > 0 && check_ahead(s, &rows).ok() && rows <= out.size() - n &&
         wide(prefix(s, s.rank + static_cast<uint32_t>(rows - 1) * by)) < wide(limit)) {
    look_at_kinds(s, rows);
    for (uint64_t i = 0; i < rows; ++i, s.rank += by) {
      out[n] = {s.index, s.rank};
      n += s.kinds[s.rank & s.kind_mask] != tombstone_kind;
    }
    s.left -= rows;
    grow_window(&s);
  }
  return n;
}

uint64_t RunMerger::next_rows(std::span<Location> out) {
  switch (ties_) {
    case Ties::equal_in_one_word:
      return merge<Ties::equal_in_one_word>(out);
    case Ties::equal_in_two_words:
      return merge<Ties::equal_in_two_words>(out);
    default:
      return merge<Ties::compare_keys>(out);
  }
}

bool RunMerger::next_stretch(uint64_t min_rows, uint64_t max_rows, Input* stretch) {
  if (reverse_ || top_.source >= ended ||
      (top_.prefix.high == last_prefix_.high && handed_out_low(top_)))
    return false;
  Source& s = sources_[top_.source];
  const uint64_t left = static_cast<uint64_t>(s.end - s.next) + s.left, first = s.rank;
  if (s.kind_mask || left < min_rows) return false;
  const Prefix limit = challenger(top_.source);
  auto comes_first = [&](uint64_t rows) {
    uint64_t last = first + rows - 1;
    return s.segment->ensure_rows(last, last + 1).ok() && wide(prefix(s, last)) < wide(limit);
  };
  if (!comes_first(min_rows)) return false;
  uint64_t rows = std::min(max_rows, left);
  if (!comes_first(rows)) {
    uint64_t high = rows;
    for (rows = min_rows; rows + 1 < high;) {
      uint64_t middle = (rows + high) / 2;
      (comes_first(middle) ? rows : high) = middle;
    }
  }
  if (!s.segment->ensure_rows(first, first + rows).ok()) return false;
  *stretch = {s.segment, s.index, first, first + rows};
  s.rank = static_cast<uint32_t>(first + rows);
  s.left = left - rows;
  fill(&s);
  top_ = status_.ok() ? entry(top_.source) : nothing;
  if (status_.ok()) replay_top();
  return true;
}

}  // namespace stride
