// Sets of vectors, in memory and kept in a database.
#include <span>
#include <utility>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"

using namespace stride;
using namespace stride::c;

static_assert(sizeof(stride_set_options) == 64 && sizeof(stride_set_info) == 40 &&
              sizeof(stride_dedup_options) == 24);
static_assert(static_cast<int>(VectorForm::dense) == STRIDE_SET_DENSE &&
              static_cast<int>(VectorForm::slots) == STRIDE_SET_SLOTS &&
              static_cast<int>(VectorForm::compressed) == STRIDE_SET_COMPRESSED);
static_assert(VectorSet::absent == STRIDE_ABSENT && DedupTable::absent == STRIDE_ABSENT);

namespace {

struct SetChoice {
  VectorSetOptions set;
  BackendKind where = BackendKind::host;
  unsigned threads = 0;
};

Status read_options(const stride_set_options* given, SetChoice* choice) {
  if (!given) return {};
  stride_set_options o;
  STRIDE_TRY(read_struct(given, "stride_set_options", sizeof o, sizeof o, &o));
  STRIDE_TRY(check_choice(o.form, STRIDE_SET_COMPRESSED, "form"));
  STRIDE_TRY(check_choice(o.backend, STRIDE_BACKEND_CUDA, "backend"));
  choice->set.words = o.words;
  choice->set.form = static_cast<VectorForm>(o.form);
  choice->set.capacity = o.capacity;
  choice->set.grows = o.grows != 0;
  choice->set.load = o.load;
  choice->set.node_capacity = o.node_capacity;
  choice->set.wide_nodes = o.wide_nodes != 0;
  choice->set.seed = o.seed;
  choice->where = static_cast<BackendKind>(o.backend);
  choice->threads = o.threads;
  return {};
}

Status read_options(const stride_dedup_options* given, DedupOptions* options) {
  if (!given) return {};
  stride_dedup_options o;
  STRIDE_TRY(read_struct(given, "stride_dedup_options", sizeof o, sizeof o, &o));
  if (o.durability != STRIDE_DURABILITY_DEFAULT) {
    STRIDE_TRY(check_choice(o.durability, STRIDE_DURABILITY_NONE, "durability"));
    options->durability = static_cast<Durability>(o.durability);
  }
  options->words = o.words;
  options->threads = o.threads;
  options->compressed = o.compressed != 0;
  return {};
}

// No more than memory could hold, so that byte counts do not overflow.
Status check_rows(uint64_t n) {
  constexpr uint64_t max_rows = uint64_t{1} << 48;
  if (n <= max_rows) return {};
  return Status::invalid(std::to_string(n) + " rows are more than any memory holds");
}

Status read_vectors(const uint32_t* vectors, uint64_t n, uint32_t words, Column* column) {
  STRIDE_TRY(check_rows(n));
  if (n) STRIDE_TRY(check_pointer(vectors, "vectors"));
  *column = Column::fixed(vectors, words * 4, n);
  return {};
}

// Calls find_or_put of a set or a dedup table.
template <class Set>
Status find_or_put(Set& set, const uint32_t* vectors, uint64_t n, uint64_t* ids,
                   uint64_t* was_new) {
  Column column;
  STRIDE_TRY(read_vectors(vectors, n, set.words(), &column));
  std::span<uint64_t> numbers, bits;
  if (ids) numbers = {ids, n};
  if (was_new) bits = {was_new, (n + 63) / 64};
  return set.find_or_put(column, numbers, bits);
}

template <class Set>
Status find(Set& set, const uint32_t* vectors, uint64_t n, uint64_t* ids) {
  Column column;
  STRIDE_TRY(read_vectors(vectors, n, set.words(), &column));
  if (n) STRIDE_TRY(check_pointer(ids, "ids"));
  return set.find(column, {ids, n});
}

template <class Set>
Status get(Set& set, const uint64_t* ids, uint64_t n, uint32_t* vectors) {
  STRIDE_TRY(check_rows(n));
  if (n) STRIDE_TRY(check_pointer(ids, "ids"));
  if (n) STRIDE_TRY(check_pointer(vectors, "vectors"));
  return set.get({ids, n}, {reinterpret_cast<std::byte*>(vectors), n * set.words() * 4});
}

// Calls call(set) with what the handle stands for.
template <class Call>
int use_set(stride_set* handle, const Call& call) {
  return run([&]() -> Status {
    Use<SetObject> s;
    STRIDE_TRY(s.begin(handle));
    return call(*s->set);
  });
}

template <class Call>
int use_table(stride_dedup_table* handle, const Call& call) {
  return run([&]() -> Status {
    Use<DedupObject> t;
    STRIDE_TRY(t.begin(handle));
    return call(t->table);
  });
}

}  // namespace

int stride_set_options_init(stride_set_options* options, size_t size) {
  return run([&] {
    STRIDE_TRY(check_pointer(options, "options"));
    const VectorSetOptions d;
    stride_set_options o{};
    o.words = d.words;
    o.capacity = d.capacity;
    o.grows = d.grows;
    o.load = d.load;
    o.backend = STRIDE_BACKEND_HOST;
    return write_struct(&o, "stride_set_options", sizeof o, sizeof o, size, options);
  });
}

int stride_set_create(const stride_set_options* options, stride_set** set) {
  if (set) *set = nullptr;
  return run([&]() -> Status {
    STRIDE_TRY(check_pointer(set, "set"));
    SetChoice choice;
    STRIDE_TRY(read_options(options, &choice));
    auto made = make_vector_set(choice.set, choice.where, choice.threads);
    if (!made.ok()) return made.status();
    return make_handle(std::make_unique<SetObject>(std::move(*made)), set);
  });
}

int stride_set_find_or_put(stride_set* set, const uint32_t* vectors, uint64_t n, uint64_t* ids,
                           uint64_t* was_new) {
  return use_set(set, [&](VectorSet& s) { return find_or_put(s, vectors, n, ids, was_new); });
}

int stride_set_find(stride_set* set, const uint32_t* vectors, uint64_t n, uint64_t* ids) {
  return use_set(set, [&](VectorSet& s) { return find(s, vectors, n, ids); });
}

int stride_set_get(stride_set* set, const uint64_t* ids, uint64_t n, uint32_t* vectors) {
  return use_set(set, [&](VectorSet& s) { return get(s, ids, n, vectors); });
}

int stride_set_clear(stride_set* set) {
  return use_set(set, [](VectorSet& s) { return s.clear(); });
}

int stride_set_read_info(stride_set* set, stride_set_info* info) {
  return use_set(set, [&](VectorSet& s) -> Status {
    STRIDE_TRY(check_pointer(info, "info"));
    stride_set_info out{sizeof out, s.size(), s.id_limit(), s.nodes(), s.memory_bytes()};
    return write_struct(&out, "stride_set_info", sizeof out, sizeof out, info->size, info);
  });
}

int stride_set_release(stride_set* set) {
  return run([&] { return release_handle<SetObject>(set); });
}

int stride_dedup_options_init(stride_dedup_options* options, size_t size) {
  return run([&] {
    STRIDE_TRY(check_pointer(options, "options"));
    stride_dedup_options o{sizeof o, DedupOptions().words, STRIDE_DURABILITY_DEFAULT, 0, 0};
    return write_struct(&o, "stride_dedup_options", sizeof o, sizeof o, size, options);
  });
}

int stride_dedup_open(stride_database* database, const char* name,
                      const stride_dedup_options* options, stride_dedup_table** table) {
  if (table) *table = nullptr;
  return run([&]() -> Status {
    Use<DatabaseObject> db;
    STRIDE_TRY(db.begin(database));
    STRIDE_TRY(check_pointer(name, "name"));
    STRIDE_TRY(check_pointer(table, "table"));
    DedupOptions o;
    STRIDE_TRY(read_options(options, &o));
    auto opened = DedupTable::open(*db->database, name, o);
    if (!opened.ok()) return opened.status();
    return make_handle(std::make_unique<DedupObject>(db->database, std::move(*opened)), table);
  });
}

int stride_dedup_find_or_put(stride_dedup_table* table, const uint32_t* vectors, uint64_t n,
                             uint64_t* ids, uint64_t* was_new) {
  return use_table(table, [&](DedupTable& t) { return find_or_put(t, vectors, n, ids, was_new); });
}

int stride_dedup_find(stride_dedup_table* table, const uint32_t* vectors, uint64_t n,
                      uint64_t* ids) {
  return use_table(table, [&](DedupTable& t) { return find(t, vectors, n, ids); });
}

int stride_dedup_get(stride_dedup_table* table, const uint64_t* ids, uint64_t n,
                     uint32_t* vectors) {
  return use_table(table, [&](DedupTable& t) { return get(t, ids, n, vectors); });
}

int stride_dedup_read_info(stride_dedup_table* table, uint64_t* vectors, uint64_t* memory_bytes) {
  return use_table(table, [&](DedupTable& t) {
    if (vectors) *vectors = t.size();
    if (memory_bytes) *memory_bytes = t.memory_bytes();
    return Status();
  });
}

int stride_dedup_release(stride_dedup_table* table) {
  return run([&] { return release_handle<DedupObject>(table); });
}
