// Entries one at a time, in either direction from any key.
//
//   Result<Cursor> cursor = snapshot.cursor(table);
//   for (cursor->seek("b"); cursor->valid(); cursor->next()) use(cursor->key(), cursor->value());
//   if (!cursor->status().ok()) ...
//   cursor->seek_for_previous("b");   // the last entry that is not above it
//   cursor->previous();
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "storage/column.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

// All bounds hold together; none of them: the whole table.
struct CursorOptions {
  std::optional<std::string> from;    // first key
  std::optional<std::string> to;      // past the last key
  std::optional<std::string> prefix;  // only keys that start with it
};

// For one thread at a time. Keeps alive what it reads, and so what its views point to, whatever
// becomes of the snapshot. A step allocates nothing, but in a transaction, and costs a comparison
// for each run; turning round costs no more than two steps. A Scan (engine/scan.h) is the faster
// way through many entries.
//
// At first, behind either end and after an error it is at no entry: valid() is false, next() and
// previous() do nothing, and it can be moved by the seek calls. An error stays, and nothing moves
// it then. One that was moved away is at no entry for good.
class STRIDE_API Cursor {
 public:
  class STRIDE_INTERNAL Impl;
  explicit Cursor(std::unique_ptr<Impl> impl) noexcept;
  Cursor(Cursor&&) noexcept;
  Cursor& operator=(Cursor&&) noexcept;
  ~Cursor();

  // To the first entry that is not below the key, or to the last one that is not above it. Where
  // the key lies beyond the bounds: to the entry there that is next to it, in that direction.
  void seek(Bytes key);
  void seek(std::string_view key) { seek(as_bytes(key)); }
  void seek_for_previous(Bytes key);
  void seek_for_previous(std::string_view key) { seek_for_previous(as_bytes(key)); }
  void seek_to_first();
  void seek_to_last();
  void next();
  void previous();

  bool valid() const;
  // Preconditions: valid(). Views that stay valid as long as the cursor lives.
  Bytes key() const;
  Bytes value() const;
  // corruption, io_error: damaged bytes were met; what was found before is right. closed: the
  // transaction that it belongs to has ended, or it was moved away.
  Status status() const;

 private:
  friend class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stride
