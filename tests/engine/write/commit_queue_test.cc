// The queue of commits, without a database: who leads, who waits, and what each is told.
#include "engine/write/commit_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

using Group = std::vector<CommitRequest*>;

// Every request is carried out once, by one leader at a time, and told what became of it; those of
// one thread in their order.
void commit_from_many_threads(Durability durability, std::chrono::microseconds takes,
                              int threads = 12, uint32_t first_ticket = 0) {
  constexpr int commits = smaller_under_sanitizers(36'000, 4800);
  const int each = std::max(2, (takes.count() > 0 ? commits / 10 : commits) / threads);
  CommitQueue queue(first_ticket);
  std::atomic<int> leaders{0};
  std::vector<int> carried_out(threads);  // of each thread; the leader's
  std::vector<Staging> stagings(threads);
  uint64_t total = 0, largest = 0;
  const CommitQueue::CarryOut carry_out = [&](const Group& group) {
    CHECK_MESSAGE(leaders.fetch_add(1) == 0, "two lead at once");
    total += group.size();
    largest = std::max(largest, group.size());
    for (CommitRequest* request : group) {
      const auto thread = request->staging - stagings.data();
      const int number = carried_out[thread]++;
      request->answer(number % 7 == 3 ? Status::invalid(std::to_string(number)) : Status());
    }
    if (takes.count() > 0) std::this_thread::sleep_for(takes);
    leaders.fetch_sub(1);
  };
  TestThreads pool;
  for (int t = 0; t < threads; ++t)
    pool.start([&, t] {
      for (int i = 0; i < each; ++i) {
        CommitRequest request{.staging = &stagings[t], .durability = durability};
        const Status s = queue.commit(&request, carry_out);
        CHECK_MESSAGE(s.ok() == (i % 7 != 3), "commit " << i);
        if (!s.ok()) CHECK_MESSAGE(s.message() == std::to_string(i), s.message());
      }
    });
  pool.join();
  CHECK(total == static_cast<uint64_t>(threads) * each);
  CHECK(carried_out == std::vector<int>(threads, each));
  CHECK(largest <= static_cast<uint64_t>(threads));
  if (takes.count() > 0) CHECK(largest > 1);
}

TEST_CASE("CommitQueueTest.EachIsCarriedOutOnce", "[CommitQueueTest]") {
  commit_from_many_threads(Durability::none, std::chrono::microseconds(0));
}

TEST_CASE("CommitQueueTest.EachIsCarriedOutOnceWhereTheDiskIsWaitedFor", "[CommitQueueTest]") {
  commit_from_many_threads(Durability::sync, std::chrono::microseconds(200));
}

TEST_CASE("CommitQueueTest.TicketsStartAgainAtZero", "[CommitQueueTest]") {
  commit_from_many_threads(Durability::none, std::chrono::microseconds(0), 12, 0U - 2000);
  commit_from_many_threads(Durability::sync, std::chrono::microseconds(50), 12, 0U - 50);
}

TEST_CASE("CommitQueueTest.MoreMayWaitThanThereArePlaces", "[CommitQueueTest]") {
  constexpr int threads = CommitTurns::max_waiting + 50;
  commit_from_many_threads(Durability::sync, std::chrono::microseconds(500), threads);
  commit_from_many_threads(Durability::none, std::chrono::microseconds(500), threads);
}

// What can be shared is done once, by the thread that waits or by another one.
TEST_CASE("CommitQueueTest.SharedWorkIsDoneOnce", "[CommitQueueTest]") {
  constexpr int rounds = smaller_under_sanitizers(20'000, 2000);
  SharedWork none;
  CHECK(!none.take());
  for (int i = 0; i < rounds; ++i) {
    SharedWork work;
    int done = 0;
    auto help = [&] {
      if (!work.take()) return;
      ++done;
      work.finish();
    };
    if (i % 100 == 0) {
      TestThreads helper;
      helper.start(help);
      work.offer();
      help();
      work.await_finished();
      CHECK(done == 1);
      helper.join();
    } else {
      work.offer();
      help();
      help();
      work.await_finished();
    }
    CHECK(done == 1);
  }
}

// What is thrown answers those that have no answer yet, and the queue goes on.
TEST_CASE("CommitQueueTest.WhatIsThrownIsTheAnswer", "[CommitQueueTest]") {
  CommitQueue queue;
  Staging staging;
  for (int i = 0; i < 4; ++i) {
    CommitRequest request{.staging = &staging, .durability = Durability::flush};
    const Status s = queue.commit(&request, [&](const Group& group) {
      REQUIRE(group == Group{&request});
      if (i % 2 == 0) throw std::bad_alloc();
      request.answer({});
    });
    CHECK(s.code() == (i % 2 == 0 ? StatusCode::resource_exhausted : StatusCode::ok));
  }
}

// A large commit waits for another one that goes on staging, and both are one group.
TEST_CASE("CommitQueueTest.LargeOnesWaitForEachOther", "[CommitQueueTest]") {
  using namespace std::chrono_literals;
  CommitQueue queue;
  auto table = std::make_shared<TableRecord>();
  table->id = 1;
  const std::vector<std::byte> values(8 << 20);
  auto stage = [&](Staging& staging) {
    static constexpr char key = 'k';
    return staging.stage_view(
        table, Column::fixed(&key, 1, 1),
        Column::fixed(values.data(), static_cast<uint32_t>(values.size()), 1));
  };
  Staging first, second;
  auto many = [&](Staging& staging, int times) {
    for (int i = 0; i < times; ++i) REQUIRE_OK(stage(staging));
  };
  many(first, 20);
  many(second, 1);
  OpenTransaction open_first{.staging = &first}, open_second{.staging = &second};
  queue.enter(&open_first);
  queue.enter(&open_second);
  std::vector<size_t> groups;
  const CommitQueue::CarryOut carry_out = [&](const Group& group) {
    groups.push_back(group.size());
    for (CommitRequest* request : group) request->answer({});
  };
  auto commit = [&](Staging* staging, OpenTransaction* open) {
    CommitRequest request{.staging = staging, .durability = Durability::none, .open = open};
    return queue.commit(&request, carry_out);
  };
  TestThreads threads;
  threads.start([&] { CHECK_OK(commit(&first, &open_first)); });
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(10ms);
    many(second, 1);
  }
  CHECK_OK(commit(&second, &open_second));
  threads.join();
  CHECK(groups == std::vector<size_t>{2});
  // One that gives up is not waited for.
  Staging third, fourth;
  many(third, 20);
  many(fourth, 1);
  OpenTransaction open_third{.staging = &third}, open_fourth{.staging = &fourth};
  queue.enter(&open_third);
  queue.enter(&open_fourth);
  queue.leave(&open_fourth);
  const auto begin = std::chrono::steady_clock::now();
  CHECK_OK(commit(&third, &open_third));
  CHECK(std::chrono::steady_clock::now() - begin < CommitQueue::max_wait);
  CHECK(groups == std::vector<size_t>{2, 1});
}

}  // namespace
}  // namespace stride::test
