// Copies of segments: byte for byte, and under another id.
#include "storage/file_copy.h"

#include <random>
#include <string>
#include <vector>

#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"
#include "tests/support/segments.h"

namespace stride::test {
namespace {

std::string content(FileSystem& fs, const std::string& path) {
  auto file = fs.open(path, OpenMode::read);
  REQUIRE_OK(file);
  std::string bytes(*(*file)->size(), '\0');
  REQUIRE_OK((*file)->read_at(0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

Status copy_as(uint64_t id, FileSystem& fs, const std::string& from, uint64_t from_id,
               const std::string& to) {
  auto source = FileSource::open(fs, from);
  if (!source.ok()) return source.status();
  auto sums = read_segment_sums(*source, from_id);
  if (!sums.ok()) return sums.status();
  return id == from_id ? copy_segment(*source, *sums, fs, to)
                       : copy_segment_as(id, *source, *sums, fs, to);
}

std::vector<Row> random_rows(std::mt19937_64& random, uint64_t rows, uint64_t value_bytes) {
  std::vector<Row> made;
  for (uint64_t i = 0; i < rows; ++i)
    made.push_back({"k" + std::to_string(10'000'000 + i),
                    std::string(random() % value_bytes, static_cast<char>(random()))});
  return made;
}

// Files of less than a block, of some blocks, and of several pieces of a copy, with tables that lie
// in one piece and in two.
TEST_CASE("FileCopyTest.SegmentsGetAnotherId", "[FileCopyTest]") {
  std::mt19937_64 random(seed());
  for (uint64_t rows : {1, 100, 3000, 20'000, 50'000}) {
    for (int form = 0; form < 4; ++form) {
      MemoryFileSystem fs;
      SegmentOptions options;
      options.share_values = form == 1 && rows < 10'000;
      options.key_filter = form == 2;
      options.key_sample = form == 3 ? "a sample" : "";
      const std::vector<Row> written = random_rows(random, rows, form == 1 ? 3 : 200);
      REQUIRE_OK(write_segment(fs, "/from", 7, written, options));
      REQUIRE_OK(copy_as(70'001, fs, "/from", 7, "/to"));
      auto copy = Segment::open(fs, "/to", 70'001);
      REQUIRE_OK(copy);
      REQUIRE_OK((*copy)->verify());
      std::vector<Row> read;
      REQUIRE_OK(read_rows(**copy, &read));
      REQUIRE(read == written);
      REQUIRE(Segment::open(fs, "/to", 7).status().code() == StatusCode::corruption);
      // With its old id it is what it was.
      REQUIRE_OK(copy_as(7, fs, "/to", 70'001, "/back"));
      REQUIRE(content(fs, "/back") == content(fs, "/from"));
      REQUIRE_OK(copy_as(7, fs, "/from", 7, "/same"));
      REQUIRE(content(fs, "/same") == content(fs, "/from"));
    }
  }
}

TEST_CASE("FileCopyTest.ADamagedSegmentGetsNoOtherId", "[FileCopyTest]") {
  std::mt19937_64 random(seed());
  MemoryFileSystem fs;
  REQUIRE_OK(write_segment(fs, "/from", 7, random_rows(random, 5000, 100)));
  const std::string whole = content(fs, "/from");
  for (int round = 0; round < 200; ++round) {
    std::string bytes = whole;
    const uint64_t at = round < 20   ? static_cast<uint64_t>(round)
                        : round < 40 ? bytes.size() - 1 - static_cast<uint64_t>(round)
                                     : random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    auto file = fs.open("/from", OpenMode::write);
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->write_at(0, std::as_bytes(std::span(bytes))));
    const Status s = copy_as(9, fs, "/from", 7, "/to");
    REQUIRE_MESSAGE(s.code() == StatusCode::corruption, "byte " << at << ": " << s.to_string());
    REQUIRE(s.file() == "/from");
    REQUIRE_FALSE(*fs.exists("/to"));
  }
}

TEST_CASE("FileCopyTest.WhatIsThereStays", "[FileCopyTest]") {
  MemoryFileSystem fs;
  REQUIRE_OK(write_segment(fs, "/from", 7, {{"a", "1"}}));
  REQUIRE_OK(write_segment(fs, "/there", 8, {{"b", "2"}}));
  const std::string there = content(fs, "/there");
  CHECK(copy_as(9, fs, "/from", 7, "/there").code() == StatusCode::already_exists);
  CHECK(content(fs, "/there") == there);
  CHECK(copy_as(9, fs, "/from", 8, "/to").code() == StatusCode::corruption);
}

}  // namespace
}  // namespace stride::test
