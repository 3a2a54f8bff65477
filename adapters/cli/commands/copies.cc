// stride checkpoint, stride backup, and what stride restore does with a backup.
#include "adapters/cli/commands/copies.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>

#include "adapters/cli/interrupt.h"
#include "adapters/cli/output/json_output.h"
#include "adapters/cli/output/progress.h"
#include "adapters/cli/subcommands.h"
#include "engine/backup.h"

namespace stride::cli {
namespace {

struct CopyArguments {
  std::string database, directory;
};

using Copy = std::function<Status(const CopyOptions&, CopyReport*)>;

std::string report_text(const std::string& done, const CopyReport& report, double seconds) {
  std::string text = done + " " + byte_text(report.bytes) + " in " + with_commas(report.files) +
                     (report.files == 1 ? " file" : " files") + " (" + seconds_text(seconds) + ")";
  if (report.linked_files > 0)
    text += ": " + with_commas(report.linked_files) + " are links to the database's own";
  if (report.copied_bytes > 0 && report.copied_bytes < report.bytes)
    text += ": " + byte_text(report.copied_bytes) + " were not there yet";
  return text;
}

// what: "backup"; done: "backed up".
ExitStatus run_copy(Context* context, const char* what, const char* done, const Copy& copy) {
  Progress progress(context->environment.err, what, 0);
  CopyOptions options;
  options.progress = [&](const CopyProgress& p) {
    progress.update_bytes(p.bytes, p.total_bytes);
    return !interrupted();
  };
  CopyReport report;
  Status s = copy(options, &report);
  progress.clear();
  if (s.code() == StatusCode::cancelled && interrupted()) return ExitStatus::interrupted();
  STRIDE_CLI_TRY(s);
  context->done = all_done;
  const double seconds = progress.seconds();
  context->note(report_text(done, report, seconds));
  if (!context->json) return {};
  const nlohmann::json result = {{"files", report.files},
                                 {"bytes", report.bytes},
                                 {"copied_files", report.copied_files},
                                 {"copied_bytes", report.copied_bytes},
                                 {"linked_files", report.linked_files},
                                 {"seconds", seconds}};
  return context->out.write(text_of(result) + "\n");
}

void add_checkpoint(CLI::App* command, CopyArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("DIR", a->directory, "Directory of the checkpoint, which must not be there")
      ->required();
  command->footer(
      "A checkpoint is a database of its own, as of now. Its segments are hard links to the "
      "files\n"
      "of the database, which takes no space at first; on another file system they are copied and\n"
      "checked. Another program may have the database open, and write.\n\n"
      "Example:\n  stride checkpoint db before-the-import");
}

void add_backup(CLI::App* command, CopyArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("DIR", a->directory, "Directory of the backup; made where it is missing")
      ->required();
  command->footer(
      "Copies the segments that the backup does not have yet, and checks each byte. The backup\n"
      "before it stays whole until this one is; after Ctrl-C or any failure the same command goes\n"
      "on. stride restore makes a database of it. Another program may have the database open, and\n"
      "write. Exit code 6: a file of the database is damaged.\n\n"
      "Examples:\n"
      "  stride backup db /backups/db\n"
      "  stride restore copy /backups/db");
}

ExitStatus run_checkpoint(Context* context, const CopyArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::read, 0, &database));
  return run_copy(context, "checkpoint", "made a checkpoint of",
                  [&](const CopyOptions& options, CopyReport* report) {
                    return database->checkpoint(arguments.directory, options, report);
                  });
}

ExitStatus run_backup(Context* context, const CopyArguments& arguments) {
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::read, 0, &database));
  return run_copy(context, "backup", "backed up",
                  [&](const CopyOptions& options, CopyReport* report) {
                    return database->backup(arguments.directory, options, report);
                  });
}

const bool checkpoint_registered =
    Subcommands::add(330, "checkpoint", "Make a database of another one's files, as of now",
                     &add_checkpoint, &run_checkpoint);
const bool backup_registered = Subcommands::add(
    340, "backup", "Copy what a backup does not have yet, and check it", &add_backup, &run_backup);

}  // namespace

ExitStatus restore_backup(Context* context, const std::string& backup,
                          const std::string& database) {
  return run_copy(
      context, "restore", "restored", [&](const CopyOptions& options, CopyReport* report) {
        return restore(backup, database, options, report, context->environment.file_system);
      });
}

}  // namespace stride::cli
