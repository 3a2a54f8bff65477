// What a database says about its tables and their segments.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/database.h"
#include "storage/memory_file_system.h"

namespace stride {
namespace {

TEST(StatisticsTest, SegmentsNewestFirst) {
  MemoryFileSystem files;
  auto db = Database::open("/db", {.backend = BackendKind::host, .file_system = &files});
  ASSERT_TRUE(db.ok());
  auto table = (*db)->create_table("t", {.key_width = 4});
  ASSERT_TRUE(table.ok());
  auto none = (*db)->segments(*table);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());

  WriteTransaction first = (*db)->begin();
  for (int i = 1000; i < 9000; ++i) ASSERT_TRUE(first.put(*table, std::to_string(i), "five!").ok());
  ASSERT_TRUE(first.commit().ok());
  WriteTransaction second = (*db)->begin();
  ASSERT_TRUE(second.put(*table, "1000", "longer").ok());
  ASSERT_TRUE(second.put(*table, "1001", "x").ok());
  ASSERT_TRUE(second.erase(*table, "1002").ok());
  ASSERT_TRUE(second.commit().ok());

  auto segments = (*db)->segments(*table);
  ASSERT_TRUE(segments.ok());
  ASSERT_EQ(segments->size(), 2u);
  const SegmentReport& newer = (*segments)[0];
  EXPECT_EQ(newer.rows, 3u);
  EXPECT_EQ(newer.tombstones, 1u);
  EXPECT_EQ(newer.value_bytes, 7u);
  EXPECT_FALSE(newer.fixed_values);
  const SegmentReport& older = (*segments)[1];
  EXPECT_LT(older.run, newer.run);
  EXPECT_EQ(older.rows, 8000u);
  EXPECT_EQ(older.tombstones, 0u);
  EXPECT_EQ(older.key_bytes, 32000u);
  EXPECT_EQ(older.value_bytes, 40000u);
  EXPECT_TRUE(older.fixed_keys);
  EXPECT_TRUE(older.fixed_values);
  EXPECT_GT(older.bytes_on_disk, 72000u);
  EXPECT_EQ(older.device_bytes, 0u);
  ASSERT_FALSE(older.strides.empty());
  EXPECT_EQ(older.nodes.size(), older.strides.size());
  EXPECT_EQ(older.kinds.size(), older.strides.size());
  EXPECT_EQ(older.nodes[0], 1u);
  EXPECT_EQ(older.prefix_bits, 4u);  // '1' to '8' begin with 0011
  EXPECT_GT(older.tree_bytes, 0u);

  ASSERT_TRUE((*db)->drop_table("t").ok());
  EXPECT_EQ((*db)->segments(*table).status().code(), StatusCode::not_found);
}

}  // namespace
}  // namespace stride
