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
  Shrinking(Failure failure, std::chrono::seconds limit)
      : failure_(std::move(failure)), end_(Clock::now() + limit) {}

  Failure run() {
    cut();
    for (size_t part = failure_.history.size(); part > 0 && !over(); part /= 2) leave_out(part);
    make_plain();
    for (size_t part = failure_.history.size(); part > 0 && !over(); part /= 2) leave_out(part);
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
      if (auto mismatch = metamorphic::run(history, set)) {
        failure_ = {history, set, std::move(*mismatch)};
        cut();
        return true;
      }
    return false;
  }

  // From the end, so that what is cut meanwhile is not looked at again.
  void leave_out(size_t part) {
    for (size_t at = failure_.history.size(); at > 0 && !over();) {
      at = std::min(at, failure_.history.size());
      const size_t first = at > part ? at - part : 0;
      History less = failure_.history;
      less.erase(less.begin() + static_cast<ptrdiff_t>(first),
                 less.begin() + static_cast<ptrdiff_t>(at));
      still_fails(less, failure_.set);
      at = first;
    }
  }

  template <class Field>
  void try_plain(Field OptionSet::* field) {
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
  for (uint64_t& operation : history) operation = random();
  return history;
}

std::optional<Mismatch> run(const History& history, const OptionSet& set) {
  DatabaseRun database(set);
  ModelRun model;
  for (size_t i = 0; i < history.size(); ++i) {
    const Operation operation = make_operation(history[i]);
    std::string expected = model.apply(operation), seen = database.apply(operation);
    if (seen != expected) return Mismatch{i, std::move(expected), std::move(seen)};
  }
  std::string expected = model.contents(), seen = database.contents();
  if (seen != expected) return Mismatch{history.size(), std::move(expected), std::move(seen)};
  return std::nullopt;
}

Failure shrink(Failure failure, std::chrono::seconds limit) {
  return Shrinking(std::move(failure), limit).run();
}

std::string describe(const Failure& failure) {
  std::string said = "under " + describe(failure.set) + "\n";
  for (size_t i = 0; i < failure.history.size(); ++i)
    said += "  " + std::to_string(i) + " (" + std::to_string(failure.history[i]) + "): " +
            describe(make_operation(failure.history[i])) + "\n";
  return said + "the answer to " + std::to_string(failure.mismatch.operation) + " differs " +
         difference(failure.mismatch);
}

}  // namespace stride::test::metamorphic
