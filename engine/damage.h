// What is damaged of a database's files: all of it, and not only what a read met first.
//
//   VerifyReport report;
//   Status s = db->verify(&report);                       // or verify_files("/var/lib/app/db",
//   &report) for (const Damage& d : report.damage)
//     std::cerr << d.to_string() << "\n";
//
// docs/damage.md says what becomes of a database with damage, and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/export.h"
#include "storage/status.h"

namespace stride {

class FileSystem;

// Bytes of a file that are not what was written, and what needs them.
struct STRIDE_API Damage {
  std::string file;  // with the database's path
  // The part of the file: of a segment "key_data", "key_data to tree" (a block of 64 KiB lies in
  // several sections), "header", "tables", "footer"; else "file" (all of it), "manifest",
  // "CURRENT", "log header", "log frames".
  std::string section;
  uint64_t offset = 0, bytes = 0;  // in the file; 0 bytes: up to an end that is not known
  std::string what;                // "the checksum of a block differs"
  std::string table;               // empty: not known, or any
  // Reads of so many rows at most need these bytes, as the file numbers them, all of which have
  // keys from first_key to last_key, both included. 0 where none does, or where that is not known;
  // nothing: there is no bound. Where the keys themselves are damaged, the bounds are those of the
  // nearest rows.
  uint64_t rows = 0;
  std::optional<std::string> first_key, last_key;
  StatusCode code = StatusCode::corruption;  // or io_error, unsupported_version

  // "000007.seg: key_data at 65536, 65536 bytes: the checksum of a block differs; table 'users',
  // 812 rows from 'ant' to 'bee'"
  std::string to_string() const;
};

struct VerifyReport {
  uint64_t files = 0, bytes = 0;  // that were read
  // By file: of the manifest, of tables in the order of Database::tables(), of logs; of a file in
  // the order of the offsets. Empty: everything is as it was written.
  std::vector<Damage> damage;
};

// As Database::verify(), for a database that cannot be opened, too: reads all files that its
// manifest names or, where that is damaged, that are there. Changes nothing. corruption: there is
// damage, of which the status tells the first. file_system: null for FileSystem::posix().
//
// not_found: there is no such directory; invalid_argument: it has no file of a database. locked:
// another process writes it. cancelled: as by call_watched() (engine/watched_call.h).
STRIDE_API Status verify_files(const std::string& directory, VerifyReport* report,
                               FileSystem* file_system = nullptr);

}  // namespace stride
