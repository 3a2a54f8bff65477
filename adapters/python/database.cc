// Databases, snapshots, and the tables that they have.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "adapters/python/cells.h"
#include "adapters/python/errors.h"
#include "adapters/python/handles.h"
#include "adapters/python/watch.h"
#include "engine/library_version.h"
#include "storage/prefix_key.h"

namespace stride::python {

std::shared_ptr<Lookup> LookupPool::take() {
  std::unique_ptr<Lookup> lookup;
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      lookup = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!lookup) lookup = std::make_unique<Lookup>();
  return {lookup.release(), [pool = shared_from_this()](Lookup* used) {
            pool->give_back(std::unique_ptr<Lookup>(used));
          }};
}

void LookupPool::give_back(std::unique_ptr<Lookup> lookup) {
  if (lookup->result.data.size() + lookup->keys.data.size() > max_kept_bytes) return;
  std::lock_guard lock(mutex_);
  if (free_.size() < max_kept) free_.push_back(std::move(lookup));
}

Database& Handle::opened() const {
  if (closed)
    raise("Closed", "database '" + path + "' is closed",
          "open it anew, or take a snapshot before it is closed");
  return *database;
}

nb::object path_object(const std::string& path) {
  const auto size = static_cast<Py_ssize_t>(path.size());
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), size));
}

nb::object options_object(const Handle& handle) {
  return static_cast<const nb::object*>(handle.options.get())->attr("copy")();
}

Snapshot Handle::snapshot() const { return opened().snapshot(); }

void Handle::close() {
  closed = true;
  run([&] { return database->close(); });
}

PyTable table_named(const std::shared_ptr<Handle>& handle, const std::string& name) {
  return {handle, form_of(take(handle->opened().open_table(name))), std::nullopt};
}

Durability durability_named(const std::string& name) {
  if (name == "sync") return Durability::sync;
  if (name == "flush") return Durability::flush;
  if (name == "none") return Durability::none;
  raise("InvalidArgument", "durability is '" + name + "'", "it may be 'sync', 'flush', 'none'");
}

namespace {

template <class T>
T choice(const std::string& given, const char* what,
         std::initializer_list<std::pair<const char*, T>> choices) {
  std::string all;
  for (const auto& [name, value] : choices) {
    if (given == name) return value;
    all += (all.empty() ? "'" : ", '") + std::string(name) + "'";
  }
  raise("InvalidArgument", std::string(what) + " is '" + given + "'", "it may be " + all);
}

// All that were opened, for the interpreter's end: it is too late for their destructors then.
std::mutex all_mutex;
std::vector<std::weak_ptr<Handle>>& all_handles() {
  static auto* handles = new std::vector<std::weak_ptr<Handle>>;
  return *handles;
}

void remember(const std::shared_ptr<Handle>& handle) {
  std::lock_guard lock(all_mutex);
  std::erase_if(all_handles(), [](const std::weak_ptr<Handle>& h) { return h.expired(); });
  all_handles().push_back(handle);
}

void close_all() {
  leave_others_behind();
  std::vector<std::weak_ptr<Handle>> handles;
  {
    std::lock_guard lock(all_mutex);
    handles = all_handles();
  }
  for (const std::weak_ptr<Handle>& weak : handles) {
    const std::shared_ptr<Handle> handle = weak.lock();
    if (!handle) continue;
    handle->closed = true;
    const Unlocked unlocked;
    (void)handle->database->close();  // there is nobody to tell
  }
}

void set_option(const std::string& name, nb::handle value, Options* to) {
  Options& options = *to;
  if (name == "create")
    options.create_if_missing = nb::cast<bool>(value);
  else if (name == "exclusive")
    options.error_if_exists = nb::cast<bool>(value);
  else if (name == "read_only")
    options.read_only = nb::cast<bool>(value);
  else if (name == "durability")
    options.durability = durability_named(nb::cast<std::string>(value));
  else if (name == "threads")
    options.threads = nb::cast<unsigned>(value);
  else if (name == "memory_limit")
    options.memory_limit_bytes = nb::cast<uint64_t>(value);
  else if (name == "memtable")
    options.memtable_bytes = nb::cast<uint64_t>(value);
  else if (name == "background")
    options.background_work = nb::cast<bool>(value);
  else if (name == "backend")
    options.backend = choice<BackendKind>(nb::cast<std::string>(value), "backend",
                                          {{"automatic", BackendKind::automatic},
                                           {"host", BackendKind::host},
                                           {"cuda", BackendKind::cuda}});
  else if (name == "devices")
    options.devices = nb::cast<std::vector<int>>(value);
  else if (name == "device_memory_limit")
    options.gpu_memory_limit_bytes = nb::cast<uint64_t>(value);
  else if (name == "device_values")
    options.value_placement = nb::cast<bool>(value) ? ValuePlacement::device : ValuePlacement::host;
  else
    raise("InvalidArgument", "open() has no option '" + name + "'");
}

Options options_of(const nb::dict& given) {
  Options options;
  for (auto [key, value] : given) {
    const std::string name = name_of(key);
    try {
      set_option(name, value, &options);
    } catch (const nb::cast_error&) {
      raise("InvalidType", "the option '" + name + "' of open() is " + shown(value));
    }
  }
  return options;
}

PyDatabase open_database(const nb::bytes& encoded_path, const nb::dict& given) {
  const std::string path(static_cast<const char*>(encoded_path.data()), encoded_path.size());
  const Options options = options_of(given);
  auto handle = std::make_shared<Handle>();
  handle->path = path;
  std::error_code failed;  // the working directory may be gone
  const std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  handle->absolute_path = failed ? path : absolute.string();
  handle->options = keep(given);
  handle->read_only = options.read_only;
  run([&]() -> Status {
    Result<std::unique_ptr<Database>> opened = Database::open(path, options);
    if (!opened.ok()) return opened.status();
    handle->database = std::move(*opened);
    return {};
  });
  remember(handle);
  return {handle};
}

NumberType number_type_of_field(const Field& field) {
  const std::optional<NumberType> type = number_type_of(field);
  if (type && !field.nullable) return *type;
  raise("InvalidType", "counters of type " + type_text(field) + " are not possible",
        "use i32, i64, f32 or f64");
}

// name: that such a column has where nothing is said.
bool is_plain_bytes(const std::vector<Field>& fields, const char* name) {
  return fields.empty() || (fields.size() == 1 && fields[0].type == FieldType::bytes &&
                            !fields[0].count && !fields[0].nullable && fields[0].name == name);
}

struct TableArguments {
  nb::object key, values;
  std::optional<uint32_t> bits;
  bool text_prefixes = false, numbers = false, share_values = false, wrap = false;
  std::string expires{};  // TableOptions::expiry_column
  int64_t time_to_live = 0;
};

TableOptions table_options(const TableArguments& given) {
  TableOptions options;
  std::vector<Field> key = fields_of(given.key, "key"), values = fields_of(given.values, "value");
  options.share_equal_values = given.share_values;
  options.expiry_column = given.expires;
  options.time_to_live = given.time_to_live;
  if (given.bits) options.address_bits = *given.bits;
  if (given.text_prefixes) options.address_bits = byte_strings;
  if (given.numbers) {
    if (values.size() != 1)
      raise("InvalidType", "counters have one number each, and " + std::to_string(values.size()) +
                               " columns are asked for");
    options.numbers = number_type_of_field(values[0]);
    options.overflow = given.wrap ? Overflow::wrap : Overflow::error;
    values.clear();
  }
  if (is_plain_bytes(key, "key")) key.clear();
  if (is_plain_bytes(values, "value")) values.clear();
  options.schema = take(Schema::make(std::move(values), std::move(key)));
  return options;
}

}  // namespace

TableOptions options_of_columns(nb::object key, nb::object values) {
  return table_options({.key = std::move(key), .values = std::move(values), .bits = {}});
}

namespace {

// Whether the caller has said what the table is like.
bool says_nothing(const TableArguments& given) {
  return given.key.is_none() && given.values.is_none() && !given.bits && !given.text_prefixes &&
         !given.share_values && given.expires.empty() && given.time_to_live == 0;
}

PyTable open_table(const PyDatabase& db, const std::string& name, const TableArguments& given,
                   bool create) {
  const std::shared_ptr<Handle>& handle = db.handle;
  Result<Table> there = handle->opened().open_table(name);
  if (!there.ok() && there.status().code() != StatusCode::not_found) raise(there.status());
  if (there.ok() && says_nothing(given)) return {handle, form_of(*there), std::nullopt};
  if (!there.ok() && (!create || handle->read_only)) raise(there.status());
  const TableOptions options = table_options(given);
  if (!there.ok()) {
    run([&] {
      there = handle->database->open_or_create_table(name, options);
      return there.status();
    });
  } else if (there->schema() != options.schema || there->address_bits() != options.address_bits ||
             there->numbers() != options.numbers ||
             there->expiry_column() != options.expiry_column) {
    const std::shared_ptr<const TableForm> form = form_of(*there);
    const std::string ends = there->expiry_column();
    raise("InvalidArgument",
          "table '" + name + "' is there with other columns: " + form->schema.to_string() +
              (ends.empty() ? "" : ", of which '" + ends + "' says when rows end"),
          "open it without `key` and `values`, or use another name");
  } else if (given.time_to_live != 0 || given.wrap || given.share_values) {
    // Which have to be the table's, too.
    run([&] { return handle->database->open_or_create_table(name, options).status(); });
  }
  return {handle, form_of(*there), std::nullopt};
}

nb::dict statistics_of(const TableStatistics& s) {
  nb::dict d;
  d["name"] = name_object(s.name);
  d["rows"] = s.rows;
  d["erased_rows"] = s.erased_rows;
  d["memtable_rows"] = s.memtable_rows;
  d["runs"] = s.runs;
  d["segments"] = s.segments;
  d["bytes_on_disk"] = s.bytes_on_disk;
  d["saved_bytes"] = s.saved_bytes;
  d["filter_bytes"] = s.filter_bytes;
  d["reclaimable_bytes"] = s.reclaimable_bytes;
  d["resident_bytes"] = s.resident_bytes;
  d["device_bytes"] = s.device_bytes;
  d["stored_values"] = s.stored_values;
  return d;
}

PyTable table_of_snapshot(const PySnapshot& snapshot, nb::handle name) {
  return {snapshot.handle, form_of(take(snapshot.snapshot.open_table(name_of(name)))),
          snapshot.snapshot};
}

void bind_snapshot(nb::module_& module) {
  nb::class_<PySnapshot>(module, "Snapshot", "The database as it was at one moment.")
      .def("table", table_of_snapshot, nb::arg("name"),
           "The table of a name as it was then, for reading.")
      .def("__getitem__", table_of_snapshot)
      .def(
          "__contains__",
          [](const PySnapshot& snapshot, nb::handle name) {
            const Result<Table> found = snapshot.snapshot.open_table(name_of(name));
            if (!found.ok() && found.status().code() != StatusCode::not_found)
              raise(found.status());
            return found.ok();
          },
          nb::arg("name"), "Whether there was a table of that name.");
}

void bind_upkeep(nb::class_<PyDatabase>& database) {
  database
      .def(
          "sync",
          [](const PyDatabase& db) {
            Database& opened = db.handle->opened();
            run([&] { return opened.sync(); });
          },
          "Makes all that was committed survive a loss of power.")
      .def(
          "refresh",
          [](const PyDatabase& db) {
            Database& opened = db.handle->opened();
            run([&] { return opened.refresh(); });
          },
          "Of a database that is read_only: what is read from now on is what another process has\n"
          "committed by now. Snapshots that are there stay as they are. Unavailable: call it "
          "again.")
      .def(
          "compact",
          [](const PyDatabase& db) {
            Database& opened = db.handle->opened();
            run_watched([&] { return opened.compact(); });
          },
          "Merges the runs of each table into one. Ctrl-C: tables that were merged before stay so, "
          "and of others nothing has changed.")
      .def(
          "calibrate",
          [](const PyDatabase& db) {
            Database& opened = db.handle->opened();
            run_watched([&] { return opened.calibrate(); });
          },
          "Measures what reads of memory cost here, and plans the trees of new segments by it.")
      .def(
          "verify",
          [](const PyDatabase& db) {
            Database& opened = db.handle->opened();
            run_watched([&] { return opened.verify(); });
          },
          "Reads every byte and checks it. Corruption: the first that is damaged.")
      .def_prop_ro(
          "size_bytes", [](const PyDatabase& db) { return db.handle->opened().size_bytes(); },
          "Bytes of all files.")
      .def_prop_ro(
          "backend", [](const PyDatabase& db) { return db.handle->opened().backend_name(); },
          "What executes batches.")
      .def(
          "statistics",
          [](const PyDatabase& db) {
            nb::list all;
            for (const TableStatistics& s : db.handle->opened().tables())
              all.append(statistics_of(s));
            return all;
          },
          "What each table has, as a list of dicts.");
}

}  // namespace

void bind_database(nb::module_& module) {
  module.attr("__version__") = version();
  module.def("_open", open_database, nb::arg("path"), nb::arg("options"));
  module.def("_close_all", close_all);
  bind_snapshot(module);
  nb::class_<PyDatabase> database(module, "Database",
                                  "A database that is open. Any thread may use it.",
                                  nb::is_weak_referenceable());
  database.def_prop_ro("path", [](const PyDatabase& db) { return path_object(db.handle->path); })
      .def_prop_ro("_absolute_path",
                   [](const PyDatabase& db) { return path_object(db.handle->absolute_path); })
      .def_prop_ro("read_only", [](const PyDatabase& db) { return db.handle->read_only; })
      .def_prop_ro("options", [](const PyDatabase& db) { return options_object(*db.handle); })
      .def(
          "close", [](const PyDatabase& db) { db.handle->close(); },
          "Makes everything durable and ends. What was read stays valid.")
      .def(
          "snapshot",
          [](const PyDatabase& db) {
            return PySnapshot{db.handle, db.handle->snapshot()};
          },
          "The database as it is now, for reads that belong together.")
      .def(
          "_table",
          [](const PyDatabase& db, nb::handle name, nb::object key, nb::object values,
             std::optional<uint32_t> bits, bool text_prefixes, bool numbers, bool wrap,
             bool share_values, const std::string& expires, int64_t time_to_live, bool create) {
            return open_table(db, name_of(name),
                              {key, values, bits, text_prefixes, numbers, share_values, wrap,
                               expires, time_to_live},
                              create);
          },
          nb::arg("name"), nb::arg("key").none() = nb::none(),
          nb::arg("values").none() = nb::none(), nb::arg("bits").none() = nb::none(),
          nb::arg("text_prefixes") = false, nb::arg("numbers") = false, nb::arg("wrap") = false,
          nb::arg("share_values") = false, nb::arg("expires") = "", nb::arg("time_to_live") = 0,
          nb::arg("create") = true)
      .def(
          "drop",
          [](const PyDatabase& db, nb::handle given) {
            const std::string name = name_of(given);
            Database& opened = db.handle->opened();
            run([&] { return opened.drop_table(name); });
          },
          nb::arg("name"), "Drops a table. Snapshots that were taken before still have it.")
      .def(
          "rename",
          [](const PyDatabase& db, nb::handle given, nb::handle new_name) {
            const std::string from = name_of(given), to = name_of(new_name);
            Database& opened = db.handle->opened();
            run([&] { return opened.rename_table(from, to); });
          },
          nb::arg("name"), nb::arg("new_name"),
          "Gives a table another name. NotFound: there is none. AlreadyExists: another one has "
          "it.");
  bind_upkeep(database);
}

}  // namespace stride::python
