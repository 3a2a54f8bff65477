#include "engine/prefix/matcher.h"

#include <algorithm>
#include <cstring>

#include "engine/catalog/segment_check.h"
#include "engine/merge/parallel_merge.h"
#include "engine/read/cold_read.h"
#include "engine/read/device_lookup.h"
#include "engine/read/lookup.h"
#include "engine/read/row_tasks.h"
#include "storage/no_throw.h"
#include "storage/prefetch.h"
#include "storage/prefix_key.h"

namespace stride {
namespace {

constexpr uint64_t rows_per_copy = 1 << 14;
constexpr uint64_t addresses_ahead = 24;  // are prefetched
// Keys of a search for prefixes that cover others.
constexpr uint64_t max_search_rows = 1 << 16;
constexpr uint64_t max_search_bytes = 4 << 20;

// Keys of the prefixes that an address may have.
class CoveringKeys {
 public:
  explicit CoveringKeys(uint32_t address_bits) : address_bits_(address_bits) {}

  // Precondition: the address has so many bits.
  void add(Bytes address, uint32_t length) {
    if (address_bits_ == byte_strings) {
      address = address.first(length / 8);
      bytes_.insert(bytes_.end(), address.begin(), address.end());
    } else {
      std::byte encoded[2];
      put_prefix_length(encoded, length, address_bits_);
      bytes_.insert(bytes_.end(), address.begin(), address.end());
      clear_host_bits(bytes_.data() + bytes_.size() - address.size(),
                      static_cast<uint32_t>(address.size()), length);
      bytes_.insert(bytes_.end(), encoded, encoded + prefix_length_bytes(address_bits_));
    }
    offsets_.push_back(bytes_.size());
  }
  uint64_t size() const { return offsets_.size() - 1; }
  bool full() const { return size() >= max_search_rows || bytes_.size() >= max_search_bytes; }
  void clear() {
    bytes_.clear();
    offsets_.resize(1);
  }
  KeyColumn column() const {
    return address_bits_ == byte_strings
               ? Column::variable(bytes_.data(), offsets_.data(), size())
               : Column::fixed(bytes_.data(), prefix_key_width(address_bits_), size());
  }

 private:
  uint32_t address_bits_;
  std::vector<std::byte> bytes_;
  std::vector<uint64_t> offsets_{0};
};

// Which of the segments has a key that is no prefix, or one that is not behind the one before.
Status find_damage(Backend& backend, const TableRecord& table, const SegmentList& segments,
                   const std::string& why) {
  for (const auto& s : segments) STRIDE_TRY(check_rows(backend, *s, table));
  return Status(StatusCode::corruption, "table '" + table.name + "': " + why)
      .with_file(segments[0]->segment().path())
      .with_remedy("restore the database from a backup");
}

// The keys of merged rows, one after the other.
class KeyCopies {
 public:
  void copy(Backend& backend, const TableRecord& table, const MergedRows& rows) {
    uint64_t n = rows.size();
    column_.size = n;
    column_.fixed = table.address_bits != byte_strings;
    column_.width = table.key_width;
    if (column_.fixed) {
      bytes_.resize(n * column_.width);
    } else {
      ends_.resize(n + 1);
      ends_[0] = 0;
      for (uint64_t i = 0; i < n; ++i) ends_[i + 1] = ends_[i] + rows.key(i).size();
      bytes_.resize(ends_[n]);
      bases_.assign((n >> PackedOffsets::group_bits) + 1, 0);
      column_.offsets = {bases_.data(), ends_.data(), sizeof(uint64_t)};
    }
    column_.data = bytes_.data();
    column_.data_bytes = bytes_.size();
    backend.parallel_for(n, rows_per_copy, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) {
        Bytes key = rows.key(i);
        std::byte* to = bytes_.data() + (column_.fixed ? i * column_.width : ends_[i]);
        if (!key.empty()) std::memcpy(to, key.data(), key.size());
      }
    });
  }
  const PackedColumn& column() const { return column_; }

 private:
  PackedColumn column_;
  BulkVector<std::byte> bytes_;
  BulkVector<uint64_t> ends_;
  std::vector<uint64_t> bases_;  // all 0
};

}  // namespace

void PrefixIndex::prefetch_length(uint64_t rank) const {
  if (narrow_.empty()) {
    prefetch(wide_.data() + rank);
  } else {
    prefetch(narrow_.data() + rank);
  }
}

Status PrefixIndex::build(Executor& executor, const TableRecord& table, const MergedRows& rows) {
  KeyCopies copies;
  copies.copy(*executor.host(), table, rows);
  Status s = build(executor, table, copies.column());
  if (s.code() != StatusCode::invalid_argument) return s;
  return find_damage(*executor.host(), table, SegmentList(rows.segments), s.message());
}

Status PrefixIndex::build(Executor& executor, const TableRecord& table,
                          const IndexedSegment& segment) {
  STRIDE_TRY(segment.ensure_keys());
  Status s = build(executor, table, segment.keys());
  if (s.code() != StatusCode::invalid_argument) return s;
  STRIDE_TRY(check_rows(*executor.host(), segment, table));
  return segment.segment().damage(SectionType::key_data, "cannot be matched: " + s.message());
}

Status PrefixIndex::build(Executor& executor, const TableRecord& table, const PackedColumn& keys) {
  size_ = keys.size;
  if (size_ > max_match_prefixes)
    return Status(StatusCode::resource_exhausted,
                  "table '" + table.name + "' has " + std::to_string(size_) +
                      " prefixes; at most " + std::to_string(max_match_prefixes) +
                      " can be matched");
  Status s = executor.run_bulk(size_, [&](Backend& backend) {
    return backend.longest_prefix().build_matches(keys, table.address_bits, &image_, &parents_);
  });
  STRIDE_TRY(s);
  note_lengths(*executor.host(), table.address_bits, keys);
  return {};
}

void PrefixIndex::note_lengths(Backend& backend, uint32_t address_bits, const PackedColumn& keys) {
  bool narrow = address_bits != byte_strings && prefix_length_bytes(address_bits) == 1;
  if (narrow) {
    narrow_.resize(keys.size);
  } else {
    wide_.resize(keys.size);
  }
  backend.parallel_for(keys.size, rows_per_copy, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      uint32_t length = prefix_length(keys[i], address_bits);
      if (narrow) {
        narrow_[i] = static_cast<uint8_t>(length);
      } else {
        wide_[i] = length;
      }
    }
  });
}

Status PrefixIndex::find(Backend& backend, const KeyColumn& addresses,
                         std::span<uint32_t> ranks) const {
  if (size_ > 0) return backend.longest_prefix().longest_match(view(), addresses, ranks);
  std::fill(ranks.begin(), ranks.end(), Location::absent);
  return {};
}

namespace {

Status make_base(Executor& executor, const TableVersion& version,
                 std::shared_ptr<const MatchBase>* out) {
  auto base = std::make_shared<MatchBase>();
  base->segments = version.segments;
  // Strings that all have one length are stored so, but not searched so.
  auto as_stored = [&](const IndexedSegment& segment) {
    bool any_length = version.table->address_bits == byte_strings;
    return !segment.has_tombstones() && !(any_length && segment.keys().fixed);
  };
  if (base->segments.size() == 1 && as_stored(*base->segments[0])) {
    STRIDE_TRY(base->index.build(executor, *version.table, *base->segments[0]));
  } else {
    MergedRows rows;
    STRIDE_TRY(merge_all(*executor.host(), base->segments, &rows));
    STRIDE_TRY(base->index.build(executor, *version.table, rows));
    base->rows = std::move(rows.order);
  }
  base->changed.reset(base->index.size() + 1);
  *out = std::move(base);
  return {};
}

bool ends_with(const SegmentList& segments, const SegmentList& older) {
  return older.size() <= segments.size() &&
         std::equal(older.rbegin(), older.rend(), segments.rbegin());
}

// Whether the version has the base's segments, and not too many changes besides.
bool serves(const MatchBase& base, const SegmentList& segments) {
  if (!ends_with(segments, base.segments)) return false;
  size_t newer = segments.size() - base.segments.size();
  uint64_t changes = 0;
  for (size_t i = 0; i < newer; ++i) changes += segments[i]->rows();
  return changes <= std::max(Matcher::max_changes, base.index.size() / 8);
}

}  // namespace

Status Matcher::make(Executor& executor, const TableVersion& version, const Matcher* before,
                     std::shared_ptr<const MatchBase> base, std::shared_ptr<const Matcher>* out) {
  auto matcher = std::make_shared<Matcher>();
  matcher->table_ = version.table;
  matcher->segments_ = version.segments;
  if (before) base = before->base_;
  if (!base || !serves(*base, version.segments)) STRIDE_TRY(make_base(executor, version, &base));
  matcher->base_ = std::move(base);
  STRIDE_TRY(matcher->add_changes(executor, version, before));
  *out = std::move(matcher);
  return {};
}

Status Matcher::add_changes(Executor& executor, const TableVersion& version,
                            const Matcher* before) {
  newer_ = static_cast<uint32_t>(segments_.size() - base_->segments.size());
  if (newer_ == 0) return {};
  if (before && (before->base_ != base_ || !ends_with(segments_, before->segments_)))
    before = nullptr;
  auto newer = segments_.begin();
  SegmentList fresh(newer, newer + (newer_ - (before ? before->newer_ : 0)));
  MergedRows rows;
  Backend& host = *executor.host();
  STRIDE_TRY(merge_all(host, fresh, &rows, Tombstones::keep));
  return changes_.add(host, *version.table, *base_, before ? &before->changes_ : nullptr, rows,
                      SegmentList(newer, newer + newer_));
}

// The base's answers of a task. lengths: its ranks, and lengths when this is done. Returns those
// that may be others, in `room`.
template <bool with_changes>
std::span<MatchChanges::Changed> Matcher::choose_rows(std::span<uint32_t> lengths,
                                                      Location* locations,
                                                      MatchChanges::Changed* room) const {
  const PrefixIndex& index = base_->index;
  const ChangedPlaces& changed = base_->changed;
  const Location* rows = base_->rows.empty() ? nullptr : base_->rows.data();
  const auto none = static_cast<uint32_t>(index.size());
  const uint32_t newer = newer_;
  size_t count = 0;
  auto look_ahead = [&](size_t i) {
    if (i >= lengths.size() || lengths[i] == Location::absent) return;
    index.prefetch_length(lengths[i]);
    if (rows) prefetch(rows + lengths[i]);
  };
  for (size_t i = 0; i < addresses_ahead; ++i) look_ahead(i);
  for (size_t i = 0; i < lengths.size(); ++i) {
    look_ahead(i + addresses_ahead);
    const uint32_t rank = lengths[i];
    if (with_changes) {
      // Without a branch, which would go wrong for most of those that are picked.
      const uint32_t place = std::min(rank, none);
      room[count] = {static_cast<uint32_t>(i), place};
      count += changed[place];
    }
    if (rank == Location::absent) {
      locations[i] = {Location::absent, Location::absent};
      lengths[i] = 0;
    } else {
      Location row = rows ? rows[rank] : Location{0, rank};
      locations[i] = {row.index + newer, row.rank};
      lengths[i] = index.length(rank);
    }
  }
  return {room, count};
}

Status Matcher::match(Executor& executor, const KeyColumn& addresses, MatchResult* result) const {
  uint64_t n = addresses.size;
  Backend& host = *executor.host();
  result->found.reset(n);
  result->locations.reset(n);
  result->lengths.reset(n);
  result->columns.clear();
  result->keys.clear();
  for (const auto& s : segments_) {
    result->columns.push_back(s->values());
    result->keys.push_back(s->keys());
  }
  Location* locations = result->locations.data();
  uint32_t* lengths = result->lengths.data();  // before they are known: ranks of the base
  bool is_found = base_->device.find(executor, base_->index.view(), base_->device_rows(), addresses,
                                     {lengths, n});
  Status s = for_each_task(host, 0, n, [&](uint64_t begin, uint64_t end) {
    KeyColumn task = addresses.slice(begin, end - begin);
    if (!is_found) STRIDE_TRY(base_->index.find(host, task, {lengths + begin, task.size}));
    MatchChanges::Changed room[rows_per_task];
    std::span<uint32_t> ranks(lengths + begin, task.size);
    if (changes_.empty()) {
      choose_rows<false>(ranks, locations + begin, room);
    } else {
      auto changed = choose_rows<true>(ranks, locations + begin, room);
      changes_.answer(*base_, task, changed, locations + begin, lengths + begin);
    }
    set_bits(result->found.words(), begin, end - begin,
             [&](uint64_t i) { return locations[begin + i].found(); });
    return Status();
  });
  if (!s.ok()) return s;
  return check_rows(host, {locations, n});
}

Status Matcher::match_device(Executor& executor, const KeyColumn& addresses, Location* out,
                             void* stream) const {
  auto device = device_that_holds(executor, addresses, out);
  if (!device.ok()) return device.status();
  auto base = base_->device.copy(*device, base_->index.view(), base_->device_rows());
  if (!base.ok()) return base.status();
  std::shared_ptr<ResidentMatches> changes;
  if (!changes_.empty()) {
    STRIDE_TRY(make_overlay(executor));
    auto copy = overlay_.device.copy(*device, overlay_.index.view(),
                                     {overlay_.answers.data(), overlay_.index.narrow_lengths()});
    if (!copy.ok()) return copy.status();
    changes = std::move(*copy);
  }
  Status s = (*device)->longest_prefix().match_on_device(**base, newer_, changes.get(), addresses,
                                                         out, stream);
  if (s.ok()) executor.count_device_keys(addresses.size);
  (void)executor.failed(s);
  return s;
}

Status Matcher::make_overlay(Executor& executor) const {
  std::lock_guard making(overlay_.mutex);
  if (overlay_.is_made) return {};
  MergedRows prefixes{{segments_.begin(), segments_.begin() + newer_}, {}};
  changes_.list(*base_, &prefixes.order, &overlay_.answers);
  STRIDE_TRY(overlay_.index.build(executor, *table_, prefixes));
  overlay_.is_made = true;
  return {};
}

// References are handed out to intact rows only.
Status Matcher::check_rows(Backend& backend, std::span<const Location> rows) const {
  bool intact = std::all_of(segments_.begin(), segments_.end(),
                            [](const auto& s) { return s->segment().intact(); });
  if (intact) return {};
  std::vector<const Segment*> segments;
  for (const auto& s : segments_) segments.push_back(&s->segment());
  ColdReader cold(std::move(segments), {.queries = rows.size()});
  for (uint64_t begin = 0, end; begin < rows.size(); begin = end) {
    STRIDE_TRY(cold.prefetch_positions(rows, begin, &end));
    Status s = for_each_task(backend, begin, end, [&](uint64_t from, uint64_t to) {
      for (uint64_t i = from; i < to; ++i)
        if (Location at = rows[i]; at.found())
          STRIDE_TRY(segments_[at.index]->ensure_rows(at.rank, uint64_t{at.rank} + 1));
      return Status();
    });
    if (!s.ok()) return s;
  }
  return {};
}

Status MatcherSlot::get(Executor& executor, const TableVersion& version,
                        std::shared_ptr<const Matcher>* out) {
  *out = matcher();
  if (*out) return {};
  std::lock_guard making(make_mutex_);
  *out = matcher();
  if (*out) return {};
  std::shared_ptr<const MatchBase> base;
  {
    std::lock_guard lock(latest_->mutex);
    base = latest_->base.lock();
  }
  STRIDE_TRY(Matcher::make(executor, version, nullptr, std::move(base), out));
  {
    std::lock_guard lock(latest_->mutex);
    latest_->base = (*out)->base();
  }
  std::lock_guard lock(mutex_);
  matcher_ = *out;
  return {};
}

std::shared_ptr<MatcherSlot> MatcherSlot::follow(Executor& executor,
                                                 const TableVersion& version) const {
  auto next = std::make_shared<MatcherSlot>();
  next->latest_ = latest_;
  if (auto before = matcher())
    Status ignored = no_throw(
        [&] { return Matcher::make(executor, version, before.get(), nullptr, &next->matcher_); });
  return next;
}

Status match_all(Executor& executor, const TableVersion& version, Bytes address,
                 std::vector<PrefixEntry>* out) {
  uint32_t bits = version.table->address_bits, step = bits == byte_strings ? 8 : 1;
  uint64_t longest =
      bits == byte_strings ? 8 * std::min<uint64_t>(address.size(), max_key_bytes) : uint64_t{bits};
  CoveringKeys keys(bits);
  FindResult found;
  out->clear();
  for (uint64_t length = 0; length <= longest; length += step) {
    keys.add(address, static_cast<uint32_t>(length));
    if (!keys.full() && length < longest) continue;
    STRIDE_TRY(lookup_references(executor, version.segments, keys.column(), &found));
    for (uint64_t i = 0; i < keys.size(); ++i) {
      if (!found.found[i]) continue;
      Location at = found.locations[i];
      Bytes key = version.segments[at.index]->keys()[at.rank];
      out->push_back({key, prefix_length(key, bits), found.value(i)});
    }
    keys.clear();
  }
  return {};
}

}  // namespace stride
