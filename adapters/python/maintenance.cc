// Copies of databases, what becomes a part of one, and what there is to be known about one.
#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "adapters/python/errors.h"
#include "adapters/python/handles.h"
#include "adapters/python/keys.h"
#include "adapters/python/watch.h"
#include "adapters/python/writes.h"
#include "engine/backup.h"
#include "engine/diagnosis.h"
#include "engine/metrics.h"

namespace stride::python {
namespace {

// Calls copy(options, &report) without the GIL.
template <class Copy>
nb::dict make_copy(nb::object progress, const Copy& copy) {
  check_progress(progress);
  Watch watch(std::move(progress));
  CopyOptions options;
  options.progress = [&](const CopyProgress& at) {
    const bool any_bytes = at.total_bytes != 0;
    const auto done = static_cast<double>(any_bytes ? at.bytes : at.files);
    const auto total = static_cast<double>(any_bytes ? at.total_bytes : at.total_files);
    return watch(total > 0 ? done / total : 0);
  };
  CopyReport report;
  Status status;
  {
    const Unlocked unlocked;
    status = copy(options, &report);
  }
  watch.rethrow();
  check(status);
  nb::dict d;
  d["files"] = report.files;
  d["bytes"] = report.bytes;
  d["copied_files"] = report.copied_files;
  d["copied_bytes"] = report.copied_bytes;
  d["linked_files"] = report.linked_files;
  return d;
}

std::string path_text(const nb::bytes& path) { return {path.c_str(), path.size()}; }

// How many rows the table has adopted.
uint64_t adopt_rows(const PyDatabase& db, const PyTable& table, const nb::list& databases,
                    nb::object progress) {
  check_writable(table);
  if (table.handle != db.handle)
    raise("InvalidArgument", "table '" + table.table().name() + "' is of another database");
  check_progress(progress);
  std::vector<std::string> paths;
  for (nb::handle path : databases) paths.push_back(path_text(nb::cast<nb::bytes>(path)));
  Database& opened = db.handle->opened();
  Watch watch(std::move(progress));
  CommitOptions options;
  options.progress = [&](const CommitProgress& at) { return watch(at.share); };
  uint64_t rows = 0;
  Status status;
  {
    const Unlocked unlocked;
    WriteTransaction transaction = opened.begin();
    status = transaction.adopt(table.table(), paths);
    rows = transaction.staged_rows();
    if (status.ok()) status = transaction.commit(options);
  }
  watch.rethrow();
  check(*table.form, status);
  return rows;
}

nb::dict latency_of(const LatencyMetrics& latency) {
  nb::dict d;
  d["count"] = latency.count;
  d["sum_s"] = latency.sum_s;
  d["p50_s"] = latency.p50_s;
  d["p90_s"] = latency.p90_s;
  d["p99_s"] = latency.p99_s;
  d["p999_s"] = latency.p999_s;
  d["max_s"] = latency.max_s;
  return d;
}

nb::dict operations_of(const OperationMetrics& m) {
  nb::dict d;
  d["gets"] = m.gets;
  d["get_found"] = m.get_found;
  d["get_bytes"] = m.get_bytes;
  d["batch_gets"] = m.batch_gets;
  d["batch_keys"] = m.batch_keys;
  d["batch_found"] = m.batch_found;
  d["batch_bytes"] = m.batch_bytes;
  d["device_keys"] = m.device_keys;
  d["lower_bounds"] = m.lower_bounds;
  d["scans"] = m.scans;
  d["scan_rows"] = m.scan_rows;
  d["scan_bytes"] = m.scan_bytes;
  d["match_addresses"] = m.match_addresses;
  d["match_found"] = m.match_found;
  d["small_commits"] = m.small_commits;
  d["large_commits"] = m.large_commits;
  d["failed_commits"] = m.failed_commits;
  d["committed_rows"] = m.committed_rows;
  d["committed_bytes"] = m.committed_bytes;
  d["get_latency"] = latency_of(m.get_latency);
  d["commit_latency"] = latency_of(m.commit_latency);
  return d;
}

nb::dict work_of(const WorkMetrics& m) {
  nb::dict d;
  d["log_bytes"] = m.log_bytes;
  d["log_syncs"] = m.log_syncs;
  d["bulk_bytes"] = m.bulk_bytes;
  d["flushes"] = m.flushes;
  d["failed_flushes"] = m.failed_flushes;
  d["flush_memory_bytes"] = m.flush_memory_bytes;
  d["flush_bytes"] = m.flush_bytes;
  d["compactions"] = m.compactions;
  d["failed_compactions"] = m.failed_compactions;
  d["compaction_read_bytes"] = m.compaction_read_bytes;
  d["compaction_bytes"] = m.compaction_bytes;
  d["compaction_s"] = m.compaction_s;
  d["stalls"] = m.stalls;
  d["stall_s"] = m.stall_s;
  d["device_copies"] = m.device_copies;
  d["device_evictions"] = m.device_evictions;
  d["events"] = m.events;
  d["dropped_events"] = m.dropped_events;
  return d;
}

nb::dict state_of(const StateMetrics& m) {
  nb::dict d;
  d["runs"] = m.runs;
  d["segments"] = m.segments;
  d["rows"] = m.rows;
  d["memtable_rows"] = m.memtable_rows;
  d["segment_bytes"] = m.segment_bytes;
  d["log_bytes"] = m.log_bytes;
  d["size_bytes"] = m.size_bytes;
  d["memtable_bytes"] = m.memtable_bytes;
  d["sealed_memtables"] = m.sealed_memtables;
  d["debt_bytes"] = m.debt_bytes;
  d["resident_bytes"] = m.resident_bytes;
  d["device_segments"] = m.device_segments;
  d["device_bytes"] = m.device_bytes;
  d["write_amplification"] = m.write_amplification;
  d["space_amplification"] = m.space_amplification;
  d["poisoned"] = m.poisoned;
  d["read_only"] = m.read_only;
  return d;
}

nb::dict metrics_of(const PyDatabase& db) {
  Metrics metrics;
  Database& opened = db.handle->opened();
  run([&] {
    metrics = opened.metrics();
    return Status();
  });
  nb::dict d;
  d["operations"] = operations_of(metrics.operations);
  d["work"] = work_of(metrics.work);
  d["state"] = state_of(metrics.state);
  return d;
}

nb::list findings_of(const nb::bytes& path) {
  const std::string of = path_text(path);
  std::vector<Finding> findings;
  run([&]() -> Status {
    auto found = diagnose(of);
    if (!found.ok()) return found.status();
    findings = std::move(*found);
    return {};
  });
  nb::list all;
  for (const Finding& finding : findings) {
    nb::dict d;
    d["what"] = name_object(finding.what);
    d["value"] = name_object(finding.value);
    d["advice"] = name_object(finding.advice);
    d["fine"] = finding.is_fine();
    all.append(d);
  }
  return all;
}

}  // namespace

void bind_maintenance(nb::module_& module) {
  module.def(
      "_checkpoint",
      [](const PyDatabase& db, const nb::bytes& directory, nb::object progress) {
        Database& opened = db.handle->opened();
        const std::string to = path_text(directory);
        return make_copy(std::move(progress), [&](const CopyOptions& o, CopyReport* report) {
          return opened.checkpoint(to, o, report);
        });
      },
      nb::arg("database"), nb::arg("directory"), nb::arg("progress").none());
  module.def(
      "_backup",
      [](const PyDatabase& db, const nb::bytes& directory, nb::object progress) {
        Database& opened = db.handle->opened();
        const std::string to = path_text(directory);
        return make_copy(std::move(progress), [&](const CopyOptions& o, CopyReport* report) {
          return opened.backup(to, o, report);
        });
      },
      nb::arg("database"), nb::arg("directory"), nb::arg("progress").none());
  module.def(
      "_restore",
      [](const nb::bytes& backup, const nb::bytes& directory, nb::object progress) {
        const std::string from = path_text(backup), to = path_text(directory);
        return make_copy(std::move(progress), [&](const CopyOptions& o, CopyReport* report) {
          return restore(from, to, o, report);
        });
      },
      nb::arg("backup"), nb::arg("directory"), nb::arg("progress").none());
  module.def("_adopt", adopt_rows, nb::arg("database"), nb::arg("table"), nb::arg("databases"),
             nb::arg("progress").none());
  module.def("_metrics", metrics_of, nb::arg("database"));
  module.def(
      "_prometheus",
      [](const PyDatabase& db) {
        std::string text;
        Database& opened = db.handle->opened();
        run([&] {
          text = prometheus_text(opened.metrics());
          return Status();
        });
        return text;
      },
      nb::arg("database"));
  module.def("_diagnose", findings_of, nb::arg("path"));
}

}  // namespace stride::python
