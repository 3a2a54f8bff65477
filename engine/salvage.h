// Makes a new database of what is left of a damaged one.
//
//   SalvageReport report;
//   Status s = salvage("/var/lib/app/db", "/var/lib/app/db-salvaged", {}, &report);
//   if (s.ok() && !report.is_complete())
//     for (const LostRows& lost : report.lost) std::cerr << lost.to_string() << "\n";
//
// docs/damage.md says what is recovered, and what is not certain then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/backup.h"
#include "engine/damage.h"
#include "storage/export.h"
#include "storage/status.h"

namespace stride {

class FileSystem;

// Rows of one file that could not be read, which lie together.
struct STRIDE_API LostRows {
  std::string table;  // empty: not known, or any
  std::string file;
  uint64_t rows = 0;  // at most; 0: not known
  // All of them have keys from first_key to last_key, both included; nothing: there is no bound.
  std::optional<std::string> first_key, last_key;
  std::string why;
  // The table has older rows in this range: what the lost rows had replaced or erased may be there
  // again.
  bool older_rows_remain = false;

  std::string to_string() const;
};

struct SalvagedTable {
  std::string name;
  // Nothing says any more what the table was called: `name` is of the salvage.
  bool is_unnamed = false;
  uint64_t rows = 0;       // that files and logs have of it, those included that newer ones replace
  uint64_t lost_rows = 0;  // at most, as far as that is known
};

struct STRIDE_API SalvageReport {
  uint64_t files = 0, bytes = 0;      // of segments in the new database
  uint64_t rebuilt_files = 0;         // of these: written anew, since something was damaged
  std::vector<SalvagedTable> tables;  // by name
  std::vector<LostRows> lost;
  std::vector<Damage> damage;          // of the source, lost rows or not
  std::vector<std::string> uncertain;  // sentences about what the files do not tell

  // All rows of the source are there, in the tables that they were in.
  bool is_complete() const { return lost.empty() && uncertain.empty(); }
};

// Recovers the rows of every block that is intact, of a database whose manifest, CURRENT or logs
// may be damaged or missing too. The source is only read. The new directory must not be there, nor
// lie in the source. Tables keep their names, options, schemas and notes as far as the manifest
// tells of them; files that nothing tells of become tables of their own, `segment-000007` and
// `log-of-table-3`. report: null, or what is there and what is lost.
//
// ok: there is a new database, which may be a part of the old one; see report->is_complete(). Else
// nothing is left of the directory. not_found: there is no source; invalid_argument: it has no file
// of a database. locked: a process writes it. already_exists: new_directory is there.
// unsupported_version: a newer StrideDB has written the source. corruption: not one row or table is
// left. no_space, io_error, permission_denied, cancelled. file_system: null for
// FileSystem::posix(). Uses one thread for each core.
STRIDE_API Status salvage(const std::string& source, const std::string& new_directory,
                          const CopyOptions& options = {}, SalvageReport* report = nullptr,
                          FileSystem* file_system = nullptr);

}  // namespace stride
