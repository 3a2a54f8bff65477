// A manifest with rows that a range has erased, byte by byte (see golden_test.cc).
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "storage/current_file.h"
#include "storage/manifest.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace stride {
namespace {

const char* const golden_erasing_manifest = R"(
0000 | 53 54 52 44 4d 41 4e 0a                         | magic "STRDMAN\n"
0008 | 01 00 00 00                                     | database format version 1
000c | 00 00 00 00                                     | zero
0010 | 01 00 00 00 00 00 00 00                         | manifest 1
0018 | 7b e4 6c e3 6b 5e 1f 1c                         | checksum of 0000 to 0017
0020 | 0f 6c 2d 5d 44 7b 98 de                         | checksum of 0028 to 0037 (an empty edit)
0028 | 00 00 00 00                                     | payload bytes
002c | 01 00 00 00                                     | kind 1: an edit
0030 | 00 00 00 00 00 00 00 00                         | bytes that were synced before
0038 | 1a ed 23 a6 5d 97 6d b0                         | checksum of 0040 to 00af
0040 | 5d 00 00 00                                     | payload bytes
0044 | 01 00 00 00                                     | kind 1: an edit
0048 | 38 00 00 00 00 00 00 00                         | bytes that were synced before
0050 | 01 00 00 00                                     | tag 1: next_id
0054 | 08 00 00 00                                     | 8 bytes
0058 | 04 00 00 00 00 00 00 00                         | next id 4
0060 | 02 00 00 00                                     | tag 2: created_table
0064 | 0d 00 00 00                                     | 13 bytes
0068 | 01 00 00 00                                     | table 1
006c | 08 00 00 00                                     | keys of 8 bytes
0070 | 00 00 00 00                                     | kind 0: byte keys
0074 | 74                                              | name "t"
0075 | 04 00 00 00                                     | tag 4: added_segment
0079 | 30 00 00 00                                     | 48 bytes
007d | 02 00 00 00 00 00 00 00                         | segment 2
0085 | 03 00 00 00 00 00 00 00                         | run 3
008d | 64 00 00 00 00 00 00 00                         | 100 rows
0095 | 00 00 00 00 00 00 00 00                         | no tombstones
009d | 00 20 00 00 00 00 00 00                         | 8192 bytes
00a5 | 01 00 00 00                                     | of table 1
00a9 | 00 00 00 00                                     | zero
00ad | 00 00 00                                        | padding to a multiple of 8
00b0 | a4 bc 8c 76 77 98 48 87                         | checksum of 00b8 to 00ef
00b8 | 28 00 00 00                                     | payload bytes
00bc | 01 00 00 00                                     | kind 1: an edit
00c0 | b0 00 00 00 00 00 00 00                         | bytes that were synced before
00c8 | 0a 00 00 00                                     | tag 10: erased_rows
00cc | 20 00 00 00                                     | 32 bytes
00d0 | 02 00 00 00 00 00 00 00                         | of segment 2
00d8 | 0a 00 00 00 00 00 00 00                         | from row 10 on
00e0 | 14 00 00 00 00 00 00 00                         | to row 19
00e8 | 01 00 00 00                                     | of table 1
00ec | 00 00 00 00                                     | zero
)";

TEST_CASE("GoldenErasedRowsTest.AreWrittenAndReadSo", "[GoldenErasedRowsTest]") {
  MemoryFileSystem fs;
  REQUIRE_OK(fs.create_directory("db"));
  auto made = Manifest::create(fs, "db");
  REQUIRE_OK(made);
  VersionEdit edit, erasure;
  edit.created.push_back({1, "t", 8, 0});
  edit.added.push_back({2, 1, 3, 100, 0, 8192});
  edit.next_id = 4;
  erasure.erased.push_back({2, 1, {10, 20}});
  REQUIRE_OK(made->manifest->append(edit, true));
  REQUIRE_OK(made->manifest->append(erasure, true));
  test::expect_dump(*read_file(fs, "db/MANIFEST-000001"), golden_erasing_manifest);
  made->manifest.reset();
  auto recovered = Manifest::recover(fs, "db", true);
  REQUIRE_OK(recovered);
  REQUIRE(recovered->state.segments.size() == 1u);
  CHECK(recovered->state.segments[0].erased.list() == std::vector<RowInterval>{{10, 20}});
}

TEST_CASE("GoldenErasedRowsTest.TheFormatPageShowsTheDump", "[GoldenErasedRowsTest]") {
  std::ifstream file(std::string(STRIDE_SOURCE_DIR) + "/docs/format.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  CHECK(page.find(golden_erasing_manifest) != std::string::npos);
}

}  // namespace
}  // namespace stride
