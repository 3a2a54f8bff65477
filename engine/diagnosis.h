// What is unusual about a database on the disk, and what to do about it: what `stride doctor` says.
//
//   Result<std::vector<Finding>> findings = diagnose("/var/lib/app/db");
//   for (const Finding& f : *findings)
//     if (!f.is_fine()) std::cerr << f.what << ": " << f.value << ": " << f.advice << "\n";
#pragma once

#include <string>
#include <vector>

#include "storage/export.h"
#include "storage/status.h"

namespace stride {

class FileSystem;

struct Finding {
  std::string what;    // what was looked at: "opening", "segments", "files", ...
  std::string value;   // what it is like
  std::string advice;  // what to do; empty: it is as it should be
  // corruption, unsupported_version, permission_denied, ...: what reads or writes would fail with.
  StatusCode code = StatusCode::ok;

  bool is_fine() const { return advice.empty(); }
};

// Looks at the database without changing it, also while another process writes it, and returns what
// was looked at, in one order: whether it can be opened, damaged segments, files that belong to
// nothing, changes that were not synced, the log, runs, small segments, erased rows, and debt.
// Where it cannot be opened there is just that. It reads as much as opening does:
// Database::verify() reads every byte. file_system: null for FileSystem::posix(). not_found: there
// is no directory.
STRIDE_API Result<std::vector<Finding>> diagnose(const std::string& path,
                                                 FileSystem* file_system = nullptr);

}  // namespace stride
