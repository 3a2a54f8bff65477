// Logs of edits: what recovering them gives, whole, torn, damaged and where the disk fails.
#include <time.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "storage/checksum.h"
#include "storage/current_file.h"
#include "storage/manifest_format.h"
#include "storage/manifest_replay.h"
#include "tests/storage/manifest_fixture.h"
#include "tests/support/printed_seed.h"
#include "tests/support/test_threads.h"

namespace stride {
namespace {

using test::describe;
using test::EditMaker;
using test::whole;

TEST_CASE_METHOD(ManifestTest, "ManifestTest.RecoversWhatWasAppended", "[ManifestTest]") {
  auto manifest = create(fs_);
  EditMaker maker(test::seed());
  for (int i = 0; i < 200; ++i) {
    VersionEdit edit = maker.make();
    REQUIRE_OK(manifest->append(edit, i % 2));
    maker.apply(edit);
    if (i % 40 == 7) {
      manifest.reset();
      auto again = Manifest::recover(fs_, "db", false);
      REQUIRE_OK(again);
      REQUIRE(describe(whole(*again)) == describe(maker.state()));
      manifest = std::move(again->manifest);
    }
  }
  CHECK(recovered(fs_) == describe(maker.state()));
}

double cpu_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.RecoversInTheTimeThatItsEditsTake", "[ManifestTest]") {
  // There are so many that each add a segment, and half as many that each remove one.
  auto seconds_to_recover = [](uint64_t edits) {
    MemoryFileSystem fs({.crashable = false});
    CHECK_OK(fs.create_directory("db"));
    auto manifest = create(fs);
    CHECK_OK(manifest->append(table_edit(1, "one"), false));
    for (uint64_t i = 2; i < edits + 2; ++i)
      CHECK_OK(manifest->append({.added = {{i, 1, i, 1, 0, 1}}}, false));
    for (uint64_t i = 2; i < edits / 2 + 2; ++i)
      CHECK_OK(manifest->append({.removed = {i}}, false));
    CHECK_OK(manifest->append({}, true));
    double before = cpu_seconds();
    auto r = Manifest::recover(fs, "db", true);
    double seconds = cpu_seconds() - before;
    CHECK_OK(r);
    CHECK(r->state.segments.size() == edits - edits / 2);
    return seconds;
  };
  double few = seconds_to_recover(2000), many = seconds_to_recover(16'000);
  CHECK_MESSAGE(many < 24 * few, "8 times as many edits");
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.ATornTailIsDroppedAtEveryLength", "[ManifestTest]") {
  auto manifest = create(fs_);
  std::vector<uint64_t> ends = {manifest->bytes()};
  std::vector<std::string> states = {describe({})};
  EditMaker maker(test::seed());
  for (int i = 0; i < 12; ++i) {
    VersionEdit edit = maker.make();
    REQUIRE_OK(manifest->append(edit, true));
    maker.apply(edit);
    ends.push_back(manifest->bytes());
    states.push_back(describe(maker.state()));
  }
  std::string whole_log = *read_file(fs_, manifest->path());
  for (size_t size = ends[0]; size <= whole_log.size(); ++size) {
    // A file may have grown before its bytes got there; a record may end with zeros anyway.
    std::string bytes = whole_log.substr(0, size) + std::string(size % 3 * 5, '\0');
    size_t records = 0;
    while (records + 1 < ends.size() && bytes.size() >= ends[records + 1] &&
           whole_log.starts_with(bytes.substr(0, ends[records + 1]))) {
      ++records;
    }
    MemoryFileSystem fs;
    REQUIRE_OK(fs.create_directory("db"));
    put_file(fs, "db/CURRENT", encode_current(1));
    put_file(fs, "db/MANIFEST-000001", bytes);
    REQUIRE_MESSAGE(recovered(fs) == states[records], "cut at " << size);
    auto again = Manifest::recover(fs, "db", false);
    REQUIRE_OK(again);
    CHECK(again->manifest->bytes() == ends[records]);
    VersionEdit edit = table_edit(1000, "after the cut");
    REQUIRE_OK(again->manifest->append(edit, true));
    REQUIRE_OK(again->state.apply(edit));
    REQUIRE_MESSAGE(recovered(fs) == describe(again->state), "cut at " << size);
  }
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.DamageBeforeASyncedRecordIsCorruption",
                 "[ManifestTest]") {
  auto manifest = create(fs_);
  uint64_t second = manifest->bytes();
  REQUIRE_OK(manifest->append(table_edit(1, "one"), true));
  REQUIRE_OK(manifest->append(table_edit(2, "two"), true));
  std::string bytes = *read_file(fs_, manifest->path());
  bytes[second + 30] ^= 1;
  put_file(fs_, manifest->path(), bytes);
  Status status = Manifest::recover(fs_, "db", true).status();
  CHECK(status.code() == StatusCode::corruption);
  CHECK(status.offset() == second);
  CHECK(status.file() == "db/MANIFEST-000001");
  CHECK_FALSE(status.remedy().empty());
}

// As where a file system puts a later block in the place of an earlier one.
TEST_CASE_METHOD(ManifestTest, "ManifestTest.AMissingRecordIsCorruption", "[ManifestTest]") {
  auto manifest = create(fs_);
  uint64_t second = manifest->bytes();
  REQUIRE_OK(manifest->append(table_edit(1, "one"), true));
  uint64_t third = manifest->bytes();
  REQUIRE_OK(manifest->append(table_edit(2, "two"), true));
  std::string bytes = *read_file(fs_, manifest->path());
  put_file(fs_, manifest->path(), bytes.erase(second, third - second));
  Status status = Manifest::recover(fs_, "db", true).status();
  CHECK(status.code() == StatusCode::corruption);
  CHECK(status.offset() == second);
  CHECK(status.file() == "db/MANIFEST-000001");
  CHECK_FALSE(status.remedy().empty());
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.DamageBeforeUnsyncedRecordsIsATornTail",
                 "[ManifestTest]") {
  auto manifest = create(fs_);
  uint64_t second = manifest->bytes();
  REQUIRE_OK(manifest->append(table_edit(1, "one"), false));
  REQUIRE_OK(manifest->append(table_edit(2, "two"), false));
  std::string bytes = *read_file(fs_, manifest->path());
  bytes[second + 30] ^= 1;
  put_file(fs_, manifest->path(), bytes);
  CHECK(recovered(fs_) == describe({}));
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.KeepsUnsyncedEditsApartAndCutsThem",
                 "[ManifestTest]") {
  auto manifest = create(fs_);
  REQUIRE_OK(manifest->append(table_edit(1, "one"), false));
  REQUIRE_OK(manifest->append(table_edit(2, "two"), true));
  uint64_t third = manifest->bytes();
  REQUIRE_OK(manifest->append(table_edit(3, "three"), false));
  REQUIRE_OK(manifest->append(table_edit(4, "four"), false));
  auto again = Manifest::recover(fs_, "db", false);
  REQUIRE_OK(again);
  CHECK(describe(again->state) == "next 3; table 1 one 0; table 2 two 0");
  REQUIRE(again->unsynced.size() == 2u);
  CHECK(again->unsynced[0].edit.created[0].name == "three");
  CHECK(again->unsynced[0].offset == third);
  REQUIRE_OK(again->manifest->cut(again->unsynced[1].offset));
  CHECK(recovered(fs_) == "next 4; table 1 one 0; table 2 two 0; table 3 three 0");
  REQUIRE_OK(again->manifest->append(table_edit(5, "five"), true));
  auto settled = Manifest::recover(fs_, "db", true);
  CHECK(settled->unsynced.empty());
  CHECK(describe(settled->state) ==
        "next 6; table 1 one 0; table 2 two 0; table 3 three 0; table 5 five 0");
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.ANewerVersionIsUnsupported", "[ManifestTest]") {
  auto manifest = create(fs_);
  std::string bytes = *read_file(fs_, manifest->path());
  ++bytes[offsetof(ManifestHeader, database_format_version)];
  put_file(fs_, manifest->path(), bytes);
  CHECK(code(fs_) == StatusCode::corruption);
  uint64_t sum = checksum(as_bytes(std::string_view(bytes).substr(0, 24)));
  std::memcpy(bytes.data() + 24, &sum, 8);
  put_file(fs_, manifest->path(), bytes);
  CHECK(code(fs_) == StatusCode::unsupported_version);
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.UnknownTagsAndKindsAreUnsupported", "[ManifestTest]") {
  auto manifest = create(fs_);
  uint64_t at = manifest->bytes();
  REQUIRE_OK(manifest->append(table_edit(1, "one"), true));
  std::string good = *read_file(fs_, manifest->path());
  auto with = [&](uint64_t offset, uint32_t value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + at + offset, &value, 4);
    uint64_t sum = checksum(as_bytes(std::string_view(bytes).substr(at + 8)));
    std::memcpy(bytes.data() + at, &sum, 8);
    put_file(fs_, manifest->path(), bytes);
    return code(fs_);
  };
  CHECK(with(12, manifest_edit) == StatusCode::ok);
  CHECK(with(12, manifest_unsynced_edit) == StatusCode::ok);
  CHECK(with(12, 3) == StatusCode::unsupported_version);
  CHECK(with(24, 99) == StatusCode::unsupported_version);
  CHECK_MESSAGE(with(28, 16) == StatusCode::corruption, "a field that is cut off");
  CHECK_MESSAGE(with(28, 12) == StatusCode::corruption, "a table without a name");
  CHECK_MESSAGE(with(8, 4) == StatusCode::ok,
                "less payload, but then the padding is off: a torn tail");
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.SaysWhatKindOfDirectoryItIs", "[ManifestTest]") {
  auto make = [](std::vector<std::pair<std::string, std::string>> files) {
    auto fs = std::make_unique<MemoryFileSystem>();
    (void)fs->create_directory("db");
    for (auto& [name, bytes] : files) put_file(*fs, "db/" + name, bytes);
    return fs;
  };
  std::string line = encode_current(1);
  std::string leveldb = "MANIFEST-000001\n";
  CHECK(code(*std::make_unique<MemoryFileSystem>()) == StatusCode::not_found);
  CHECK(code(*make({})) == StatusCode::not_found);
  CHECK(code(*make({{"LOCK", ""}, {"lost+found", ""}})) == StatusCode::not_found);
  CHECK(code(*make({{"LOCK", ""}, {"MANIFEST-000001", "x"}, {"CURRENT.tmp", "x"}})) ==
        StatusCode::not_found);
  CHECK(code(*make({{"LOCK", ""}, {"000003.seg", "x"}})) == StatusCode::corruption);
  CHECK(code(*make({{"000003.wal", "x"}})) == StatusCode::invalid_argument);
  CHECK(code(*make({{"LOCK", ""}, {"letter.txt", "x"}})) == StatusCode::invalid_argument);
  CHECK(code(*make({{"CURRENT", leveldb}, {"MANIFEST-000001", "leveldb's"}})) ==
        StatusCode::invalid_argument);
  CHECK(code(*make({{"CURRENT", line}})) == StatusCode::corruption);
  CHECK(code(*make({{"CURRENT", line}, {"MANIFEST-000001", ""}})) == StatusCode::corruption);
  create(fs_);
  put_file(fs_, "db/CURRENT", leveldb);
  CHECK(code(fs_) == StatusCode::corruption);
  CHECK(recovered(fs_).find("restore CURRENT from a backup") != std::string::npos);
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.CreatesOverAnInterruptedCreation", "[ManifestTest]") {
  put_file(fs_, "db/MANIFEST-000001", "half");
  put_file(fs_, "db/CURRENT.tmp", "half");
  REQUIRE_OK(create(fs_)->append(table_edit(1, "one"), true));
  CHECK(recovered(fs_) == "next 2; table 1 one 0");
  CHECK(*fs_.list("db") == (std::vector<std::string>{"CURRENT", "MANIFEST-000001"}));
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.RewritesALogThatHasGrown", "[ManifestTest]") {
  auto manifest = create(fs_);
  std::string name(200, 'n');
  for (uint32_t i = 1; manifest->bytes() <= 1 << 20; ++i) {
    VersionEdit edit = table_edit(i, name);
    if (i > 1) edit.dropped = {i - 1};
    REQUIRE_OK(manifest->append(edit, false));
  }
  REQUIRE_OK(manifest->append({}, true));
  manifest.reset();
  std::string before = recovered(fs_);
  CHECK_MESSAGE(fs_.list("db")->back() == "MANIFEST-000001", "reading only changes nothing");
  // A full disk does not keep the database from opening.
  fs_.set_capacity(fs_.used_bytes());
  CHECK(recovered(fs_, false) == before);
  CHECK(*fs_.list("db") == (std::vector<std::string>{"CURRENT", "MANIFEST-000001"}));
  fs_.set_capacity(~uint64_t{0});
  CHECK(recovered(fs_, false) == before);
  CHECK(*fs_.list("db") == (std::vector<std::string>{"CURRENT", "MANIFEST-000002"}));
  auto again = Manifest::recover(fs_, "db", false);
  CHECK(again->manifest->bytes() < 1000u);
  CHECK(describe(again->state) == before);
  auto after = fs_.crash(1, CrashPolicy::lose_unsynced);
  CHECK(recovered(*after) == before);
}

// The same while it is in use, where any call may fail, and then the power.
TEST_CASE_METHOD(ManifestTest, "ManifestTest.RewritesAGrownLogThatIsInUse", "[ManifestTest]") {
  const std::string name(200, 'n');
  bool done = false;
  for (uint64_t call = 1; !done; ++call) {
    INFO("call " << call);
    REQUIRE(call < 30);
    MemoryFileSystem fs;
    REQUIRE_OK(fs.create_directory("db"));
    auto manifest = create(fs);
    ManifestReplay replay;
    uint32_t id = 0;
    auto append = [&](bool sync) {
      VersionEdit edit = table_edit(++id, name);
      if (id > 1) edit.dropped = {id - 1};
      const Status s = manifest->append(edit, sync);
      if (s.ok()) REQUIRE_OK(replay.apply(edit));
      return s;
    };
    auto expect = [&] {
      for (auto policy :
           {CrashPolicy::lose_unsynced, CrashPolicy::keep_unsynced, CrashPolicy::random})
        CHECK((recovered(*fs.crash(call, policy), false) == describe(replay.state())));
    };
    while (!manifest->may_have_grown()) REQUIRE_OK(append(false));
    REQUIRE(manifest->bytes() > 1 << 20);
    REQUIRE_OK(append(true));
    fs.fail_call(call, StatusCode::io_error);
    const uint64_t calls = fs.calls();
    const Status s = manifest->rewrite_grown(replay.state());
    done = fs.calls() - calls < call;
    fs.fail_call(0, StatusCode::ok);
    expect();
    if (done) CHECK((*fs.list("db") == std::vector<std::string>{"CURRENT", "MANIFEST-000002"}));
    CHECK(s.ok() == (manifest->path() == "db/MANIFEST-000002"));
    CHECK((manifest->bytes() < 1000) == s.ok());
    CHECK_FALSE((manifest->poisoned() && s.ok()));
    CHECK(manifest->may_have_grown() == false);
    const Status next = append(true);
    CHECK(next.code() == (manifest->poisoned() ? StatusCode::poisoned : StatusCode::ok));
    expect();
  }
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.AReaderKeepsUpWithAWriterThatRewrites",
                 "[ManifestTest]") {
  create(fs_);
  std::atomic<bool> done{false};
  test::TestThreads threads;
  threads.start([&] {
    for (uint64_t number = 2; number < 300; ++number) {
      std::vector<std::byte> bytes = encode_manifest_header(number);
      put_file(fs_, "db/" + manifest_name(number), as_text(bytes));
      CHECK_OK(write_current(fs_, "db", number).status);
      CHECK_OK(fs_.remove("db/" + manifest_name(number - 1)));
    }
    done = true;
  });
  while (!done) {
    auto r = Manifest::recover(fs_, "db", true);
    CHECK_OK(r);
    CHECK(r->manifest == nullptr);
  }
  threads.join();
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.AFullDiskLeavesTheLogAsItWas", "[ManifestTest]") {
  auto manifest = create(fs_);
  REQUIRE_OK(manifest->append(table_edit(1, "one"), true));
  fs_.set_capacity(fs_.used_bytes() + 10);
  CHECK(manifest->append(table_edit(2, "two"), true).code() == StatusCode::no_space);
  CHECK(recovered(fs_) == "next 2; table 1 one 0");
  CHECK(manifest->append(table_edit(2, "two"), true).code() == StatusCode::no_space);
  fs_.set_capacity(~uint64_t{0});
  CHECK_OK(manifest->append(table_edit(3, "three"), true));
  CHECK(recovered(fs_) == "next 4; table 1 one 0; table 3 three 0");
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.AFailedSyncPoisons", "[ManifestTest]") {
  auto manifest = create(fs_);
  fs_.fail_sync(1, StatusCode::no_space);
  Status status = manifest->append(table_edit(1, "one"), true);
  CHECK(status.code() == StatusCode::io_error);
  CHECK(manifest->append(table_edit(2, "two"), true).code() == StatusCode::poisoned);
  CHECK(manifest->cut(0).code() == StatusCode::poisoned);
  // What the next process reads it also makes to last, though this kernel takes it for written.
  std::string seen = recovered(fs_, false);
  CHECK(recovered(*fs_.crash(1, CrashPolicy::lose_unsynced)) == seen);
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.AFailedWriteThatCannotBeUndonePoisons",
                 "[ManifestTest]") {
  auto manifest = create(fs_);
  fs_.fail_call(1, StatusCode::io_error, true);
  CHECK(manifest->append(table_edit(1, "one"), true).code() == StatusCode::io_error);
  fs_.fail_call(0, StatusCode::ok);
  CHECK(manifest->append(table_edit(1, "one"), true).code() == StatusCode::poisoned);
  CHECK(recovered(fs_) == describe({}));
}

}  // namespace
}  // namespace stride
