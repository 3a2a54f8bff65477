// Loads that go on where they were interrupted: each row counts once, whatever came between.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

class ResumeTest : public CliFixture {
 protected:
  static std::string numbers(int from, int to, const std::string& value) {
    std::string text;
    for (int i = from; i < to; ++i) text += std::to_string(i) + "\t" + value + "\n";
    return text;
  }
  // A load in small parts, which ends at its first bad row.
  int load_in_parts(const std::string& path, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--commit-every", "50", "--block-bytes", "64"});
    return load(path, more);
  }
  uint64_t count() {
    REQUIRE_MESSAGE(run({"count", database_, "t"}) == 0, error_);
    return std::stoull(out_);
  }
};

// It may have been killed after its last commit, or have failed to report.
TEST_CASE_METHOD(ResumeTest, "ResumeTest.AFinishedLoadAddsNothingAgain", "[ResumeTest]") {
  const std::string path = file("hits.tsv", numbers(0, 200, "1"));
  REQUIRE_MESSAGE(load_in_parts(path, {"--accumulate"}) == 0, error_);
  REQUIRE_MESSAGE(load_in_parts(path, {"--accumulate", "--resume"}) == 0, error_);
  CHECK_MESSAGE(error_.find("loaded 0 rows") != std::string::npos, error_);
  REQUIRE_MESSAGE(run({"group", database_, "t", "--sum"}) == 0, error_);
  CHECK_MESSAGE(out_.find("200") != std::string::npos, out_);
  // Without --resume it is a load like any other.
  REQUIRE_MESSAGE(load_in_parts(path, {"--accumulate"}) == 0, error_);
  REQUIRE_MESSAGE(run({"group", database_, "t", "--sum"}) == 0, error_);
  CHECK_MESSAGE(out_.find("400") != std::string::npos, out_);
}

// Their rows are read ahead of where a commit ends.
TEST_CASE_METHOD(ResumeTest, "ResumeTest.ArraysGoOn", "[ResumeTest]") {
  const char* between = GENERATE(", ", ",\n", "\n,");
  std::string text = "[";
  for (int i = 0; i < 200'000; ++i)
    text += (i ? between : "") + std::string("{\"key\":") + std::to_string(i) +
            ",\"n\":" + (i == 190'000 ? "\"bad\"" : "1") + "}";
  const std::string path = file("a.json", text + "]");
  const std::vector<std::string> options = {"--key-type", "u64", "--schema", "n i64"};
  CHECK(load_in_parts(path, options) == 3);
  CHECK_MESSAGE(error_.find("--resume goes on after them") != std::string::npos, error_);
  const uint64_t before = count();
  CHECK(before > 0u);
  auto again = options;
  again.insert(again.end(), {"--resume", "--max-rejects", "1"});
  REQUIRE_MESSAGE(load_in_parts(path, again) == 0, error_);
  CHECK(count() == 199'999);
}

TEST_CASE_METHOD(ResumeTest, "ResumeTest.KeysOfTextGoOn", "[ResumeTest]") {
  const std::string path = file("s.tsv", numbers(100, 300, "v") + "bad\n");
  CHECK(load_in_parts(path, {"--key-type", "string"}) == 3);
  REQUIRE_MESSAGE(
      load_in_parts(path, {"--key-type", "string", "--resume", "--max-rejects", "1"}) == 0, error_);
  CHECK(count() == 200);
  REQUIRE_MESSAGE(load(file("one.tsv", "a\tb\n"), {"--key-type", "string"}) == 0, error_);
  REQUIRE_MESSAGE(run({"tables", database_}) == 0, error_);
  CHECK_MESSAGE(out_.starts_with("t\tstring"), out_);
  CHECK(run({"put", database_, "t", "\xFF", "2"}) == 2);  // texts are UTF-8
}

// The rows before the position are not there any more.
TEST_CASE_METHOD(ResumeTest, "ResumeTest.AReplacedTableBeginsAnew", "[ResumeTest]") {
  const bool dropped = GENERATE(false, true);
  const std::string path = file("b.tsv", numbers(0, 200, "x") + "bad\n");
  CHECK(load_in_parts(path, {"--key-type", "u64"}) == 3);
  CHECK(count() > 0u);
  if (dropped) {
    // A program drops it, which knows nothing of what the command line remembers.
    auto db = Database::open(database_);
    REQUIRE_OK(db);
    REQUIRE_OK((*db)->drop_table("t"));
  }
  REQUIRE_MESSAGE(
      load(file("new.tsv", "999999\tnew\n"), dropped ? std::vector<std::string>{"--key-type", "u64"}
                                                     : std::vector<std::string>{"--replace"}) == 0,
      error_);
  CHECK(count() == 1);
  REQUIRE_MESSAGE(load_in_parts(path, {"--key-type", "u64", "--resume", "--max-rejects", "1"}) == 0,
                  error_);
  CHECK_MESSAGE(error_.find("starting at the beginning") != std::string::npos, error_);
  CHECK(count() == 201);
}

// Those that were read after the last commit are read again.
TEST_CASE_METHOD(ResumeTest, "ResumeTest.RejectedRowsAreThereOnce", "[ResumeTest]") {
  std::string text;
  uint64_t bad = 0;
  for (int i = 0; i < 1000; ++i) {
    bad += i % 7 == 5;
    text += (i % 7 == 5 ? "bad" : "") + std::to_string(i) + "\tvalue\n";
  }
  const std::string path = file("r.tsv", text), rejects = directory_ + "/rejects";
  std::vector<std::string> options = {"--key-type", "u64", "--rejects", rejects};
  std::vector<std::string> limited = options;
  limited.insert(limited.end(), {"--max-rejects", "100"});
  CHECK(load_in_parts(path, limited) == 3);
  const auto lines = [&] {
    const std::string written = read(rejects);
    return static_cast<uint64_t>(std::count(written.begin(), written.end(), '\n'));
  };
  CHECK(lines() == 100);  // all that were let pass
  options.emplace_back("--resume");
  REQUIRE_MESSAGE(load_in_parts(path, options) == 0, error_);
  CHECK(lines() == bad);
}

// What somebody has put into it is no rest of a restore any more.
TEST_CASE_METHOD(ResumeTest, "ResumeTest.ARestoreDropsNoTableThatWasChanged", "[ResumeTest]") {
  REQUIRE_MESSAGE(load(file("v.tsv", numbers(0, 20'000, "value")), {"--key-type", "u64"}) == 0,
                  error_);
  REQUIRE_MESSAGE(run({"dump", database_}) == 0, error_);
  const std::string dump = out_, other = directory_ + "/other";
  {
    // As it stays where the restore itself is killed.
    std::filesystem::copy(database_, other);
    auto db = Database::open(other);
    REQUIRE_OK(db);
    const uint32_t id = (*db)->open_table("t")->id();
    WriteTransaction write = (*db)->begin();
    REQUIRE_OK(write.put(*(*db)->open_table(".stride"), "restore:t",
                         "{\"id\":" + std::to_string(id) + "}"));
    REQUIRE_OK(write.commit());
  }
  const std::string which = GENERATE("load", "put", "delete", "nothing");
  if (which == "load") CHECK(run({"load", other, "t", file("m.tsv", "7\tmine\n")}) == 0);
  if (which == "put") CHECK(run({"put", other, "t", "7", "mine"}) == 0);
  if (which == "delete") CHECK(run({"delete", other, "t", "7"}) == 0);
  const int restored = run({"restore", other, file("dump", dump)});
  CHECK_MESSAGE(restored == (which == "nothing" ? 0 : 2), error_);
  REQUIRE_MESSAGE(run({"count", other, "t"}) == 0, error_);
  CHECK(out_ == (which == "delete" ? "19999\n" : "20000\n"));
}

TEST_CASE_METHOD(ResumeTest, "ResumeTest.ByteOrderMarksOfKeysAreKept", "[ResumeTest]") {
  // The first one is the file's.
  const std::string mark = "\xEF\xBB\xBF";
  REQUIRE_MESSAGE(load(file("m.tsv", mark + mark + "a\tv\n")) == 0, error_);
  const std::string csv = scan({"--format", "csv"});
  REQUIRE_MESSAGE(load(file("again.csv", csv), {"--format", "csv"}, "u") == 0, error_);
  CHECK(scan({}, "u") == mark + "a\tv\n");
}

}  // namespace
}  // namespace stride::cli
