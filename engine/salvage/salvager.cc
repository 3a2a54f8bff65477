#include "engine/salvage/salvager.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "engine/backup/new_database.h"
#include "engine/build/segment_builder_body.h"
#include "engine/catalog/database_context.h"
#include "engine/device/executor.h"
#include "engine/salvage/damaged_parts.h"
#include "engine/salvage/database_survey.h"
#include "engine/salvage/recovered_logs.h"
#include "engine/salvage/recovered_rows.h"
#include "storage/copy_files.h"
#include "storage/file_copy.h"
#include "storage/segment_survey.h"

namespace stride {
namespace {

// Fewer rows are built by the calling thread: starting others would take longer.
constexpr uint64_t min_rows_for_threads = 1 << 16;

class Salvage {
 public:
  Salvage(FileSystem& fs, const std::string& source, const std::string& directory,
          SalvageReport* report)
      : fs_(fs), source_(source), made_(fs, directory), report_(*report) {}

  Status run(CopyCounters* counters) {
    auto survey = survey_database(fs_, source_);
    if (!survey.ok()) return survey.status();
    survey_ = std::move(*survey);
    if (survey_.tables.empty() && survey_.segments.empty() && survey_.logs.empty())
      return nothing_left();
    counters->total_files = survey_.segments.size();
    for (const SurveyedSegment& s : survey_.segments) counters->total_bytes += s.record.bytes;
    STRIDE_TRY(made_.begin());
    STRIDE_TRY(copy_segments(counters));
    STRIDE_TRY(recover_logs(
        fs_, &survey_, [&](uint64_t number) { return made_.add(log_name(number)); }, &logs_));
    STRIDE_TRY(write_manifest());
    STRIDE_TRY(made_.finish());
    tell();
    return {};
  }

 private:
  Status nothing_left() const {
    const Status first = first_of(survey_.damage);
    return Status::corruption(source_, 0, "nothing is left of the database: " + first.message())
        .with_remedy("restore it from a backup");
  }

  // What is intact is copied as it is, several files at once; all others are looked at row by row.
  Status copy_segments(CopyCounters* counters) {
    std::vector<bool> is_copied(survey_.segments.size());
    std::mutex mutex;  // guards is_copied
    STRIDE_TRY(copy_files(survey_.segments.size(), &counters->files, [&](uint64_t i) -> Status {
      const SurveyedSegment& segment = survey_.segments[i];
      if (!segment.is_intact_so_far) return {};
      Status s = copy(segment);
      if (s.ok()) {
        std::lock_guard guard(mutex);
        is_copied[i] = true;
        return {};
      }
      const bool is_of_source = s.file() == segment.path && (s.code() == StatusCode::corruption ||
                                                             s.code() == StatusCode::io_error);
      return is_of_source ? Status() : s;
    }));
    for (size_t i = 0; i < survey_.segments.size(); ++i) {
      const SurveyedSegment& segment = survey_.segments[i];
      if (is_copied[i]) {
        add(segment.record, segment.record.rows - segment.record.tombstones);
      } else {
        STRIDE_TRY(rebuild(segment));
      }
    }
    return {};
  }

  Status copy(const SurveyedSegment& segment) {
    auto source = FileSource::open(fs_, segment.path);
    if (!source.ok()) return source.status();
    auto sums = read_segment_sums(*source, segment.record.segment);
    if (!sums.ok()) return sums.status();
    return copy_segment(*source, *sums, fs_, made_.add(segment_name(segment.record.segment)));
  }

  void add(const SegmentRecord& record, uint64_t rows) {
    added_.push_back(record);
    rows_[record.table] += rows;
    report_.bytes += record.bytes;
    ++report_.files;
  }

  Status rebuild(const SurveyedSegment& segment) {
    const SegmentRecord& record = segment.record;
    const TableRecord& table = *survey_.find(record.table);
    auto survey = SegmentSurvey::read(fs_, segment.path, record.segment);
    Status s = survey.status();
    if (s.ok() && survey->rows() != record.rows)
      s = Status::corruption(segment.path, 0,
                             "the segment has another number of rows than the manifest says");
    if (s.code() == StatusCode::cancelled || s.code() == StatusCode::resource_exhausted) return s;
    if (!s.ok()) {
      report_.damage.push_back(damage_of_file(s, segment.path, table.name, record.rows));
      lose_file(report_.damage.back());
      return {};
    }
    add_damage(*survey, table.name, &report_.damage);
    RecoveredRows rows = recover_rows(*survey, record, table, &report_.lost);
    if (rows.size() == 0) return {};
    ++report_.rebuilt_files;
    return build(rows, record, table, !survey->layout().section(SectionType::key_filter).empty());
  }

  Status build(const RecoveredRows& rows, SegmentRecord record, const TableRecord& table,
               bool has_filter) {
    const bool wants_threads = rows.size() >= min_rows_for_threads;
    if (!executor_ || (wants_threads && !has_threads_)) {
      Options host;
      host.backend = BackendKind::host;
      if (!wants_threads) host.threads = 1;
      auto made = Executor::make(host);
      if (!made.ok()) return made.status();
      executor_ = std::move(*made);
      has_threads_ = wants_threads;
    }
    const TreeOptions tree;
    SegmentBuildOptions options;
    options.fs = &fs_;
    options.executor = executor_.get();
    options.path = made_.add(segment_name(record.segment));
    options.id = record.segment;
    options.tree = &tree;
    options.share_equal_values = table.share_equal_values;
    options.key_filter = has_filter;
    auto built = build_segment(RowRange<RecoveredRows>{rows, 0, rows.size()}, options);
    if (!built.ok()) return built.status();
    record.rows = (*built)->rows();
    record.tombstones = (*built)->tombstones();
    record.bytes = (*built)->bytes_on_disk();
    record.erased = {};
    add(record, record.rows - record.tombstones);
    return {};
  }

  // A database of its own: what is written to it is no later state of the damaged one.
  Status write_manifest() {
    ManifestState state;
    state.tables = survey_.tables;
    state.segments = added_;
    state.logs = logs_.records;
    state.next_id = survey_.next_id;
    auto bytes = encode_manifest(1, draw_identity(), state);
    if (!bytes.ok()) return bytes.status();
    auto file = fs_.open(made_.add(manifest_name(1)), OpenMode::create);
    if (!file.ok()) return file.status();
    STRIDE_TRY((*file)->write_at(0, *bytes));
    return (*file)->sync();
  }

  void lose_file(const Damage& damage) {
    report_.lost.push_back({.table = damage.table,
                            .file = damage.file,
                            .rows = damage.rows,
                            .first_key = {},
                            .last_key = {},
                            .why = damage.what});
  }

  void tell() {
    for (const Damage& damage : survey_.damage) {
      if (damage.section == "file" || damage.section == "log frames") {
        lose_file(damage);
      } else if (damage.section == "manifest") {
        report_.uncertain.push_back(damage.what + " (" + damage.file + ", offset " +
                                    std::to_string(damage.offset) + ")");
      }
    }
    report_.damage.insert(report_.damage.begin(), survey_.damage.begin(), survey_.damage.end());
    tell_what_is_uncertain();
    tell_of_older_rows();
    tell_of_tables();
  }

  void tell_what_is_uncertain() {
    std::vector<std::string>& uncertain = report_.uncertain;
    if (!survey_.has_manifest)
      uncertain.emplace_back(
          "no manifest tells which tables there were: each segment is a table of its own, with "
          "rows "
          "that newer ones had replaced or erased");
    else if (!survey_.is_manifest_whole)
      uncertain.emplace_back(
          "edits of the manifest are missing: tables may lack segments, and may have rows again "
          "that were erased");
    if (survey_.has_manifest && survey_.has_other_files)
      uncertain.emplace_back(
          "no edit of the manifest names some of the files, which are tables of their own now: "
          "they "
          "are of commits that had not returned, or whose edits are lost");
    for (const SurveyedLog& log : survey_.logs)
      if (!log.log.ends_with_zeros)
        uncertain.push_back(
            "the log ends with what is no frame: a commit that had not returned, or "
            "damage (" +
            log.path + ", offset " + std::to_string(log.log.end) + ")");
    if (logs_.unfit_rows > 0)
      uncertain.push_back(std::to_string(logs_.unfit_rows) +
                          " rows of logs do not fit their tables and were left out");
  }

  // Rows that were lost may have stood for older ones.
  void tell_of_older_rows() {
    for (LostRows& lost : report_.lost) {
      const SegmentRecord* record = record_of(lost.file);
      lost.older_rows_remain =
          std::any_of(added_.begin(), added_.end(), [&](const SegmentRecord& other) {
            return !record || (other.table == record->table && other.run < record->run);
          });
    }
  }
  const SegmentRecord* record_of(const std::string& file) const {
    for (const SurveyedSegment& s : survey_.segments)
      if (s.path == file) return &s.record;
    return nullptr;
  }

  void tell_of_tables() {
    for (const auto& [table, rows] : logs_.rows) rows_[table] += rows;
    for (const TableRecord& table : survey_.tables) {
      SalvagedTable told{.name = table.name,
                         .is_unnamed = survey_.unnamed.contains(table.id),
                         .rows = rows_[table.id]};
      for (const LostRows& lost : report_.lost)
        if (lost.table == table.name) told.lost_rows += lost.rows;
      report_.tables.push_back(std::move(told));
    }
    std::sort(report_.tables.begin(), report_.tables.end(),
              [](auto& a, auto& b) { return a.name < b.name; });
  }

  FileSystem& fs_;
  const std::string source_;
  NewDatabase made_;
  SalvageReport& report_;
  DatabaseSurvey survey_;
  std::shared_ptr<Executor> executor_;  // null before it is needed
  bool has_threads_ = false;            // it has one for each core
  std::vector<SegmentRecord> added_;
  RecoveredLogs logs_;
  std::map<uint32_t, uint64_t> rows_;  // by table
};

}  // namespace

Status salvage_database(FileSystem& fs, const std::string& source, const std::string& directory,
                        CopyCounters* counters, SalvageReport* report) {
  return Salvage(fs, source, directory, report).run(counters);
}

}  // namespace stride
