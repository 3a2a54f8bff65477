// The pointers of the C interface: names of objects, which are never followed.
//
//   void* handle = add_handle(HandleKind::table, object);
//   TableObject* object = ...;
//   STRIDE_TRY(find_handle(handle, HandleKind::table, &object));    // one that is wrong: a Status
//   STRIDE_TRY(remove_handle(handle, HandleKind::table, &object));  // once
//
// A handle is 64 bits: how often its slot was used, what kind of object it is, and which slot.
//
//   63      32 31    28 27      0
//   [  uses  ] [ kind ] [ slot  ]
//
// A slot holds the handle that is valid now, so that one comparison tells a released, foreign or
// made-up one. Slots are never given back to the system.
#pragma once

#include <atomic>
#include <cstdint>

#include "storage/status.h"

namespace stride::c {

enum class HandleKind : uint8_t {
  database = 1,
  table,
  tables,
  transaction,
  snapshot,
  values,
  references,
  scan,
  commit_report,
  groups,
  set,
  dedup_table,
  keys,
  cursor,
};

// All are thread-safe. Throws std::bad_alloc.
void* add_handle(HandleKind kind, void* object);
// Null where it is not a handle of that kind.
void* find_handle(const void* handle, HandleKind kind) noexcept;
// Says what it is instead. Precondition: find_handle() found nothing.
Status wrong_handle(const void* handle, HandleKind kind);
// Whether a thread is using it: of the slot, which stays whatever becomes of the object.
// Precondition: find_handle() has found it.
std::atomic<bool>& busy_flag(const void* handle) noexcept;
// Clears the flag. False where another thread was faster, or it never was one.
bool remove_handle(const void* handle, HandleKind kind) noexcept;

}  // namespace stride::c
