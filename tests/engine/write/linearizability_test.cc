// Many threads on few keys: what they were told can have happened one after the other.
#include "tests/support/linearizability.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/background_work.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"
#include "tests/support/slow_file_system.h"
#include "tests/support/test_threads.h"

namespace stride::test::linearizability_tests {
namespace {

using Kind = RegisterCall::Kind;

uint64_t moment() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

std::string bytes_of(int64_t number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

int64_t number_of(const std::string& bytes) {
  int64_t number = 0;
  std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
  return number;
}

// Table 0 holds bytes and table 1 numbers; each has a few keys, which are the registers.
constexpr int register_tables = 2, keys_of_each = 3, whole_rows = 40;

class Registers {
 public:
  explicit Registers(const Options& options) {
    auto opened = Database::open("/db", options);
    REQUIRE_OK(opened);
    db_ = std::move(*opened);
    for (int t = 0; t < register_tables; ++t) {
      auto table = db_->create_table("t" + std::to_string(t),
                                     {.numbers = t ? NumberType::i64 : NumberType::none});
      REQUIRE_OK(table);
      tables_[static_cast<size_t>(t)] = *table;
    }
    auto table = db_->create_table("whole");
    REQUIRE_OK(table);
    whole_ = *table;
    put_whole(0, Durability::none);
  }

  Database& database() { return *db_; }
  const Table& table(int t) const { return tables_[static_cast<size_t>(t)]; }
  static std::string key(int k) { return "key" + std::to_string(k); }

  RegisterState read(const Snapshot& snapshot, int t, int k, uint64_t how) const {
    const std::string name = key(k);
    std::optional<std::string> found;
    if (how == 0) {
      auto one = snapshot.get(table(t), std::string_view(name));
      REQUIRE_OK(one);
      if (*one) found = text(**one);
    } else if (how == 1) {
      GetResult got;
      Rows keys({name, "other"});
      REQUIRE_OK(snapshot.get(table(t), keys.column(), &got));
      if (got.found[0]) found = text(got.values[0]);
    } else {
      auto it = snapshot.iterate(table(t), {.prefix = name, .reverse = how == 2});
      REQUIRE_OK(it);
      if (it->valid()) found = text(it->value());
    }
    return found ? RegisterState(number_of(*found)) : RegisterState();
  }

  // All rows of a table of its own get the number, in one transaction.
  void put_whole(int64_t number, Durability durability) {
    Rows keys, values;
    for (int i = 0; i < whole_rows; ++i) {
      keys.add("whole" + std::to_string(i));
      values.add(bytes_of(number));
    }
    WriteTransaction transaction = db_->begin();
    REQUIRE_OK(transaction.put(whole_, keys.column(), values.column()));
    REQUIRE_OK(transaction.commit(durability));
  }
  // The rows of put_whole() have one number in any snapshot, whoever reads them and when.
  void expect_whole(const Snapshot& snapshot, bool one_by_one) const {
    std::vector<std::string> found;
    if (one_by_one) {
      for (int i = whole_rows; i-- > 0;) {
        auto one = snapshot.get(whole_, std::string_view("whole" + std::to_string(i)));
        REQUIRE_OK(one);
        REQUIRE_MESSAGE(one->has_value(), "a row is missing");
        found.push_back(text(**one));
      }
    } else {
      auto it = snapshot.iterate(whole_);
      for (; it.ok() && it->valid(); it->next()) found.push_back(text(it->value()));
    }
    REQUIRE_MESSAGE(found.size() == size_t{whole_rows}, "rows are missing");
    for (const std::string& value : found)
      REQUIRE_MESSAGE(value == found[0], "a snapshot has half of a commit");
  }

  void change(RegisterCall* call, int t, int k, Durability durability) {
    WriteTransaction transaction = db_->begin();
    Rows keys({key(k)}), values({bytes_of(call->argument)});
    uint64_t was_new = 0;
    if (call->kind == Kind::put)
      REQUIRE_OK(transaction.put(table(t), keys.column(), values.column()));
    if (call->kind == Kind::erase) REQUIRE_OK(transaction.erase(table(t), keys.column()));
    if (call->kind == Kind::add)
      REQUIRE_OK(transaction.accumulate(table(t), keys.column(), values.column()));
    if (call->kind == Kind::put_if_absent)
      REQUIRE_OK(
          transaction.put_if_absent(table(t), keys.column(), values.column(), {&was_new, 1}));
    call->invoked = moment();
    const Status status = transaction.commit(durability);
    call->returned = moment();
    REQUIRE_OK(status);
    call->was_new = was_new;
  }

 private:
  std::unique_ptr<Database> db_;
  std::array<Table, register_tables> tables_;
  Table whole_;
};

// What one thread does, and what it has been told.
class RegisterUser {
 public:
  RegisterUser(Registers& registers, uint64_t seed, int number)
      : registers_(registers), random_(seed), number_(number) {}

  void step() {
    const int t = static_cast<int>(random_() % register_tables);
    const int k = static_cast<int>(random_() % keys_of_each);
    if (kept_ && random_() % 8 == 0) read_kept_again();
    if (random_() % 12 == 0)
      registers_.put_whole(number_ << 40 | calls_made_, static_cast<Durability>(random_() % 3));
    if (random_() % 6 == 0)
      registers_.expect_whole(registers_.database().snapshot(), random_() % 3 != 0);
    RegisterCall call;
    call.kind = kind(t);
    if (call.kind == Kind::read) {
      call.invoked = moment();
      Snapshot snapshot = registers_.database().snapshot();
      call.returned = moment();
      call.seen = registers_.read(snapshot, t, k, random_() % 4);
      if (random_() % 8 == 0) keep(snapshot);
    } else {
      // No other call has the number, and sums of them tell which were added.
      call.argument = (int64_t{number_} << 40) + ++calls_made_ * 1000 + int64_t(random_() % 1000);
      registers_.change(&call, t, k, static_cast<Durability>(random_() % 3));
    }
    calls[static_cast<size_t>(t * keys_of_each + k)].push_back(call);
  }

  std::array<std::vector<RegisterCall>, register_tables * keys_of_each> calls;

 private:
  Kind kind(int t) {
    const uint64_t which = random_() % 20;
    if (which < 9) return Kind::read;
    if (which < 13) return Kind::put;
    if (which < 15) return Kind::erase;
    return which < 17 || t == 0 ? Kind::put_if_absent : Kind::add;
  }
  void keep(const Snapshot& snapshot) {
    kept_ = snapshot;
    seen_.clear();
    for (int t = 0; t < register_tables; ++t)
      for (int k = 0; k < keys_of_each; ++k)
        seen_.push_back(registers_.read(*kept_, t, k, random_() % 4));
  }
  void read_kept_again() {
    for (size_t i = 0; i < seen_.size(); ++i)
      REQUIRE_MESSAGE(
          registers_.read(*kept_, static_cast<int>(i) / keys_of_each,
                          static_cast<int>(i) % keys_of_each, random_() % 4) == seen_[i],
          "a snapshot has changed");
    registers_.expect_whole(*kept_, random_() % 2);
  }

  Registers& registers_;
  std::mt19937_64 random_;
  const int64_t number_;
  int64_t calls_made_ = 0;
  std::optional<Snapshot> kept_;
  std::vector<RegisterState> seen_;
};

void expect_linearizable(const std::vector<RegisterUser>& users) {
  for (size_t key = 0; key < users[0].calls.size(); ++key) {
    std::vector<RegisterCall> calls;
    for (const RegisterUser& user : users)
      calls.insert(calls.end(), user.calls[key].begin(), user.calls[key].end());
    auto stuck = find_unlinearizable(calls);
    if (stuck) FAIL("key " << key << ": " << describe_around(calls, *stuck));
  }
}

void run_users(const Options& options, int steps, std::mt19937_64& random) {
  constexpr int threads = 16;
  Registers registers(options);
  std::vector<RegisterUser> users;
  for (int i = 0; i < threads; ++i) users.emplace_back(registers, random(), i + 1);
  std::atomic<int> at_work = threads;
  TestThreads running;
  for (RegisterUser& user : users)
    running.start([&] {
      for (int i = 0; i < steps && !running.failed(); ++i) user.step();
      --at_work;
    });
  running.start([&] {
    while (at_work > 0 && !running.failed()) {
      CHECK_OK(registers.database().compact());
      CHECK_OK(registers.database().sync());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  running.join();
  if (!has_failed()) expect_linearizable(users);
}

TEST_CASE("LinearizabilityTest.CallsOfSixteenThreadsHaveAnOrder", "[LinearizabilityTest]") {
  std::mt19937_64 random(seed());
  for (uint64_t memtable_bytes : {0, 512, 1 << 12, 1 << 15, 64 << 20}) {
    // Where syncs take long, commits gather.
    for (int sync_us : {0, 200}) {
      MemoryFileSystem memory;
      SlowFileSystem slow(memory, std::chrono::microseconds(sync_us));
      Options options;
      options.threads = 2;
      options.backend = BackendKind::host;
      options.memtable_bytes = memtable_bytes;
      options.file_system = sync_us ? static_cast<FileSystem*>(&slow) : &memory;
      set_background_work(&options, random() % 2);
      run_users(options, sync_us ? 80 : smaller_under_sanitizers(300, 60), random);
    }
  }
}

// A call that takes as long as it says.
RegisterCall call(Kind kind, int64_t argument, uint64_t invoked, uint64_t returned) {
  RegisterCall made;
  made.kind = kind;
  made.argument = argument;
  made.invoked = invoked;
  made.returned = returned;
  return made;
}
RegisterCall read(RegisterState seen, uint64_t invoked, uint64_t returned) {
  RegisterCall made = call(Kind::read, 0, invoked, returned);
  made.seen = seen;
  return made;
}
RegisterCall put_new(int64_t argument, bool was_new, uint64_t invoked, uint64_t returned) {
  RegisterCall made = call(Kind::put_if_absent, argument, invoked, returned);
  made.was_new = was_new;
  return made;
}

TEST_CASE("LinearizabilityTest.TheCheckerAcceptsWhatHasAnOrder", "[LinearizabilityTest]") {
  constexpr uint64_t never = RegisterCall::never;
  const std::vector<RegisterCall> histories[] = {
      {},
      {read({}, 1, 2)},
      // A read beside a put sees it or not.
      {call(Kind::put, 5, 1, 10), read({}, 2, 3), read(5, 4, 5)},
      // What begins at the moment when the other ends overlaps it.
      {call(Kind::put, 5, 1, 10), call(Kind::put, 6, 10, 20), read(5, 21, 22)},
      // Two puts side by side have either order.
      {call(Kind::put, 1, 1, 10), call(Kind::put, 2, 2, 9), read(1, 11, 12)},
      {call(Kind::put, 1, 1, 10), call(Kind::put, 2, 2, 9), read(2, 11, 12)},
      // The one that was not new came second, though it was invoked first.
      {put_new(1, false, 1, 10), put_new(2, true, 2, 9), read(2, 11, 12)},
      {call(Kind::put, 1, 1, 2), call(Kind::erase, 0, 3, 4), put_new(7, true, 5, 6), read(7, 7, 8)},
      {call(Kind::add, 3, 1, 2), call(Kind::add, 4, 1, 5), read(3, 3, 4), read(7, 6, 7)},
      {call(Kind::add, 3, 1, 2), call(Kind::erase, 0, 1, 9), call(Kind::add, 4, 3, 8),
       read(4, 10, 11)},
      // What never returns may have happened, late or not at all.
      {call(Kind::put, 1, 1, 2), call(Kind::put, 2, 1, never), read(1, 3, 4), read(2, 5, 6)},
      {call(Kind::put, 1, 1, 2), call(Kind::put, 2, 1, never), read(1, 3, 4), read(1, 5, 6)},
      // The first order that is tried does not work.
      {call(Kind::put, 1, 1, 20), call(Kind::put, 2, 2, 20), call(Kind::put, 3, 3, 20),
       read(3, 4, 5), read(1, 6, 7), read(2, 8, 9)},
  };
  for (const auto& calls : histories) {
    auto stuck = find_unlinearizable(calls);
    CHECK_MESSAGE(!stuck, describe_around(calls, *stuck));
  }
}

TEST_CASE("LinearizabilityTest.TheCheckerRefusesWhatHasNone", "[LinearizabilityTest]") {
  const std::vector<RegisterCall> histories[] = {
      // An acknowledged put is not seen.
      {call(Kind::put, 5, 1, 2), read({}, 3, 4)},
      // Nobody has put it.
      {call(Kind::put, 5, 1, 2), read(6, 3, 4)},
      // It is seen before it is put.
      {read(5, 1, 2), call(Kind::put, 5, 3, 4)},
      // Seen, and then not any more.
      {call(Kind::put, 5, 1, 10), read(5, 2, 3), read({}, 4, 5)},
      // Two readers see two puts in different orders.
      {call(Kind::put, 1, 1, 20), call(Kind::put, 2, 1, 20), read(1, 2, 3), read(2, 4, 5),
       read(1, 6, 7)},
      // Both are told that they were first.
      {put_new(1, true, 1, 10), put_new(2, true, 1, 10)},
      {put_new(1, false, 1, 2)},
      {call(Kind::put, 1, 1, 2), call(Kind::erase, 0, 3, 4), put_new(7, false, 5, 6)},
      // An addition is lost, or counts twice.
      {call(Kind::add, 3, 1, 5), call(Kind::add, 4, 1, 5), read(4, 6, 7)},
      {call(Kind::add, 3, 1, 5), call(Kind::add, 4, 1, 5), read(10, 6, 7)},
      // An erased value comes back.
      {call(Kind::put, 1, 1, 2), call(Kind::erase, 0, 3, 4), read({}, 5, 6), read(1, 7, 8)},
  };
  for (const auto& calls : histories)
    CHECK_MESSAGE(find_unlinearizable(calls).has_value(), describe_around(calls, 0));
}

}  // namespace
}  // namespace stride::test::linearizability_tests
