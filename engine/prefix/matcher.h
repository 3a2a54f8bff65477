// What answers Snapshot::match(): the longest prefix of an address among those of a version of a
// prefix table.
//
//   std::shared_ptr<const Matcher> matcher;
//   STRIDE_TRY(version.matcher->get(executor, version, &matcher));
//   STRIDE_TRY(matcher->match(executor, addresses, &result));
//
// A matcher is a base and what was changed since. The base has the live prefixes of a version, with
// an image that Backend::longest_match() searches, and stays when others are committed. The changes
// (engine/prefix/match_changes.h) are all prefixes that were replaced, added or erased since: a
// commit adds its own to those before, which costs as much as has changed, not as much as there is.
//
// An address is searched in the base. Where nothing has changed around what is found, that is the
// answer; else it begins there to look at the changes.
//
// A device searches two images: the base's, and an overlay of all changes, each with its answer,
// which is the longest live prefix that covers it, itself included. Let b be the base's longest
// prefix of an address and o the overlay's. If there is no o, or b is longer, b is the answer; else
// it is o's.
//   Proof. Prefixes that cover the address and are longer than o are as they were in the base, for
// whatever was changed is in the overlay. So if b is longer than o, it is alive, and nothing longer
// is: it would be in the base too. If it is not, nothing longer than o is alive, for it would have
// been found in b's place. So the answer is no longer than o and covers the address, as o does: of
// two prefixes of one address the shorter covers all of the longer, so it is the longest live one
// that covers o.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/device/executor.h"
#include "engine/lookup_result.h"
#include "engine/merge/merged_rows.h"
#include "engine/prefix/device_matches.h"
#include "engine/prefix/match_changes.h"
#include "gpu/backend.h"
#include "storage/status.h"

namespace stride {

// Prefixes by rank, and the image over them. Immutable once it is built.
class PrefixIndex {
 public:
  // Over rows in key order; all rows of a segment.
  Status build(Executor& executor, const TableRecord& table, const MergedRows& rows);
  Status build(Executor& executor, const TableRecord& table, const IndexedSegment& segment);

  uint64_t size() const { return size_; }
  // In bits.
  uint32_t length(uint64_t rank) const { return narrow_.empty() ? wide_[rank] : narrow_[rank]; }
  void prefetch_length(uint64_t rank) const;
  // The rank of the longest other prefix that covers it, or Location::absent.
  uint32_t parent(uint64_t rank) const { return parents_[rank]; }
  // Ranks, or Location::absent.
  Status find(Backend& backend, const KeyColumn& addresses, std::span<uint32_t> ranks) const;
  MatchView view() const { return {image_.data(), image_.size()}; }
  // The length of each prefix; null where not all fit a byte.
  const uint8_t* narrow_lengths() const { return narrow_.data(); }

 private:
  Status build(Executor& executor, const TableRecord& table, const PackedColumn& keys);
  void note_lengths(Backend& backend, uint32_t address_bits, const PackedColumn& keys);

  uint64_t size_ = 0;
  std::vector<std::byte> image_;
  BulkVector<uint8_t> narrow_;  // the length of each, where all fit a byte
  BulkVector<uint32_t> wide_;   // else
  std::vector<uint32_t> parents_;
};

// The live prefixes of some segments. Immutable, shared by the matchers of versions that have these
// segments and newer ones.
struct MatchBase {
  SegmentList segments;
  PrefixIndex index;
  std::vector<Location> rows;  // of each rank; empty: rank r is row r of the one segment
  mutable DeviceMatches device;
  // The commits of all matchers that have this base note their changes here.
  mutable ChangedPlaces changed;

  MatchRows device_rows() const {
    return {rows.empty() ? nullptr : rows.data(), index.narrow_lengths()};
  }
  Location row(uint32_t rank) const { return rows.empty() ? Location{0, rank} : rows[rank]; }
};

// Immutable.
class Matcher {
 public:
  // A new base is due for more changes than these, and than an eighth of the base's prefixes.
  static constexpr uint64_t max_changes = 2048;

  // before: the matcher of an earlier version, or null. base: one of an earlier version, or null.
  // Each is used if it serves.
  static Status make(Executor& executor, const TableVersion& version, const Matcher* before,
                     std::shared_ptr<const MatchBase> base, std::shared_ptr<const Matcher>* out);

  Status match(Executor& executor, const KeyColumn& addresses, MatchResult* result) const;
  // As Snapshot::match_device().
  Status match_device(Executor& executor, const KeyColumn& addresses, Location* out,
                      void* stream) const;
  const std::shared_ptr<const MatchBase>& base() const { return base_; }

 private:
  Status add_changes(Executor& executor, const TableVersion& version, const Matcher* before);
  template <bool with_changes>
  std::span<MatchChanges::Changed> choose_rows(std::span<uint32_t> lengths, Location* locations,
                                               MatchChanges::Changed* room) const;
  // The changes as a device searches them, made when one first does.
  struct Overlay {
    std::mutex mutex;  // held while it is made
    bool is_made = false;
    PrefixIndex index;
    std::vector<Location> answers;  // of each rank
    DeviceMatches device;
  };

  Status make_overlay(Executor& executor) const;
  Status check_rows(Backend& backend, std::span<const Location> rows) const;

  std::shared_ptr<const TableRecord> table_;
  SegmentList segments_;  // of the version: newer ones, then the base's
  std::shared_ptr<const MatchBase> base_;
  uint32_t newer_ = 0;  // segments
  MatchChanges changes_;
  mutable Overlay overlay_;
};

// Where versions of a prefix table with the same segments keep their matcher. Thread-safe.
class MatcherSlot {
 public:
  MatcherSlot() : latest_(std::make_shared<LatestBase>()) {}

  // Makes the matcher where there is none. Who comes meanwhile waits for it.
  Status get(Executor& executor, const TableVersion& version, std::shared_ptr<const Matcher>* out);

  // The slot of `version`, which follows the version of this slot. If there is a matcher here, the
  // next one is made at once; where that fails, the slot stays empty. Waits for nobody.
  std::shared_ptr<MatcherSlot> follow(Executor& executor, const TableVersion& version) const;

 private:
  // The newest base that a reader has made, for readers of later versions that were published
  // without a matcher meanwhile.
  struct LatestBase {
    std::mutex mutex;
    std::weak_ptr<const MatchBase> base;
  };

  std::shared_ptr<const Matcher> matcher() const {
    std::lock_guard lock(mutex_);
    return matcher_;
  }

  std::shared_ptr<LatestBase> latest_;
  std::mutex make_mutex_;     // held while the matcher is made
  mutable std::mutex mutex_;  // guards matcher_; never held for long
  std::shared_ptr<const Matcher> matcher_;
};

// Snapshot::match_all(): one search for all prefixes that the address may have.
Status match_all(Executor& executor, const TableVersion& version, Bytes address,
                 std::vector<PrefixEntry>* out);

}  // namespace stride
