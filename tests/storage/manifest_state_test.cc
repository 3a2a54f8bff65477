// What edits make of the state that a manifest keeps, and what they may say of tables.
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "storage/checksum.h"
#include "storage/manifest_format.h"
#include "storage/manifest_replay.h"
#include "storage/prefix_key.h"
#include "tests/storage/manifest_fixture.h"

namespace stride {
namespace {

using test::describe;
using test::whole;

TEST_CASE_METHOD(ManifestTest, "ManifestTest.StateRefusesWhatDoesNotFit", "[ManifestTest]") {
  ManifestState state;
  REQUIRE_OK(state.apply(table_edit(1, "a")));
  auto refused = [&](auto change) {
    VersionEdit edit;
    change(edit);
    std::string before = describe(state);
    StatusCode result = state.apply(edit).code();
    CHECK(describe(state) == before);
    return result;
  };
  CHECK(refused([](auto& e) { e.dropped = {2}; }) == StatusCode::corruption);
  CHECK(refused([](auto& e) { e.removed = {9}; }) == StatusCode::corruption);
  CHECK(refused([](auto& e) { e.created = {{1, "b", 0, 0}}; }) == StatusCode::corruption);
  CHECK(refused([](auto& e) { e.created = {{2, "a", 0, 0}}; }) == StatusCode::corruption);
  CHECK(refused([](auto& e) {
          e.created = {{2, "b", 0, 65536}};
        }) == StatusCode::unsupported_version);
  CHECK(refused([](auto& e) { e.created = {{2, "b", 4, 32}}; }) == StatusCode::corruption);
  CHECK(refused([](auto& e) {
          e.created = {{2, "b", 5, byte_strings}};
        }) == StatusCode::corruption);
  CHECK(refused([](auto& e) { e.added = {{5, 2, 6, 1, 0, 1}}; }) == StatusCode::corruption);
  CHECK(refused([](auto& e) { e.added = {{5, 1, 6, 1, 2, 1}}; }) == StatusCode::corruption);
  CHECK(refused([](auto& e) {
          e.added = {{5, 1, 6, 1, 0, 1}, {5, 1, 6, 1, 0, 1}};
        }) == StatusCode::corruption);
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.KeepsTheAddressBitsOfTables", "[ManifestTest]") {
  VersionEdit edit;
  edit.created = {{1, "routes", 5, 32}, {2, "wide", 8194, 65535}, {3, "paths", 0, byte_strings}};
  REQUIRE_OK(create(fs_)->append(edit, /*sync=*/true));
  auto r = Manifest::recover(fs_, "db", /*read_only=*/true);
  REQUIRE_OK(r);
  const ManifestState state = whole(*r);
  REQUIRE(state.tables.size() == 3u);
  for (size_t i = 0; i < 3; ++i)
    CHECK(state.tables[i].address_bits == edit.created[i].address_bits);
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.KeepsWhetherTablesShareValues", "[ManifestTest]") {
  VersionEdit edit;
  edit.created = {
      {1, "plain", 5, 32}, {2, "shared", 5, 32, true}, {3, std::string(255, 's'), 0, 0, true}};
  REQUIRE_OK(create(fs_)->append(edit, /*sync=*/true));
  auto r = Manifest::recover(fs_, "db", /*read_only=*/true);
  REQUIRE_OK(r);
  const ManifestState state = whole(*r);
  REQUIRE(state.tables.size() == 3u);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(state.tables[i].name == edit.created[i].name);
    CHECK(state.tables[i].key_width == edit.created[i].key_width);
    CHECK(state.tables[i].address_bits == edit.created[i].address_bits);
    CHECK(state.tables[i].share_equal_values == edit.created[i].share_equal_values);
  }
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.KeepsWhichTablesHaveNumbers", "[ManifestTest]") {
  VersionEdit edit;
  for (uint32_t i = 0; i < 20; ++i) {
    TableRecord table{i + 1, "t" + std::to_string(i), i, 0, i % 2 == 1};
    table.numbers = static_cast<NumberType>(i / 2 % 5);
    table.sums_wrap = i >= 10 && is_integer(table.numbers);
    edit.created.push_back(table);
  }
  REQUIRE_OK(create(fs_)->append(edit, /*sync=*/true));
  auto r = Manifest::recover(fs_, "db", /*read_only=*/true);
  REQUIRE_OK(r);
  const ManifestState state = whole(*r);
  REQUIRE(state.tables.size() == edit.created.size());
  for (size_t i = 0; i < state.tables.size(); ++i) {
    CHECK(state.tables[i].share_equal_values == edit.created[i].share_equal_values);
    CHECK(state.tables[i].numbers == edit.created[i].numbers);
    CHECK(state.tables[i].sums_wrap == edit.created[i].sums_wrap);
  }
}

// As docs/format.md says.
TEST_CASE_METHOD(ManifestTest, "ManifestTest.FlagsOfTablesOfNumbers", "[ManifestTest]") {
  auto flags_of = [](bool share, NumberType numbers, bool wrap) {
    VersionEdit edit;
    edit.created = {{1, "t", 0, 0, share, numbers, wrap}};
    auto record = encode_record(edit, 0);
    CHECK_OK(record);
    uint32_t tag = 0, flags = 0;
    std::memcpy(&tag, record->data() + 24, sizeof tag);
    std::memcpy(&flags, record->data() + 24 + 8 + 12, sizeof flags);
    CHECK(tag == 6u);
    return flags;
  };
  CHECK(flags_of(false, NumberType::i32, false) == 0x100u);
  CHECK(flags_of(false, NumberType::i64, true) == 0x202u);
  CHECK(flags_of(true, NumberType::f32, false) == 0x301u);
  CHECK(flags_of(true, NumberType::f64, false) == 0x401u);
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.RefusesFlagsOfTablesThatItDoesNotKnow",
                 "[ManifestTest]") {
  VersionEdit edit;
  edit.created = {{1, "shared", 0, 0, true}};
  auto record = encode_record(edit, 0);
  REQUIRE_OK(record);
  std::optional<ManifestRecord> found;
  // Flags of their own, types that are no values, and sums that wrap of what are no integers.
  for (uint32_t flags : {4u, 0x80u, 0x500u, 0x10000u, 0x80000200u, 2u, 3u, 0x302u, 0x402u}) {
    // Behind the record's header, the field's, and id, width and kind of the table.
    std::memcpy(record->data() + 24 + 8 + 12, &flags, sizeof flags);
    ManifestRecordHeader header{};
    std::memcpy(&header, record->data(), sizeof header);
    header.checksum = checksum(Bytes(*record).subspan(8));
    std::memcpy(record->data(), &header, sizeof header);
    found = find_record(*record);
    REQUIRE(found);
    Status status = decode_edit(*found, "MANIFEST-000001", 32).status();
    CHECK_MESSAGE(status.code() == StatusCode::unsupported_version, flags << status.to_string());
    CHECK(status.remedy().find("newer StrideDB") != std::string::npos);
  }
  for (size_t bytes = 0; bytes <= 16; ++bytes) {  // no room for a name
    ManifestRecord cut = *found;
    EditField field{static_cast<uint32_t>(EditTag::created_table_with_flags),
                    static_cast<uint32_t>(bytes)};
    std::vector<std::byte> payload(sizeof field + bytes);
    std::memcpy(payload.data(), &field, sizeof field);
    cut.payload = payload;
    CHECK(decode_edit(cut, "MANIFEST-000001", 32).status().code() == StatusCode::corruption);
  }
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.KeepsWhichRowsAreErased", "[ManifestTest]") {
  auto manifest = create(fs_);
  VersionEdit edit = table_edit(1, "a");
  edit.added = {{10, 1, 11, 100, 0, 8192}, {12, 1, 11, 50, 0, 8192}, {13, 1, 14, 7, 0, 8192}};
  edit.erased = {{12, 1, {0, 50}}};
  REQUIRE_OK(manifest->append(edit, /*sync=*/true));
  VersionEdit more;
  more.erased = {{10, 1, {20, 30}}, {10, 1, {40, 50}}};
  REQUIRE_OK(manifest->append(more, /*sync=*/true));
  // What was erased before is no part of an edit, and may be erased again.
  more.erased = {{10, 1, {25, 40}}, {13, 1, {3, 4}}};
  REQUIRE_OK(manifest->append(more, /*sync=*/true));
  more = {};
  more.removed = {13};
  REQUIRE_OK(manifest->append(more, /*sync=*/true));
  auto r = Manifest::recover(fs_, "db", /*read_only=*/true);
  REQUIRE_OK(r);
  const ManifestState state = whole(*r);
  REQUIRE(state.segments.size() == 2u);
  CHECK(state.segments[0].erased.list() == std::vector<RowInterval>{{20, 50}});
  CHECK(state.segments[1].erased.list() == std::vector<RowInterval>{{0, 50}});
  // An edit that adds such segments says so.
  VersionEdit snapshot;
  snapshot.created = state.tables;
  snapshot.added = state.segments;
  auto record = encode_record(snapshot, 0);
  REQUIRE_OK(record.status());
  auto found = find_record(*record);
  REQUIRE(found);
  auto decoded = decode_edit(*found, "", 0);
  REQUIRE_OK(decoded.status());
  ManifestState again;
  REQUIRE_OK(again.apply(*decoded));
  CHECK(again.segments[0].erased == state.segments[0].erased);
  CHECK(again.segments[1].erased == state.segments[1].erased);
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.SegmentsStayInTheOrderOfTheirRuns", "[ManifestTest]") {
  ManifestState state;
  REQUIRE_OK(state.apply(table_edit(1, "a")));
  VersionEdit edit;
  edit.added = {{10, 1, 9, 1, 0, 1}, {11, 1, 3, 1, 0, 1}, {12, 1, 9, 1, 0, 1}};
  REQUIRE_OK(state.apply(edit));
  REQUIRE(state.segments.size() == 3u);
  CHECK(state.segments[0].segment == 11u);
  CHECK(state.segments[1].segment == 10u);
  CHECK(state.segments[2].segment == 12u);
  CHECK(state.next_id == 13u);
  VersionEdit drop;
  drop.dropped = {1};
  drop.created = {{20, "a", 4, 0}};
  REQUIRE_OK(state.apply(drop));
  CHECK(describe(state) == "next 21; table 20 a 4");
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.TablesGetOtherNames", "[ManifestTest]") {
  ManifestReplay replay;
  VersionEdit edit = table_edit(1, "a");
  edit.created.push_back({2, "b", 0, 0});
  edit.added = {{10, 1, 9, 1, 0, 1}};
  REQUIRE_OK(replay.apply(edit));
  REQUIRE_OK(replay.apply({.renamed = {{1, "b"}, {2, "a"}}}));  // they change places
  CHECK(describe(replay.state()) == "next 11; table 1 b 0; table 2 a 0; segment 10 1 9 1 0 1");
  auto refused = [&](VersionEdit wrong) {
    std::string before = describe(replay.state());
    CHECK(replay.apply(wrong).code() == StatusCode::corruption);
    CHECK(describe(replay.state()) == before);
  };
  refused({.renamed = {{3, "c"}}});
  refused({.renamed = {{1, "a"}}});
  refused({.renamed = {{1, "c"}, {1, "d"}}});
  refused({.renamed = {{1, "c"}, {2, "c"}}});
  refused({.renamed = {{1, ""}}});
  refused({.renamed = {{1, std::string("c\0", 2)}}});
  refused({.created = {{3, "c", 0, 0}}, .renamed = {{1, "c"}}});
  refused({.created = {{3, "c", 0, 0}}, .renamed = {{3, "d"}}});
  VersionEdit dropped;
  dropped.dropped = {1};
  dropped.renamed = {{1, "c"}};
  refused(dropped);
  // What is given up is free in the same edit.
  VersionEdit next;
  next.dropped = {2};
  next.renamed = {{1, "a"}};
  next.created = {{3, "b", 4, 0}};
  REQUIRE_OK(replay.apply(next));
  CHECK(describe(replay.state()) == "next 11; table 1 a 0; table 3 b 4; segment 10 1 9 1 0 1");
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.AnEditMayTakeWhatItRemoves", "[ManifestTest]") {
  ManifestReplay replay;
  VersionEdit edit = table_edit(1, "a");
  edit.created.push_back({2, "b", 0, 0});
  edit.added = {{10, 1, 9, 1, 0, 1}, {11, 2, 9, 1, 0, 1}};
  REQUIRE_OK(replay.apply(edit));
  VersionEdit next;
  next.removed = {11};
  next.dropped = {1};
  next.created = {{1, "a", 4, 0}};
  next.added = {{10, 1, 3, 1, 0, 1}, {11, 1, 2, 1, 0, 1}};
  REQUIRE_OK(replay.apply(next));
  CHECK(describe(replay.state()) ==
        "next 12; table 1 a 4; table 2 b 0; segment 11 1 2 1 0 1; segment 10 1 3 1 0 1");
  auto refused = [&](VersionEdit wrong) {
    std::string before = describe(replay.state());
    CHECK(replay.apply(wrong).code() == StatusCode::corruption);
    CHECK(describe(replay.state()) == before);
  };
  refused({.removed = {10, 10}});
  refused({.dropped = {2, 2}});
  refused({.created = {{3, "c", 0, 0}, {4, "c", 0, 0}}});
  refused({.created = {{3, "c", 0, 0}, {3, "d", 0, 0}}});
  refused({.dropped = {2}, .added = {{12, 2, 9, 1, 0, 1}}});
  refused({.added = {{12, 2, 9, 1, 0, 1}}, .removed = {12}});
}

TEST_CASE_METHOD(ManifestTest, "ManifestTest.TableNamesHaveALength", "[ManifestTest]") {
  auto manifest = create(fs_);
  CHECK(manifest->append(table_edit(1, ""), true).code() == StatusCode::invalid_argument);
  CHECK(manifest->append(table_edit(1, std::string(256, 'x')), true).code() ==
        StatusCode::invalid_argument);
  CHECK_OK(manifest->append(table_edit(1, std::string(255, 'x')), true));
}

}  // namespace
}  // namespace stride
