// Dumps that others wrote: every frame has its checksum, and what it says is wrong.
#include <xxhash.h>

#include <cstring>
#include <vector>

#include "adapters/cli/output/dump_format.h"
#include "engine/dedup_table.h"
#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {
namespace {

std::string frame(FrameKind kind, const std::string& payload) {
  FrameHeader header{
      static_cast<uint32_t>(kind), static_cast<uint32_t>(payload.size()),
      XXH3_64bits_withSeed(payload.data(), payload.size(), static_cast<uint64_t>(kind))};
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes + payload;
}

class DumpTest : public CliFixture {
 protected:
  static std::string rows() {
    return frame(FrameKind::rows, std::string("\x08\0\0\0\x01\0\0\0abcdefghv", 17));
  }
  static std::string end(const std::string& says = R"({"tables":1,"rows":1})") {
    return frame(FrameKind::end, says);
  }
  static std::string dump_of(const std::string& header, FrameKind kind = FrameKind::table) {
    return std::string(dump_magic) + frame(kind, header) + rows() + end();
  }
  // In words of its own, and before anything is made.
  void expect_broken(const std::string& dump, const std::string& why) {
    expect_refused({"restore", database_, "-"}, 3, "stride: standard input: " + why, dump);
    CHECK_MESSAGE(error_.find("json") == std::string::npos, error_);
  }
};

TEST_CASE_METHOD(DumpTest, "DumpTest.WhatIsWhole", "[DumpTest]") {
  REQUIRE_MESSAGE(run({"restore", database_, "-"}, dump_of(R"({"table":"t","key_width":8})")) == 0,
                  error_);
  CHECK(scan({"--key-type", "bytes"}) == "abcdefgh\tv\n");
}

TEST_CASE_METHOD(DumpTest, "DumpTest.NothingFollowsTheEnd", "[DumpTest]") {
  std::string dump = dump_of(R"({"table":"t","key_width":8})");
  expect_broken(dump + "x", "has more bytes after the dump's end");
  expect_broken(dump + dump, "has more bytes after the dump's end");
  expect_broken(gzip(dump + std::string(1, '\0')), "has more bytes after the dump's end");
  expect_broken(gzip(dump) + gzip(dump), "has more bytes after the dump's end");
  expect_broken(zstd(dump) + zstd("x"), "has more bytes after the dump's end");
}

TEST_CASE_METHOD(DumpTest, "DumpTest.FieldsOfTheWrongType", "[DumpTest]") {
  auto field = [&](const std::string& name, const std::string& value,
                   FrameKind kind = FrameKind::table) {
    std::string rest = name == "table" ? "" : R"("table":"t",)";
    if (kind == FrameKind::numbers && name != "numbers") rest += R"("numbers":"i64",)";
    expect_broken(dump_of("{" + rest + "\"" + name + "\":" + value + "}", kind),
                  "has a table header whose field '" + name + "' is broken");
  };
  for (const char* value : {"7", "null", "[]", "{}", "true"}) field("table", value);
  for (const char* value : {"\"t\"", "[300]", "[-1]", "[1.5]", "[\"a\"]", "{}"})
    field("table_bytes", value);
  for (const char* value : {"\"8\"", "-8", "8.0", "4294967304", "65536", "1e30", "[8]", "null"})
    field("key_width", value);
  for (const char* value : {"1", "\"yes\"", "null"}) field("share_equal_values", value);
  for (const char* value :
       {"1", "[]", R"({"key_type":8})", R"({"key_type":"u64","key":1})",
        R"({"key_type":"u64","values":"v"})", R"({"key_type":"u64","values":[1]})"})
    field("notes", value);
  for (const char* value : {"\"i128\"", "1", "null"}) field("numbers", value, FrameKind::numbers);
  for (const char* value : {"1", "[]"}) field("overflow", value, FrameKind::numbers);
  for (const char* value : {"0", "-1", "70000", "\"x\"", "[]", "1.5"})
    field("address_bits", value, FrameKind::prefixes);
}

TEST_CASE_METHOD(DumpTest, "DumpTest.TablesThatNoDumpHas", "[DumpTest]") {
  expect_broken(dump_of(R"({"key_width":8})"), "has a table of the name ''");
  expect_broken(dump_of(R"({"table":".stride"})"), "has a table of the name '.stride'");
  std::string table = frame(FrameKind::table, R"({"table":"t","key_width":8})");
  expect_broken(std::string(dump_magic) + table + rows() + table + end(R"({"tables":2,"rows":1})"),
                "has table 't' twice");
  expect_broken(std::string(dump_magic) + rows() + end(), "has rows before a table");
  expect_broken(dump_of("[]"), "has a broken table header");
  expect_broken(dump_of("{"), "has a broken table header");
}

TEST_CASE_METHOD(DumpTest, "DumpTest.AnEndThatIsNone", "[DumpTest]") {
  std::string begin =
      std::string(dump_magic) + frame(FrameKind::table, R"({"table":"t","key_width":8})") + rows();
  for (const char* says : {"{}", "[]", "1", R"({"tables":"1","rows":1})", R"({"tables":1})",
                           R"({"tables":1,"rows":1.0})", R"({"tables":1,"rows":-1})",
                           R"({"tables":1,"rows":2})", R"({"tables":1,"rows":[1]})"})
    expect_broken(begin + end(says), "does not have the rows that its end says");
}

// To the command it is a table like any other.
TEST_CASE_METHOD(DumpTest, "DumpTest.CompressedDedupTables", "[DumpTest]") {
  std::vector<uint32_t> vectors(4 * 5000);
  for (uint32_t i = 0; i < vectors.size(); ++i) vectors[i] = i % 4 ? i % 7 : i / 4;
  const KeyColumn column = Column::fixed(vectors.data(), 16, 5000);
  const DedupOptions options{.words = 4, .compressed = true};
  std::vector<uint64_t> ids(5000), found(5000);
  {
    auto database = std::move(*Database::open(database_));
    auto table = DedupTable::open(*database, "states", options);
    REQUIRE_OK(table);
    REQUIRE_OK(table->find_or_put(column, ids, {}));
  }
  REQUIRE_MESSAGE(run({"verify", database_}) == 0, error_);
  REQUIRE_MESSAGE(run({"stats", database_}) == 0, error_);
  REQUIRE_MESSAGE(run({"dump", database_}) == 0, error_);
  const std::string dump = out_;
  database_ = directory_ + "/other";
  REQUIRE_MESSAGE(run({"restore", database_, "-"}, dump) == 0, error_);
  auto database = std::move(*Database::open(database_));
  auto table = DedupTable::open(*database, "states", options);
  REQUIRE_OK(table);
  CHECK(table->size() == 5000u);
  REQUIRE_OK(table->find(column, found));
  CHECK(found == ids);
}

// Memory that holds copies of files counts as free.
TEST_CASE_METHOD(DumpTest, "DumpTest.RowsWaitInTheMemoryThatIsAvailable", "[DumpTest]") {
  std::string dump = dump_of(R"({"table":"t","key_width":8})");
  meminfo_ = file("meminfo", "MemTotal: 9 kB\nMemFree: 0 kB\nMemAvailable: 1000000 kB\n");
  REQUIRE_MESSAGE(run({"restore", database_, "-"}, dump) == 0, error_);
  meminfo_ = file("meminfo", "MemTotal: 9 kB\nMemFree: 9999999 kB\nMemAvailable: 1 kB\n");
  database_ = directory_ + "/other";
  std::string large = "\x08";
  large += std::string("\0\0\0\xE8\x03\0\0abcdefgh", 15) + std::string(1000, 'v');
  dump = std::string(dump_magic) + frame(FrameKind::table, R"({"table":"t","key_width":8})") +
         frame(FrameKind::rows, large) + end();
  expect_refused({"restore", database_, "-"}, 7, "the rows need more than 450 B of memory", dump);
  std::string path = file("large.tsv", "abcdefgh\t" + std::string(1000, 'v') + "\n");
  expect_load_refused(path, {}, 7, "the rows need more than 450 B of memory");
}

}  // namespace
}  // namespace stride::cli
