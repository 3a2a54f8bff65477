// Damage and salvage through the C interface; the engine's tests look at what is in it.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "adapters/c/stridedb_salvage.h"
#include "tests/support/c_fixture.h"

namespace stride::test {
namespace {

struct DamageTold {
  std::vector<std::string> texts;
  std::string table, section, first, last;
  uint64_t rows = 0;
};

int take_damage(const stride_damage* d, void* context) {
  auto& told = *static_cast<DamageTold*>(context);
  CHECK(d->size == sizeof *d);
  CHECK(d->status == STRIDE_CORRUPTION);
  told.texts.emplace_back(d->text);
  told.table = d->table;
  told.section = d->section;
  told.rows = d->rows;
  if (d->has_first_key)
    told.first = std::string(static_cast<const char*>(d->first_key.data), d->first_key.size);
  if (d->has_last_key)
    told.last = std::string(static_cast<const char*>(d->last_key.data), d->last_key.size);
  return 1;
}
int end_damage(const stride_damage*, void* context) {
  ++static_cast<DamageTold*>(context)->rows;
  return 0;
}

class CSalvageTest : public CTest {
 protected:
  std::string to(const std::string& name) const { return directory_.file(name); }
  // Flips a byte of the database's only segment.
  void damage(uint64_t at) {
    for (const auto& entry : std::filesystem::directory_iterator(to("db"))) {
      if (entry.path().extension() != ".seg") continue;
      std::fstream f(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      f.seekg(static_cast<std::streamoff>(at));
      const int byte = f.get();
      f.seekp(static_cast<std::streamoff>(at));
      f.put(static_cast<char>(byte ^ 1));
    }
  }
};

TEST_CASE_METHOD(CSalvageTest, "CSalvageTest.AllIsTold", "[CSalvageTest]") {
  put(table_, {"a", "b"}, {"one", "two"});
  REQUIRE_C_OK(stride_compact(db_));
  DamageTold told;
  REQUIRE_C_OK(stride_verify_each(db_, take_damage, &told));
  CHECK(told.texts.empty());
  damage(4096);
  CHECK(stride_verify_each(db_, take_damage, &told) == STRIDE_CORRUPTION);
  REQUIRE(told.texts.size() == 1u);
  CHECK(told.table == "t");
  CHECK(told.rows == 2u);
  CHECK(told.section.starts_with("header to "));
  DamageTold once;
  CHECK(stride_verify_each(db_, end_damage, &once) == STRIDE_CORRUPTION);
  CHECK(once.rows == 1u);
  CHECK(stride_verify_each(db_, nullptr, nullptr) == STRIDE_INVALID_ARGUMENT);
  CHECK(stride_verify_files(to("none").c_str(), take_damage, &told) == STRIDE_NOT_FOUND);
  CHECK(stride_verify_files(to("db").c_str(), take_damage, &told) == STRIDE_LOCKED);
  CHECK(stride_salvage(to("db").c_str(), to("new").c_str(), nullptr, nullptr, nullptr, nullptr) ==
        STRIDE_LOCKED);
  CHECK_C_OK(stride_table_release(table_));
  table_ = nullptr;
  REQUIRE_C_OK(stride_close(db_));
  db_ = nullptr;

  DamageTold files, lost;
  CHECK(stride_verify_files(to("db").c_str(), take_damage, &files) == STRIDE_CORRUPTION);
  CHECK(files.texts.size() == 1u);
  stride_salvage_report report = {};
  report.size = sizeof report;
  REQUIRE_C_OK(
      stride_salvage(to("db").c_str(), to("new").c_str(), nullptr, take_damage, &lost, &report));
  CHECK(report.complete == 0);
  CHECK(report.lost_rows == 2u);
  CHECK(report.tables == 1u);
  REQUIRE(lost.texts.size() == 1u);
  CHECK(lost.section.empty());
  CHECK(lost.rows == 2u);
  CHECK(stride_salvage(to("db").c_str(), to("new").c_str(), nullptr, nullptr, nullptr, &report) ==
        STRIDE_ALREADY_EXISTS);
  report.size = 3;
  CHECK(stride_salvage(to("db").c_str(), to("other").c_str(), nullptr, nullptr, nullptr, &report) ==
        STRIDE_INVALID_ARGUMENT);
  CHECK_FALSE(std::filesystem::exists(to("other")));
}

}  // namespace
}  // namespace stride::test
