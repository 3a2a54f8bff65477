// Numbers for vectors of 32-bit words: kept in a database, or in memory.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "adapters/python/errors.h"
#include "adapters/python/handles.h"
#include "adapters/python/rows.h"
#include "adapters/python/watch.h"
#include "engine/dedup_table.h"
#include "engine/make_vector_set.h"
#include "engine/row_set.h"

namespace stride::python {
namespace {

// Vectors that a caller gives: an array of n rows of `words` 32-bit numbers, or of as many bytes.
Cells vectors_of(nb::handle given, uint32_t words) {
  const std::string wanted =
      "an array of shape (n, " + std::to_string(words) + ") of 32-bit integers";
  const nb::object array = as_array(given);
  Cells cells = cells_of_array(array, "vectors");
  for (uint64_t row = 0; cells.column.valid && row < cells.size(); ++row)
    if (!cells.column.is_there(row))
      raise("InvalidArgument", "vector " + std::to_string(row) + " is masked",
            "leave masked vectors out");
  const bool of_32 = width_of(cells.field.type) == 4 && (cells.field.is_vector() || words == 1);
  const bool of_bytes = cells.field.type == FieldType::bytes || cells.field.type == FieldType::u8 ||
                        cells.field.type == FieldType::u64 || cells.field.type == FieldType::i64;
  if (cells.column.width != 4 * words || !(of_32 || of_bytes))
    raise("InvalidType",
          "vectors of " + std::to_string(cells.column.width) + " bytes of " +
              std::string(to_string(cells.field.type)) + " are given, and the set has such of " +
              std::to_string(words) + " words",
          "give " + wanted);
  // In one piece.
  if (cells.column.stride != cells.column.width)
    cells =
        cells_of_array(nb::module_::import_("numpy").attr("ascontiguousarray")(array), "vectors");
  return cells;
}

KeyColumn rows_of(const Cells& cells) {
  return Column::fixed(cells.column.data, cells.column.width, cells.size());
}

std::vector<uint64_t> ids_of(nb::handle given) {
  const Cells cells = cells_of(given, {.name = "ids", .type = FieldType::u64});
  std::vector<uint64_t> ids(cells.size());
  for (uint64_t row = 0; row < cells.size(); ++row) {
    if (!cells.column.is_there(row))
      raise("InvalidArgument", "id " + std::to_string(row) + " is null");
    ids[row] = cells.column.number<uint64_t>(row);
  }
  return ids;
}

nb::object words_array(std::shared_ptr<std::vector<std::byte>> bytes, uint32_t words,
                       uint64_t rows) {
  Cells cells;
  cells.field = {.name = "vectors", .type = FieldType::u32, .count = words};
  cells.column = {bytes->data(), nullptr, nullptr, rows, 4 * words, 4 * words};
  cells.memory.push_back(bytes);
  return numpy_of(cells, nb::none());
}

// A set with what orders its calls: puts are one at a time.
template <class Set>
struct Guarded {
  std::shared_ptr<Handle> handle;  // of a set that a database keeps
  std::shared_ptr<Set> set;
  std::mutex mutex;
};
using PyDedup = Guarded<DedupTable>;
using PyVectorSet = Guarded<VectorSet>;

// Vectors are searched in parts of so many, so that Ctrl-C ends the call between two of them.
constexpr uint64_t part_vectors = 1 << 22;

// Vectors, ids and bits in the memory of the device that the set is on.
void find_or_put_device(PyVectorSet& guarded, uintptr_t vectors, uint64_t n, uintptr_t ids,
                        uintptr_t was_new, bool put) {
  const KeyColumn column =
      Column::fixed(reinterpret_cast<const void*>(vectors), 4 * guarded.set->words(), n);
  const std::span<uint64_t> all_ids(reinterpret_cast<uint64_t*>(ids), n);
  const std::span<uint64_t> bits(reinterpret_cast<uint64_t*>(was_new), (n + 63) / 64);
  run([&] {
    std::lock_guard lock(guarded.mutex);
    return put ? guarded.set->find_or_put(column, all_ids, bits)
               : guarded.set->find(column, all_ids);
  });
}

// The call of stridedb/_device.py for vectors in a device's memory; None: these are the host's.
nb::object device_call(nb::handle self, const char* name, nb::handle vectors) {
  if (!nb::hasattr(vectors, "__cuda_array_interface__")) return nb::none();
  return nb::module_::import_("stridedb._device").attr(name)(self, vectors);
}

template <class Set>
nb::object find_or_put(nb::handle self, nb::handle vectors) {
  if (std::is_same_v<Set, VectorSet>)
    if (nb::object done = device_call(self, "find_or_put", vectors); !done.is_none()) return done;
  auto& guarded = nb::cast<Guarded<Set>&>(self);
  const Cells cells = vectors_of(vectors, guarded.set->words());
  Numbers64 ids("ids", cells.size());
  std::vector<uint64_t> was_new((cells.size() + 63) / 64);
  // What a database keeps is put as a whole.
  constexpr bool in_parts = std::is_same_v<Set, VectorSet>;
  const uint64_t part_rows = in_parts ? part_vectors : std::max<uint64_t>(cells.size(), 1);
  run_in_parts(cells.size(), part_rows, [&](uint64_t first, uint64_t rows) {
    std::lock_guard lock(guarded.mutex);
    return guarded.set->find_or_put(rows_of(cells).slice(first, rows),
                                    ids.span.subspan(first, rows),
                                    std::span(was_new).subspan(first / 64, (rows + 63) / 64));
  });
  return nb::make_tuple(ids.array(), booleans_of(was_new.data(), cells.size()));
}

template <class Set>
nb::object find(nb::handle self, nb::handle vectors) {
  if (std::is_same_v<Set, VectorSet>)
    if (nb::object done = device_call(self, "find", vectors); !done.is_none()) return done;
  auto& guarded = nb::cast<Guarded<Set>&>(self);
  const Cells cells = vectors_of(vectors, guarded.set->words());
  Numbers64 ids("ids", cells.size());
  run_in_parts(cells.size(), part_vectors, [&](uint64_t first, uint64_t rows) {
    std::lock_guard lock(guarded.mutex);
    return guarded.set->find(rows_of(cells).slice(first, rows), ids.span.subspan(first, rows));
  });
  return ids.array();
}

template <class Set>
nb::object get(Guarded<Set>& guarded, nb::handle given) {
  const std::vector<uint64_t> ids = ids_of(given);
  const uint32_t words = guarded.set->words();
  auto bytes = std::make_shared<std::vector<std::byte>>(ids.size() * words * 4);
  // A copy of each vector takes no time that anybody would end, and errors name the row.
  run([&] {
    std::lock_guard lock(guarded.mutex);
    return guarded.set->get(ids, *bytes);
  });
  return words_array(bytes, words, ids.size());
}

template <class Set>
void bind_set(nb::class_<Guarded<Set>>& set) {
  using G = Guarded<Set>;
  set.def("find_or_put", find_or_put<Set>, nb::arg("vectors"),
          "The id of each vector, and which of them came for the first time: arrays of uint64 and "
          "of booleans, one for each row of `vectors`, which is of shape (n, words) and of 32-bit "
          "integers, or of shape (n,) where a vector is one word, an integer of 64 bits or bytes. "
          "InvalidType: they are of another width. ResourceExhausted: they do not fit in memory.")
      .def("find", find<Set>, nb::arg("vectors"),
           "The id of each vector, or `absent` (2**64 - 1), as an array of uint64.")
      .def("get", get<Set>, nb::arg("ids"),
           "The vectors of ids, as an array of uint32 of shape (n, words). NotFound: an id "
           "that no vector has.")
      .def(
          "__len__",
          [](G& g) {
            const Unlocked unlocked;
            std::lock_guard lock(g.mutex);
            return g.set->size();
          },
          "How many vectors differ.")
      .def_prop_ro(
          "words", [](const G& g) { return g.set->words(); }, "32-bit words of each vector.")
      .def_prop_ro(
          "memory_bytes",
          [](G& g) {
            const Unlocked unlocked;
            std::lock_guard lock(g.mutex);
            return g.set->memory_bytes();
          },
          "Bytes of all memory of the set.");
  set.attr("absent") = UINT64_MAX;
}

BackendKind backend_named(const std::string& name) {
  if (name == "host") return BackendKind::host;
  if (name == "cuda") return BackendKind::cuda;
  if (name == "automatic") return BackendKind::automatic;
  raise("InvalidArgument", "backend is '" + name + "'", "it may be 'host', 'cuda', 'automatic'");
}

VectorForm form_named(const std::string& name) {
  if (name == "dense") return VectorForm::dense;
  if (name == "slots") return VectorForm::slots;
  if (name == "compressed") return VectorForm::compressed;
  raise("InvalidArgument", "form is '" + name + "'", "it may be 'dense', 'slots', 'compressed'");
}

void bind_row_set(nb::module_& module) {
  struct PyRowSet {
    RowSet set;
    std::mutex mutex;
    explicit PyRowSet(RowSet s) : set(std::move(s)) {}
  };
  nb::class_<PyRowSet>(module, "RowSet",
                       "Which byte strings or texts came before: a set in memory.")
      .def(
          "__init__",
          [](PyRowSet* self, unsigned threads) {
            new (self) PyRowSet(take(RowSet::make(threads)));
          },
          nb::arg("threads") = 0)
      .def(
          "put",
          [](PyRowSet& s, nb::handle rows, bool text) {
            const FieldType type = text ? FieldType::string : FieldType::bytes;
            const Cells cells = cells_of(rows, {.name = "rows", .type = type});
            for (uint64_t row = 0; cells.column.valid && row < cells.size(); ++row)
              if (!cells.column.is_there(row))
                raise("InvalidArgument", "row " + std::to_string(row) + " is null",
                      "leave nulls out, or give them a text of their own");
            std::vector<uint64_t> was_new((cells.size() + 63) / 64);
            const Column all =
                Column::variable(cells.column.data, cells.column.offsets, cells.size());
            run_in_parts(cells.size(), part_vectors, [&](uint64_t first, uint64_t n) {
              std::lock_guard lock(s.mutex);
              return s.set.put(all.slice(first, n),
                               std::span(was_new).subspan(first / 64, (n + 63) / 64));
            });
            return booleans_of(was_new.data(), cells.size());
          },
          nb::arg("rows"), nb::kw_only(), nb::arg("text") = false,
          "Which rows came for the first time, as an array of booleans. text: they are strings.")
      .def(
          "__len__",
          [](PyRowSet& s) {
            const Unlocked unlocked;
            std::lock_guard lock(s.mutex);
            return s.set.size();
          },
          "How many rows differ.");
}

}  // namespace

void bind_sets(nb::module_& module) {
  nb::class_<PyDedup> dedup(
      module, "Dedup",
      "Numbers for vectors of 32-bit words, kept in a database: 0, 1, 2, ... in the order "
      "of first occurrence.");
  bind_set(dedup);
  module.def("_dedup",
             [](const PyDatabase& db, nb::handle given, uint32_t words,
                const std::optional<std::string>& durability, unsigned threads, bool compressed) {
               DedupOptions options{.words = words, .compressed = compressed};
               options.threads = threads;
               if (durability) options.durability = durability_named(*durability);
               const std::string name = name_of(given);
               Database& database = db.handle->opened();
               auto guarded = std::make_unique<PyDedup>();
               guarded->handle = db.handle;
               run_watched([&]() -> Status {
                 Result<DedupTable> table = DedupTable::open(database, name, options);
                 if (!table.ok()) return table.status();
                 guarded->set = std::make_shared<DedupTable>(std::move(*table));
                 return {};
               });
               return guarded;
             });
  nb::class_<PyVectorSet> set(
      module, "VectorSet",
      "A set of vectors of 1 to 64 words of 32 bits in memory, of the host or of a device. form: "
      "'dense': ids are 0, 1, 2, ... in the order of first occurrence; 'slots': the fewest "
      "accesses to memory, for 1, 2 and 4 words; 'compressed': the least memory where vectors "
      "differ in few words. capacity: vectors that it has room for from the start. backend: "
      "'host', 'cuda' or 'automatic'. threads: 0: one for each core. Calls from several threads "
      "wait for each other.");
  bind_set(set);
  set.def(
         "__init__",
         [](PyVectorSet* self, uint32_t words, const std::string& form, uint64_t capacity,
            const std::string& backend, unsigned threads) {
           VectorSetOptions options{.words = words, .form = form_named(form)};
           if (capacity) options.capacity = capacity;
           std::shared_ptr<VectorSet> made =
               take(make_vector_set(options, backend_named(backend), threads));
           new (self) PyVectorSet();
           self->set = std::move(made);
         },
         nb::arg("words"), nb::kw_only(), nb::arg("form") = "dense", nb::arg("capacity") = 0,
         nb::arg("backend") = "host", nb::arg("threads") = 0)
      .def(
          "clear",
          [](PyVectorSet& s) {
            run([&] {
              std::lock_guard lock(s.mutex);
              return s.set->clear();
            });
          },
          "Forgets all vectors; ids begin anew.")
      .def_prop_ro(
          "id_limit", [](const PyVectorSet& s) { return s.set->id_limit(); },
          "All ids are smaller.");
  module.def("_find_or_put_device", find_or_put_device, nb::arg("set"), nb::arg("vectors"),
             nb::arg("rows"), nb::arg("ids"), nb::arg("was_new"), nb::arg("put"));
  bind_row_set(module);
}

}  // namespace stride::python
