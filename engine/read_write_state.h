// What a Transaction holds.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "engine/own_writes.h"
#include "engine/snapshot.h"
#include "engine/transaction.h"
#include "engine/transaction_state.h"
#include "engine/write/read_check.h"
#include "engine/write/read_set.h"

namespace stride {

struct STRIDE_INTERNAL Transaction::State {
  explicit State(std::shared_ptr<DatabaseImpl> database);

  const Moment moment;
  Snapshot base;  // of that moment
  std::shared_ptr<WriteTransaction::State> staged;
  WriteTransaction writes;       // the same
  std::optional<OwnWrites> own;  // none: nothing was read after a change
  ReadSet reads;
  bool lost_reads = false;  // there was no memory to note one, so that it can't be committed
  std::atomic<bool> ended{false};
  std::atomic<bool> busy{false};  // a thread is in a call
  std::thread::id last_thread{std::this_thread::get_id()};

  // Lets `own` have what was staged since. Throws std::bad_alloc.
  Status update_own();
  // Requires update_own().
  const Snapshot& view() { return own ? own->view() : base; }
  bool has_own_rows(const Table& table) const { return own && own->has_rows_of(table.id()); }
  // Calls note(TableReads*). Throws std::bad_alloc.
  template <class Note>
  void note(const Table& table, const Note& note) {
    lost_reads = true;
    note(&reads.of(TableParts::record(table)));
    lost_reads = false;
  }
  void end() noexcept;
};

// A call of one thread. Others are refused meanwhile.
class TransactionCall {
 public:
  explicit TransactionCall(Transaction::State* state)
      : state_(state->busy.exchange(true, std::memory_order_acquire) ? nullptr : state) {}
  ~TransactionCall() {
    if (state_) state_->busy.store(false, std::memory_order_release);
  }
  TransactionCall(const TransactionCall&) = delete;
  TransactionCall& operator=(const TransactionCall&) = delete;
  // invalid_argument: another thread is in a call. closed.
  Status check() const;
  // As check(), which needs memory for what it says.
  bool is_open() const noexcept { return state_ && !state_->ended.load(std::memory_order_relaxed); }

 private:
  Transaction::State* const state_;
};

// The rows of a scan, which count as read as they are handed out. min_rows: of the first batch, if
// the options do not say how many.
Scan recorded_scan(Scan rows, std::shared_ptr<Transaction::State> state, const Table& table,
                   const ScanOptions& options, uint64_t min_rows);
// The same of a cursor: what it passes over.
Cursor recorded_cursor(Cursor rows, std::shared_ptr<Transaction::State> state, const Table& table,
                       const CursorOptions& options);

}  // namespace stride
