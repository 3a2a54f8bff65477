// What the handles of the C interface stand for, and how its functions come by them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "adapters/c/error.h"
#include "adapters/c/handles.h"
#include "adapters/c/stridedb.h"
#include "adapters/c/stridedb_columns.h"
#include "engine/database.h"
#include "engine/dedup_table.h"
#include "engine/group_by.h"
#include "engine/key_columns.h"
#include "engine/make_vector_set.h"
#include "engine/row_columns.h"
#include "engine/transaction.h"

namespace stride::c {

struct DatabaseObject {
  static constexpr HandleKind kind = HandleKind::database;
  using Handle = stride_database;
  std::shared_ptr<Database> database;  // dedup tables keep it too
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
  struct SchemaText {
    Status status;  // of reading it
    std::string text, expiry_column;
    int64_t time_to_live = 0;
  };
  std::vector<SchemaText> schemas;  // of the tables
};

struct SnapshotObject {
  static constexpr HandleKind kind = HandleKind::snapshot;
  using Handle = stride_snapshot;
  Snapshot snapshot;
};

// Marks objects that one thread at a time may use.
struct Owned {};

struct TransactionObject : Owned {
  static constexpr HandleKind kind = HandleKind::transaction;
  using Handle = stride_transaction;
  explicit TransactionObject(WriteTransaction t) : transaction(std::move(t)) {}
  explicit TransactionObject(Transaction t) : transaction(std::move(t)) {}
  // invalid_argument: it is not what the call needs.
  Status get(WriteTransaction** writing);
  Status get(Transaction** reading);
  Status commit(const CommitOptions& options, CommitReport* report = nullptr) {
    return std::visit([&](auto& t) { return t.commit(options, report); }, transaction);
  }

  std::variant<WriteTransaction, Transaction> transaction;
  std::thread::id changed_by;  // last, where it only writes
};

struct ValuesObject : Owned {
  static constexpr HandleKind kind = HandleKind::values;
  using Handle = stride_values;
  GetResult result;
  MatchResult matches;    // of its members only the lengths are read once the call is over
  bool complete = false;  // the result is one
  bool matched = false;   // and it is of a match

  // Columns of the result. A new result needs what was handed out no more, and their memory.
  struct Cells {
    DecodedColumn column;
    bool is_current = false;  // of this result
  };
  std::vector<Cells> cells;
  Table table;  // that the result is of

  void begin_result() {
    complete = matched = false;
    for (Cells& c : cells) c.is_current = false;
  }
};

// A key column taken from keys.
struct KeyCells {
  std::string bytes;
  std::vector<uint64_t> offsets;  // where cells have any length
};

struct KeysObject : Owned {
  static constexpr HandleKind kind = HandleKind::keys;
  using Handle = stride_keys;
  EncodedKeys encoded;          // that were made of columns
  std::vector<KeyCells> cells;  // of keys that were taken apart
};

struct ReferencesObject : Owned {
  static constexpr HandleKind kind = HandleKind::references;
  using Handle = stride_references;
  FindResult result;
  MatchResult matches;
  bool matched = false;                // the last call was a match: `matches` is the result
  std::unique_ptr<Snapshot> snapshot;  // keeps alive what the result refers to; null: no result

  const Bitmap& found() const { return matched ? matches.found : result.found; }
  Bytes value(uint64_t i) const { return matched ? matches.value(i) : result.value(i); }
};

struct ScanObject : Owned {
  static constexpr HandleKind kind = HandleKind::scan;
  using Handle = stride_scan;
  explicit ScanObject(Scan s) : scan(std::move(s)) {}
  Scan scan;
};

struct CommitReportObject {
  static constexpr HandleKind kind = HandleKind::commit_report;
  using Handle = stride_commit_report;
  CommitReport report;
};

struct GroupsObject {
  static constexpr HandleKind kind = HandleKind::groups;
  using Handle = stride_groups;
  GroupResult result;
};

struct SetObject : Owned {
  static constexpr HandleKind kind = HandleKind::set;
  using Handle = stride_set;
  explicit SetObject(std::shared_ptr<VectorSet> s) : set(std::move(s)) {}
  std::shared_ptr<VectorSet> set;
};

struct DedupObject : Owned {
  static constexpr HandleKind kind = HandleKind::dedup_table;
  using Handle = stride_dedup_table;
  DedupObject(std::shared_ptr<Database> db, DedupTable t)
      : database(std::move(db)), table(std::move(t)) {}
  std::shared_ptr<Database> database;  // outlives the table
  DedupTable table;
};

// The object behind a handle, for the length of a call: where the object belongs to one thread, no
// other has it meanwhile.
template <class Object>
class Use {
 public:
  Status begin(const typename Object::Handle* handle) {
    if (!find_handle(handle, Object::kind)) return wrong_handle(handle, Object::kind);
    if constexpr (std::is_base_of_v<Owned, Object>) {
      std::atomic<bool>& busy = busy_flag(handle);
      if (busy.exchange(true, std::memory_order_acquire))
        return Status::invalid("another thread is using the handle")
            .with_remedy("give each thread its own, or take turns");
      busy_ = &busy;
    }
    // Only now can no other thread end it.
    object_ = static_cast<Object*>(find_handle(handle, Object::kind));
    return object_ ? Status() : wrong_handle(handle, Object::kind);
  }
  Use() = default;
  Use(const Use&) = delete;
  ~Use() {
    if (busy_) busy_->store(false, std::memory_order_release);
  }
  Object* operator->() const { return object_; }
  Object* get() const { return object_; }
  // The object, whose handle is gone.
  Object* release() {
    busy_ = nullptr;
    return std::exchange(object_, nullptr);
  }

 private:
  Object* object_ = nullptr;
  std::atomic<bool>* busy_ = nullptr;  // where it is owned
};

template <class Object>
Status make_handle(std::unique_ptr<Object> object, typename Object::Handle** handle) {
  *handle = static_cast<typename Object::Handle*>(add_handle(Object::kind, object.get()));
  object.release();
  return {};
}

// Ends a handle and hands over its object.
template <class Object>
Status consume_object(typename Object::Handle* handle, std::unique_ptr<Object>* object) {
  Use<Object> use;
  STRIDE_TRY(use.begin(handle));
  if (!remove_handle(handle, Object::kind)) return wrong_handle(handle, Object::kind);
  object->reset(use.release());
  return {};
}

template <class Object>
Status release_handle(typename Object::Handle* handle) {
  if (!handle) return {};
  std::unique_ptr<Object> object;
  return consume_object(handle, &object);
}

// Calls call(snapshot, table) with what the handles stand for.
template <class Call>
Status read_table(stride_snapshot* snapshot, stride_table* table, const Call& call) {
  Use<SnapshotObject> s;
  STRIDE_TRY(s.begin(snapshot));
  Use<TableObject> t;
  STRIDE_TRY(t.begin(table));
  return call(s->snapshot, t->table);
}

// Calls call(transaction, table) with what the handles stand for: a transaction that reads.
template <class Call>
Status read_in(stride_transaction* transaction, stride_table* table, const Call& call) {
  Use<TransactionObject> t;
  STRIDE_TRY(t.begin(transaction));
  Transaction* reading;
  STRIDE_TRY(t->get(&reading));
  Use<TableObject> of;
  STRIDE_TRY(of.begin(table));
  return call(*reading, of->table);
}

// Calls change(transaction, table) with what the handles stand for. A change that takes any type of
// transaction is also one of those that read.
template <class Change>
int change_table(stride_transaction* transaction, stride_table* table, const Change& change) {
  return run([&]() -> Status {
    Use<TransactionObject> t;
    STRIDE_TRY(t.begin(transaction));
    Use<TableObject> of;
    STRIDE_TRY(of.begin(table));
    if constexpr (std::is_invocable_v<Change, Transaction&, const Table&>)
      if (auto* reading = std::get_if<Transaction>(&t->transaction))
        return change(*reading, of->table);
    WriteTransaction* writing;
    STRIDE_TRY(t->get(&writing));
    std::thread::id self = std::this_thread::get_id();
    if (std::exchange(t->changed_by, self) != self) writing->hand_over();
    return change(*writing, of->table);
  });
}

// Opens it with what is given, and with the members of `options` that stride_options does not have.
Status open_database(const char* path, const stride_options* given, Options options,
                     stride_database** database);
// `what` names the argument.
Status check_pointer(const void* pointer, const char* what);
// One of an enum's values, which are 0 to `last`.
Status check_choice(int value, int last, const char* what);
// NULL is fine for no bytes.
Status read_bytes(const void* data, uint64_t size, const char* what, Bytes* bytes);
// The buffers for so many rows; sets `needed` to 0.
Status read_buffers(stride_buffers* given, uint64_t rows);
// STRIDE_TOO_SMALL: more is `needed` than there is room for. instead: what needs no buffers.
int values_too_large(const stride_buffers& buffers, const char* instead) noexcept;
// The column that the caller means, as far as NULL and sizes tell that it is one.
Status read_column(const stride_column* given, const char* what, Column* column);
// Keys to be changed. Without rows there is no width that could be wrong.
Status read_keys(const stride_column* given, const Table& table, Column* keys);
// And none of its rows ends before it begins, which the engine does not look for in what is read.
Status read_queries(const stride_column* given, const char* what, Column* column);
// The rows that a scan or a call of group_by reads; given: NULL for all.
Status read_range(const stride_scan_options* given, ScanOptions* range);
// The caller's struct, which begins with its size and may be shorter than ours (an older header) or
// longer (a newer one; what we do not know must be 0). `min_size`: its size in the first version.
Status read_struct(const void* given, const char* what, size_t min_size, size_t size, void* ours);
// Copies as much of ours as the caller's struct of `given_size` bytes has room for, and clears what
// is left of it.
Status write_struct(const void* ours, const char* what, size_t size, size_t min_size,
                    size_t given_size, void* given);

// A view of what was found, also where that has no bytes: NULL is what was not found.
stride_bytes present(Bytes found);
// Returns the words of a bitmap, as the C interface hands them out: NULL where there are no rows.
const uint64_t* words_of(const Bitmap& found);
// There is a result.
Status check_found(const ReferencesObject& references);
// Rows first to first + n - 1 are there.
Status check_rows(const ReferencesObject& references, uint64_t first, uint64_t n);

}  // namespace stride::c
