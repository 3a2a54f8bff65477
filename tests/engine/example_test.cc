// The README's example, as a program would use it.
#include "tests/support/catch.h"
#include "tests/support/model.h"

namespace stride::test {
namespace {

TEST_CASE("ExampleTest.Readme", "[ExampleTest]") {
  TemporaryDirectory directory;
  std::string keys_data = "1111111122222222", query_data = "2222222233333333";
  KeyColumn keys = Column::fixed(keys_data.data(), 8, 2);
  KeyColumn queries = Column::fixed(query_data.data(), 8, 2);
  Rows value_rows({"one", "two"});
  ValueColumn values = value_rows.column();

  auto db = Database::open(directory.file("ticks.db"));
  REQUIRE_OK(db);
  auto table = (*db)->open_or_create_table("ticks", {.key_width = 8});

  WriteTransaction t = (*db)->begin();
  Status s = t.put(*table, keys, values);
  if (s.ok()) s = t.commit();
  REQUIRE_OK(s);

  GetResult found;
  Snapshot snapshot = (*db)->snapshot();
  s = snapshot.get(*table, queries, &found);
  REQUIRE_OK(s);
  CHECK(found.found[0]);
  CHECK(text(found.values[0]) == "two");
  CHECK_FALSE(found.found[1]);
  auto one = snapshot.get(*table, "11111111");
  REQUIRE((one.ok() && one->has_value()));
  CHECK(text(**one) == "one");
}

}  // namespace
}  // namespace stride::test
