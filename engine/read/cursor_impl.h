// What a cursor does: a gap in the sources of a table, and the entry beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/catalog/version.h"
#include "engine/cursor.h"
#include "engine/read/gap_merger.h"
#include "engine/read/sorted_rows.h"

namespace stride {

enum class CursorMove : uint8_t {
  seek,
  seek_for_previous,
  seek_to_first,
  seek_to_last,
  next,
  previous,
};

// The keys of a cursor: from `from` on and below `to`; none: no end.
struct CursorBounds {
  std::string from;
  std::optional<std::string> to;

  explicit CursorBounds(const CursorOptions& options);
};

// For those who keep what a cursor has looked at.
class CursorRecord {
 public:
  virtual ~CursorRecord() = default;
  // Calls cursor.move_rows(how, key). Throws std::bad_alloc.
  virtual Status move(Cursor::Impl& cursor, CursorMove how, Bytes key) = 0;
};

class STRIDE_INTERNAL Cursor::Impl {
 public:
  // version: keeps what the sources are made of.
  Impl(std::shared_ptr<const Version> version, std::vector<SortedRows> sources);
  // Once, before the first move.
  Status set_bounds(const CursorOptions& options);
  void record_with(std::unique_ptr<CursorRecord> record) { record_ = std::move(record); }

  // Moves, and keeps a failure. key: of seeks. Throws std::bad_alloc.
  void move(CursorMove how, Bytes key);
  // Moves, whatever the status is.
  Status move_rows(CursorMove how, Bytes key);

  bool valid() const { return valid_; }
  Bytes key() const { return entry_.row.key; }
  Bytes value() const { return value_; }
  const Status& status() const { return status_; }
  void end_with(Status status) noexcept {
    status_ = std::move(status);
    valid_ = false;
  }

  static Impl& of(Cursor& cursor) { return *cursor.impl_; }

 private:
  Status set_gaps(CursorMove how, Bytes key);
  Status step(bool forwards);

  const std::shared_ptr<const Version> version_;
  const std::vector<SortedRows> sources_;
  GapMerger merger_;
  std::vector<uint64_t> first_, end_;  // the gaps of the bounds
  MergedEntry entry_;
  Bytes value_;
  bool valid_ = false;
  bool is_gap_behind_ = false;            // behind the entry, and not before it
  std::unique_ptr<CursorRecord> record_;  // null: nobody keeps anything
  Status status_;
};

}  // namespace stride
