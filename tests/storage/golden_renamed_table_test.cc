// A manifest with a table that gets another name, byte by byte (see golden_test.cc).
#include <fstream>
#include <iterator>
#include <string>

#include "storage/manifest.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace stride {
namespace {

const char* const golden_renaming_manifest = R"(
0000 | 53 54 52 44 4d 41 4e 0a                         | magic "STRDMAN\n"
0008 | 01 00 00 00                                     | database format version 1
000c | 00 00 00 00                                     | zero
0010 | 01 00 00 00 00 00 00 00                         | manifest 1
0018 | 7b e4 6c e3 6b 5e 1f 1c                         | checksum of 0000 to 0017
0020 | 0f 6c 2d 5d 44 7b 98 de                         | checksum of 0028 to 0037 (an empty edit)
0028 | 00 00 00 00                                     | payload bytes
002c | 01 00 00 00                                     | kind 1: an edit
0030 | 00 00 00 00 00 00 00 00                         | bytes that were synced before
0038 | 30 0c a4 9d 9f 47 54 b7                         | checksum of 0040 to 0077
0040 | 25 00 00 00                                     | payload bytes
0044 | 01 00 00 00                                     | kind 1: an edit
0048 | 38 00 00 00 00 00 00 00                         | bytes that were synced before
0050 | 01 00 00 00                                     | tag 1: next_id
0054 | 08 00 00 00                                     | 8 bytes
0058 | 02 00 00 00 00 00 00 00                         | next id 2
0060 | 02 00 00 00                                     | tag 2: created_table
0064 | 0d 00 00 00                                     | 13 bytes
0068 | 01 00 00 00                                     | table 1
006c | 08 00 00 00                                     | keys of 8 bytes
0070 | 00 00 00 00                                     | kind 0: byte keys
0074 | 74                                              | name "t"
0075 | 00 00 00                                        | padding to a multiple of 8
0078 | a9 68 c7 9f 4a 00 cb e3                         | checksum of 0080 to 00a7
0080 | 11 00 00 00                                     | payload bytes
0084 | 01 00 00 00                                     | kind 1: an edit
0088 | 78 00 00 00 00 00 00 00                         | bytes that were synced before
0090 | 0b 00 00 00                                     | tag 11: renamed_table
0094 | 09 00 00 00                                     | 9 bytes
0098 | 01 00 00 00                                     | table 1
009c | 74 69 63 6b 73                                  | name "ticks"
00a1 | 00 00 00 00 00 00 00                            | padding
)";

TEST_CASE("GoldenRenamedTableTest.IsWrittenAndReadSo", "[GoldenRenamedTableTest]") {
  MemoryFileSystem fs;
  REQUIRE_OK(fs.create_directory("db"));
  auto made = Manifest::create(fs, "db");
  REQUIRE_OK(made);
  VersionEdit edit, renaming;
  edit.created.push_back({1, "t", 8, 0});
  edit.next_id = 2;
  renaming.renamed.push_back({1, "ticks"});
  REQUIRE_OK(made->manifest->append(edit, true));
  REQUIRE_OK(made->manifest->append(renaming, true));
  test::expect_dump(*read_file(fs, "db/MANIFEST-000001"), golden_renaming_manifest);
  made->manifest.reset();
  auto recovered = Manifest::recover(fs, "db", true);
  REQUIRE_OK(recovered);
  REQUIRE(recovered->state.tables.size() == 1u);
  CHECK(recovered->state.tables[0].name == "ticks");
  CHECK(recovered->state.tables[0].key_width == 8u);
}

TEST_CASE("GoldenRenamedTableTest.TheFormatPageShowsTheDump", "[GoldenRenamedTableTest]") {
  std::ifstream file(std::string(STRIDE_SOURCE_DIR) + "/docs/format.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  CHECK(page.find(golden_renaming_manifest) != std::string::npos);
}

}  // namespace
}  // namespace stride
