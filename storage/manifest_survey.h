// What the manifest of a directory still tells, whatever its bytes are and whether or not CURRENT
// names it.
//
//   Result<ManifestSurvey> survey = survey_manifest(fs, "db", is_there);
//   if (survey->is_whole) ... survey->state is that of the database
#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "storage/file.h"
#include "storage/manifest.h"
#include "storage/status.h"

namespace stride {

struct ManifestSurvey {
  bool is_found = false;  // one that has a whole edit
  // It is the newest that is there, every edit of it was read, and nothing stands behind the last.
  bool is_whole = false;
  ManifestState state;
  // Segments and logs that some edit names, also those that were given up.
  std::unordered_set<uint64_t> named_segments, named_logs;
  // Tables whose edit was not read, but which others name; state has them as table-<id>.
  std::unordered_set<uint32_t> nameless_tables;
  std::unordered_set<uint32_t> dropped_tables;
  std::vector<Status> damage;
};

// has_files(edit): whether the files are there that an edit has added which was not synced; the
// edits from the first on whose files are not do not count, as for recovery. not_found: there is no
// such directory. unsupported_version; permission_denied.
Result<ManifestSurvey> survey_manifest(FileSystem& fs, const std::string& directory,
                                       const std::function<bool(const VersionEdit&)>& has_files);

}  // namespace stride
