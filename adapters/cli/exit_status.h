// How a command ends: its exit code and, unless that is success, what to tell the user.
//
//   STRIDE_CLI_TRY(open_input(path, &input));
//   if (bad) return ExitStatus(ExitCode::bad_input, path + ":7: unterminated quote");
#pragma once

#include <string>
#include <utility>

#include "storage/status.h"

namespace stride::cli {

// Scripts rely on these numbers; docs/cli.md lists them.
enum class ExitCode : int {
  success = 0,
  failure = 1,      // the operating system failed a call
  usage = 2,        // options or arguments that are wrong or do not fit the table
  bad_input = 3,    // rows that cannot be read
  not_found = 4,    // no such database, table, file or key
  busy = 5,         // locked by another process, read-only, or not permitted
  damaged = 6,      // stored bytes are damaged, or written by a newer version
  no_room = 7,      // disk or memory is full
  unavailable = 8,  // this machine or build lacks what was asked for
  unusual = 9,      // stride doctor has something to say about a database
  interrupted = 130,
  closed_pipe = 141,  // the reader of the output has gone; nothing is said then
};

class [[nodiscard]] ExitStatus {
 public:
  ExitStatus() = default;
  ExitStatus(ExitCode code, std::string message) : code_(code), message_(std::move(message)) {}
  ExitStatus(const Status& status);  // NOLINT: implicit on purpose

  bool ok() const { return code_ == ExitCode::success; }
  ExitCode code() const { return code_; }
  const std::string& message() const { return message_; }

  static ExitStatus usage(std::string message) {
    return ExitStatus(ExitCode::usage, std::move(message));
  }
  // "FILE: what: No such file or directory", with the code that fits errno.
  static ExitStatus from_errno(int error, const std::string& file, const std::string& what);
  static ExitStatus interrupted();

 private:
  ExitCode code_ = ExitCode::success;
  std::string message_;
};

#define STRIDE_CLI_TRY(expression)                                                             \
  do {                                                                                         \
    if (::stride::cli::ExitStatus stride_o_ = (expression); !stride_o_.ok()) return stride_o_; \
  } while (0)

}  // namespace stride::cli
