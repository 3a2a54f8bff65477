// What went wrong, where, and what to do about it.
//
//   Status s = file->sync();
//   if (!s.ok()) std::cerr << s.to_string() << "\n";
//   Result<Table> table = database->open_table("ticks");
//   if (!table.ok()) return table.status();
//   use(*table);
//
// Bad input, failing hardware and a lack of memory are reported with a Status; StrideDB never
// aborts the process, and calls that return a Status or a Result never throw. Those that return a
// container or a string by value throw std::bad_alloc where there is no memory for it. A Status is
// a value: cheap to move when ok (one null pointer), safe to copy, and thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "storage/export.h"

namespace stride {

enum class StatusCode : uint8_t {
  ok = 0,
  not_found,            // a named table, file or database is absent
  already_exists,       // a table or database of that name is there already
  invalid_argument,     // the caller's data or options are off (key too long, wrong width, ...)
  corruption,           // stored bytes are damaged or foreign
  unsupported_version,  // written by a newer StrideDB
  io_error,             // the operating system failed a call
  no_space,             // the disk or quota is full
  permission_denied,    // file or directory may not be read or written
  locked,               // another process or handle writes this database
  read_only,            // a write was asked of a read-only database
  poisoned,  // an earlier write or sync failed: nothing more is written through this handle
  resource_exhausted,  // memory or another limit
  closed,              // the database or transaction has ended
  unavailable,         // this machine or build lacks what was asked for
  cancelled,           // the caller asked for an end, and nothing has changed
  conflict,            // what a transaction has read was changed meanwhile: do it again
};

// "corruption", "no_space", ...
STRIDE_API std::string_view to_string(StatusCode code);

class [[nodiscard]] STRIDE_API Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message);

  static Status invalid(std::string message) {
    return Status(StatusCode::invalid_argument, std::move(message));
  }
  static Status corruption(std::string file, uint64_t offset, std::string message);
  // resource_exhausted, made beforehand: allocates nothing.
  static Status out_of_memory() noexcept;
  // From errno: picks no_space, permission_denied, not_found, already_exists, resource_exhausted,
  // invalid_argument (not a directory) or io_error, each with its remedy. `what` is the call.
  static Status from_errno(int error, std::string_view what, std::string file);

  // Each returns *this, to be chained onto a constructor.
  Status&& with_file(std::string file) &&;
  Status&& with_offset(uint64_t offset) &&;
  Status&& with_remedy(std::string remedy) &&;
  Status&& with_key(std::string key) &&;

  bool ok() const { return !detail_; }
  StatusCode code() const { return detail_ ? detail_->code : StatusCode::ok; }
  const std::string& message() const;
  const std::string& file() const;         // empty where no file is concerned
  std::optional<uint64_t> offset() const;  // byte offset in file()
  const std::string& remedy() const;       // what to do; empty where unknown
  // The bytes of the key that the message shows as in_quotes() does (storage/quoted.h), so that who
  // knows its type can show that; nothing where it shows none.
  std::optional<std::string_view> key() const;
  // The message with this in the key's place.
  std::string message_with_key(std::string_view shown) const;
  // "corruption: block checksum differs (000012.seg, offset 65536): restore ... "
  std::string to_string() const;

 private:
  struct Detail {
    StatusCode code;
    std::string message, file, remedy;
    std::optional<uint64_t> offset;
    std::optional<std::string> key;
  };
  Detail* own();                    // detail_, unshared first; null where ok
  std::shared_ptr<Detail> detail_;  // null: ok. Not changed once shared.
};

// A T, or why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  // Precondition: ok().
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

#define STRIDE_TRY(expression)                                                        \
  do {                                                                                \
    if (::stride::Status stride_s_ = (expression); !stride_s_.ok()) return stride_s_; \
  } while (0)

}  // namespace stride
