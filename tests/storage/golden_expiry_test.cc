// A manifest of a table whose rows end, byte by byte (see golden_test.cc).
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "storage/current_file.h"
#include "storage/manifest.h"
#include "storage/manifest_format.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace stride {
namespace {

const char* const golden_expiring_manifest = R"(
0000 | 53 54 52 44 4d 41 4e 0a                         | magic "STRDMAN\n"
0008 | 01 00 00 00                                     | database format version 1
000c | 00 00 00 00                                     | zero
0010 | 01 00 00 00 00 00 00 00                         | manifest 1
0018 | 7b e4 6c e3 6b 5e 1f 1c                         | checksum of 0000 to 0017
0020 | 0f 6c 2d 5d 44 7b 98 de                         | checksum of 0028 to 0037 (an empty edit)
0028 | 00 00 00 00                                     | payload bytes
002c | 01 00 00 00                                     | kind 1: an edit
0030 | 00 00 00 00 00 00 00 00                         | bytes that were synced before
0038 | 57 b9 d5 b5 be 4d eb 04                         | checksum of 0040 to 00df
0040 | 89 00 00 00                                     | payload bytes
0044 | 01 00 00 00                                     | kind 1: an edit
0048 | 38 00 00 00 00 00 00 00                         | bytes that were synced before
0050 | 01 00 00 00                                     | tag 1: next_id
0054 | 08 00 00 00                                     | 8 bytes
0058 | 04 00 00 00 00 00 00 00                         | next id 4
0060 | 0c 00 00 00                                     | tag 12: created_table_that_expires
0064 | 29 00 00 00                                     | 41 bytes
0068 | 01 00 00 00                                     | table 1
006c | 08 00 00 00                                     | keys of 8 bytes
0070 | 00 00 00 00                                     | kind 0: byte keys
0074 | 00 00 00 00                                     | no flags
0078 | 00 00 00 00                                     | the time begins at byte 0 of a value
007c | 40 00 00 00                                     | bit 64 says that it is there
0080 | 01 00 00 00                                     | unit 1: milliseconds
0084 | 00 00 00 00                                     | zero
0088 | 88 13 00 00 00 00 00 00                         | time to live 5000
0090 | 74                                              | name "t"
0091 | 0d 00 00 00                                     | tag 13: added_segment_that_expires
0095 | 40 00 00 00                                     | 64 bytes
0099 | 02 00 00 00 00 00 00 00                         | segment 2
00a1 | 03 00 00 00 00 00 00 00                         | run 3
00a9 | 64 00 00 00 00 00 00 00                         | 100 rows
00b1 | 05 00 00 00 00 00 00 00                         | 5 of them tombstones
00b9 | 00 20 00 00 00 00 00 00                         | 8192 bytes
00c1 | 01 00 00 00                                     | of table 1
00c5 | 00 00 00 00                                     | zero
00c9 | 10 27 00 00 00 00 00 00                         | the first row ends at 10000
00d1 | ff ff ff ff ff ff ff 7f                         | the last one never does
00d9 | 00 00 00 00 00 00 00                            | padding to a multiple of 8
)";

VersionEdit golden_edit() {
  VersionEdit edit;
  edit.created.push_back({1, "t", 8, 0});
  edit.created.back().expiry = {0, 64, FieldType::timestamp_ms, 5000};
  edit.added.push_back({2, 1, 3, 100, 5, 8192, {}, {10'000, never_ends}});
  edit.next_id = 4;
  return edit;
}

TEST_CASE("GoldenExpiryTest.IsWrittenAndReadSo", "[GoldenExpiryTest]") {
  MemoryFileSystem fs;
  REQUIRE_OK(fs.create_directory("db"));
  auto made = Manifest::create(fs, "db");
  REQUIRE_OK(made);
  REQUIRE_OK(made->manifest->append(golden_edit(), true));
  test::expect_dump(*read_file(fs, "db/MANIFEST-000001"), golden_expiring_manifest);
  made->manifest.reset();
  auto recovered = Manifest::recover(fs, "db", true);
  REQUIRE_OK(recovered);
  REQUIRE(recovered->state.tables.size() == 1u);
  CHECK(recovered->state.tables[0].expiry == golden_edit().created[0].expiry);
  REQUIRE(recovered->state.segments.size() == 1u);
  CHECK(recovered->state.segments[0].expiry == golden_edit().added[0].expiry);
}

// With a right checksum.
Result<VersionEdit> decode_with(size_t at, std::vector<std::byte> bytes) {
  std::vector<std::byte> record = *encode_record(golden_edit(), 0);
  std::copy(bytes.begin(), bytes.end(), record.begin() + static_cast<std::ptrdiff_t>(at));
  ManifestRecord found{};
  std::memcpy(&found.header, record.data(), sizeof found.header);
  found.payload = Bytes(record).subspan(sizeof found.header, found.header.payload_bytes);
  return decode_edit(found, "MANIFEST-000001", 56);
}

TEST_CASE("GoldenExpiryTest.WhatNoVersionWritesIsRefused", "[GoldenExpiryTest]") {
  constexpr size_t record = 0x38;
  CHECK_OK(decode_with(0x80 - record, {std::byte{3}}));
  CHECK(decode_with(0x80 - record, {std::byte{4}}).status().code() ==
        StatusCode::unsupported_version);
  CHECK(decode_with(0x75 - record, {std::byte{9}}).status().code() ==
        StatusCode::unsupported_version);
  CHECK(decode_with(0x8f - record, {std::byte{0x80}}).status().code() == StatusCode::corruption);
  CHECK(decode_with(0x64 - record, {std::byte{0x28}}).status().code() == StatusCode::corruption);
  CHECK(decode_with(0x95 - record, {std::byte{0x3f}}).status().code() == StatusCode::corruption);
}

TEST_CASE("GoldenExpiryTest.TheFormatPageShowsTheDump", "[GoldenExpiryTest]") {
  std::ifstream file(std::string(STRIDE_SOURCE_DIR) + "/docs/format.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  CHECK(page.find(golden_expiring_manifest) != std::string::npos);
}

}  // namespace
}  // namespace stride
