// Copies of databases through the C interface; the engine's tests look at what is in them.
#include <filesystem>
#include <string>

#include "adapters/c/stridedb_backup.h"
#include "tests/support/c_fixture.h"

namespace stride::test {
namespace {

int count_calls(const stride_copy_progress* progress, void* context) {
  CHECK(progress->size == sizeof *progress);
  CHECK(progress->files <= progress->total_files);
  CHECK(progress->bytes <= progress->total_bytes);
  return ++*static_cast<int*>(context) < 0 ? 0 : 1;
}
int end(const stride_copy_progress*, void*) { return 0; }

class CBackupTest : public CTest {
 protected:
  // What a get of the key finds in the database there.
  static std::string value_in(const std::string& directory, const std::string& key) {
    stride_database* db = nullptr;
    stride_table* table = nullptr;
    stride_snapshot* snapshot = nullptr;
    REQUIRE_C_OK(stride_open(directory.c_str(), nullptr, &db));
    REQUIRE_C_OK(stride_table_open(db, "t", &table));
    REQUIRE_C_OK(stride_snapshot_take(db, &snapshot));
    stride_bytes value = {};
    REQUIRE_C_OK(stride_get_one(snapshot, table, key.data(), key.size(), &value));
    const std::string copy =
        value.data ? std::string(static_cast<const char*>(value.data), value.size) : "none";
    CHECK_C_OK(stride_snapshot_release(snapshot));
    CHECK_C_OK(stride_table_release(table));
    CHECK_C_OK(stride_close(db));
    return copy;
  }
  std::string to(const std::string& name) const { return directory_.file(name); }
};

TEST_CASE_METHOD(CBackupTest, "CBackupTest.CopiesAreDatabases", "[CBackupTest]") {
  put(table_, {"a", "b"}, {"one", "two"});
  REQUIRE_C_OK(stride_compact(db_));
  stride_copy_options options;
  REQUIRE_C_OK(stride_copy_options_init(&options, sizeof options));
  CHECK(options.progress == nullptr);
  int calls = 0;
  options.progress = count_calls;
  options.progress_context = &calls;
  stride_copy_report report = {};
  report.size = sizeof report;

  REQUIRE_C_OK(stride_checkpoint(db_, to("checkpoint").c_str(), &options, &report));
  CHECK(calls > 0);
  CHECK(report.linked_files == 1u);
  CHECK(report.files > report.copied_files);

  REQUIRE_C_OK(stride_backup(db_, to("backup").c_str(), &options, &report));
  CHECK(report.linked_files == 0u);
  CHECK(report.copied_files == report.files);
  CHECK(report.copied_bytes == report.bytes);
  put(table_, {"a"}, {"three"});
  REQUIRE_C_OK(stride_restore(to("backup").c_str(), to("first").c_str(), nullptr, nullptr));
  REQUIRE_C_OK(stride_backup(db_, to("backup").c_str(), nullptr, &report));
  CHECK(report.copied_files < report.files);
  REQUIRE_C_OK(stride_restore(to("backup").c_str(), to("second").c_str(), &options, &report));
  CHECK(report.copied_bytes == report.bytes);

  CHECK(value_in(to("checkpoint"), "a") == "one");
  CHECK(value_in(to("first"), "a") == "one");
  CHECK(value_in(to("second"), "a") == "three");
  CHECK(value_in(to("second"), "b") == "two");
}

TEST_CASE_METHOD(CBackupTest, "CBackupTest.BadArguments", "[CBackupTest]") {
  put(table_, {"a"}, {"one"});
  stride_copy_options options = {};
  CHECK_C_ERROR(stride_copy_options_init(nullptr, sizeof options), STRIDE_INVALID_ARGUMENT,
                "options");
  CHECK_C_ERROR(stride_checkpoint(db_, nullptr, nullptr, nullptr), STRIDE_INVALID_ARGUMENT,
                "directory");
  CHECK_C_ERROR(stride_backup(nullptr, "x", nullptr, nullptr), STRIDE_INVALID_ARGUMENT, "database");
  CHECK_C_ERROR(stride_restore(nullptr, "x", nullptr, nullptr), STRIDE_INVALID_ARGUMENT,
                "backup_directory");
  CHECK_C_ERROR(stride_restore("x", nullptr, nullptr, nullptr), STRIDE_INVALID_ARGUMENT,
                "new_directory");
  // Structs without their size: nothing is copied.
  stride_copy_report report = {};
  CHECK_C_ERROR(stride_backup(db_, to("backup").c_str(), &options, nullptr),
                STRIDE_INVALID_ARGUMENT, "stride_copy_options");
  CHECK_C_ERROR(stride_backup(db_, to("backup").c_str(), nullptr, &report), STRIDE_INVALID_ARGUMENT,
                "stride_copy_report");
  CHECK_FALSE(std::filesystem::exists(to("backup")));

  CHECK_C_ERROR(stride_checkpoint(db_, path().c_str(), nullptr, nullptr), STRIDE_ALREADY_EXISTS,
                "db");
  CHECK_C_ERROR(stride_restore(to("none").c_str(), to("new").c_str(), nullptr, nullptr),
                STRIDE_NOT_FOUND, "none");
  REQUIRE_C_OK(stride_copy_options_init(&options, sizeof options));
  options.progress = end;
  CHECK_C_ERROR(stride_checkpoint(db_, to("ended").c_str(), &options, nullptr), STRIDE_CANCELLED,
                "");
  CHECK_FALSE(std::filesystem::exists(to("ended")));
}

TEST_CASE_METHOD(CBackupTest, "CBackupTest.RowsOfAnotherDatabaseAreAdopted", "[CBackupTest]") {
  put(table_, {"a", "b"}, {"one", "two"});
  REQUIRE_C_OK(stride_compact(db_));
  REQUIRE_C_OK(stride_checkpoint(db_, to("shard").c_str(), nullptr, nullptr));
  put(table_, {"a"}, {"late"});
  const std::string shard = to("shard"), none = to("none");
  const char* const there[] = {shard.c_str()};
  const char* const missing[] = {shard.c_str(), none.c_str()};
  const char* const no_path[] = {nullptr};
  stride_transaction* t = nullptr;
  REQUIRE_C_OK(stride_begin(db_, &t));
  CHECK(stride_adopt(t, table_, missing, 2) == STRIDE_NOT_FOUND);
  CHECK_C_ERROR(stride_adopt(t, table_, nullptr, 1), STRIDE_INVALID_ARGUMENT, "databases");
  CHECK_C_ERROR(stride_adopt(t, table_, no_path, 1), STRIDE_INVALID_ARGUMENT, "databases");
  REQUIRE_C_OK(stride_adopt(t, table_, nullptr, 0));
  REQUIRE_C_OK(stride_adopt(t, table_, there, 1));
  REQUIRE_C_OK(stride_commit(t, STRIDE_DURABILITY_SYNC));
  REQUIRE_C_OK(stride_checkpoint(db_, to("after").c_str(), nullptr, nullptr));
  CHECK(value_in(to("after"), "a") == "one");
}

}  // namespace
}  // namespace stride::test
