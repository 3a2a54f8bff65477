// T[R[i]] += S[i], where a table says what R is.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "adapters/python/errors.h"
#include "adapters/python/keys.h"
#include "adapters/python/rows.h"
#include "adapters/python/watch.h"
#include "engine/scatter_plan.h"

namespace stride::python {
namespace {

struct PyPlan {
  ScatterPlan plan;
  std::shared_ptr<const TableForm> form;
  std::mutex mutex;  // a plan is of one thread at a time
};

NumberType number_type(const Cells& cells, const char* what) {
  if (const std::optional<NumberType> type = number_type_of(cells.field)) return *type;
  raise("InvalidType",
        std::string(what) + " are of type " + type_text({"", cells.field.type, cells.field.count}),
        "give an array of int32, int64, float32 or float64");
}

// Numbers in one piece and at addresses that their width divides.
Cells aligned(nb::object array, const char* what) {
  Cells cells = cells_of_array(array, what);
  const bool good = cells.column.stride == cells.column.width &&
                    reinterpret_cast<uintptr_t>(cells.column.data) % cells.column.width == 0;
  if (good) return cells;
  return cells_of_array(array.attr("copy")(), what);
}

// Weights that overlap the sums, which change while they are added up, are copied.
bool overlap(const Cells& a, const Cells& b) {
  const std::byte* a_end = a.column.data + a.size() * a.column.width;
  const std::byte* b_end = b.column.data + b.size() * b.column.width;
  return a.column.data < b_end && b.column.data < a_end;
}

// The array of sums, as it is: a converted copy would take what nobody sees.
Cells sums_of(const nb::object& into) {
  const nb::object numpy = nb::module_::import_("numpy");
  const char* remedy = "give an array that numpy.zeros() makes";
  if (!nb::isinstance(into, numpy.attr("ndarray")) ||
      nb::isinstance(into, numpy.attr("ma").attr("MaskedArray")))
    raise("InvalidType", "into is of Python's type " + python_type(into), remedy);
  const Cells cells = cells_of_array(into, "into");
  number_type(cells, "into");
  const auto interface = nb::cast<nb::dict>(into.attr("__array_interface__"));
  const nb::object data = interface["data"];
  const bool itself =
      reinterpret_cast<uintptr_t>(cells.column.data) == nb::cast<uintptr_t>(nb::object(data[0]));
  const nb::object flags = into.attr("flags");
  const bool writable = nb::cast<bool>(flags.attr("writeable"));
  if (!itself || !writable || !nb::cast<bool>(flags.attr("aligned")) ||
      cells.column.stride != cells.column.width)
    raise("InvalidArgument",
          "into is an array that cannot be written to, or lies in pieces or in foreign bytes",
          remedy);
  return cells;
}

NumberType number_type_named(const std::string& name) {
  for (NumberType type : {NumberType::i32, NumberType::i64, NumberType::f32, NumberType::f64})
    if (name == to_string(type)) return type;
  raise("InvalidType", "numbers of type " + name + " are given",
        "give an array of int32, int64, float32 or float64");
}

// Weights and sums in the memory of the plan's device; the work is started on the stream.
void map_device(PyPlan& plan, const std::string& type, uintptr_t weights, uint64_t sources,
                uintptr_t into, uint64_t targets, bool reproducible, uintptr_t stream) {
  const NumberType number = number_type_named(type);
  run([&] {
    std::lock_guard lock(plan.mutex);
    ScatterMapOptions options;
    options.mode = reproducible ? ScatterMode::reproducible : ScatterMode::fast;
    options.stream = reinterpret_cast<void*>(stream);
    return plan.plan.map({number, reinterpret_cast<const void*>(weights), sources},
                         {number, reinterpret_cast<void*>(into), targets}, options);
  });
}

nb::object map(nb::handle self, nb::handle weights, nb::object into, bool reproducible) {
  if (nb::hasattr(weights, "__cuda_array_interface__"))
    return nb::module_::import_("stridedb._device").attr("map")(self, weights, into, reproducible);
  auto& plan = nb::cast<PyPlan&>(self);
  Cells sources = aligned(as_array(weights), "weights");
  for (uint64_t row = 0; sources.column.valid && row < sources.size(); ++row)
    if (!sources.column.is_there(row))
      raise("InvalidArgument", "weight " + std::to_string(row) + " is masked",
            "fill it, as weights.filled(0) does");
  const NumberType type = number_type(sources, "weights");
  const bool made = into.is_none();
  if (made) {
    const char* dtype = type == NumberType::i32   ? "i4"
                        : type == NumberType::i64 ? "i8"
                        : type == NumberType::f32 ? "f4"
                                                  : "f8";
    into = nb::module_::import_("numpy").attr("zeros")(plan.plan.targets(), dtype);
  }
  const Cells targets = sums_of(into);
  if (overlap(sources, targets)) sources = aligned(as_array(weights).attr("copy")(), "weights");
  const NumberType target_type = number_type(targets, "into");
  run([&] {
    std::lock_guard lock(plan.mutex);
    const Numbers s{type, sources.column.data, sources.size()};
    const MutableNumbers t{target_type, const_cast<std::byte*>(targets.column.data),
                           targets.size()};
    return plan.plan.map(s, t,
                         {.mode = reproducible ? ScatterMode::reproducible : ScatterMode::fast});
  });
  return into;
}

std::unique_ptr<PyPlan> make_plan(const PyTable& mapping, nb::object sources, bool names,
                                  uint64_t targets, const std::string& unmapped) {
  ScatterPlanOptions options;
  options.values = names ? ScatterPlanTargets::keys : ScatterPlanTargets::numbers;
  options.targets = targets;
  if (unmapped != "count" && unmapped != "error")
    raise("InvalidArgument", "unmapped is '" + unmapped + "'", "it may be 'count', 'error'");
  options.unmapped = unmapped == "error" ? Unmapped::error : Unmapped::count;
  EncodedKeys encoded;
  GivenKeys keys;
  if (!sources.is_none()) keys = keys_of(*mapping.form, sources, &encoded);
  std::optional<ScatterPlan> plan;
  const Snapshot snapshot = mapping.snapshot();
  run_watched(
      [&]() -> Status {
        Result<ScatterPlan> made =
            sources.is_none() ? ScatterPlan::of_table(snapshot, mapping.table(), options)
                              : ScatterPlan::make(snapshot, mapping.table(), keys.keys, options);
        if (!made.ok()) return made.status();
        plan.emplace(std::move(*made));
        return {};
      },
      mapping.form.get());
  return std::unique_ptr<PyPlan>(new PyPlan{std::move(*plan), mapping.form, {}});
}

}  // namespace

void bind_plans(nb::module_& module) {
  nb::class_<PyPlan>(
      module, "Plan",
      "Where each of many sources goes, as a mapping table said when this was made: map() adds "
      "weights of the sources up by their targets, again and again.")
      .def("map", map, nb::arg("weights").none(), nb::arg("into").none() = nb::none(),
           nb::kw_only(), nb::arg("reproducible") = false,
           "Adds the weight of each source to its target and returns the sums: `into`, or a new "
           "array. weights: of shape (sources,), of int32, int64, float32 or float64; into: of "
           "shape (targets,). reproducible: floats have the same bits on every run and machine.")
      .def_prop_ro(
          "sources", [](const PyPlan& p) { return p.plan.sources(); },
          "How many weights map() takes.")
      .def_prop_ro(
          "targets", [](const PyPlan& p) { return p.plan.targets(); },
          "How many sums map() returns.")
      .def_prop_ro(
          "unmapped", [](const PyPlan& p) { return p.plan.unmapped(); },
          "How many sources have no target.")
      .def_prop_ro(
          "target_names",
          [](const PyPlan& p) {
            const KeyColumn names = p.plan.target_keys();
            nb::list list;
            for (uint64_t i = 0; i < names.size; ++i) {
              const Field& field = p.form->schema.values()[0];
              list.append(object_of(field, names[i]));
            }
            return list;
          },
          "With names=True the name of each target, ascending.")
      .def_prop_ro(
          "memory_bytes", [](const PyPlan& p) { return p.plan.memory_bytes(); },
          "Bytes of all memory of the plan.")
      .def_prop_ro(
          "backend", [](const PyPlan& p) { return p.plan.backend_name(); }, "What executes map().");
  module.def("_map_device", map_device, nb::arg("plan"), nb::arg("type"), nb::arg("weights"),
             nb::arg("sources"), nb::arg("into"), nb::arg("targets"), nb::arg("reproducible"),
             nb::arg("stream"));
  module.def("_plan", make_plan, nb::arg("mapping"), nb::arg("sources").none(), nb::arg("names"),
             nb::arg("targets"), nb::arg("unmapped"));
}

}  // namespace stride::python
