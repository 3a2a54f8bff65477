// Money that moves between accounts: threads read two balances, and write both, at the same time,
// and nothing is made or lost.
//
//   g++ -std=c++20 -O2 account_transfer.cc $(pkg-config --cflags --libs stridedb) -lpthread -o
//   account_transfer
//   ./account_transfer accounts.db
//
// Each transfer is a transaction: where another one has changed a balance that it has read, its
// commit is a conflict, and retry() does it again with the new balances.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/database.h"
#include "engine/transaction.h"

namespace {

constexpr int accounts = 10;
constexpr int first_balance = 100;

void check(const stride::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}
template <class T>
T take(stride::Result<T> result) {
  check(result.status());
  return std::move(*result);
}

std::string account(uint64_t number) { return "account" + std::to_string(number); }

// Inside a transaction a status is returned, not treated: retry() knows what to do about it.
stride::Result<int> balance(stride::Transaction& t, const stride::Table& table,
                            const std::string& name) {
  auto value = t.get(table, name);
  if (!value.ok()) return value.status();
  return *value ? std::stoi(std::string(stride::as_text(**value))) : 0;
}

stride::Status transfer(stride::Transaction& t, const stride::Table& table, const std::string& from,
                        const std::string& to, int amount) {
  auto has = balance(t, table, from), had = balance(t, table, to);
  if (!has.ok()) return has.status();
  if (!had.ok()) return had.status();
  if (*has < amount) {  // nothing to do: what was read decided it
    t.abort();
    return {};
  }
  stride::Status s = t.put(table, from, std::to_string(*has - amount));
  if (s.ok()) s = t.put(table, to, std::to_string(*had + amount));
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: account_transfer DIRECTORY\n"), 2;
  auto db = take(stride::Database::open(argv[1]));
  const stride::Table table = take(db->open_or_create_table("accounts"));
  check(stride::retry(*db, [&](stride::Transaction& t) -> stride::Status {
    for (int i = 0; i < accounts; ++i)
      if (auto s = t.put(table, account(i), std::to_string(first_balance)); !s.ok()) return s;
    return {};
  }));

  std::vector<std::thread> threads;
  for (unsigned n = 0; n < 4; ++n)
    threads.emplace_back([&, n] {
      std::minstd_rand random(n + 1);
      for (int i = 0; i < 200; ++i) {
        const std::string from = account(random() % accounts), to = account(random() % accounts);
        const int amount = static_cast<int>(random() % 50);
        if (from == to) continue;
        check(stride::retry(
            *db, [&](stride::Transaction& t) { return transfer(t, table, from, to, amount); },
            /*limit=*/1000, {.durability = stride::Durability::flush}));
      }
    });
  for (std::thread& thread : threads) thread.join();

  int sum = 0;
  stride::Transaction t = db->transaction();
  for (int i = 0; i < accounts; ++i) sum += take(balance(t, table, account(i)));
  std::printf("%d accounts have %d\n", accounts, sum);
  check(db->close());
}
