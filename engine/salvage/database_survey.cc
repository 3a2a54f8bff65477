#include "engine/salvage/database_survey.h"

#include <algorithm>
#include <utility>

#include "engine/catalog/segment_check.h"
#include "engine/salvage/damaged_parts.h"
#include "storage/log_format.h"
#include "storage/manifest_format.h"
#include "storage/manifest_survey.h"
#include "storage/segment.h"
#include "storage/segment_survey.h"

namespace stride {
namespace {

bool is_ours(const std::string& name) {
  return segment_number(name) || log_number(name) || manifest_number(name) || name == "CURRENT";
}

class Surveyor {
 public:
  Surveyor(FileSystem& fs, const std::string& directory) : fs_(fs), directory_(directory) {}

  Result<DatabaseSurvey> run() {
    auto names = fs_.list(directory_);
    if (!names.ok()) return names.status();
    names_ = std::move(*names);
    STRIDE_TRY(check_directory());
    auto manifest =
        survey_manifest(fs_, directory_, [&](const VersionEdit& edit) { return has_files(edit); });
    if (!manifest.ok()) return manifest.status();
    found_.has_manifest = manifest->is_found;
    found_.is_manifest_whole = manifest->is_whole;
    found_.tables = std::move(manifest->state.tables);
    found_.unnamed = std::move(manifest->nameless_tables);
    found_.dropped = std::move(manifest->dropped_tables);
    for (const Status& s : manifest->damage) found_.damage.push_back(damage_of_manifest(s));
    set_next_id(manifest->state);
    for (const SegmentRecord& record : manifest->state.segments)
      STRIDE_TRY(add_named_segment(record));
    STRIDE_TRY(add_other_segments(manifest->named_segments));
    std::stable_sort(found_.segments.begin(), found_.segments.end(),
                     [](auto& a, auto& b) { return a.record.run < b.record.run; });
    STRIDE_TRY(add_logs(*manifest));
    return std::move(found_);
  }

 private:
  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }

  Status check_directory() const {
    auto has = [&](const char* name) {
      return std::find(names_.begin(), names_.end(), name) != names_.end();
    };
    if (has("BACKUP"))
      return Status::invalid("this is a backup, and no database")
          .with_file(directory_)
          .with_remedy("restore it into a new directory (stride restore)");
    if (std::none_of(names_.begin(), names_.end(), is_ours))
      return Status::invalid(
                 "not a StrideDB database: no file of the directory is one of its files")
          .with_file(directory_)
          .with_remedy("give the directory of a database");
    if (!has("LOCK")) return {};
    auto locked = fs_.is_locked(path_of("LOCK"));
    if (locked.ok() && *locked)
      return Status(StatusCode::locked, "a process writes the database")
          .with_file(path_of("LOCK"))
          .with_remedy("close it there first");
    return {};
  }

  // Recovery does not count a commit either that was not synced and whose files a power loss has
  // taken or torn; those of a whole one end with their tables.
  bool has_files(const VersionEdit& edit) {
    return std::all_of(edit.added.begin(), edit.added.end(), [&](const SegmentRecord& record) {
      const std::string path = path_of(segment_name(record.segment));
      return Segment::open(fs_, path, record.segment).ok() ||
             SegmentSurvey::read(fs_, path, record.segment).ok();
    });
  }

  void set_next_id(const ManifestState& state) {
    uint64_t& next = found_.next_id;
    next = std::max<uint64_t>(state.next_id, 1);
    auto use = [&](uint64_t id) { next = std::max(next, id + 1); };
    for (const TableRecord& t : state.tables) use(t.id);
    for (const SegmentRecord& s : state.segments) use(std::max(s.segment, s.run));
    constexpr uint64_t min_foreign_id = uint64_t{1} << 31;  // as for recovery
    for (const std::string& name : names_)
      for (auto id : {segment_number(name), log_number(name)})
        if (id && *id < min_foreign_id) use(*id);
  }

  // Reads no more than opening does.
  Status add_named_segment(const SegmentRecord& record) {
    SurveyedSegment found{path_of(segment_name(record.segment)), record};
    const TableRecord* table = found_.find(record.table);
    auto segment = Segment::open(fs_, found.path, record.segment);
    Status s = segment.ok() ? check_record(**segment, record, *table) : segment.status();
    const bool is_of_others =
        s.code() == StatusCode::permission_denied || s.code() == StatusCode::resource_exhausted;
    if (is_of_others) return s;
    found.is_intact_so_far = s.ok();
    if (segment.ok() && !s.ok()) {
      found_.damage.push_back(damage_of_file(s, found.path, table->name, record.rows));
      // It is another segment than the manifest tells of.
      return add_other_segment(record.segment);
    }
    if (s.code() == StatusCode::not_found || s.code() == StatusCode::invalid_argument) {
      found_.damage.push_back(damage_of_file(s, found.path, table->name, record.rows));
      return {};
    }
    found_.segments.push_back(std::move(found));
    return {};
  }

  Status add_other_segments(const std::unordered_set<uint64_t>& named) {
    for (const std::string& name : names_) {
      auto id = segment_number(name);
      if (id && !named.contains(*id)) STRIDE_TRY(add_other_segment(*id));
    }
    return {};
  }

  // As a table of its own.
  Status add_other_segment(uint64_t id) {
    const std::string name = segment_name(id);
    SurveyedSegment found{path_of(name), {.segment = id}};
    auto survey = SegmentSurvey::read(fs_, found.path, id);
    if (survey.status().code() == StatusCode::unsupported_version) return survey.status();
    if (!survey.ok()) {
      // Beside a whole manifest it is what a commit has left that was cut off.
      if (!found_.is_manifest_whole)
        found_.damage.push_back(damage_of_file(survey.status(), found.path, "", 0));
      return {};
    }
    found_.has_other_files = true;
    const SegmentHeader& header = survey->layout().header;
    TableRecord table{.id = 0, .name = "segment-" + name.substr(0, name.find('.'))};
    if (survey->layout().keys.fixed) table.key_width = header.key_width;
    found.record = {id,          found_.add_table(table).id, id,
                    header.rows, header.tombstones,          survey->layout().file.size()};
    found.is_intact_so_far = survey->damage().empty();
    found_.segments.push_back(std::move(found));
    return {};
  }

  Status add_logs(const ManifestSurvey& manifest) {
    std::unordered_set<uint64_t> named = manifest.named_logs;
    for (const LogRecord& record : manifest.state.logs) {
      named.insert(record.number);
      STRIDE_TRY(add_log(record, /*is_named=*/true));
    }
    check_ends();
    find_lost_edits(manifest.state.next_id);
    for (const std::string& name : names_) {
      auto number = log_number(name);
      if (number && !named.contains(*number)) STRIDE_TRY(add_log({*number, 0}, false));
    }
    return {};
  }

  // A frame says which edits came before it.
  void find_lost_edits(uint64_t next_id) {
    for (const SurveyedLog& log : found_.logs)
      for (const SurveyedFrame& frame : log.log.frames)
        if (frame.header.next_id > next_id) found_.is_manifest_whole = false;
  }

  Status add_log(const LogRecord& record, bool is_named) {
    const std::string path = path_of(log_name(record.number));
    auto log =
        survey_log(fs_, path, record.number, is_named ? std::optional(record.id) : std::nullopt);
    const StatusCode code = log.status().code();
    if (code == StatusCode::unsupported_version || code == StatusCode::permission_denied ||
        code == StatusCode::cancelled)
      return log.status();
    if (!log.ok()) {
      if (is_named || !found_.is_manifest_whole)
        found_.damage.push_back(damage_of_file(log.status(), path, "", 0));
      return {};
    }
    if (!is_named && log->frames.empty()) return {};
    if (!is_named) found_.has_other_files = true;
    add_damage(*log, path, &found_.damage);
    found_.logs.push_back({path, record, std::move(*log), is_named});
    return {};
  }

  // A log that begins behind the end of the one before it says that frames are missing there.
  void check_ends() {
    for (size_t i = 1; i < found_.logs.size(); ++i) {
      const SurveyedLog& before = found_.logs[i - 1];
      const auto end = before.log.end_position();
      if (!end || !found_.logs[i].log.position || *end >= *found_.logs[i].log.position) continue;
      Damage d{.file = before.path, .section = "log frames"};
      d.offset = before.log.end;
      d.bytes = *found_.logs[i].log.position - *end;
      d.what = "the log ends before the next one begins";
      found_.damage.push_back(std::move(d));
    }
  }

  FileSystem& fs_;
  const std::string directory_;
  std::vector<std::string> names_;
  DatabaseSurvey found_;
};

}  // namespace

const TableRecord* DatabaseSurvey::find(uint32_t table) const {
  auto found = std::find_if(tables.begin(), tables.end(),
                            [&](const TableRecord& t) { return t.id == table; });
  return found == tables.end() ? nullptr : &*found;
}

std::string DatabaseSurvey::free_name(std::string name) const {
  auto is_there = [&](const std::string& n) {
    return std::any_of(tables.begin(), tables.end(), [&](auto& t) { return t.name == n; });
  };
  const std::string stem = name;
  for (int i = 2; is_there(name); ++i) name = stem + "-" + std::to_string(i);
  return name;
}

const TableRecord& DatabaseSurvey::add_table(TableRecord table) {
  if (table.id == 0) table.id = static_cast<uint32_t>(next_id++);
  table.name = free_name(std::move(table.name));
  unnamed.insert(table.id);
  auto at = std::lower_bound(tables.begin(), tables.end(), table.id,
                             [](const TableRecord& t, uint32_t id) { return t.id < id; });
  return *tables.insert(at, std::move(table));
}

Result<DatabaseSurvey> survey_database(FileSystem& fs, const std::string& directory) {
  return Surveyor(fs, directory).run();
}

}  // namespace stride
