// The objects of the package: databases, and what is used through them.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "adapters/python/fields.h"
#include "engine/database.h"
#include "engine/key_columns.h"
#include "engine/lookup_result.h"
#include "engine/row_columns.h"

namespace stride::python {

namespace nb = nanobind;

// What one lookup needs and returns. Views of results keep it.
struct Lookup {
  EncodedKeys keys;
  GetResult result;
  std::vector<DecodedColumn> columns;
};

// Lookups that nobody uses, so that the next ones find their memory.
class LookupPool : public std::enable_shared_from_this<LookupPool> {
 public:
  std::shared_ptr<Lookup> take();

 private:
  void give_back(std::unique_ptr<Lookup> lookup);

  static constexpr size_t max_kept = 2;
  static constexpr uint64_t max_kept_bytes = 256 << 20;  // of each
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lookup>> free_;
};

// An open database. Whatever uses it keeps it, so that nothing dangles once it is closed.
struct Handle {
  std::unique_ptr<Database> database;
  std::string path;
  std::string absolute_path;
  bool read_only = false;
  std::shared_ptr<const void> options;  // a dict of Python's: what it was opened with
  std::atomic<bool> closed = false;
  std::shared_ptr<LookupPool> lookups = std::make_shared<LookupPool>();

  // The GIL is held. Throws Closed.
  Snapshot snapshot() const;
  Database& opened() const;
  void close();
};

struct PyDatabase {
  std::shared_ptr<Handle> handle;
};

struct PyTable {
  std::shared_ptr<Handle> handle;
  std::shared_ptr<const TableForm> form;
  std::optional<Snapshot> at;  // none: as the table is at the time of a call

  // Throws Closed where the database is, and the table is none of a snapshot.
  Snapshot snapshot() const { return at ? *at : handle->snapshot(); }
  const Table& table() const { return form->table; }
};

struct PySnapshot {
  std::shared_ptr<Handle> handle;
  Snapshot snapshot;
};

// As Python has paths: what is no text in the file system's encoding, as surrogates.
nb::object path_object(const std::string& path);
// A copy of the dict of options that the database was opened with.
nb::object options_object(const Handle& handle);
Durability durability_named(const std::string& name);
// The options of a table that has these columns, and of which nothing else is said.
TableOptions options_of_columns(nb::object key, nb::object values);
PyTable table_named(const std::shared_ptr<Handle>& handle, const std::string& name);

void bind_database(nb::module_& module);
void bind_table_reads(nb::class_<PyTable>& table);
void bind_ordered_reads(nb::class_<PyTable>& table);
void bind_table_writes(nb::class_<PyTable>& table);
void bind_transaction(nb::module_& module);
void bind_scan(nb::module_& module);
void bind_cursor(nb::module_& module, nb::class_<PyTable>& table);
void bind_prefixes(nb::class_<PyTable>& table);
void bind_sets(nb::module_& module);
void bind_plans(nb::module_& module);
void bind_partition(nb::module_& module);
void bind_device(nb::module_& module);
void bind_maintenance(nb::module_& module);
void bind_salvage(nb::module_& module);

}  // namespace stride::python
