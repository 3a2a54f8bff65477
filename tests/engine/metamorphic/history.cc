#include "tests/engine/metamorphic/history.h"

#include <algorithm>
#include <random>

#include "tests/engine/metamorphic/database_run.h"
#include "tests/engine/metamorphic/model_run.h"

namespace stride::test::metamorphic {
namespace {

using Clock = std::chrono::steady_clock;

// Leaves out what is not needed, larger parts first (the ddmin of Zeller and Hildebrandt,
// "Simplifying and Isolating Failure-Inducing Input", 2002, without its tests of the parts alone).
class Shrinking {
 public:
  Shrinking(Failure failure, std::chrono::seconds limit, const Run& run)
      : failure_(std::move(failure)), end_(Clock::now() + limit), run_(run) {}

  Failure shrink() {
    cut();
    leave_out_operations();
    make_plain();
    leave_out_operations();
    leave_out_changes();
    return failure_;
  }

 private:
  bool over() const { return Clock::now() > end_; }

  // Nothing after the failure matters.
  void cut() {
    const size_t end = std::min(failure_.history.size(), failure_.mismatch.operation + 1);
    failure_.history.resize(end);
  }

  bool still_fails(const History& history, const OptionSet& set) {
    const int attempts = set.background_work ? 3 : 1;
    for (int i = 0; i < attempts && !over(); ++i)
      if (auto mismatch = run_(history, set)) {
        failure_ = {history, set, std::move(*mismatch)};
        cut();
        return true;
      }
    return false;
  }

  // Parts from the end, so that what is cut meanwhile is not looked at again. count: how many there
  // are in a history; erase: takes some out of it.
  template <class Count, class Erase>
  void leave_out(const Count& count, const Erase& erase) {
    for (size_t part = count(failure_.history); part > 0; part /= 2)
      for (size_t at = count(failure_.history); at > 0 && !over();) {
        at = std::min(at, count(failure_.history));
        const size_t first = at > part ? at - part : 0;
        History less = failure_.history;
        erase(&less, first, at);
        still_fails(less, failure_.set);
        at = first;
      }
  }
  void leave_out_operations() {
    leave_out(
        [](const History& history) { return history.size(); },
        [](History* history, size_t first, size_t last) { erase_rows(history, first, last); });
  }
  void leave_out_steps(size_t operation, size_t transaction) {
    leave_out(
        [&](const History& history) {
          const Changes* changes = find(history, operation, transaction);
          return changes ? changes->steps.size() : 0;
        },
        [&](History* history, size_t first, size_t last) {
          erase_rows(&(*history)[operation].transactions[transaction].steps, first, last);
        });
  }
  void leave_out_rows(size_t operation, size_t transaction, size_t step) {
    leave_out(
        [&](const History& history) {
          const Changes* changes = find(history, operation, transaction);
          const bool has_rows = changes && step < changes->steps.size() &&
                                changes->steps[step].kind != Step::Kind::erase_range;
          return has_rows ? changes->steps[step].keys.size() : 0;
        },
        [&](History* history, size_t first, size_t last) {
          Step& less = (*history)[operation].transactions[transaction].steps[step];
          erase_rows(&less.keys, first, last);
          erase_rows(&less.values, first, last);
          erase_rows(&less.deltas, first, last);
        });
  }
  void leave_out_changes() {
    for (size_t o = failure_.history.size(); o-- > 0;)
      for (size_t t = 0; find(failure_.history, o, t); ++t) {
        leave_out_steps(o, t);
        for (size_t s = 0; find(failure_.history, o, t); ++s) {
          if (s >= find(failure_.history, o, t)->steps.size()) break;
          leave_out_rows(o, t, s);
        }
      }
  }

  // Null: there is none any more.
  static const Changes* find(const History& history, size_t operation, size_t transaction) {
    if (operation >= history.size()) return nullptr;
    const auto& transactions = history[operation].transactions;
    return transaction < transactions.size() ? &transactions[transaction] : nullptr;
  }
  template <class T>
  static void erase_rows(std::vector<T>* rows, size_t first, size_t last) {
    last = std::min(last, rows->size());
    if (first < last)
      rows->erase(rows->begin() + static_cast<ptrdiff_t>(first),
                  rows->begin() + static_cast<ptrdiff_t>(last));
  }

  template <class Field>
  void try_plain(Field OptionSet::*field) {
    OptionSet set = failure_.set;
    set.*field = plain_options().*field;
    if (!over()) still_fails(failure_.history, set);
  }
  void make_plain() {
    try_plain(&OptionSet::on_disk);
    try_plain(&OptionSet::background_work);
    try_plain(&OptionSet::device);
    try_plain(&OptionSet::tree);
    try_plain(&OptionSet::memory_limit_bytes);
    try_plain(&OptionSet::threads);
    try_plain(&OptionSet::closes);
    try_plain(&OptionSet::memtable_bytes);
    try_plain(&OptionSet::reopen_every);
  }

  Failure failure_;
  const Clock::time_point end_;
  const Run& run_;
};

// Both around the first byte that differs.
std::string difference(const Mismatch& mismatch) {
  const auto [a, b] = std::mismatch(mismatch.expected.begin(), mismatch.expected.end(),
                                    mismatch.seen.begin(), mismatch.seen.end());
  const auto at = static_cast<size_t>(a - mismatch.expected.begin());
  const size_t from = at > 60 ? at - 60 : 0;
  auto part = [&](const std::string& text) {
    return from < text.size() ? text.substr(from, 200) : std::string();
  };
  return "at byte " + std::to_string(at) + "\n  expected ..." + part(mismatch.expected) +
         "\n  seen     ..." + part(mismatch.seen);
}

}  // namespace

History make_history(uint64_t seed, size_t operations) {
  std::mt19937_64 random(seed);
  History history(operations);
  for (Operation& operation : history) operation = make_operation(random());
  return history;
}

std::optional<Mismatch> run(const History& history, const OptionSet& set) {
  DatabaseRun database(set);
  ModelRun model;
  for (size_t i = 0; i < history.size(); ++i) {
    std::string expected = model.apply(history[i]), seen = database.apply(history[i]);
    if (seen != expected) return Mismatch{i, std::move(expected), std::move(seen)};
  }
  std::string expected = model.contents(), seen = database.contents();
  if (seen != expected) return Mismatch{history.size(), std::move(expected), std::move(seen)};
  return std::nullopt;
}

Failure shrink(Failure failure, std::chrono::seconds limit, const Run& run) {
  return Shrinking(std::move(failure), limit, run).shrink();
}

std::string describe(const Failure& failure) {
  std::string said = "under " + describe(failure.set) + "\n";
  for (size_t i = 0; i < failure.history.size(); ++i)
    said += "  " + std::to_string(i) + ": " + describe(failure.history[i]) + "\n";
  return said + "the answer to " + std::to_string(failure.mismatch.operation) + " differs " +
         difference(failure.mismatch);
}

}  // namespace stride::test::metamorphic
