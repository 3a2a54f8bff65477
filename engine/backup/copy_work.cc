#include "engine/backup/copy_work.h"

#include "engine/write/watched_work.h"
#include "storage/no_throw.h"

namespace stride {

// The work begins once the first call has answered: a small copy can be stopped, too.
Status run_copy(const CopyOptions& options, const std::function<Status(CopyCounters*)>& work) {
  CopyCounters counters;
  if (!options.progress) return no_throw([&] { return work(&counters); });
  enum Answer : int { none, yes, no };
  std::atomic<int> first{none};
  auto answer = [&](bool goes_on) {
    int expected = none;
    if (first.compare_exchange_strong(expected, goes_on ? yes : no)) first.notify_one();
    return goes_on;
  };
  auto carry_out = [&](WorkWatch* watch) {
    first.wait(none);
    if (first == no) return WorkWatch::cancelled();
    WorkWatch::Scope scope(watch);
    STRIDE_TRY(WorkWatch::check());
    return work(&counters);
  };
  return run_watched(carry_out, [&](const WorkWatch& watch) {
    try {
      return answer(options.progress({.files = counters.files,
                                      .total_files = counters.total_files,
                                      .bytes = watch.written_bytes(),
                                      .total_bytes = counters.total_bytes}));
    } catch (...) {
      answer(false);
      throw;
    }
  });
}

}  // namespace stride
