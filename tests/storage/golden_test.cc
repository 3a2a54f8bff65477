// The formats of files, byte by byte: whatever changes one of these dumps changes the format, and
// needs a new format version and a new page of docs/format.md.
#include "tests/support/golden.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "storage/current_file.h"
#include "storage/manifest.h"
#include "storage/manifest_format.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/segments.h"

namespace stride {
namespace {

using test::expect_dump;
using test::parse_dump;

const char* const golden_segment = R"(
0000 | 53 54 52 44 53 45 47 0a                         | magic "STRDSEG\n"
0008 | 01 00 00 00                                     | format version 1
000c | 01 00 00 00                                     | flags: fixed keys
0010 | 07 00 00 00 00 00 00 00                         | segment 7
0018 | 03 00 00 00 00 00 00 00                         | 3 rows
0020 | 01 00 00 00 00 00 00 00                         | 1 tombstone
0028 | 03 00 00 00                                     | keys of 3 bytes
002c | 00 00 00 00                                     | values of any size
0030 | 00 00 00 00                                     | no key offsets
0034 | 02 00 00 00                                     | value offsets of 2 bytes
0038 | 00 * 64                                         | zeros
0078 | 71 35 b1 91 f9 2b 7f 7e                         | checksum of 0000 to 0077
0080 | 00 * 3968                                       | rest of the header page
1000 | 61 6e 74 62 65 65 63 6f 77                      | key_data: ant, bee, cow
1009 | 00 * 55                                         | padding to a multiple of 64
1040 | 68 6f 6e 65 79 6d 69 6c 6b                      | value_data: honey, milk
1049 | 00 * 55                                         | padding
1080 | 00 00 00 00 00 00 00 00                         | value_bases: of rows 0 to 127
1088 | 00 * 56                                         | padding
10c0 | 00 00 00 00 05 00 09 00                         | value_deltas: 0, 0, 5, 9
10c8 | 00 * 56                                         | padding
1100 | 01 00 00                                        | kinds: tombstone, put, put
1103 | 00 * 61                                         | padding
1140 | 28 61 20 74 72 65 65 29                         | tree: (a tree)
1148 | 00 * 56                                         | padding
1180 | 03 00 00 00                                     | statistics: bytes of the first key
1184 | 03 00 00 00                                     | bytes of the last key
1188 | 61 6e 74 63 6f 77                               | ant, cow
118e | 00 * 50                                         | padding
11c0 | 01 00 00 00                                     | section type 1: key_data
11c4 | 00 00 00 00                                     | zero
11c8 | 00 10 00 00 00 00 00 00                         | offset
11d0 | 09 00 00 00 00 00 00 00                         | bytes
11d8 | 04 00 00 00                                     | section type 4: value_data
11dc | 00 00 00 00                                     | zero
11e0 | 40 10 00 00 00 00 00 00                         | offset
11e8 | 09 00 00 00 00 00 00 00                         | bytes
11f0 | 05 00 00 00                                     | section type 5: value_bases
11f4 | 00 00 00 00                                     | zero
11f8 | 80 10 00 00 00 00 00 00                         | offset
1200 | 08 00 00 00 00 00 00 00                         | bytes
1208 | 06 00 00 00                                     | section type 6: value_deltas
120c | 00 00 00 00                                     | zero
1210 | c0 10 00 00 00 00 00 00                         | offset
1218 | 08 00 00 00 00 00 00 00                         | bytes
1220 | 07 00 00 00                                     | section type 7: kinds
1224 | 00 00 00 00                                     | zero
1228 | 00 11 00 00 00 00 00 00                         | offset
1230 | 03 00 00 00 00 00 00 00                         | bytes
1238 | 08 00 00 00                                     | section type 8: tree
123c | 00 00 00 00                                     | zero
1240 | 40 11 00 00 00 00 00 00                         | offset
1248 | 08 00 00 00 00 00 00 00                         | bytes
1250 | 09 00 00 00                                     | section type 9: statistics
1254 | 00 00 00 00                                     | zero
1258 | 80 11 00 00 00 00 00 00                         | offset
1260 | 0e 00 00 00 00 00 00 00                         | bytes
1268 | 60 8c b1 44 4b ca e4 1c                         | checksum of block 0: 0000 to 11bf
1270 | 00 * 3408                                       | padding before the footer
1fc0 | 53 54 52 44 45 4e 44 0a                         | magic "STRDEND\n"
1fc8 | 01 00 00 00                                     | format version 1
1fcc | 07 00 00 00                                     | 7 sections
1fd0 | 07 00 00 00 00 00 00 00                         | segment 7
1fd8 | c0 11 00 00 00 00 00 00                         | the tables are at 11c0
1fe0 | 01 00 00 00 00 00 00 00                         | 1 block
1fe8 | 00 20 00 00 00 00 00 00                         | bytes of the file
1ff0 | cf 82 5e be fb 85 06 c3                         | checksum of 11c0 to 1fbf
1ff8 | fb d6 a0 fd be 0e 81 a1                         | checksum of 1fc0 to 1ff7
)";

const char* const golden_manifest = R"(
0000 | 53 54 52 44 4d 41 4e 0a                         | magic "STRDMAN\n"
0008 | 01 00 00 00                                     | database format version 1
000c | 00 00 00 00                                     | zero
0010 | 01 00 00 00 00 00 00 00                         | manifest 1
0018 | 7b e4 6c e3 6b 5e 1f 1c                         | checksum of 0000 to 0017
0020 | 0f 6c 2d 5d 44 7b 98 de                         | checksum of 0028 to 0037 (an empty edit)
0028 | 00 00 00 00                                     | payload bytes
002c | 01 00 00 00                                     | kind 1: an edit
0030 | 00 00 00 00 00 00 00 00                         | bytes that were synced before
0038 | d0 59 88 7c 05 40 48 47                         | checksum of 0040 to 00b7
0040 | 61 00 00 00                                     | payload bytes
0044 | 01 00 00 00                                     | kind 1: an edit
0048 | 38 00 00 00 00 00 00 00                         | bytes that were synced before
0050 | 01 00 00 00                                     | tag 1: next_id
0054 | 08 00 00 00                                     | 8 bytes
0058 | 04 00 00 00 00 00 00 00                         | next id 4
0060 | 02 00 00 00                                     | tag 2: created_table
0064 | 11 00 00 00                                     | 17 bytes
0068 | 01 00 00 00                                     | table 1
006c | 08 00 00 00                                     | keys of 8 bytes
0070 | 00 00 00 00                                     | kind 0: byte keys
0074 | 74 69 63 6b 73                                  | name "ticks"
0079 | 04 00 00 00                                     | tag 4: added_segment
007d | 30 00 00 00                                     | 48 bytes
0081 | 02 00 00 00 00 00 00 00                         | segment 2
0089 | 03 00 00 00 00 00 00 00                         | run 3
0091 | 64 00 00 00 00 00 00 00                         | 100 rows
0099 | 05 00 00 00 00 00 00 00                         | 5 tombstones
00a1 | 00 20 00 00 00 00 00 00                         | 8192 bytes
00a9 | 01 00 00 00                                     | of table 1
00ad | 00 00 00 00                                     | zero
00b1 | 00 00 00 00 00 00 00                            | padding to a multiple of 8
00b8 | f2 c8 7f 2d 85 95 4e 06                         | checksum of 00c0 to 00ef
00c0 | 1c 00 00 00                                     | payload bytes
00c4 | 01 00 00 00                                     | kind 1: an edit
00c8 | b8 00 00 00 00 00 00 00                         | bytes that were synced before
00d0 | 05 00 00 00                                     | tag 5: removed_segment
00d4 | 08 00 00 00                                     | 8 bytes
00d8 | 02 00 00 00 00 00 00 00                         | segment 2
00e0 | 03 00 00 00                                     | tag 3: dropped_table
00e4 | 04 00 00 00                                     | 4 bytes
00e8 | 01 00 00 00                                     | table 1
00ec | 00 00 00 00                                     | padding
)";

const char* const golden_shared_segment = R"(
0000 | 53 54 52 44 53 45 47 0a                         | magic "STRDSEG\n"
0008 | 02 00 00 00                                     | format version 2
000c | 05 00 00 00                                     | flags: fixed keys, shared values
0010 | 07 00 00 00 00 00 00 00                         | segment 7
0018 | 04 00 00 00 00 00 00 00                         | 4 rows
0020 | 00 00 00 00 00 00 00 00                         | no tombstones
0028 | 03 00 00 00                                     | keys of 3 bytes
002c | 00 00 00 00                                     | values of any size
0030 | 00 00 00 00                                     | no key offsets
0034 | 02 00 00 00                                     | value offsets of 2 bytes
0038 | 02 00 00 00 00 00 00 00                         | 2 distinct values
0040 | 25 00 00 00 00 00 00 00                         | 37 bytes of values and offsets if each row had its own
0048 | 00 * 48                                         | zeros
0078 | 51 07 a3 02 6c 44 29 d2                         | checksum of 0000 to 0077
0080 | 00 * 3968                                       | rest of the header page
1000 | 61 6e 74 62 65 65 63 6f 77 64 6f 67             | key_data: ant, bee, cow, dog
100c | 00 * 52                                         | padding to a multiple of 64
1040 | 68 6f 6e 65 79 6d 69 6c 6b                      | value_data: honey, milk
1049 | 00 * 55                                         | padding
1080 | 00 00 00 00 00 00 00 00                         | value_bases: of values 0 to 127
1088 | 00 * 56                                         | padding
10c0 | 00 00 05 00 09 00                               | value_deltas: 0, 5, 9
10c6 | 00 * 58                                         | padding
1100 | 00 01 00 00                                     | value_numbers: honey, milk, honey, honey
1104 | 00 * 60                                         | padding
1140 | 03 00 00 00                                     | statistics: bytes of the first key
1144 | 03 00 00 00                                     | bytes of the last key
1148 | 61 6e 74 64 6f 67                               | ant, dog
114e | 00 * 50                                         | padding
1180 | 01 00 00 00                                     | section type 1: key_data
1184 | 00 00 00 00                                     | zero
1188 | 00 10 00 00 00 00 00 00                         | offset
1190 | 0c 00 00 00 00 00 00 00                         | bytes
1198 | 04 00 00 00                                     | section type 4: value_data
119c | 00 00 00 00                                     | zero
11a0 | 40 10 00 00 00 00 00 00                         | offset
11a8 | 09 00 00 00 00 00 00 00                         | bytes
11b0 | 05 00 00 00                                     | section type 5: value_bases
11b4 | 00 00 00 00                                     | zero
11b8 | 80 10 00 00 00 00 00 00                         | offset
11c0 | 08 00 00 00 00 00 00 00                         | bytes
11c8 | 06 00 00 00                                     | section type 6: value_deltas
11cc | 00 00 00 00                                     | zero
11d0 | c0 10 00 00 00 00 00 00                         | offset
11d8 | 06 00 00 00 00 00 00 00                         | bytes
11e0 | 0a 00 00 00                                     | section type 10: value_numbers
11e4 | 00 00 00 00                                     | zero
11e8 | 00 11 00 00 00 00 00 00                         | offset
11f0 | 04 00 00 00 00 00 00 00                         | bytes
11f8 | 09 00 00 00                                     | section type 9: statistics
11fc | 00 00 00 00                                     | zero
1200 | 40 11 00 00 00 00 00 00                         | offset
1208 | 0e 00 00 00 00 00 00 00                         | bytes
1210 | 4d ac 37 f2 d7 33 da bd                         | checksum of block 0: 0000 to 117f
1218 | 00 * 3496                                       | padding before the footer
1fc0 | 53 54 52 44 45 4e 44 0a                         | magic "STRDEND\n"
1fc8 | 02 00 00 00                                     | format version 2
1fcc | 06 00 00 00                                     | 6 sections
1fd0 | 07 00 00 00 00 00 00 00                         | segment 7
1fd8 | 80 11 00 00 00 00 00 00                         | the tables are at 1180
1fe0 | 01 00 00 00 00 00 00 00                         | 1 block
1fe8 | 00 20 00 00 00 00 00 00                         | bytes of the file
1ff0 | 72 5b 1d 8d c2 91 7e 5b                         | checksum of 1180 to 1fbf
1ff8 | cd 35 fd b3 24 a0 97 f6                         | checksum of 1fc0 to 1ff7
)";

const char* const golden_filtered_segment = R"(
0000 | 53 54 52 44 53 45 47 0a                         | magic "STRDSEG\n"
0008 | 04 00 00 00                                     | format version 4
000c | 03 00 00 00                                     | flags: fixed keys, fixed values
0010 | 07 00 00 00 00 00 00 00                         | segment 7
0018 | 03 00 00 00 00 00 00 00                         | 3 rows
0020 | 00 00 00 00 00 00 00 00                         | no tombstones
0028 | 03 00 00 00                                     | keys of 3 bytes
002c | 01 00 00 00                                     | values of 1 byte
0030 | 00 * 72                                         | zeros
0078 | 9b 26 5f 43 78 b7 4e 84                         | checksum of 0000 to 0077
0080 | 00 * 3968                                       | rest of the header page
1000 | 61 6e 74 62 65 65 63 6f 77                      | key_data: ant, bee, cow
1009 | 00 * 55                                         | padding to a multiple of 64
1040 | 31 32 33                                        | value_data: 1, 2, 3
1043 | 00 * 61                                         | padding
1080 | 00 00 20 01 00 08 00 00                         | key_filter: block 0, word 0: bits 24 (ant), 21 (bee), 43 (cow)
1088 | 00 08 00 08 00 02 00 00                         | word 1: bits 41 (ant), 27 (bee), 11 (cow)
1090 | 00 08 08 04 00 00 00 00                         | word 2: bits 19 (ant), 11 (bee), 26 (cow)
1098 | 02 02 00 00 00 00 10 00                         | word 3: bits 1 (ant), 9 (bee), 52 (cow)
10a0 | 00 00 00 01 00 04 02 00                         | word 4: bits 49 (ant), 42 (bee), 24 (cow)
10a8 | 40 10 00 01 00 00 00 00                         | word 5: bits 24 (ant), 6 (bee), 12 (cow)
10b0 | 00 08 00 00 04 00 20 00                         | word 6: bits 34 (ant), 53 (bee), 11 (cow)
10b8 | 00 01 00 00 01 00 00 01                         | word 7: bits 56 (ant), 8 (bee), 32 (cow)
10c0 | 03 00 00 00                                     | statistics: bytes of the first key
10c4 | 03 00 00 00                                     | bytes of the last key
10c8 | 61 6e 74 63 6f 77                               | ant, cow
10ce | 00 * 50                                         | padding
1100 | 01 00 00 00                                     | section type 1: key_data
1104 | 00 00 00 00                                     | zero
1108 | 00 10 00 00 00 00 00 00                         | offset
1110 | 09 00 00 00 00 00 00 00                         | bytes
1118 | 04 00 00 00                                     | section type 4: value_data
111c | 00 00 00 00                                     | zero
1120 | 40 10 00 00 00 00 00 00                         | offset
1128 | 03 00 00 00 00 00 00 00                         | bytes
1130 | 0c 00 00 00                                     | section type 12: key_filter
1134 | 00 00 00 00                                     | zero
1138 | 80 10 00 00 00 00 00 00                         | offset
1140 | 40 00 00 00 00 00 00 00                         | bytes
1148 | 09 00 00 00                                     | section type 9: statistics
114c | 00 00 00 00                                     | zero
1150 | c0 10 00 00 00 00 00 00                         | offset
1158 | 0e 00 00 00 00 00 00 00                         | bytes
1160 | 08 c3 6e 1e 3b bd b3 8d                         | checksum of block 0: 0000 to 10ff
1168 | 00 * 3672                                       | padding before the footer
1fc0 | 53 54 52 44 45 4e 44 0a                         | magic "STRDEND\n"
1fc8 | 04 00 00 00                                     | format version 4
1fcc | 04 00 00 00                                     | 4 sections
1fd0 | 07 00 00 00 00 00 00 00                         | segment 7
1fd8 | 00 11 00 00 00 00 00 00                         | the tables are at 1100
1fe0 | 01 00 00 00 00 00 00 00                         | 1 block
1fe8 | 00 20 00 00 00 00 00 00                         | bytes of the file
1ff0 | 9f f2 f2 33 71 c3 69 ec                         | checksum of 1100 to 1fbf
1ff8 | 35 b4 7e 27 83 a7 04 cc                         | checksum of 1fc0 to 1ff7
)";

const char* const golden_shared_manifest = R"(
0000 | 53 54 52 44 4d 41 4e 0a                         | magic "STRDMAN\n"
0008 | 01 00 00 00                                     | database format version 1
000c | 00 00 00 00                                     | zero
0010 | 01 00 00 00 00 00 00 00                         | manifest 1
0018 | 7b e4 6c e3 6b 5e 1f 1c                         | checksum of 0000 to 0017
0020 | 0f 6c 2d 5d 44 7b 98 de                         | checksum of 0028 to 0037 (an empty edit)
0028 | 00 00 00 00                                     | payload bytes
002c | 01 00 00 00                                     | kind 1: an edit
0030 | 00 00 00 00 00 00 00 00                         | bytes that were synced before
0038 | ba 4d 04 38 6b 71 81 b4                         | checksum of 0040 to 007f
0040 | 2b 00 00 00                                     | payload bytes
0044 | 01 00 00 00                                     | kind 1: an edit
0048 | 38 00 00 00 00 00 00 00                         | bytes that were synced before
0050 | 01 00 00 00                                     | tag 1: next_id
0054 | 08 00 00 00                                     | 8 bytes
0058 | 02 00 00 00 00 00 00 00                         | next id 2
0060 | 06 00 00 00                                     | tag 6: created_table_with_flags
0064 | 13 00 00 00                                     | 19 bytes
0068 | 01 00 00 00                                     | table 1
006c | 05 00 00 00                                     | keys of 5 bytes
0070 | 20 00 00 00                                     | kind 32: prefixes of 32-bit addresses
0074 | 01 00 00 00                                     | flags 1: equal values are stored once
0078 | 67 65 6f                                        | name "geo"
007b | 00 00 00 00 00                                  | padding
)";

const char* const golden_current = R"(
0000 | 4d 41 4e 49 46 45 53 54 2d 30 30 30 30 30 31 0a | "MANIFEST-000001\n"
0010 | 64 65 62 36 34 64 62 36 63 39 64 61 65 39 30 33 | checksum of that line in hex
0020 | 0a                                              | "\n"
)";

TEST_CASE("FormatPageTest.ShowsTheSameDumps", "[FormatPageTest]") {
  std::string pages;
  for (const char* name : {"/docs/format.md", "/docs/format-segment.md", "/docs/format-filter.md"}) {
    std::ifstream file(std::string(STRIDE_SOURCE_DIR) + name);
    pages.append(std::istreambuf_iterator<char>(file), {});
  }
  for (const char* dump : {golden_segment, golden_shared_segment, golden_filtered_segment,
                           golden_manifest, golden_shared_manifest, golden_current}) {
    CHECK_MESSAGE(pages.find(dump) != std::string::npos, dump);
  }
}

void put_file(FileSystem& fs, const std::string& path, const std::string& bytes) {
  auto file = fs.open(path, OpenMode::create);
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->write_at(0, as_bytes(bytes)));
}

std::vector<test::Row> golden_rows() {
  return {{"ant", "", EntryKind::tombstone}, {"bee", "honey"}, {"cow", "milk"}};
}

VersionEdit golden_creation() {
  VersionEdit edit;
  edit.created.push_back({1, "ticks", 8, 0});
  edit.added.push_back({2, 1, 3, 100, 5, 8192});
  edit.next_id = 4;
  return edit;
}

VersionEdit golden_removal() {
  VersionEdit edit;
  edit.removed = {2};
  edit.dropped = {1};
  return edit;
}

class GoldenTest {
 protected:
  GoldenTest() { REQUIRE_OK(fs_.create_directory("db")); }
  MemoryFileSystem fs_;
};

TEST_CASE_METHOD(GoldenTest, "GoldenTest.SegmentIsWrittenSo", "[GoldenTest]") {
  auto segment = test::write_segment(fs_, "db/000007.seg", 7, golden_rows(),
                                     {.fixed_keys = true, .tree = "(a tree)"});
  REQUIRE_OK(segment);
  expect_dump(*read_file(fs_, "db/000007.seg"), golden_segment);
}

TEST_CASE_METHOD(GoldenTest, "GoldenTest.SegmentIsReadSo", "[GoldenTest]") {
  put_file(fs_, "db/000007.seg", parse_dump(golden_segment));
  auto segment = Segment::open(fs_, "db/000007.seg", 7);
  REQUIRE_OK(segment);
  CHECK_OK((*segment)->verify());
  std::vector<test::Row> rows;
  REQUIRE_OK(test::read_rows(**segment, &rows));
  CHECK(rows == golden_rows());
  CHECK((*segment)->tombstones() == 1u);
  CHECK(as_text((*segment)->tree()) == "(a tree)");
  CHECK(as_text((*segment)->first_key()) == "ant");
  CHECK(as_text((*segment)->last_key()) == "cow");
}

std::vector<test::Row> golden_shared_rows() {
  return {{"ant", "honey"}, {"bee", "milk"}, {"cow", "honey"}, {"dog", "honey"}};
}

TEST_CASE_METHOD(GoldenTest, "GoldenTest.SharedValuesAreWrittenSo", "[GoldenTest]") {
  auto segment = test::write_segment(fs_, "db/000007.seg", 7, golden_shared_rows(),
                                     {.fixed_keys = true, .share_values = true});
  REQUIRE_OK(segment);
  expect_dump(*read_file(fs_, "db/000007.seg"), golden_shared_segment);
}

TEST_CASE_METHOD(GoldenTest, "GoldenTest.SharedValuesAreReadSo", "[GoldenTest]") {
  put_file(fs_, "db/000007.seg", parse_dump(golden_shared_segment));
  auto segment = Segment::open(fs_, "db/000007.seg", 7);
  REQUIRE_OK(segment);
  CHECK_OK((*segment)->verify());
  std::vector<test::Row> rows;
  REQUIRE_OK(test::read_rows(**segment, &rows));
  CHECK(rows == golden_shared_rows());
  CHECK((*segment)->values().column.size == 2u);
  CHECK((*segment)->saved_bytes() == 10u);
}

std::vector<test::Row> golden_filtered_rows() { return {{"ant", "1"}, {"bee", "2"}, {"cow", "3"}}; }

TEST_CASE_METHOD(GoldenTest, "GoldenTest.FiltersAreWrittenSo", "[GoldenTest]") {
  auto segment =
      test::write_segment(fs_, "db/000007.seg", 7, golden_filtered_rows(),
                          {.fixed_keys = true, .fixed_values = true, .key_filter = true});
  REQUIRE_OK(segment);
  expect_dump(*read_file(fs_, "db/000007.seg"), golden_filtered_segment);
}

TEST_CASE_METHOD(GoldenTest, "GoldenTest.FiltersAreReadSo", "[GoldenTest]") {
  put_file(fs_, "db/000007.seg", parse_dump(golden_filtered_segment));
  auto segment = Segment::open(fs_, "db/000007.seg", 7);
  REQUIRE_OK(segment);
  CHECK_OK((*segment)->verify());
  std::vector<test::Row> rows;
  REQUIRE_OK(test::read_rows(**segment, &rows));
  CHECK(rows == golden_filtered_rows());
  const KeyFilter filter((*segment)->section(SectionType::key_filter));
  for (const test::Row& row : rows) CHECK(filter.may_contain(hash_key(as_bytes(row.key))));
  CHECK_FALSE(filter.may_contain(hash_key(as_bytes("dog"))));
}

class GoldenSegmentTest : public GoldenTest {
 protected:
  const char* const dump_ =
      GENERATE(golden_segment, golden_shared_segment, golden_filtered_segment);
  test::RunsWith name_{dump_ == golden_segment          ? "plain"
                       : dump_ == golden_shared_segment ? "shared"
                                                        : "filtered"};
};

TEST_CASE_METHOD(GoldenSegmentTest, "GoldenSegmentTest.EveryByteMatters", "[GoldenSegmentTest]") {
  const std::string golden = parse_dump(dump_);
  put_file(fs_, "db/000007.seg", golden);
  auto file = fs_.open("db/000007.seg", OpenMode::write);
  for (size_t i = 0; i < golden.size(); ++i) {
    char flipped = static_cast<char>(golden[i] ^ 1 << i % 8);
    REQUIRE_OK((*file)->write_at(i, as_bytes({&flipped, 1})));
    auto segment = Segment::open(fs_, "db/000007.seg", 7);
    CHECK_MESSAGE(!(segment.ok() && (*segment)->verify().ok()), "at offset " << i);
    REQUIRE_OK((*file)->write_at(i, as_bytes({&golden[i], 1})));
  }
}

TEST_CASE_METHOD(GoldenTest, "GoldenTest.ATableThatSharesValuesIsWrittenAndReadSo",
                 "[GoldenTest]") {
  auto made = Manifest::create(fs_, "db");
  REQUIRE_OK(made);
  VersionEdit edit;
  edit.created.push_back({1, "geo", 5, 32, true});
  edit.next_id = 2;
  REQUIRE_OK(made->manifest->append(edit, true));
  expect_dump(*read_file(fs_, "db/MANIFEST-000001"), golden_shared_manifest);
  made->manifest.reset();
  auto recovered = Manifest::recover(fs_, "db", true);
  REQUIRE_OK(recovered);
  REQUIRE(recovered->state.tables.size() == 1u);
  CHECK(recovered->state.tables[0].name == "geo");
  CHECK(recovered->state.tables[0].key_width == 5u);
  CHECK(recovered->state.tables[0].address_bits == 32u);
  CHECK(recovered->state.tables[0].share_equal_values);
}

TEST_CASE_METHOD(GoldenTest, "GoldenTest.ManifestAndCurrentAreWrittenSo", "[GoldenTest]") {
  auto made = Manifest::create(fs_, "db");
  REQUIRE_OK(made);
  REQUIRE_OK(made->manifest->append(golden_creation(), true));
  REQUIRE_OK(made->manifest->append(golden_removal(), true));
  expect_dump(*read_file(fs_, "db/MANIFEST-000001"), golden_manifest);
  expect_dump(*read_file(fs_, "db/CURRENT"), golden_current);
}

TEST_CASE_METHOD(GoldenTest, "GoldenTest.ManifestIsReadSo", "[GoldenTest]") {
  const std::string golden = parse_dump(golden_manifest);
  // Without its last record: then there is something to read.
  put_file(fs_, "db/MANIFEST-000001", golden.substr(0, 0xb8));
  put_file(fs_, "db/CURRENT", parse_dump(golden_current));
  auto recovered = Manifest::recover(fs_, "db", false);
  REQUIRE_OK(recovered);
  const ManifestState& state = recovered->state;
  REQUIRE(state.tables.size() == 1u);
  CHECK(state.tables[0].name == "ticks");
  CHECK(state.tables[0].key_width == 8u);
  REQUIRE(state.segments.size() == 1u);
  CHECK(state.segments[0].segment == 2u);
  CHECK(state.segments[0].run == 3u);
  CHECK(state.segments[0].rows == 100u);
  CHECK(state.segments[0].tombstones == 5u);
  CHECK(state.segments[0].bytes == 8192u);
  CHECK(state.next_id == 4u);
}

// The last record may also be a torn tail; each byte before it, of the header and of CURRENT must
// be as it is.
TEST_CASE_METHOD(GoldenTest, "GoldenTest.EveryByteOfAManifestMatters", "[GoldenTest]") {
  const std::string golden = parse_dump(golden_manifest), current = parse_dump(golden_current);
  for (size_t i = 0; i < golden.size() + current.size(); ++i) {
    std::string manifest = golden, line = current;
    char& byte = i < golden.size() ? manifest[i] : line[i - golden.size()];
    byte = static_cast<char>(byte ^ 1 << i % 8);
    MemoryFileSystem fs;
    REQUIRE_OK(fs.create_directory("db"));
    put_file(fs, "db/MANIFEST-000001", manifest);
    put_file(fs, "db/CURRENT", line);
    auto recovered = Manifest::recover(fs, "db", true);
    if (i >= 0xb8 && i < golden.size()) {
      REQUIRE_OK(recovered);
      CHECK_MESSAGE(recovered->state.tables.size() == 1u, "at offset " << i);
    } else {
      CHECK_MESSAGE(!recovered.ok(), "at offset " << i);
    }
  }
}

}  // namespace
}  // namespace stride
