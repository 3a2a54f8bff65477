#include "engine/diagnosis.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "engine/catalog/reader_lease.h"
#include "engine/database_impl.h"
#include "engine/metrics.h"
#include "storage/current_file.h"
#include "storage/log_format.h"
#include "storage/manifest_format.h"
#include "storage/no_throw.h"
#include "storage/quoted.h"

namespace stride {
namespace {

// Merges in the background keep a table below this; each run costs lookups a search.
constexpr uint64_t many_runs = 24;
constexpr uint64_t many_segments = 64, small_segment_bytes = 1 << 20;
// A memtable's log, many times over.
constexpr uint64_t large_log_bytes = 1 << 30;
constexpr uint64_t large_debt_bytes = 256 << 20;
constexpr const char* merge_remedy =
    "run stride compact, or leave it open for writing: merges go on behind";

std::string counted(uint64_t n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

// "3 files: '000007.seg', '000009.seg' and others"
std::string listed(const std::vector<std::string>& names, std::string_view what) {
  constexpr size_t max_named = 3;
  std::string text = counted(names.size(), what);
  for (size_t i = 0; i < std::min(names.size(), max_named); ++i)
    text += (i == 0 ? ": " : ", ") + in_quotes(names[i]);
  return text + (names.size() > max_named ? " and others" : "");
}

// A finding that is fine where there is no advice.
Finding found(std::string what, std::string value, bool unusual, std::string advice,
              StatusCode code = StatusCode::ok) {
  if (!unusual) return {std::move(what), std::move(value), {}, StatusCode::ok};
  return {std::move(what), std::move(value), std::move(advice), code};
}

Finding failed_opening(const Status& s) {
  return {"opening", s.to_string(),
          s.remedy().empty() ? "see to what the message says, and try again" : s.remedy(),
          s.code()};
}

class Diagnosis {
 public:
  Diagnosis(const DatabaseImpl& database, const Metrics& metrics)
      : database_(database), version_(database.current()), state_(metrics.state) {}

  Result<std::vector<Finding>> run() {
    findings_.push_back({"opening",
                         counted(state_.tables.size(), "table") + ", " +
                             counted(state_.rows, "row") + ", " +
                             counted(state_.size_bytes, "byte"),
                         {},
                         StatusCode::ok});
    look_at_segments();
    STRIDE_TRY(look_at_files());
    look_at_log();
    look_at_shape();
    return std::move(findings_);
  }

 private:
  void look_at_segments() {
    std::vector<std::string> damaged;
    for (const auto& table : version_->tables.all())
      for (const auto& segment : table->segments)
        if (!segment->open_failure().ok())
          damaged.push_back(segment_name(segment->record().segment));
    findings_.push_back(found(
        "segments",
        damaged.empty() ? counted(state_.segments, "segment") : listed(damaged, "damaged segment"),
        !damaged.empty(),
        "restore these files from a backup; stride verify says what else is "
        "damaged, and reads of other tables go on",
        StatusCode::corruption));
  }

  Status look_at_files() {
    const DatabaseContext& context = database_.context();
    auto names = context.fs->list(context.path);
    if (!names.ok()) return names.status();
    auto current = read_current(*context.fs, context.path);
    std::unordered_set<std::string> known = {"LOCK", "CURRENT", "COSTS", "LOG", "LOG.old"};
    if (current.ok()) known.insert(manifest_name(*current));
    for (const auto& table : version_->tables.all())
      for (const auto& segment : table->segments)
        known.insert(segment_name(segment->record().segment));
    for (const LogRecord& log : database_.logs()) known.insert(log_name(log.number));
    std::vector<std::string> leftovers, strangers;
    for (const std::string& name : *names) {
      if (known.contains(name) || is_lease_name(name)) continue;
      const bool is_ours = segment_number(name) || log_number(name) ||
                           name.starts_with("MANIFEST-") || name.ends_with(".tmp");
      (is_ours ? leftovers : strangers).push_back(name);
    }
    findings_.push_back(found("leftovers", listed(leftovers, "file"), !leftovers.empty(),
                              "a process was ended in the middle of its work, or is at it now: the "
                              "next opening for writing removes what nobody needs"));
    findings_.push_back(found("other files", listed(strangers, "file"), !strangers.empty(),
                              "they are not the database's, which leaves them alone: keep them "
                              "elsewhere"));
    return {};
  }

  void look_at_log() {
    const bool unsynced = database_.has_unsynced_edits();
    findings_.push_back(
        found("unsynced", unsynced ? "the last changes were not synced" : "nothing", unsynced,
              "a power loss may take them: open it for writing, and call sync() or close() it"));
    findings_.push_back(found(
        "log", counted(state_.memtable_rows, "row") + " in " + counted(state_.log_bytes, "byte"),
        state_.log_bytes > large_log_bytes,
        "opening reads all of it: see whether flushes fail (LOG), and run "
        "stride compact"));
  }

  void look_at_shape() {
    const TableStatistics* most = nullptr;
    uint64_t reclaimable = 0;
    for (const TableStatistics& table : state_.tables) {
      if (!most || table.runs > most->runs) most = &table;
      reclaimable += table.reclaimable_bytes;
    }
    const uint64_t runs = most ? most->runs : 0;
    findings_.push_back(found(
        "runs",
        runs == 0 ? "none" : "at most " + std::to_string(runs) + ", in " + in_quotes(most->name),
        runs > many_runs, std::string("each costs lookups a search: ") + merge_remedy));
    const uint64_t mean = state_.segments ? state_.segment_bytes / state_.segments : 0;
    findings_.push_back(found("segment size", counted(mean, "byte") + " on average",
                              state_.segments > many_segments && mean < small_segment_bytes,
                              "many small segments cost open files and memory: commit more at "
                              "once, and run stride compact"));
    findings_.push_back(
        found("erased rows", counted(reclaimable, "byte"),
              reclaimable > state_.segment_bytes / 2 && reclaimable > small_segment_bytes,
              "they take more than half of the files: run stride compact"));
    findings_.push_back(
        found("debt", counted(state_.debt_bytes, "byte"),
              state_.debt_bytes > large_debt_bytes && state_.debt_bytes > state_.segment_bytes / 2,
              std::string("merges have not kept up: ") + merge_remedy));
  }

  const DatabaseImpl& database_;
  const std::shared_ptr<const Version> version_;
  const StateMetrics& state_;
  std::vector<Finding> findings_;
};

}  // namespace

Result<std::vector<Finding>> diagnose(const std::string& path, FileSystem* file_system) {
  return no_throw([&]() -> Result<std::vector<Finding>> {
    FileSystem& fs = file_system ? *file_system : FileSystem::posix();
    if (auto names = fs.list(path); !names.ok()) return names.status();
    Options options{.create_if_missing = false, .read_only = true, .threads = 1};
    options.backend = BackendKind::host;
    options.file_system = file_system;
    auto database = DatabaseImpl::open(path, options, /*takes_lease=*/false);
    if (!database.ok()) return std::vector{failed_opening(database.status())};
    const Metrics metrics = (*database)->metrics();
    auto findings = Diagnosis(**database, metrics).run();
    Status closed = (*database)->close();
    return findings;
  });
}

}  // namespace stride
