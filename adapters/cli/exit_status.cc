#include "adapters/cli/exit_status.h"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace stride::cli {
namespace {

ExitCode exit_code(StatusCode code) {
  switch (code) {
    case StatusCode::ok:
      return ExitCode::success;
    case StatusCode::not_found:
      return ExitCode::not_found;
    case StatusCode::already_exists:
    case StatusCode::invalid_argument:
      return ExitCode::usage;
    case StatusCode::corruption:
    case StatusCode::unsupported_version:
      return ExitCode::damaged;
    case StatusCode::no_space:
    case StatusCode::resource_exhausted:
      return ExitCode::no_room;
    case StatusCode::permission_denied:
    case StatusCode::locked:
    case StatusCode::read_only:
      return ExitCode::busy;
    case StatusCode::unavailable:
      return ExitCode::unavailable;
    case StatusCode::cancelled:
      return ExitCode::interrupted;
    case StatusCode::io_error:
    case StatusCode::conflict:
    case StatusCode::poisoned:
    case StatusCode::closed:
      break;
  }
  return ExitCode::failure;
}

ExitCode exit_code(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return ExitCode::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
      return ExitCode::busy;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
      return ExitCode::no_room;
    case EPIPE:
      return ExitCode::closed_pipe;
    default:
      return ExitCode::failure;
  }
}

// What a program does in these ways, a user of the command line does in others.
constexpr std::pair<std::string_view, std::string_view> advice[] = {
    {"call compact(), which", "run stride compact, which"},
    {", or open the database read-only", ", or wait until it is done"},
};

// As it is for programs, but without the name of its code, which is no English word for most.
std::string message_of(const Status& status) {
  if (status.ok()) return "";
  std::string text = status.to_string();
  const std::string name(to_string(status.code()));
  if (status.code() != StatusCode::corruption && text.starts_with(name + ": "))
    text.erase(0, name.size() + 2);
  for (const auto& [of_program, of_shell] : advice) {
    const size_t at = text.rfind(of_program);
    if (at != std::string::npos) text.replace(at, of_program.size(), of_shell);
  }
  return text;
}

}  // namespace

ExitStatus::ExitStatus(const Status& status)
    : code_(exit_code(status.code())), message_(message_of(status)) {}

ExitStatus ExitStatus::from_errno(int error, const std::string& file, const std::string& what) {
  std::string message = file + ": " + what + ": " + std::strerror(error);
  // Other remedies are for the files of a database.
  if (exit_code(error) == ExitCode::no_room)
    message += ": " + Status::from_errno(error, what, file).remedy();
  if (exit_code(error) == ExitCode::not_found) message += ": check the path";
  return ExitStatus(exit_code(error), std::move(message));
}

ExitStatus ExitStatus::interrupted() {
  return ExitStatus(ExitCode::interrupted,
                    "interrupted; what was not committed is not there: run it again");
}

}  // namespace stride::cli
