// The shared library in a program that loads it with dlopen() and gives it back with dlclose(), as
// mono does with what a DllImport names.
#include <dlfcn.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "adapters/c/stridedb.h"
#include "tests/support/catch.h"

namespace stride::test {
namespace {

// The functions of one load of the library.
class Library {
 public:
  Library() : handle_(dlopen(STRIDE_LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
    CHECK_MESSAGE(handle_ != nullptr, dlerror());
  }
  ~Library() { CHECK_MESSAGE(dlclose(handle_) == 0, dlerror()); }
  Library(const Library&) = delete;

  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

#define CALL(library, name) (library).function<decltype(name)>(#name)

// A commit that is large enough to be sorted by several threads, and a count.
void use(const Library& library, const std::string& path, const std::vector<uint64_t>& keys) {
  stride_database* db;
  stride_table* table;
  stride_transaction* t;
  stride_snapshot* snapshot;
  REQUIRE(CALL(library, stride_open)(path.c_str(), nullptr, &db) == STRIDE_OK);
  REQUIRE(CALL(library, stride_table_open_or_create)(db, "t", 8, &table) == STRIDE_OK);
  REQUIRE(CALL(library, stride_begin)(db, &t) == STRIDE_OK);
  stride_column column = {keys.data(), nullptr, keys.size(), 8};
  REQUIRE(CALL(library, stride_put)(t, table, &column, &column) == STRIDE_OK);
  REQUIRE(CALL(library, stride_commit)(t, STRIDE_DURABILITY_NONE) == STRIDE_OK);
  uint64_t count = 0;
  REQUIRE(CALL(library, stride_snapshot_take)(db, &snapshot) == STRIDE_OK);
  REQUIRE(CALL(library, stride_count)(snapshot, table, &count) == STRIDE_OK);
  CHECK(count == keys.size());
  CHECK(CALL(library, stride_snapshot_release)(snapshot) == STRIDE_OK);
  CHECK(CALL(library, stride_table_release)(table) == STRIDE_OK);
  CHECK(CALL(library, stride_close)(db) == STRIDE_OK);
}

// Its threads end when they please: what they run must stay where it is.
TEST_CASE("UnloadTest.ItStaysInMemoryForItsThreads", "[UnloadTest]") {
  std::string directory = std::filesystem::temp_directory_path() / "stride_unload_XXXXXX";
  REQUIRE(mkdtemp(directory.data()) != nullptr);
  std::vector<uint64_t> keys(300'000);
  for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = i * 0x9E3779B97F4A7C15u;
  for (int round = 0; round < 20; ++round) {
    {
      Library library;
      use(library, directory + "/db" + std::to_string(round), keys);
    }
    void* still = dlopen(STRIDE_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    REQUIRE_MESSAGE(still != nullptr, "dlclose() takes the library away from its threads");
    dlclose(still);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace stride::test
