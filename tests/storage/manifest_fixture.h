// Manifests in memory, and what is recovered of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "storage/manifest.h"
#include "storage/memory_file_system.h"
#include "tests/support/catch.h"
#include "tests/support/edits.h"

namespace stride {

class ManifestTest {
 protected:
  ManifestTest() { REQUIRE_OK(fs_.create_directory("db")); }

  static std::unique_ptr<Manifest> create(FileSystem& fs) {
    auto made = Manifest::create(fs, "db");
    CHECK_OK(made);
    return std::move(made->manifest);
  }
  static std::string recovered(FileSystem& fs, bool read_only = true) {
    auto r = Manifest::recover(fs, "db", read_only);
    return r.ok() ? test::describe(test::whole(*r)) : r.status().to_string();
  }
  static StatusCode code(FileSystem& fs, bool read_only = false) {
    return Manifest::recover(fs, "db", read_only).status().code();
  }
  static void put_file(FileSystem& fs, const std::string& path, std::string_view bytes) {
    (void)fs.remove(path);
    auto file = fs.open(path, OpenMode::create);
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->write_at(0, as_bytes(bytes)));
  }
  static VersionEdit table_edit(uint32_t id, std::string name) {
    VersionEdit edit;
    edit.created.push_back({id, std::move(name), 0, 0});
    return edit;
  }

  MemoryFileSystem fs_;
};

}  // namespace stride
