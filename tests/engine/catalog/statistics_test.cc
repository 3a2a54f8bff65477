// What a database says about its tables and their segments.

#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"

namespace stride {
namespace {

TEST_CASE("StatisticsTest.SegmentsNewestFirst", "[StatisticsTest]") {
  MemoryFileSystem files;
  auto db = Database::open("/db", {.memtable_bytes = 0, .backend = BackendKind::host, .file_system = &files});
  REQUIRE_OK(db);
  auto table = (*db)->create_table("t", {.key_width = 4});
  REQUIRE_OK(table);
  auto none = (*db)->segments(*table);
  REQUIRE_OK(none);
  CHECK(none->empty());

  WriteTransaction first = (*db)->begin();
  for (int i = 1000; i < 9000; ++i) REQUIRE_OK(first.put(*table, std::to_string(i), "five!"));
  REQUIRE_OK(first.commit());
  WriteTransaction second = (*db)->begin();
  REQUIRE_OK(second.put(*table, "1000", "longer"));
  REQUIRE_OK(second.put(*table, "1001", "x"));
  REQUIRE_OK(second.erase(*table, "1002"));
  REQUIRE_OK(second.commit());

  auto segments = (*db)->segments(*table);
  REQUIRE_OK(segments);
  REQUIRE(segments->size() == 2u);
  const SegmentReport& newer = (*segments)[0];
  CHECK(newer.rows == 3u);
  CHECK(newer.tombstones == 1u);
  CHECK(newer.value_bytes == 7u);
  CHECK_FALSE(newer.fixed_values);
  const SegmentReport& older = (*segments)[1];
  CHECK(older.run < newer.run);
  CHECK(older.rows == 8000u);
  CHECK(older.tombstones == 0u);
  CHECK(older.key_bytes == 32000u);
  CHECK(older.value_bytes == 40000u);
  CHECK(older.fixed_keys);
  CHECK(older.fixed_values);
  CHECK(older.bytes_on_disk > 72000u);
  CHECK(older.device_bytes == 0u);
  REQUIRE_FALSE(older.strides.empty());
  CHECK(older.nodes.size() == older.strides.size());
  CHECK(older.kinds.size() == older.strides.size());
  CHECK(older.nodes[0] == 1u);
  CHECK(older.prefix_bits == 4u);  // '1' to '8' begin with 0011
  CHECK(older.tree_bytes > 0u);

  REQUIRE_OK((*db)->drop_table("t"));
  CHECK((*db)->segments(*table).status().code() == StatusCode::not_found);
}

}  // namespace
}  // namespace stride
