// What the handles of the C interface stand for, and how its functions come by them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/c/handles.h"
#include "adapters/c/stridedb.h"
#include "engine/database.h"

namespace stride::c {

struct DatabaseObject {
  static constexpr HandleKind kind = HandleKind::database;
  using Handle = stride_database;
  std::unique_ptr<Database> database;
};

struct TableObject {
  static constexpr HandleKind kind = HandleKind::table;
  using Handle = stride_table;
  Table table;
};

struct TablesObject {
  static constexpr HandleKind kind = HandleKind::tables;
  using Handle = stride_tables;
  std::vector<TableStatistics> tables;
};

struct SnapshotObject {
  static constexpr HandleKind kind = HandleKind::snapshot;
  using Handle = stride_snapshot;
  Snapshot snapshot;
};

// Of one thread at a time.
struct Owned {
  std::atomic<bool> busy{false};
};

struct TransactionObject : Owned {
  static constexpr HandleKind kind = HandleKind::transaction;
  using Handle = stride_transaction;
  explicit TransactionObject(WriteTransaction t) : transaction(std::move(t)) {}
  WriteTransaction transaction;
  std::thread::id changed_by;  // last
};

struct ValuesObject : Owned {
  static constexpr HandleKind kind = HandleKind::values;
  using Handle = stride_values;
  GetResult result;
  bool complete = false;
};

struct ReferencesObject : Owned {
  static constexpr HandleKind kind = HandleKind::references;
  using Handle = stride_references;
  FindResult result;
  std::unique_ptr<Snapshot> snapshot;  // keeps alive what the result refers to; null: no result
};

struct ScanObject : Owned {
  static constexpr HandleKind kind = HandleKind::scan;
  using Handle = stride_scan;
  explicit ScanObject(Scan s) : scan(std::move(s)) {}
  Scan scan;
};

// The object behind a handle, for the length of a call: where the object belongs to one thread, no
// other has it meanwhile.
template <class Object>
class Use {
 public:
  Status begin(const typename Object::Handle* handle) {
    auto* object = static_cast<Object*>(find_handle(handle, Object::kind));
    if (!object) return wrong_handle(handle, Object::kind);
    if constexpr (std::is_base_of_v<Owned, Object>) {
      if (object->busy.exchange(true, std::memory_order_acquire))
        return Status::invalid("another thread is using the handle")
            .with_remedy("give each thread its own, or take turns");
    }
    object_ = object;
    return {};
  }
  Use() = default;
  Use(const Use&) = delete;
  ~Use() {
    if constexpr (std::is_base_of_v<Owned, Object>)
      if (object_) object_->busy.store(false, std::memory_order_release);
  }
  Object* operator->() const { return object_; }
  Object* get() const { return object_; }

 private:
  Object* object_ = nullptr;
};

template <class Object>
Status make_handle(std::unique_ptr<Object> object, typename Object::Handle** handle) {
  *handle = static_cast<typename Object::Handle*>(add_handle(Object::kind, object.get()));
  object.release();
  return {};
}

// Ends a handle and hands over its object.
template <class Object>
Status take_object(typename Object::Handle* handle, std::unique_ptr<Object>* object) {
  Use<Object> use;
  STRIDE_TRY(use.begin(handle));
  if (!remove_handle(handle, Object::kind)) return wrong_handle(handle, Object::kind);
  object->reset(use.get());
  return {};
}

template <class Object>
Status release_handle(typename Object::Handle* handle) {
  if (!handle) return {};
  std::unique_ptr<Object> object;
  return take_object(handle, &object);
}

// `what` names the argument.
Status check_pointer(const void* pointer, const char* what);
// The column that the caller means, as far as NULL and sizes tell that it is one.
Status take_column(const stride_column* given, const char* what, Column* column);
// The caller's struct, which begins with its size and may be shorter than ours (an older header) or
// longer (a newer one; what we do not know must be 0). `least`: its size in the first version.
Status read_struct(const void* given, const char* what, size_t least, size_t size, void* ours);
// Copies as much of ours as the caller's struct of `given_size` bytes has room for.
Status write_struct(const void* ours, const char* what, size_t size, size_t least,
                    size_t given_size, void* given);

}  // namespace stride::c
