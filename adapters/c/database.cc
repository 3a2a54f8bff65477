// Databases, and the version of the library.
#include <cstddef>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"
#include "engine/library_version.h"

using namespace stride;
using namespace stride::c;

static_assert(STRIDE_DURABILITY_SYNC == int(Durability::sync) &&
              STRIDE_DURABILITY_FLUSH == int(Durability::flush) &&
              STRIDE_DURABILITY_NONE == int(Durability::none));
static_assert(STRIDE_BACKEND_AUTOMATIC == int(BackendKind::automatic) &&
              STRIDE_BACKEND_HOST == int(BackendKind::host) &&
              STRIDE_BACKEND_CUDA == int(BackendKind::cuda));
static_assert(STRIDE_VALUES_ON_HOST == int(ValuePlacement::host) &&
              STRIDE_VALUES_ON_DEVICE == int(ValuePlacement::device));
// The binary interface: what programs were compiled with.
static_assert(sizeof(stride_options) == 88 && offsetof(stride_options, memory_limit_bytes) == 40 &&
              offsetof(stride_options, memtable_bytes) == 56 &&
              offsetof(stride_options, devices) == 72);
static_assert(sizeof(stride_column) == 32 && sizeof(stride_bytes) == 16);

namespace {

// What it was before it had more members.
constexpr size_t min_database_bytes = offsetof(stride_options, memtable_bytes);

stride_options default_options() {
  Options defaults;
  stride_options o{};
  o.size = sizeof o;
  o.create_if_missing = defaults.create_if_missing;
  o.durability = static_cast<int>(defaults.durability);
  o.backend = static_cast<int>(defaults.backend);
  o.value_placement = static_cast<int>(defaults.value_placement);
  o.memtable_bytes = defaults.memtable_bytes;
  o.background_work = defaults.background_work;
  return o;
}

Status read_options(const stride_options* given, Options* options) {
  stride_options o = default_options();
  if (given) STRIDE_TRY(read_struct(given, "stride_options", min_database_bytes, sizeof o, &o));
  if (o.reserved || o.reserved_too)
    return Status::invalid("a reserved member of stride_options is not 0");
  STRIDE_TRY(check_choice(o.durability, STRIDE_DURABILITY_NONE, "durability"));
  STRIDE_TRY(check_choice(o.backend, STRIDE_BACKEND_CUDA, "backend"));
  STRIDE_TRY(check_choice(o.value_placement, STRIDE_VALUES_ON_DEVICE, "value_placement"));
  options->create_if_missing = o.create_if_missing != 0;
  options->error_if_exists = o.error_if_exists != 0;
  options->read_only = o.read_only != 0;
  options->durability = static_cast<Durability>(o.durability);
  options->backend = static_cast<BackendKind>(o.backend);
  options->value_placement = static_cast<ValuePlacement>(o.value_placement);
  options->threads = o.threads;
  options->memory_limit_bytes = o.memory_limit_bytes;
  options->gpu_memory_limit_bytes = o.gpu_memory_limit_bytes;
  options->memtable_bytes = o.memtable_bytes;
  options->background_work = o.background_work != 0;
  if ((o.devices == nullptr) != (o.device_count == 0))
    return Status::invalid("stride_options has " + std::to_string(o.device_count) +
                           " devices, and devices is " + (o.devices ? "not NULL" : "NULL"));
  if (o.devices) options->devices.assign(o.devices, o.devices + o.device_count);
  return {};
}

}  // namespace

const char* stride_version(void) { return version(); }

int stride_version_number(void) { return STRIDE_VERSION; }

int stride_options_init(stride_options* options, size_t size) {
  return run([&] {
    STRIDE_TRY(check_pointer(options, "options"));
    stride_options o = default_options();
    return write_struct(&o, "stride_options", sizeof o, min_database_bytes, size, options);
  });
}

Status stride::c::open_database(const char* path, const stride_options* given, Options options,
                                stride_database** database) {
  STRIDE_TRY(check_pointer(path, "path"));
  STRIDE_TRY(check_pointer(database, "database"));
  STRIDE_TRY(read_options(given, &options));
  auto opened = Database::open(path, options);
  if (!opened.ok()) return opened.status();
  return make_handle(std::make_unique<DatabaseObject>(DatabaseObject{std::move(*opened)}),
                     database);
}

int stride_open(const char* path, const stride_options* options, stride_database** database) {
  if (database) *database = nullptr;
  return run([&] { return open_database(path, options, Options(), database); });
}

int stride_close(stride_database* database) {
  return run([&]() -> Status {
    if (!database) return {};
    std::unique_ptr<DatabaseObject> object;
    STRIDE_TRY(consume_object(database, &object));
    return object->database->close();
  });
}

int stride_sync(stride_database* database) {
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    return db->database->sync();
  });
}

int stride_refresh(stride_database* database) {
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    return db->database->refresh();
  });
}

int stride_size(stride_database* database, uint64_t* bytes) {
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(bytes, "bytes"));
    *bytes = db->database->size_bytes();
    return Status();
  });
}

int stride_compact(stride_database* database) {
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    return db->database->compact();
  });
}

int stride_verify(stride_database* database) {
  return run([&] {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    return db->database->verify();
  });
}
