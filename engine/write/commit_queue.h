// Group commit: commits that arrive together are carried out as one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "engine/options.h"
#include "engine/write/staging.h"
#include "storage/status.h"

namespace stride {

struct CommitRequest {
  Staging* staging = nullptr;
  Durability durability = Durability::sync;
  Status status;
  bool answered = false;  // the status is what has become of it
  bool done = false;      // and whoever waits for it may go on

  void answer(Status s) {
    status = std::move(s);
    answered = true;
  }
};

// Thread-safe. The first to arrive leads: it waits for transactions that are staging at that moment
// (each bulk run costs every later read, so one run of four flows is better than four), carries
// out all that have arrived, and wakes them.
//
// How long is measured by the bytes that it would write itself: a few per cent of what that takes
// where it sees no other transaction (one may be about to begin), about as long as that takes while
// others go on staging, and never more than max_wait. So a small commit does not wait.
class CommitQueue {
 public:
  static constexpr std::chrono::milliseconds max_wait{500};
  static constexpr uint64_t wait_bytes_per_us = 200;
  static constexpr uint64_t linger_bytes_per_us = 10'000;

  // A transaction that staged its first rows; and one that ends (committed or aborted).
  void enter(const Staging* staging);
  void leave(const Staging* staging);

  // Calls carry_out, which answers each request of the group, with the group in the order of arrival,
  // on the thread of one of its members; never from two threads at once. Where it throws, that is
  // the answer to those that have none. Returns request->status.
  using CarryOut = std::function<void(const std::vector<CommitRequest*>&)>;
  Status commit(CommitRequest* request, const CarryOut& carry_out);

 private:
  using Clock = std::chrono::steady_clock;
  void wait_for_siblings(std::unique_lock<std::mutex>& lock, const Staging* leader);
  // How many open transactions other than the waiting ones went on staging since the last call.
  uint64_t busy_siblings();

  struct Open {
    uint64_t rows = 0;  // when last looked at
    bool waiting = false;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<const Staging*, Open> open_;
  std::vector<CommitRequest*> waiting_;
  bool leading_ = false;
};

}  // namespace stride
