// All damage of a database, and a new one of what is left.
#include "engine/salvage.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapters/python/errors.h"
#include "adapters/python/handles.h"
#include "adapters/python/watch.h"

namespace stride::python {
namespace {

nb::object key_object(const std::optional<std::string>& key) {
  if (!key) return nb::none();
  return nb::bytes(key->data(), key->size());
}

nb::object table_object(const std::string& table) {
  return table.empty() ? nb::none() : name_object(table);
}

nb::list list_of(const std::vector<Damage>& damage) {
  nb::list all;
  for (const Damage& damaged : damage) {
    nb::dict d;
    d["text"] = name_object(damaged.to_string());
    d["file"] = name_object(damaged.file);
    d["section"] = damaged.section;
    d["offset"] = damaged.offset;
    d["bytes"] = damaged.bytes;
    d["what"] = name_object(damaged.what);
    d["table"] = table_object(damaged.table);
    d["rows"] = damaged.rows;
    d["first_key"] = key_object(damaged.first_key);
    d["last_key"] = key_object(damaged.last_key);
    all.append(d);
  }
  return all;
}

// What there is is told by the report, and does not raise.
template <class Verify>
nb::list damage_found(const Verify& verify) {
  VerifyReport report;
  run_watched([&] {
    Status s = verify(&report);
    return report.damage.empty() ? s : Status();
  });
  return list_of(report.damage);
}

nb::dict dict_of(const SalvageReport& report) {
  nb::list tables, lost, uncertain;
  for (const SalvagedTable& table : report.tables) {
    nb::dict d;
    d["table"] = name_object(table.name);
    d["unnamed"] = table.is_unnamed;
    d["rows"] = table.rows;
    d["lost_rows"] = table.lost_rows;
    tables.append(d);
  }
  for (const LostRows& rows : report.lost) {
    nb::dict d;
    d["text"] = name_object(rows.to_string());
    d["table"] = table_object(rows.table);
    d["file"] = name_object(rows.file);
    d["rows"] = rows.rows;
    d["first_key"] = key_object(rows.first_key);
    d["last_key"] = key_object(rows.last_key);
    d["why"] = name_object(rows.why);
    d["older_rows_remain"] = rows.older_rows_remain;
    lost.append(d);
  }
  for (const std::string& sentence : report.uncertain) uncertain.append(name_object(sentence));
  nb::dict d;
  d["complete"] = report.is_complete();
  d["files"] = report.files;
  d["bytes"] = report.bytes;
  d["rebuilt_files"] = report.rebuilt_files;
  d["tables"] = tables;
  d["lost"] = lost;
  d["uncertain"] = uncertain;
  d["damage"] = list_of(report.damage);
  return d;
}

nb::dict salvage_into(const nb::bytes& source, const nb::bytes& directory, nb::object progress) {
  check_progress(progress);
  const std::string from(source.c_str(), source.size()), to(directory.c_str(), directory.size());
  Watch watch(std::move(progress));
  CopyOptions options;
  options.progress = [&](const CopyProgress& at) {
    const auto total = static_cast<double>(at.total_bytes);
    return watch(total > 0 ? static_cast<double>(at.bytes) / total : 0);
  };
  SalvageReport report;
  Status status;
  {
    const Unlocked unlocked;
    status = salvage(from, to, options, &report);
  }
  watch.rethrow();
  check(status);
  return dict_of(report);
}

}  // namespace

void bind_salvage(nb::module_& module) {
  module.def(
      "_damage",
      [](const PyDatabase& db) {
        Database& opened = db.handle->opened();
        return damage_found([&](VerifyReport* report) { return opened.verify(report); });
      },
      nb::arg("database"));
  module.def(
      "_verify_files",
      [](const nb::bytes& path) {
        const std::string of(path.c_str(), path.size());
        return damage_found([&](VerifyReport* report) { return verify_files(of, report); });
      },
      nb::arg("path"));
  module.def("_salvage", salvage_into, nb::arg("source"), nb::arg("directory"),
             nb::arg("progress").none());
}

}  // namespace stride::python
