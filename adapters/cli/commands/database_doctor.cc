#include "adapters/cli/commands/database_doctor.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "adapters/cli/output/json_output.h"
#include "adapters/cli/output/progress.h"
#include "storage/quoted.h"

namespace stride::cli {
namespace {

namespace fs = std::filesystem;

// Room for a memtable's segment and its log.
constexpr uint64_t little_room_bytes = 256 << 20;

Finding disk_of(const std::string& path) {
  struct statvfs disk {};
  if (statvfs(path.c_str(), &disk) != 0)
    return {"disk", std::strerror(errno), "see to the directory", StatusCode::io_error};
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  Finding finding{"disk", byte_text(free) + " free", "", StatusCode::ok};
  if (free < little_room_bytes) {
    finding.advice = "commits and merges will fail: make room, or move the database";
    finding.code = StatusCode::no_space;
  }
  return finding;
}

// What this user may not do, or anybody may.
Finding rights_to(const std::string& path) {
  std::vector<std::string> closed, open;
  auto look = [&](const fs::path& file, int wanted) {
    std::error_code error;
    const fs::perms rights = fs::status(file, error).permissions();
    if (error) return;  // it has just gone
    if (access(file.c_str(), wanted) != 0 && errno != ENOENT) closed.push_back(file.filename());
    if ((rights & fs::perms::others_write) != fs::perms::none) open.push_back(file.filename());
  };
  look(path, R_OK | W_OK | X_OK);
  std::error_code error;
  for (const auto& file : fs::directory_iterator(path, error)) look(file.path(), R_OK | W_OK);
  Finding finding{"rights", "to read and to write", "", StatusCode::ok};
  if (!closed.empty()) {
    finding.value = "none to write, or to read, " + in_quotes(closed.front()) +
                    (closed.size() > 1 ? " and others" : "");
    finding.advice = "to write the database, be the user whose files these are, or chown them";
    finding.code = StatusCode::permission_denied;
  } else if (!open.empty()) {
    finding.value =
        "everybody may write " + in_quotes(open.front()) + (open.size() > 1 ? " and others" : "");
    finding.advice = "take that right away with chmod o-w";
    finding.code = StatusCode::permission_denied;
  }
  return finding;
}

}  // namespace

bool is_database(const Context& context, const std::string& path) {
  auto findings = diagnose(path, context.environment.file_system);
  if (!findings.ok() || findings->empty()) return false;
  const StatusCode code = findings->front().code;
  return code != StatusCode::not_found && code != StatusCode::invalid_argument;
}

ExitStatus print_findings(Context* context, const std::vector<Finding>& findings) {
  if (context->json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Finding& f : findings)
      list.push_back(
          {{"what", f.what}, {"value", f.value}, {"fine", f.is_fine()}, {"advice", f.advice}});
    return context->out.write(text_of(list) + "\n");
  }
  std::string text;
  for (const Finding& f : findings) {
    text += (f.is_fine() ? "ok    " : "note  ") + f.what +
            std::string(14 - std::min<size_t>(f.what.size(), 13), ' ') + f.value + "\n";
    if (!f.is_fine()) text += std::string(20, ' ') + f.advice + "\n";
  }
  return context->out.write(text);
}

ExitStatus examine_database(Context* context, const std::string& path) {
  auto findings = diagnose(path, context->environment.file_system);
  if (!findings.ok()) return findings.status();
  if (!context->environment.file_system) {
    findings->push_back(disk_of(path));
    findings->push_back(rights_to(path));
  }
  STRIDE_CLI_TRY(print_findings(context, *findings));
  STRIDE_CLI_TRY(context->out.flush());  // a failure would keep it from being written
  size_t unusual = 0;
  ExitCode code = ExitCode::unusual;
  for (const Finding& f : *findings) {
    if (f.is_fine()) continue;
    if (f.code != StatusCode::ok && code == ExitCode::unusual)
      code = ExitStatus(Status(f.code, f.what)).code();
    ++unusual;
  }
  if (unusual == 0) return {};
  return ExitStatus(
      code, std::to_string(unusual) + (unusual == 1 ? " finding" : " findings") + " about " + path);
}

}  // namespace stride::cli
