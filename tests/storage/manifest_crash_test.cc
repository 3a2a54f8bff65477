// After any power loss, and any failing call, a manifest says what some prefix of the edits made,
// and that prefix has every edit whose sync returned.

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "storage/manifest.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/edits.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride {
namespace {

using test::describe;
using test::EditMaker;
using test::whole;

// What a caller of create() and append() was told.
struct History {
  bool created = false;
  std::vector<std::string> states = {describe({})};  // after each edit that may be there
  size_t synced = 0;                                 // states[synced] and later ones may be found
};

// Nothing, or one of the states that may be there.
void expect_one_of(FileSystem& fs, const History& history, const std::string& when) {
  auto r = Manifest::recover(fs, "db", false);
  if (!r.ok() && !history.created) {
    CHECK_MESSAGE(r.status().code() == StatusCode::not_found, when << r.status().to_string());
    return;
  }
  REQUIRE_MESSAGE(r.ok(), when << ": " << r.status().to_string());
  auto first = history.states.begin() + static_cast<ptrdiff_t>(history.synced);
  std::string found = describe(whole(*r));
  CHECK_MESSAGE(std::find(first, history.states.end(), found) != history.states.end(),
                when << ": " << found);
}

void expect_crashes(const MemoryFileSystem& fs, std::mt19937_64& random, const History& history) {
  for (CrashPolicy policy : {CrashPolicy::lose_unsynced, CrashPolicy::keep_unsynced,
                             CrashPolicy::random, CrashPolicy::random, CrashPolicy::random}) {
    uint64_t seed = random();
    auto after = fs.crash(seed, policy);
    expect_one_of(*after, history, "crash " + std::to_string(seed));
    // And once more: what recovery itself did not sync may be lost too.
    auto twice = after->crash(seed, CrashPolicy::random);
    expect_one_of(*twice, history, "second crash " + std::to_string(seed));
  }
}

// Appends, with now and then a new process, until `edits` are made or the handle is of no use.
void run(MemoryFileSystem& fs, std::mt19937_64& random, int edits, bool crashes, History* history) {
  auto made = Manifest::create(fs, "db");
  history->created = made.ok();
  if (!made.ok()) return;
  std::unique_ptr<Manifest> manifest = std::move(made->manifest);
  EditMaker maker(random());
  for (int i = 0; i < edits; ++i) {
    VersionEdit edit = maker.make();
    bool sync = random() % 3 == 0;
    ManifestState next = maker.state();
    REQUIRE_OK(next.apply(edit));
    Status status = manifest->append(edit, sync);
    bool in_doubt = status.code() == StatusCode::io_error && sync;
    if (status.ok() || in_doubt) history->states.push_back(describe(next));
    if (status.ok()) maker.apply(edit);
    if (status.ok() && sync) history->synced = history->states.size() - 1;
    if (crashes) expect_crashes(fs, random, *history);
    if (in_doubt && manifest->append({}, false).code() != StatusCode::poisoned) {
      history->states.pop_back();  // it was the write that failed, and was undone
    } else if (in_doubt || status.code() == StatusCode::poisoned) {
      return;
    }
  }
}

TEST_CASE("ManifestCrashTest.AppendsSurvivePowerLosses", "[ManifestCrashTest]") {
  std::mt19937_64 random(test::seed());
  for (int round = 0; round < test::smaller_under_sanitizers(12, 6); ++round) {
    MemoryFileSystem fs;
    REQUIRE_OK(fs.create_directory("db"));
    History history;
    auto made = Manifest::create(fs, "db");
    REQUIRE_OK(made);
    history.created = true;
    EditMaker maker(random());
    for (int i = 0; i < 25; ++i) {
      VersionEdit edit = maker.make();
      bool sync = random() % 5 == 0;
      REQUIRE_OK(made->manifest->append(edit, sync));
      maker.apply(edit);
      history.states.push_back(describe(maker.state()));
      if (sync) history.synced = history.states.size() - 1;
      expect_crashes(fs, random, history);
    }
  }
}

TEST_CASE("ManifestCrashTest.EachFailingCall", "[ManifestCrashTest]") {
  uint64_t seed = test::seed();
  for (uint64_t n = 1; n < 60; ++n) {
    std::mt19937_64 random(seed);
    MemoryFileSystem fs;
    REQUIRE_OK(fs.create_directory("db"));
    fs.fail_call(n, n % 2 ? StatusCode::io_error : StatusCode::no_space);
    History history;
    run(fs, random, 12, true, &history);
    fs.fail_call(0, StatusCode::ok);
    expect_one_of(fs, history, "call " + std::to_string(n));
  }
}

TEST_CASE("ManifestCrashTest.EachFailingSync", "[ManifestCrashTest]") {
  uint64_t seed = test::seed();
  for (uint64_t n = 1; n < 20; ++n) {
    std::mt19937_64 random(seed);
    MemoryFileSystem fs;
    REQUIRE_OK(fs.create_directory("db"));
    fs.fail_sync(n, StatusCode::io_error);
    History history;
    run(fs, random, 12, true, &history);
    fs.fail_sync(0, StatusCode::ok);
    // As the next process finds it, without a power loss and with one after that.
    expect_one_of(fs, history, "sync " + std::to_string(n));
    expect_one_of(*fs.crash(seed, CrashPolicy::lose_unsynced), history,
                  "sync " + std::to_string(n) + " and a crash");
  }
}

// Grows the log past its limit so that recovery rewrites it, and fails each of its calls in turn,
// up to the sync of the directory that has the new CURRENT.
TEST_CASE("ManifestCrashTest.RewritingIsAtomic", "[ManifestCrashTest]") {
  MemoryFileSystem full;
  REQUIRE_OK(full.create_directory("db"));
  History history;
  history.created = true;
  {
    auto made = Manifest::create(full, "db");
    ManifestState state;
    for (uint32_t i = 1; made->manifest->bytes() <= 1 << 20; ++i) {
      VersionEdit edit;
      edit.created.push_back({i, std::string(255, 'n'), 0, 0});
      if (i > 1) edit.dropped = {i - 1};
      REQUIRE_OK(made->manifest->append(edit, false));
      REQUIRE_OK(state.apply(edit));
    }
    REQUIRE_OK(made->manifest->append({}, true));
    history.states = {describe(state)};
  }
  std::mt19937_64 random(test::seed());
  // Which names are kept is a matter of luck.
  constexpr int crashes = test::smaller_under_sanitizers(10, 2);
  bool failed = true;
  for (uint64_t n = 1; failed; ++n) {
    auto fs = full.crash(1, CrashPolicy::keep_unsynced);
    const uint64_t before = fs->calls();
    fs->fail_call(n, StatusCode::io_error);
    auto opened = Manifest::recover(*fs, "db", false);
    failed = fs->calls() - before >= n;
    fs->fail_call(0, StatusCode::ok);
    if (opened.ok()) {
      VersionEdit edit;
      edit.next_id = 1'000'000;
      REQUIRE_OK(opened->manifest->append(edit, true));
      REQUIRE_OK(opened->state.apply(edit));
      History later = history;
      later.states = {describe(opened->state)};
      for (int i = 0; i < crashes; ++i) expect_crashes(*fs, random, later);
    } else {
      for (int i = 0; i < crashes; ++i) expect_crashes(*fs, random, history);
    }
  }
}

}  // namespace
}  // namespace stride
