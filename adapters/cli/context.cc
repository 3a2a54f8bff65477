#include "adapters/cli/context.h"

#include <unistd.h>

#include <cstdlib>

namespace stride::cli {

void Context::note(std::string_view line) const {
  std::string text(line);
  text += '\n';
  [[maybe_unused]] ssize_t ignored = ::write(environment.err, text.data(), text.size());
}

void Context::complain(const ExitStatus& outcome) const {
  if (outcome.ok() || outcome.code() == ExitCode::closed_pipe) return;
  const bool colour = isatty(environment.err) && !std::getenv("NO_COLOR");
  note((colour ? "\x1b[1;31mstride:\x1b[0m " : "stride: ") + outcome.message());
}

ExitStatus open_database(const Context& context, const std::string& path, Access access,
                         unsigned threads, std::unique_ptr<Database>* database) {
  if (path.empty())
    return ExitStatus::usage("the name of the database's directory is empty: give its path");
  Options options;
  options.create_if_missing = access == Access::create;
  options.read_only = access == Access::read;
  options.threads = threads;
  options.file_system = context.environment.file_system;
  auto opened = Database::open(path, options);
  if (!opened.ok() && opened.status().code() == StatusCode::not_found)
    return ExitStatus(ExitCode::not_found, "no database in " + path +
                                               ": check the path, or make one with stride load " +
                                               path + " TABLE FILE");
  if (!opened.ok()) return opened.status();
  *database = std::move(*opened);
  return {};
}

}  // namespace stride::cli
