// Group commit: commits that arrive together are carried out as one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/memtable/memtable_rows.h"
#include "engine/options.h"
#include "engine/write/commit_turns.h"
#include "engine/write/staging.h"
#include "storage/status.h"

namespace stride {

// A transaction that the queue knows of while it is staging, in a list.
struct OpenTransaction {
  const Staging* staging = nullptr;
  uint64_t rows = 0;     // when last looked at
  bool waiting = false;  // its commit has arrived
  OpenTransaction* next = nullptr;
  OpenTransaction* previous = nullptr;
};

// Which keys a commit has put, and whether they may come twice.
struct PutKeys {
  bool refuse_equal = false;
  std::map<std::string, uint64_t> keys;  // how many distinct ones, by the table's name
};

class ReadCheck;

struct CommitRequest {
  Staging* staging = nullptr;
  Durability durability = Durability::sync;
  OpenTransaction* open = nullptr;  // null: the queue does not know of it
  // What it has staged, if it is a small commit of rows alone, or once it has become one.
  MemtableRows rows;
  PutKeys* put_keys = nullptr;  // null: nobody asks
  bool watched = false;         // it may be stopped, and so is carried out alone
  ReadCheck* reads = nullptr;   // null: it depends on nothing that it has read
  // What it has read could not be checked in a short time; nothing has happened, and it may come
  // again after another look ahead.
  bool stale = false;
  Status status;
  bool answered = false;  // the status is what has become of it
  bool logged = false;    // it went through the log

  void answer(Status s) {
    status = std::move(s);
    answered = true;
  }

  SharedWork insertion;  // of `rows` into a memtable
  uint32_t number = 0;   // of the commit there
  std::atomic<bool> asleep{false};
};

// Thread-safe. The first to arrive leads: it carries out all that have arrived, wakes them, and
// lets the first of those lead that have arrived meanwhile.
//
// The leader of a large commit waits for other large transactions that are staging at that moment:
// each bulk run costs every later read, so one run of four flows is better than four. How long is
// measured by the bytes that it would write itself: a few per cent of what that takes where it sees
// no other transaction (one may be about to begin), about as long as that takes while others go on
// staging, and never more than max_wait. A small commit does not wait.
//
// Threads that commit one transaction after the other come back soon after their commit. Where the
// disk is waited for, the leader gives them a moment: one sync for all is faster than two for half
// of them each.
class CommitQueue {
 public:
  // first_ticket: CommitTurns.
  explicit CommitQueue(uint32_t first_ticket = 0) : turns_(first_ticket) {
    group_.reserve(CommitTurns::max_waiting);
  }

  static constexpr std::chrono::milliseconds max_wait{500};
  static constexpr uint64_t wait_bytes_per_us = 200;
  static constexpr uint64_t linger_bytes_per_us = 10'000;
  // Transactions that have staged less are not waited for, and wait for none.
  static constexpr uint64_t min_large_bytes = 64 << 10;

  // A transaction that has staged min_large_bytes; and one that ends without a commit.
  void enter(OpenTransaction* open) noexcept;
  void leave(OpenTransaction* open) noexcept;

  // Calls carry_out, which answers each request of the group, with the group in the order of
  // arrival, on the thread of one that has arrived; never from two threads at once. Where it
  // throws, that is the answer to those that have none. Returns request->status.
  using CarryOut = std::function<void(const std::vector<CommitRequest*>&)>;
  Status commit(CommitRequest* request, const CarryOut& carry_out);

 private:
  using Clock = std::chrono::steady_clock;
  uint32_t join(CommitRequest* request) noexcept;
  void lead(uint32_t first, const CommitRequest* own, const CarryOut& carry_out);
  // Carries out all that have arrived from this ticket on, as group_.
  void carry_out_group(uint32_t first, const CarryOut& carry_out);
  // Whether a thread may carry out all that have arrived behind the first `done` when its own
  // commit is answered already: none waits for the disk or is large.
  bool are_quick(uint32_t first, uint32_t done) const noexcept;

  void wait_for_siblings(const Staging* leader);
  void begin_waiting(OpenTransaction* open) noexcept;
  void forget_group() noexcept;
  void unlink(OpenTransaction* open) noexcept;
  // How many open transactions other than the waiting ones went on staging since the last call.
  uint64_t busy_siblings() noexcept;

  // Waits for those whose commits have just been carried out, as long as that pays.
  void wait_for_returning(uint32_t first) noexcept;
  void expect_returning(uint32_t first, Clock::time_point begin) noexcept;

  CommitTurns turns_;
  std::atomic<uint32_t> awaited_{0};  // a leader sleeps until so many more have arrived

  // The leader's.
  std::vector<CommitRequest*> group_;
  uint32_t expected_ = 0;  // in the next group, if all come back by expected_until_
  Clock::time_point expected_until_;
  unsigned without_waiting_ = 0;  // so many groups to come do not wait for them

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  OpenTransaction* open_ = nullptr;  // the first
  uint64_t staging_ = 0;             // of these: their commits have not arrived
  uint64_t waiting_ = 0;             // the others
};

}  // namespace stride
