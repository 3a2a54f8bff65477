// The README's example, as a program would use it.
#include "tests/support/model.h"

namespace stride::test {
namespace {

TEST(ExampleTest, Readme) {
  TemporaryDirectory directory;
  std::string keys_data = "1111111122222222", query_data = "2222222233333333";
  KeyColumn keys = Column::fixed(keys_data.data(), 8, 2);
  KeyColumn queries = Column::fixed(query_data.data(), 8, 2);
  Rows value_rows({"one", "two"});
  ValueColumn values = value_rows.column();

  auto db = Database::open(directory.file("ticks.db"));
  ASSERT_TRUE(db.ok()) << db.status().to_string();
  auto table = (*db)->open_or_create_table("ticks", {.key_width = 8});

  WriteTransaction t = (*db)->begin();
  Status s = t.put(*table, keys, values);
  if (s.ok()) s = t.commit();
  ASSERT_TRUE(s.ok()) << s.to_string();

  GetResult found;
  Snapshot snapshot = (*db)->snapshot();
  s = snapshot.get(*table, queries, &found);
  ASSERT_TRUE(s.ok()) << s.to_string();
  EXPECT_TRUE(found.found[0]);
  EXPECT_EQ(text(found.values[0]), "two");
  EXPECT_FALSE(found.found[1]);
  auto one = snapshot.get(*table, "11111111");
  ASSERT_TRUE(one.ok() && one->has_value());
  EXPECT_EQ(text(**one), "one");
}

}  // namespace
}  // namespace stride::test
