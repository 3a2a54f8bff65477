#include "engine/salvage/verification.h"

#include <mutex>
#include <utility>

#include "engine/catalog/segment_check.h"
#include "engine/salvage/damaged_parts.h"
#include "engine/salvage/database_survey.h"
#include "storage/copy_files.h"
#include "storage/log_survey.h"
#include "storage/no_throw.h"
#include "storage/segment_survey.h"

namespace stride {
namespace {

// Of a file that checksums vouch for, and that is nevertheless not what it should be.
Damage damage_of_content(const Status& why, const SegmentSurvey* survey, const std::string& table) {
  Damage d{.file = why.file(), .section = "file", .what = why.message(), .table = table};
  d.offset = why.offset().value_or(0);
  d.code = why.code();
  if (!survey) return d;
  d.section = survey->section_name(d.offset, 1);
  d.rows = survey->rows();
  std::optional<Bytes> from, to;
  survey->find_bounds({0, survey->rows()}, &from, &to);
  if (from) d.first_key = std::string(as_text(*from));
  if (to) d.last_key = std::string(as_text(*to));
  return d;
}

// why: what has failed to open or to be verified.
Status report_segment(FileSystem& fs, const IndexedSegment& segment, const std::string& table,
                      const Status& why, VerifyReport* report) {
  const std::string& path = segment.segment().path();
  auto survey = SegmentSurvey::read(fs, path, segment.record().segment);
  if (survey.status().code() == StatusCode::cancelled) return survey.status();
  if (!survey.ok()) {
    report->damage.push_back(damage_of_file(survey.status(), path, table, segment.record().rows));
  } else if (survey->damage().empty()) {
    report->damage.push_back(damage_of_content(why, &*survey, table));
  } else {
    add_damage(*survey, table, &report->damage);
  }
  return {};
}

// A database that nobody has open.
class FileVerification {
 public:
  FileVerification(FileSystem& fs, VerifyReport* report) : fs_(fs), report_(*report) {}

  Status run(const DatabaseSurvey& survey) {
    report_.damage = survey.damage;
    std::vector<std::vector<Damage>> damage(survey.segments.size());
    STRIDE_TRY(copy_files(survey.segments.size(), nullptr, [&](uint64_t i) -> Status {
      const SurveyedSegment& segment = survey.segments[i];
      const std::string& table = survey.find(segment.record.table)->name;
      auto read = SegmentSurvey::read(fs_, segment.path, segment.record.segment);
      if (read.ok()) {
        add_damage(*read, table, &damage[i]);
        return {};
      }
      if (!is_damage(read.status())) return read.status();
      damage[i].push_back(damage_of_file(read.status(), segment.path, table, segment.record.rows));
      return {};
    }));
    for (size_t i = 0; i < damage.size(); ++i) {
      ++report_.files;
      report_.bytes += survey.segments[i].record.bytes;
      report_.damage.insert(report_.damage.end(), damage[i].begin(), damage[i].end());
    }
    for (const SurveyedLog& log : survey.logs) {
      ++report_.files;
      report_.bytes += log.log.bytes.size();
    }
    return first_of(report_.damage);
  }

 private:
  FileSystem& fs_;
  VerifyReport& report_;
};

}  // namespace

Status report_table(FileSystem& fs, Backend& backend, const TableRecord& table,
                    const SegmentList& segments, VerifyReport* report) {
  for (const auto& segment : segments) {
    ++report->files;
    report->bytes += segment->record().bytes;
    Status s = verify_segment(fs, backend, *segment, table);
    if (s.ok()) continue;
    if (!is_damage(s)) return s;
    STRIDE_TRY(report_segment(fs, *segment, table.name, s, report));
  }
  Status s = check_runs(segments);
  if (!s.ok()) report->damage.push_back(damage_of_content(s, nullptr, table.name));
  return {};
}

Status report_logs(const DatabaseContext& context, const std::vector<LogRecord>& logs,
                   const Status& why, VerifyReport* report) {
  const size_t before = report->damage.size();
  for (const LogRecord& record : logs) {
    const std::string path = context.log_path(record.number);
    auto log = survey_log(*context.fs, path, record.number, record.id);
    if (log.status().code() == StatusCode::cancelled) return log.status();
    if (log.ok()) {
      add_damage(*log, path, &report->damage);
    } else {
      report->damage.push_back(damage_of_file(log.status(), path, "", 0));
    }
  }
  if (report->damage.size() > before) return {};
  Damage d = damage_of_content(why, nullptr, "");
  d.section = "log frames";
  report->damage.push_back(std::move(d));
  return {};
}

Status verify_files(const std::string& directory, VerifyReport* report, FileSystem* file_system) {
  const WorkWatch::Scope watched(WorkWatch::offered());
  return no_throw([&] {
    *report = {};
    FileSystem& fs = file_system ? *file_system : FileSystem::posix();
    auto survey = survey_database(fs, directory);
    if (!survey.ok()) return survey.status();
    return FileVerification(fs, report).run(*survey);
  });
}

}  // namespace stride
