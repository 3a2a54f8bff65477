// Databases whose checksums are right and whose content is not. verify() calls each of them
// damaged, compact() writes nothing of it anew, and all reads end well.
#include <functional>

#include "gpu/tree/tree_layout.h"
#include "tests/support/catch.h"
#include "tests/support/forged_database.h"
#include "tests/support/forged_edits.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

class ForgedFilesTest {
 protected:
  static const ForgedDatabase& database() {
    static const ForgedDatabase made(150);
    return made;
  }
  static Files forged(const std::string& name, const std::function<void(std::string*)>& change) {
    Files files = database().files();
    std::string before = files.at(name);
    change(&files.at(name));
    CHECK_MESSAGE(files.at(name) != before, "nothing was forged");
    seal(name, &files.at(name));
    return files;
  }
  // verify() and compact() say so, of this file.
  static void expect_found(const Files& files, const std::string& name, const std::string& why) {
    auto fs = file_system_of(files);
    Asked asked(*fs, database().rows(), /*change=*/true);
    asked.expect_sound();
    REQUIRE_OK(asked.opened);
    for (const Status& status : {asked.verified, asked.compacted, asked.verified_again}) {
      CHECK_MESSAGE(to_string(status.code()) == "corruption", status.to_string());
      CHECK_MESSAGE(status.file() == "db/" + name, status.to_string());
      CHECK(status.offset().has_value());
      CHECK_MESSAGE(status.message().find(why) != std::string::npos, status.to_string());
    }
    CHECK_MESSAGE(files_of(*fs).at(name) == files.at(name), "compact() took the damaged file away");
  }
  // The record of a segment, in the manifest: its field's body.
  static uint64_t record_of(const std::string& manifest, const std::string& segment) {
    uint64_t id = std::stoull(segment);
    for (uint64_t at = sizeof(ManifestHeader); at + 56 <= manifest.size(); ++at)
      if (get<uint32_t>(manifest, at) == static_cast<uint32_t>(EditTag::added_segment) &&
          get<uint32_t>(manifest, at + 4) == sizeof(AddedSegment) &&
          get<uint64_t>(manifest, at + 8) == id)
        return at + 8;
    FAIL_CHECK("no record of segment " << id);
    return 0;
  }
  static uint64_t table_of(const std::string& manifest, const std::string& name, EditTag tag) {
    uint64_t bytes =
        tag == EditTag::created_table ? sizeof(CreatedTable) : sizeof(CreatedTableWithFlags);
    return manifest.find(name) - bytes;
  }
};

TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.AnUntouchedDatabaseIsSound",
                 "[ForgedFilesTest]") {
  auto fs = file_system_of(database().files());
  Asked asked(*fs, database().rows(), /*change=*/true);
  CHECK_OK(asked.first_failure());
  asked.expect_sound();
}

// Small segments have none of their own: with them the fuzzer reaches what reads them.
TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.SmallSegmentsWithChecksumsOfPages",
                 "[ForgedFilesTest]") {
  Files files = database().files();
  for (auto& [name, bytes] : files)
    if (name.ends_with(".seg")) add_page_checksums(&bytes);
  Asked asked(*file_system_of(files), database().rows(), /*change=*/true);
  asked.expect_sound();
  for (const Status& status : {asked.opened, asked.verified, asked.compacted, asked.verified_again})
    CHECK_OK(status);
  const std::string name = database().segment("fixed", 1);
  std::string& bytes = files.at(name);
  const SectionEntry sums = section_of(bytes, SectionType::page_checksums);
  put(&bytes, sums.offset + 4, get<uint32_t>(bytes, sums.offset + 4) + 1);
  seal(name, &bytes);
  // The rows are whole, and compact() writes them anew.
  Asked damaged(*file_system_of(files), database().rows(), /*change=*/false);
  damaged.expect_sound();
  CHECK_OK(damaged.opened);
  CHECK(damaged.verified.file() == "db/" + name);
  CHECK(damaged.verified.message().find("another checksum for the page at 4096") !=
        std::string::npos);
}

TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.KeysThatDescendOrRepeat", "[ForgedFilesTest]") {
  for (const char* table : {"bytes", "fixed", "names", "routes", "shared", "sums"}) {
    for (size_t run : {0, 1, 2}) {
      const std::string name = database().segment(table, run);
      for (bool repeat : {false, true}) {
        Files files = forged(name, [&](std::string* bytes) {
          uint64_t at = section_of(*bytes, SectionType::key_data).offset;
          uint32_t width = get<SegmentHeader>(*bytes, 0).key_width;
          uint64_t rows = get<SegmentHeader>(*bytes, 0).rows;
          if (!width) {
            // The first byte of a key becomes the smallest.
            uint64_t deltas = section_of(*bytes, SectionType::key_deltas).offset;
            return put(bytes, at + get<uint16_t>(*bytes, deltas + 2 * (rows / 4)), '\0');
          }
          uint64_t row = at + rows / 2 * width;
          if (repeat) {
            std::memcpy(bytes->data() + row, bytes->data() + row - width, width);
          } else {
            std::memset(bytes->data() + row, 0, width);
          }
        });
        INFO(std::string(table) + " run " + std::to_string(run));
        expect_found(files, name, "section key_data");
      }
    }
  }
}

TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.FirstAndLastKeysThatAreOthers",
                 "[ForgedFilesTest]") {
  const std::string name = database().segment("fixed", 1);
  expect_found(forged(name,
                      [](std::string* bytes) {
                        uint64_t at = section_of(*bytes, SectionType::statistics).offset;
                        (*bytes)[at + 8 + 15] = '\x7F';
                      }),
               name, "section statistics names other");
}

TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.UnknownEntryKinds", "[ForgedFilesTest]") {
  const std::string name = database().segment("bytes", 2);
  for (int kind : {2, 200})
    expect_found(forged(name,
                        [&](std::string* bytes) {
                          put(bytes, section_of(*bytes, SectionType::kinds).offset + 5,
                              uint8_t(kind));
                        }),
                 name, "section kinds has the unknown entry kind");
}

TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.OffsetsThatDescend", "[ForgedFilesTest]") {
  for (SectionType deltas : {SectionType::key_deltas, SectionType::value_deltas}) {
    const std::string name = database().segment("bytes", 1);
    expect_found(forged(name,
                        [&](std::string* bytes) {
                          put(bytes, section_of(*bytes, deltas).offset + 20, uint16_t{0});
                        }),
                 name, "section " + std::string(to_string(deltas)));
  }
}

TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.NumbersOfValuesThatAreNone",
                 "[ForgedFilesTest]") {
  const std::string name = database().segment("shared", 0);
  expect_found(forged(name,
                      [&](std::string* bytes) {
                        put(bytes, section_of(*bytes, SectionType::value_numbers).offset + 7,
                            uint8_t{200});
                      }),
               name, "section value_numbers gives row 7 value 200");
}

TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.PrefixesThatAreNone", "[ForgedFilesTest]") {
  const std::string name = database().segment("routes", 1);
  for (bool length : {true, false}) {
    expect_found(forged(name,
                        [&](std::string* bytes) {
                          uint64_t at = section_of(*bytes, SectionType::key_data).offset + 9 * 5;
                          (*bytes)[at + (length ? 4 : 3)] = length ? '\x21' : '\1';
                        }),
                 name, "section key_data has a key that is no prefix, of row 9");
  }
}

TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.NumbersOfAnotherWidth", "[ForgedFilesTest]") {
  // Among erased rows the values of a table of numbers have no common width.
  const std::string name = database().segment("sums", 2);
  expect_found(forged(name,
                      [&](std::string* bytes) {
                        uint64_t at = section_of(*bytes, SectionType::value_deltas).offset;
                        uint64_t row = 1;
                        while (get<uint16_t>(*bytes, at + row * 2) == 0) ++row;
                        put(bytes, at + row * 2, uint16_t(get<uint16_t>(*bytes, at + row * 2) - 1));
                      }),
               name, "section value_data has a value that is no number");
}

// A tree that is sound in itself, but not of these keys.
TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.ATreeOfOtherKeys", "[ForgedFilesTest]") {
  const std::string name = database().segment("bytes", 0);
  Files files = forged(name, [&](std::string* bytes) {
    uint64_t at = section_of(*bytes, SectionType::tree).offset + offsetof(TreeHeader, prefix_bits);
    put(bytes, at, get<uint32_t>(*bytes, at) + 1);
  });
  auto fs = file_system_of(files);
  Asked asked(*fs, database().rows(), /*change=*/true);
  asked.expect_sound();
  CHECK_MESSAGE(asked.verified.file() == "db/" + name, asked.verified.to_string());
  CHECK(asked.verified.message().find("section tree does not lead") != std::string::npos);
}

TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.SegmentsOfARunThatOverlap",
                 "[ForgedFilesTest]") {
  Files files = forged(database().manifest(), [&](std::string* bytes) {
    uint64_t first = record_of(*bytes, database().segment("fixed", 0));
    uint64_t second = record_of(*bytes, database().segment("fixed", 1));
    put(bytes, first + offsetof(AddedSegment, run), get<AddedSegment>(*bytes, second).run);
  });
  auto fs = file_system_of(files);
  Asked asked(*fs, database().rows(), /*change=*/true);
  asked.expect_sound();
  CHECK(to_string(asked.verified.code()) == "corruption");
  CHECK_MESSAGE(asked.verified.message().find("same run") != std::string::npos,
                asked.verified.to_string());
}

TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.RecordsThatAreNotTheSegments",
                 "[ForgedFilesTest]") {
  const std::string name = database().segment("bytes", 1);
  for (uint64_t field : {offsetof(AddedSegment, rows), offsetof(AddedSegment, tombstones),
                         offsetof(AddedSegment, bytes)}) {
    Files files = forged(database().manifest(), [&](std::string* bytes) {
      uint64_t at = record_of(*bytes, name) + field;
      put(bytes, at, get<uint64_t>(*bytes, at) - 1);
    });
    expect_found(files, name, "than the manifest says");
  }
}

TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.WidthsThatAreNotTheTables",
                 "[ForgedFilesTest]") {
  auto with = [&](const std::string& table, EditTag tag, uint64_t field, uint32_t value) {
    return forged(database().manifest(), [&](std::string* bytes) {
      put(bytes, table_of(*bytes, table, tag) + field, value);
    });
  };
  constexpr uint64_t width = offsetof(CreatedTable, key_width);
  constexpr uint64_t flags = offsetof(CreatedTableWithFlags, flags);
  expect_found(with("fixed", EditTag::created_table, width, 4), database().segment("fixed", 2),
               "keys of another width");
  expect_found(with("bytes", EditTag::created_table, width, 8), database().segment("bytes", 2),
               "keys of another width");
  auto narrow = file_system_of(with("sums", EditTag::created_table_with_flags, flags, 1 << 8));
  Asked sums(*narrow, database().rows(), /*change=*/true);
  sums.expect_sound();
  // In some runs the values have one width, in others only those that are there.
  CHECK(sums.verified.file() == "db/" + database().segment("sums", 2));
  CHECK(sums.compacted.file() == "db/" + database().segment("sums", 0));
  CHECK_MESSAGE(sums.verified.code() == StatusCode::corruption, sums.verified.to_string());
  CHECK_MESSAGE(sums.compacted.code() == StatusCode::corruption, sums.compacted.to_string());
  for (uint32_t wide : {uint32_t{65'536}, ~uint32_t{0}}) {
    auto fs = file_system_of(with("fixed", EditTag::created_table, width, wide));
    Asked asked(*fs, database().rows(), true);
    CHECK_MESSAGE(asked.opened.code() == StatusCode::corruption, asked.opened.to_string());
    CHECK(asked.opened.file() == "db/" + database().manifest());
  }
}

// Costs that are absurd change no answer.
TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.CostsThatAreNone", "[ForgedFilesTest]") {
  for (std::string costs : {std::string(3 << 20, '1'), std::string("host\thost 1 nan 1 1 1 1 1\n"),
                            std::string("\t\t\t\n\n\0x", 7), std::string()}) {
    Files files = database().files();
    files["COSTS"] = costs;
    auto fs = file_system_of(files);
    Asked asked(*fs, database().rows(), true);
    CHECK_OK(asked.first_failure());
  }
}

// Only large segments have a sample of their keys.
TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.SamplesOfKeysThatAreNone", "[ForgedFilesTest]") {
  MemoryFileSystem fs({.crashable = false});
  {
    auto db = Database::open(forged_path, forged_options(fs));
    REQUIRE_OK(db);
    auto table = (*db)->create_table("large", {.key_width = 4});
    std::string keys;
    for (uint32_t i = 0; i < 70'000; ++i) keys += number_key(i * 1000, 4);
    WriteTransaction t = (*db)->begin();
    REQUIRE_OK(t.put(*table, Column::fixed(keys.data(), 4, 70'000),
                     Column::fixed(keys.data(), 0, 70'000)));
    REQUIRE_OK(t.commit());
  }
  const Files good = files_of(fs);
  std::string name;
  for (const auto& [file, bytes] : good)
    if (file.ends_with(".seg")) name = file;
  REQUIRE(name != "");
  const SectionEntry sample = section_of(good.at(name), SectionType::key_sample);
  REQUIRE(sample.bytes > 0u);
  std::mt19937_64 random(seed());
  for (int i = 0; i < 300; ++i) {
    Files files = good;
    std::string& bytes = files.at(name);
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      // The first of them say how many of each thing follow.
      uint64_t at = sample.offset + (i % 2 ? random() % 40 : random() % sample.bytes);
      bytes[at] = static_cast<char>(random() % 3 ? random() : random() % 2 ? 255 : 0);
    }
    seal(name, &bytes);
    auto forged = file_system_of(files);
    auto db = Database::open(forged_path, forged_options(*forged));
    REQUIRE_OK(db);
    auto reports = (*db)->segments(*(*db)->open_table("large"));
    if (reports.ok()) continue;
    CHECK_MESSAGE(to_string(reports.status().code()) == "corruption", reports.status().to_string());
    CHECK(reports.status().file() == "db/" + name);
    CHECK((*db)->verify().code() == StatusCode::corruption);
  }
}

// Whatever else the bytes are. forged_soak_test.cc goes on for longer.
TEST_CASE_METHOD(ForgedFilesTest, "ForgedFilesTest.RandomEditsOfRandomFiles", "[ForgedFilesTest]") {
  std::mt19937_64 random(seed());
  forge_at_random(database(), random, 3);
}

}  // namespace
}  // namespace stride::test
