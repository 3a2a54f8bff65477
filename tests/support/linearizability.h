// Whether calls that several threads have made of one register can have happened one after the
// other, each at a moment between its invocation and its return.
//
//   std::vector<RegisterCall> calls = ...;               // of one key, by any threads
//   if (auto stuck = find_unlinearizable(calls)) FAIL(describe_around(calls, *stuck));
//
// The search is that of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993), with the
// list of events and the memory of configurations that Lowe added ("Testing for Linearizability",
// 2017). Calls of a map are looked at key by key, for linearizability is local (Herlihy and Wing,
// 1990).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace stride::test {

// A register holds a number, or nothing.
using RegisterState = std::optional<int64_t>;

struct RegisterCall {
  enum class Kind : uint8_t { read, put, erase, put_if_absent, add };
  static constexpr uint64_t never = std::numeric_limits<uint64_t>::max();

  Kind kind = Kind::read;
  int64_t argument = 0;  // what is put, or added (to 0 where there is nothing)
  RegisterState seen;    // by a read
  bool was_new = false;  // said by put_if_absent
  // Moments of one clock: two calls overlap unless one has returned before the other is invoked. A
  // call that never returns may have happened or not.
  uint64_t invoked = 0, returned = never;
};

// The state after the call; none: it can't have happened in this state, or said something else.
inline std::optional<RegisterState> state_after(const RegisterCall& call,
                                                const RegisterState& state) {
  using Kind = RegisterCall::Kind;
  switch (call.kind) {
    case Kind::read:
      if (call.seen != state) return std::nullopt;
      return std::optional<RegisterState>(state);
    case Kind::put:
      return std::optional<RegisterState>(call.argument);
    case Kind::erase:
      return std::optional<RegisterState>(RegisterState());
    case Kind::add:
      return std::optional<RegisterState>(state.value_or(0) + call.argument);
    case Kind::put_if_absent:
      break;
  }
  const bool pending = call.returned == RegisterCall::never;
  if (!pending && call.was_new == state.has_value()) return std::nullopt;
  return std::optional<RegisterState>(state ? state : RegisterState(call.argument));
}

namespace internal {

class LinearizationSearch {
 public:
  explicit LinearizationSearch(const std::vector<RegisterCall>& calls)
      : calls_(calls), done_((calls.size() + 63) / 64) {
    link_events();
  }

  // None: there is an order. Else a call that had returned before it could be placed, in the
  // longest order that was found.
  std::optional<size_t> run() {
    size_t at = events_[head].next;
    while (at != head) {
      const Event event = events_[at];
      if (!event.is_return) {
        at = try_call(at, event.call) ? events_[head].next : events_[at].next;
        continue;
      }
      if (stack_.size() >= longest_) {
        longest_ = stack_.size();
        stuck_ = event.call;
      }
      if (stack_.empty()) return stuck_;
      at = take_back();
    }
    return std::nullopt;
  }

 private:
  struct Event {
    size_t call = 0;
    bool is_return = false;
    size_t match = 0;  // of an invocation: its return; 0: there is none
    size_t before = 0, next = 0;
  };
  struct Step {
    size_t event;
    RegisterState state;  // before it
  };
  // Which calls have happened, and what state that has led to.
  struct Configuration {
    std::vector<uint64_t> done;
    RegisterState state;
    bool operator==(const Configuration&) const = default;
  };
  struct Hash {
    size_t operator()(const Configuration& configuration) const {
      uint64_t hash = configuration.state ? static_cast<uint64_t>(*configuration.state) + 1 : 0;
      for (uint64_t word : configuration.done) {
        hash = (hash ^ word) * 0x9E3779B97F4A7C15;
        hash ^= hash >> 32;
      }
      return hash;
    }
  };
  static constexpr size_t head = 0;  // event 0 stands before all others and behind them

  // Moments that are equal count as overlapping: invocations come first.
  void link_events() {
    struct Moment {
      uint64_t time;
      bool is_return;
      size_t call;
    };
    std::vector<Moment> moments;
    for (size_t i = 0; i < calls_.size(); ++i) {
      moments.push_back({calls_[i].invoked, false, i});
      if (calls_[i].returned != RegisterCall::never)
        moments.push_back({calls_[i].returned, true, i});
    }
    std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
      return a.time != b.time ? a.time < b.time : a.is_return < b.is_return;
    });
    std::vector<size_t> invocations(calls_.size());
    for (const Moment& moment : moments) {
      const size_t at = events_.size();
      events_.push_back({moment.call, moment.is_return, 0, at - 1, 0});
      events_[at - 1].next = at;
      if (moment.is_return)
        events_[invocations[moment.call]].match = at;
      else
        invocations[moment.call] = at;
    }
    events_[head].before = events_.size() - 1;
  }

  void unlink(size_t at) {
    events_[events_[at].before].next = events_[at].next;
    events_[events_[at].next].before = events_[at].before;
  }
  void link_again(size_t at) {
    events_[events_[at].before].next = at;
    events_[events_[at].next].before = at;
  }

  // Lets the call happen now, unless it can't or that has been looked at.
  bool try_call(size_t at, size_t call) {
    auto next = state_after(calls_[call], state_);
    if (!next) return false;
    done_[call / 64] |= uint64_t{1} << call % 64;
    if (!seen_.insert({done_, *next}).second) {
      done_[call / 64] &= ~(uint64_t{1} << call % 64);
      return false;
    }
    stack_.push_back({at, state_});
    state_ = *next;
    unlink(at);
    if (events_[at].match) unlink(events_[at].match);
    return true;
  }

  // Takes back the last call, and returns the event after it.
  size_t take_back() {
    const Step last = stack_.back();
    stack_.pop_back();
    state_ = last.state;
    const size_t call = events_[last.event].call;
    done_[call / 64] &= ~(uint64_t{1} << call % 64);
    if (events_[last.event].match) link_again(events_[last.event].match);
    link_again(last.event);
    return events_[last.event].next;
  }

  const std::vector<RegisterCall>& calls_;
  std::vector<Event> events_{1};
  std::vector<uint64_t> done_;
  RegisterState state_;
  std::vector<Step> stack_;
  std::unordered_set<Configuration, Hash> seen_;
  size_t longest_ = 0;
  std::optional<size_t> stuck_;
};

}  // namespace internal

// None: the calls are linearizable, from nothing on. Else a call that has no place among the
// others.
inline std::optional<size_t> find_unlinearizable(const std::vector<RegisterCall>& calls) {
  return internal::LinearizationSearch(calls).run();
}

inline std::string describe(const RegisterCall& call) {
  auto number = [](const RegisterState& state) {
    return state ? std::to_string(*state) : std::string("nothing");
  };
  static constexpr const char* names[] = {"read", "put", "erase", "put_if_absent", "add"};
  std::string said = std::to_string(call.invoked) + " to ";
  said += call.returned == RegisterCall::never ? "never" : std::to_string(call.returned);
  said += ": " + std::string(names[static_cast<int>(call.kind)]) + " ";
  if (call.kind == RegisterCall::Kind::read) return said + number(call.seen);
  if (call.kind == RegisterCall::Kind::erase) return said;
  said += std::to_string(call.argument);
  if (call.kind == RegisterCall::Kind::put_if_absent) said += call.was_new ? ": new" : ": not new";
  return said;
}

// The call and those around it, in the order of their invocations.
inline std::string describe_around(const std::vector<RegisterCall>& calls, size_t call) {
  constexpr uint64_t most = 40;
  std::vector<RegisterCall> around;
  for (const RegisterCall& other : calls)
    if (other.invoked <= calls[call].returned) around.push_back(other);
  std::sort(around.begin(), around.end(),
            [](const auto& a, const auto& b) { return a.invoked < b.invoked; });
  if (around.size() > most)
    around.erase(around.begin(), around.end() - static_cast<ptrdiff_t>(most));
  std::string said = "no order of the calls has this one: " + describe(calls[call]) + "\n";
  for (const RegisterCall& other : around) said += "  " + describe(other) + "\n";
  return said;
}

}  // namespace stride::test
