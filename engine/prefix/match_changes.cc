#include "engine/prefix/match_changes.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/prefix/matcher.h"
#include "storage/prefetch.h"
#include "storage/prefix_key.h"

namespace stride {
namespace {

// This many of the addresses that have changes are asked for ahead of their use.
constexpr size_t changes_ahead = 8;
// Places with more changes have a directory of their own: without a default route, or with one that
// most addresses have, all that comes new may be in one place.
constexpr size_t crowd = 64;

uint64_t head_of(Bytes address) {
  std::byte bytes[8] = {};
  if (address.size() >= 8) {
    std::memcpy(bytes, address.data(), 8);
  } else if (address.size() == 4) {  // many have as many, and this is no call
    std::memcpy(bytes, address.data(), 4);
  } else if (!address.empty()) {
    std::memcpy(bytes, address.data(), address.size());
  }
  uint64_t x;
  std::memcpy(&x, bytes, 8);
  return std::endian::native == std::endian::little ? __builtin_bswap64(x) : x;
}

bool same_bits_up_to(uint64_t a, uint64_t b, uint32_t length) {
  return length == 0 || (a ^ b) >> (64 - length) == 0;
}

// Precondition: both have as many.
bool same_bits_up_to(Bytes a, Bytes b, uint32_t length) {
  if (std::memcmp(a.data(), b.data(), length / 8) != 0) return false;
  return length % 8 == 0 ||
         static_cast<uint32_t>(a[length / 8] ^ b[length / 8]) >> (8 - length % 8) == 0;
}

}  // namespace

Bytes MatchChanges::address_of(const Change& change) const {
  return prefix_address(keys_[change.age][change.rank], address_bits_);
}

bool MatchChanges::before(const Change& a, const Change& b) const {
  if (a.head != b.head) return a.head < b.head;
  if (a.length <= 64 || b.length <= 64) return a.length < b.length;
  int compared = compare(address_of(a), address_of(b));
  return compared ? compared < 0 : a.length < b.length;
}

bool MatchChanges::covers(const Change& change, Bytes address, uint64_t head) const {
  if (address.size() < (uint64_t{change.length} + 7) / 8) return false;
  if (change.length <= 64) return same_bits_up_to(change.head, head, change.length);
  return change.head == head && same_bits_up_to(address_of(change), address, change.length);
}

bool MatchChanges::covers(const Change& a, const Change& b) const {
  if (a.length >= b.length) return false;
  return a.length <= 64 ? same_bits_up_to(a.head, b.head, a.length)
                        : covers(a, address_of(b), b.head);
}

std::span<const MatchChanges::Change> MatchChanges::candidates(uint32_t place,
                                                               uint64_t head) const {
  uint64_t bucket = place >> shift_;
  uint32_t first = starts_[bucket], last = starts_[bucket + 1];
  if (last - first > crowd) {
    auto found = std::lower_bound(
        crowded_.begin(), crowded_.end(), place,
        [](const CrowdedPlace& crowded, uint32_t wanted) { return crowded.place < wanted; });
    if (found != crowded_.end() && found->place == place) {
      const std::vector<uint32_t>& starts = found->starts;
      uint64_t slot = head < found->min_head ? 0 : (head - found->min_head) >> found->shift;
      slot = std::min<uint64_t>(slot, starts.size() - 2);
      first = starts[slot];
      last = starts[slot + 1];
    }
  }
  return std::span(changes_).subspan(first, last - first);
}

// The last of the place's changes that begin up to the address is the longest that covers it, or
// inside that one: what begins in it does not end behind it.
const MatchChanges::Change* MatchChanges::longest(uint32_t place, Bytes address,
                                                  uint64_t head) const {
  std::span<const Change> some = candidates(place, head);
  // Byte strings of up to 8 bytes that differ in zeros at the end have one head: the longer ones
  // are passed as if they began at the address, and lead to it.
  auto is_behind = [&](const Change& c) {
    if (c.place != place) return c.place > place;
    if (c.head != head) return c.head > head;
    return c.length > 64 && compare(address_of(c), address) > 0;
  };
  const Change *first = some.data(), *end = first + some.size();
  // Most are one or two.
  while (end - first > 4) {
    const Change* middle = first + (end - first) / 2;
    if (is_behind(*middle)) {
      end = middle;
    } else {
      first = middle;
    }
  }
  while (end != first && is_behind(end[-1])) --end;
  if (end == changes_.data() || end[-1].place != place) return nullptr;
  for (const Change* c = end - 1;; c -= c->around) {
    if (covers(*c, address, head)) return c;
    if (c->around == 0) return nullptr;
  }
}

void MatchChanges::answer(const MatchBase& base, const KeyColumn& addresses,
                          std::span<Changed> changed, Location* locations,
                          uint32_t* lengths) const {
  go_on(base, addresses, changed, true, locations, lengths);
}

// Gathers those whose places are erased for the place around, round after round; most need one.
void MatchChanges::go_on(const MatchBase& base, const KeyColumn& addresses,
                         std::span<Changed> changed, bool is_known, Location* locations,
                         uint32_t* lengths) const {
  const auto none = static_cast<uint32_t>(base.index.size());
  const auto newer = static_cast<uint32_t>(keys_.size());
  for (; !changed.empty(); is_known = false) {
    auto ask_bucket = [&](size_t i) {
      if (i >= changed.size()) return;
      uint32_t place = changed[i].place;
      prefetch(starts_.data() + (place >> shift_));
      if (is_known || place == none) return;
      base.index.prefetch_length(place);
      if (!base.rows.empty()) prefetch(base.rows.data() + place);
    };
    auto ask_changes = [&](size_t i) {
      if (i < changed.size()) prefetch(changes_.data() + starts_[changed[i].place >> shift_]);
    };
    for (size_t i = 0; i < 2 * changes_ahead; ++i) ask_bucket(i);
    for (size_t i = 0; i < changes_ahead; ++i) ask_changes(i);
    size_t left = 0;
    for (size_t i = 0; i < changed.size(); ++i) {
      ask_bucket(i + 2 * changes_ahead);
      ask_changes(i + changes_ahead);
      const auto [at, place] = changed[i];
      const Bytes address = addresses[at];
      const Change* change =
          is_known || base.changed[place] ? longest(place, address, head_of(address)) : nullptr;
      if (change && change->is_erased) {
        changed[left++] = {at, change->outer};
      } else if (change) {
        locations[at] = row_of(*change);
        lengths[at] = change->length;
      } else if (place == none) {
        locations[at] = {Location::absent, Location::absent};
        lengths[at] = 0;
      } else if (!is_known) {
        locations[at] = base.row(place);
        locations[at].index += newer;
        lengths[at] = base.index.length(place);
      }
    }
    changed = changed.first(left);
  }
}

void MatchChanges::list(const MatchBase& base, std::vector<Location>* prefixes,
                        std::vector<Location>* answers) const {
  std::vector<const Change*> order;
  for (const Change& c : changes_) order.push_back(&c);
  std::sort(order.begin(), order.end(),
            [&](const Change* a, const Change* b) { return before(*a, *b); });
  prefixes->clear();
  std::vector<Changed> erased;
  std::vector<std::byte> bytes;
  std::vector<uint64_t> ends{0};
  for (const Change* c : order) {
    if (c->is_erased) erased.push_back({static_cast<uint32_t>(prefixes->size()), c->outer});
    prefixes->push_back(row_of(*c));
    Bytes address = address_of(*c);
    bytes.insert(bytes.end(), address.begin(), address.end());
    ends.push_back(bytes.size());
  }
  *answers = *prefixes;
  std::vector<uint32_t> lengths(order.size());
  // A change around what is erased has another place than the changes inside, so that what is found
  // for its first address from there on covers all of it.
  go_on(base, Column::variable(bytes.data(), ends.data(), order.size()), erased, false,
        answers->data(), lengths.data());
}

Status MatchChanges::add(Backend& backend, const TableRecord& table, const MatchBase& base,
                         const MatchChanges* earlier, const MergedRows& rows,
                         const SegmentList& newer) {
  address_bits_ = table.address_bits;
  keys_.reserve(newer.size());
  for (auto s = newer.rbegin(); s != newer.rend(); ++s) keys_.push_back((*s)->keys());
  std::vector<Change> fresh;
  STRIDE_TRY(collect(backend, base, rows, &fresh));
  merge(earlier ? std::span<const Change>(earlier->changes_) : std::span<const Change>(), fresh);
  build_directory(base.index.size() + 1);
  for (const Change& c : fresh) base.changed.set(c.place);
  return {};
}

// In their places, sorted.
Status MatchChanges::collect(Backend& backend, const MatchBase& base, const MergedRows& rows,
                             std::vector<Change>* fresh) {
  const auto none = static_cast<uint32_t>(base.index.size());
  std::vector<std::byte> bytes;
  std::vector<uint64_t> ends{0};
  for (uint64_t i = 0; i < rows.size(); ++i) {
    Bytes key = rows.key(i);
    if (!is_prefix_key(key, address_bits_)) {
      const IndexedSegment& segment = *rows.segments[rows.order[i].index];
      return segment.segment().damage(SectionType::key_data, "has a key that is no prefix",
                                      static_cast<uint64_t>(key.data() - segment.keys().data));
    }
    Bytes address = prefix_address(key, address_bits_);
    bytes.insert(bytes.end(), address.begin(), address.end());
    ends.push_back(bytes.size());
  }
  std::vector<uint32_t> ranks(rows.size());
  STRIDE_TRY(
      base.index.find(backend, Column::variable(bytes.data(), ends.data(), rows.size()), ranks));
  fresh->resize(rows.size());
  for (uint64_t i = 0; i < rows.size(); ++i) {
    Change& c = (*fresh)[i];
    c.length = prefix_length(rows.key(i), address_bits_);
    c.head = head_of(prefix_address(rows.key(i), address_bits_));
    uint32_t place = ranks[i];
    while (place != Location::absent && base.index.length(place) > c.length)
      place = base.index.parent(place);
    c.place = std::min(place, none);
    c.outer = c.place == none ? none : std::min(base.index.parent(place), none);
    c.is_place = c.place != none && base.index.length(place) == c.length;
    c.around = 0;
    c.is_erased = rows.kind(i) == EntryKind::tombstone;
    c.age = static_cast<uint32_t>(keys_.size()) - 1 - rows.order[i].index;
    c.rank = rows.order[i].rank;
  }
  // Not std::stable_sort, whose buffer is not aligned as a Change has to be.
  std::sort(fresh->begin(), fresh->end(), [&](const Change& a, const Change& b) {
    return a.place != b.place ? a.place < b.place : before(a, b);
  });
  return {};
}

void MatchChanges::merge(std::span<const Change> old, std::span<const Change> fresh) {
  changes_.reserve(old.size() + fresh.size());
  auto keep = [&](size_t n) {
    changes_.insert(changes_.end(), old.begin(), old.begin() + static_cast<ptrdiff_t>(n));
    old = old.subspan(n);
  };
  // How many of the old ones come first; they are likely to be few.
  auto count_while = [&](const auto& comes_first) {
    size_t low = 0, step = 1;
    while (low + step <= old.size() && comes_first(old[low + step - 1])) {
      low += step;
      step *= 2;
    }
    size_t high = std::min(low + step, old.size() + 1) - 1;  // that one, if there is one, does not
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (comes_first(old[middle])) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  for (size_t i = 0; i < fresh.size();) {
    const uint32_t place = fresh[i].place;
    keep(count_while([&](const Change& c) { return c.place < place; }));
    const size_t first = changes_.size();
    for (; i < fresh.size() && fresh[i].place == place; ++i) {
      const Change& c = fresh[i];
      keep(count_while([&](const Change& o) { return o.place == place && before(o, c); }));
      if (!old.empty() && old[0].place == place && !before(c, old[0])) old = old.subspan(1);
      if (!c.is_erased || c.is_place) changes_.push_back(c);
    }
    keep(count_while([&](const Change& c) { return c.place == place; }));
    find_around(first);
  }
  keep(old.size());
}

// For those from `first` on, which are all of a place. What is around a change is the one before
// it, or around that.
void MatchChanges::find_around(size_t first) {
  for (size_t i = first; i < changes_.size(); ++i) {
    Change& c = changes_[i];
    c.around = 0;
    for (size_t j = i, by = i > first; by != 0 && c.around == 0; by = changes_[j].around) {
      j -= by;
      if (covers(changes_[j], c)) c.around = static_cast<uint32_t>(i - j);
    }
  }
}

namespace {

uint32_t bits_of(uint64_t n) { return static_cast<uint32_t>(std::bit_width(n)); }

// starts: 0s, one more than slots. Sets where those of each slot begin, and the end. Without a
// branch, which would go wrong for many.
template <class SlotOf>
void fill_starts(uint32_t first, uint32_t last, const SlotOf& slot_of,
                 std::vector<uint32_t>* starts) {
  uint32_t* ends = starts->data() + 1;
  for (uint32_t i = first; i < last; ++i) ends[slot_of(i)] = i + 1;
  (*starts)[0] = first;
  uint32_t max = first;
  for (uint32_t& start : *starts) start = max = std::max(max, start);
}

}  // namespace

void MatchChanges::build_directory(uint64_t places) {
  const auto size = static_cast<uint32_t>(changes_.size());
  // A bucket or two for a change.
  shift_ = bits_of(places) - std::min(bits_of(places), bits_of(size));
  starts_.resize((places >> shift_) + 2);
  fill_starts(
      0, size, [&](uint32_t i) { return changes_[i].place >> shift_; }, &starts_);
  for (size_t bucket = 0; bucket + 1 < starts_.size(); ++bucket) {
    uint32_t last = starts_[bucket + 1];
    if (last - starts_[bucket] <= crowd) continue;
    for (uint32_t i = starts_[bucket], first = i; i < last; ++i) {
      if (i + 1 < last && changes_[i + 1].place == changes_[i].place) continue;
      if (i + 1 - first > crowd) add_crowded(first, i + 1);
      first = i + 1;
    }
  }
}

void MatchChanges::add_crowded(uint32_t first, uint32_t last) {
  CrowdedPlace crowded{changes_[first].place, 0, changes_[first].head, {}};
  // The prefix of the place may begin long before all others.
  if (changes_[first].is_place) crowded.min_head = changes_[first + 1].head;
  const uint64_t range = changes_[last - 1].head - crowded.min_head;
  crowded.shift = bits_of(range) - std::min(bits_of(range), bits_of(last - first));
  crowded.starts.resize((range >> crowded.shift) + 2);
  auto slot_of = [&](uint32_t i) {
    return (std::max(changes_[i].head, crowded.min_head) - crowded.min_head) >> crowded.shift;
  };
  fill_starts(first, last, slot_of, &crowded.starts);
  crowded_.push_back(std::move(crowded));
}

}  // namespace stride
