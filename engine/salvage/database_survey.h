// What the files of a directory tell of a database, whether or not it can be opened.
//
//   Result<DatabaseSurvey> survey = survey_database(fs, "db");
//   for (const SurveyedSegment& s : survey->segments) read(s.path, s.record);
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/damage.h"
#include "storage/file.h"
#include "storage/log_survey.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

struct SurveyedSegment {
  std::string path;
  SegmentRecord record;
  bool is_intact_so_far = true;  // it could be opened, and fits its record
};

// Of a log that can be read at least in part.
struct SurveyedLog {
  std::string path;
  LogRecord record;
  LogSurvey log;
  bool is_named = true;  // the manifest names it
};

// Files that no edit of the manifest names are there, too: the segments as tables of their own, the
// rows of logs for the caller to give some.
struct DatabaseSurvey {
  std::vector<TableRecord> tables;        // ascending id
  std::unordered_set<uint32_t> unnamed;   // tables whose names are of the survey
  std::unordered_set<uint32_t> dropped;   // tables that were there before
  std::vector<SurveyedSegment> segments;  // ascending run
  std::vector<SurveyedLog> logs;          // that the manifest names first; then by number
  uint64_t next_id = 1;                   // above all that are in use
  bool has_manifest = false;
  // Nothing of it is damaged, and no frame of a log tells of an edit that it does not have.
  bool is_manifest_whole = false;
  // There are files that no edit of it names: of commits that had not returned, or whose edits are
  // lost.
  bool has_other_files = false;
  // Of the manifest, of logs, and of segments of which nothing can be read, which are not in the
  // list. Others have to be looked at by who reads them.
  std::vector<Damage> damage;

  const TableRecord* find(uint32_t table) const;
  // A name that no table has.
  std::string free_name(std::string name) const;
  // A table of its own, for what no manifest tells of.
  const TableRecord& add_table(TableRecord table);
};

// Fails as verify_files() (engine/damage.h), but for corruption.
Result<DatabaseSurvey> survey_database(FileSystem& fs, const std::string& directory);

}  // namespace stride
