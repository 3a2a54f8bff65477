// Snapshots that many threads take while versions are published.
#include "engine/catalog/published_version.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/memtable/memtable.h"
#include "tests/support/catch.h"
#include "tests/support/model.h"
#include "tests/support/sanitizers.h"
#include "tests/support/test_threads.h"

namespace stride::test {
namespace {

void raise(std::atomic<uint64_t>* most, uint64_t to) {
  for (uint64_t now = *most; now < to && !most->compare_exchange_weak(now, to);) {
  }
}

// file_bytes numbers the versions here.
std::shared_ptr<const Version> numbered_version(uint64_t number) {
  auto version = std::make_shared<Version>();
  version->file_bytes = number;
  version->memtable = std::make_shared<Memtable>();
  return version;
}

// What one thread has got, no other one gets an older one than after that.
TEST_CASE("PublishedVersionTest.NoThreadGoesBack", "[PublishedVersionTest]") {
  constexpr uint64_t versions = smaller_under_sanitizers(20'000, 2'000);
  // Not on the stack, where ThreadSanitizer takes locks at one place for the same ones.
  const auto made = std::make_unique<PublishedVersion>(numbered_version(0));
  PublishedVersion& published = *made;
  std::atomic<uint64_t> seen{0};
  TestThreads threads;
  for (int t = 0; t < 8; ++t)
    threads.start([&] {
      while (!threads.stopping()) {
        const uint64_t before = seen;
        uint32_t commit = 1;
        const std::shared_ptr<const Version> version = published.get(&commit);
        CHECK_MESSAGE(version->file_bytes >= before, "an old version");
        CHECK_MESSAGE(commit == 0u, "a memtable without rows");
        raise(&seen, version->file_bytes);
      }
    });
  for (uint64_t n = 1; n <= versions; ++n) {
    published.set(numbered_version(n));
    raise(&seen, n);
    CHECK(published.get()->file_bytes == n);
  }
  threads.join();
}

// A version that was replaced is released once those who got it have let go of it.
TEST_CASE("PublishedVersionTest.OldVersionsAreReleased", "[PublishedVersionTest]") {
  auto first = numbered_version(1);
  const std::weak_ptr<const Version> watched = first;
  const auto made = std::make_unique<PublishedVersion>(std::move(first));
  PublishedVersion& published = *made;
  TestThreads threads;
  for (int t = 0; t < 20; ++t)
    threads.start([&] { CHECK_MESSAGE(published.get()->file_bytes == 1u, "the first version"); });
  threads.join();
  auto held = published.get();
  published.set(numbered_version(2));
  CHECK(held->file_bytes == 1u);
  CHECK(!watched.expired());
  held.reset();
  CHECK(watched.expired());
}

// A snapshot has all that was committed before it was taken, whichever thread takes it, and a later
// one no less, while the memtable becomes segments and tables come and go.
TEST_CASE("PublishedVersionTest.SnapshotsHaveWhatWasCommittedBefore", "[PublishedVersionTest]") {
  constexpr uint64_t commits = smaller_under_sanitizers(600, 150);
  TemporaryDirectory directory;
  auto db = Database::open(directory.path(), {.durability = Durability::none, .threads = 2});
  REQUIRE_OK(db);
  auto table = (*db)->create_table("t");
  REQUIRE_OK(table);
  auto put = [&](uint64_t number) {
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*table, "number", std::to_string(number)));
    REQUIRE_OK(t.commit());
  };
  put(0);
  std::atomic<uint64_t> committed{0};
  TestThreads threads;
  for (int t = 0; t < 6; ++t)
    threads.start([&] {
      while (!threads.stopping()) {
        const uint64_t before = committed;
        const Snapshot snapshot = (*db)->snapshot();
        auto value = snapshot.get(*table, "number");
        REQUIRE_OK(value);
        REQUIRE_MESSAGE(value->has_value(), "the number");
        const uint64_t number = std::stoull(text(**value));
        CHECK_MESSAGE(number >= before, number << " after " << before);
        // A copy has the same rows, by whatever call.
        const Snapshot copy = snapshot;
        auto rows = copy.iterate(*table);
        REQUIRE_OK(rows);
        REQUIRE_MESSAGE(rows->valid(), "the number");
        CHECK_MESSAGE(text(rows->value()) == std::to_string(number), "the copy");
        raise(&committed, number);
      }
    });
  for (uint64_t n = 1; n <= commits; ++n) {
    put(n);
    raise(&committed, n);
    if (n % 20 == 0) REQUIRE_OK((*db)->compact());
    if (n % 7 == 0) REQUIRE_OK((*db)->create_table("other").status());
    if (n % 7 == 3 && n > 7) REQUIRE_OK((*db)->drop_table("other"));
  }
  threads.join();
}

}  // namespace
}  // namespace stride::test
