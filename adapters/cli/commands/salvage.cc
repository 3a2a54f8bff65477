// stride verify and stride salvage.
#include "engine/salvage.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "adapters/cli/context.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/output/json_output.h"
#include "adapters/cli/output/progress.h"
#include "adapters/cli/subcommands.h"
#include "storage/quoted.h"

namespace stride::cli {
namespace {

using nlohmann::json;

struct VerifyArguments {
  std::string database;
};

struct SalvageArguments {
  std::string source, directory;
};

std::string counted(uint64_t n, const char* what) {
  return with_commas(n) + " " + what + (n == 1 ? "" : "s");
}

// As in_quotes() shows keys: as text where that can be read, else in hexadecimal behind 0x.
json key_text(const std::optional<std::string>& key) {
  if (!key) return nullptr;
  const std::string shown = in_quotes(as_bytes(*key));
  if (shown.starts_with("'")) return *key;
  std::string hex = "0x";
  for (std::byte b : as_bytes(*key)) append_hex(b, &hex);
  return hex;
}

json describe(const Damage& d) {
  return {{"file", d.file},
          {"section", d.section},
          {"offset", d.offset},
          {"bytes", d.bytes},
          {"what", d.what},
          {"code", std::string(to_string(d.code))},
          {"table", d.table.empty() ? json() : json(d.table)},
          {"rows", d.rows},
          {"first_key", key_text(d.first_key)},
          {"last_key", key_text(d.last_key)}};
}

json describe(const std::vector<Damage>& damage) {
  json list = json::array();
  for (const Damage& d : damage) list.push_back(describe(d));
  return list;
}

json describe(const SalvageReport& report, double seconds) {
  json tables = json::array(), lost = json::array();
  for (const SalvagedTable& t : report.tables)
    tables.push_back({{"table", t.name},
                      {"unnamed", t.is_unnamed},
                      {"rows", t.rows},
                      {"lost_rows", t.lost_rows}});
  for (const LostRows& l : report.lost)
    lost.push_back({{"table", l.table.empty() ? json() : json(l.table)},
                    {"file", l.file},
                    {"rows", l.rows},
                    {"first_key", key_text(l.first_key)},
                    {"last_key", key_text(l.last_key)},
                    {"why", l.why},
                    {"older_rows_remain", l.older_rows_remain}});
  return {{"complete", report.is_complete()},
          {"files", report.files},
          {"bytes", report.bytes},
          {"rebuilt_files", report.rebuilt_files},
          {"tables", tables},
          {"lost", lost},
          {"uncertain", report.uncertain},
          {"damage", describe(report.damage)},
          {"seconds", seconds}};
}

std::string text_of(const SalvageReport& report) {
  std::string text;
  for (const SalvagedTable& t : report.tables) {
    text += t.name + ": " + counted(t.rows, "row");
    if (t.lost_rows > 0) text += ", up to " + counted(t.lost_rows, "row") + " lost";
    text += t.is_unnamed ? ", of a table whose name is lost\n" : "\n";
  }
  for (const LostRows& l : report.lost) text += "lost: " + l.to_string() + "\n";
  for (const std::string& sentence : report.uncertain) text += "not certain: " + sentence + "\n";
  return text;
}

void add_verify(CLI::App* command, VerifyArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->footer(
      "Reads every byte of every segment, and checks that keys ascend and are found. Prints a "
      "line\n"
      "for each damaged part of a file: where it is, and of which table and keys it keeps rows "
      "from\n"
      "being read. Where the database cannot be opened, its files are read as they are. Exit code "
      "6:\n"
      "damaged.\n\nExample:\n  stride verify db");
}

void add_salvage(CLI::App* command, SalvageArguments* a) {
  command->add_option("SOURCE", a->source, "Directory of the damaged database, which is only read")
      ->required();
  command
      ->add_option("DESTINATION", a->directory,
                   "Directory of the new database, which must not be there")
      ->required();
  command->footer(
      "Makes a new database of all that can be read of a damaged one, also where its manifest,\n"
      "CURRENT or log are damaged or missing, and prints a line for each table, for each range of\n"
      "keys that is lost, and for what is not certain. Files of which nothing tells the table "
      "become\n"
      "tables of their own, such as segment-000007. Exit code 0: all is there; 6: a part is.\n\n"
      "Examples:\n"
      "  stride salvage db db-salvaged\n"
      "  stride salvage db db-salvaged --json > lost.json");
}

ExitStatus tell_damage(Context* context, const VerifyReport& report, const std::string& database,
                       double seconds) {
  if (context->json) {
    json result = {{"intact", false},
                   {"bytes", report.bytes},
                   {"damage", describe(report.damage)},
                   {"seconds", seconds}};
    STRIDE_CLI_TRY(context->out.write(stride::cli::text_of(result) + "\n"));
  } else {
    std::string lines;
    for (const Damage& d : report.damage) lines += d.to_string() + "\n";
    STRIDE_CLI_TRY(context->out.write(lines));
  }
  STRIDE_CLI_TRY(context->out.flush());  // a failure would keep it from being written
  return ExitStatus(ExitCode::damaged,
                    counted(report.damage.size(), "part") + " of the files of " + database +
                        (report.damage.size() == 1 ? " is" : " are") + " damaged, the first in " +
                        report.damage.front().file +
                        ": restore a backup, or see what stride salvage recovers");
}

ExitStatus run_verify(Context* context, const VerifyArguments& arguments) {
  std::unique_ptr<Database> database;
  Progress clock(context->environment.err, "verify", 0);
  VerifyReport report;
  ExitStatus opened = open_database(*context, arguments.database, Access::read, 0, &database);
  if (opened.code() == ExitCode::damaged) {
    Status s = verify_files(arguments.database, &report, context->environment.file_system);
    if (report.damage.empty()) return opened;
    return tell_damage(context, report, arguments.database, clock.seconds());
  }
  STRIDE_CLI_TRY(opened);
  Status s = database->verify(&report);
  if (!report.damage.empty())
    return tell_damage(context, report, arguments.database, clock.seconds());
  STRIDE_CLI_TRY(s);
  uint64_t bytes = database->size_bytes();
  context->note("all " + byte_text(bytes) + " are intact (" + seconds_text(clock.seconds()) + ")");
  if (!context->json) return {};
  json result = {
      {"intact", true}, {"bytes", bytes}, {"damage", json::array()}, {"seconds", clock.seconds()}};
  return context->out.write(stride::cli::text_of(result) + "\n");
}

ExitStatus run_salvage(Context* context, const SalvageArguments& arguments) {
  Progress progress(context->environment.err, "salvage", 0);
  CopyOptions options;
  options.progress = [&](const CopyProgress& p) {
    progress.update_bytes(p.bytes, p.total_bytes);
    return !interrupted();
  };
  SalvageReport report;
  Status s = salvage(arguments.source, arguments.directory, options, &report,
                     context->environment.file_system);
  progress.clear();
  if (s.code() == StatusCode::cancelled && interrupted()) return ExitStatus::interrupted();
  STRIDE_CLI_TRY(s);
  context->done = all_done;
  const double seconds = progress.seconds();
  STRIDE_CLI_TRY(context->out.write(
      context->json ? stride::cli::text_of(describe(report, seconds)) + "\n" : text_of(report)));
  context->note("made " + arguments.directory + " with " + byte_text(report.bytes) + " in " +
                counted(report.files, "segment") + " (" + seconds_text(seconds) + ")");
  if (report.is_complete()) return {};
  STRIDE_CLI_TRY(context->out.flush());
  return ExitStatus(ExitCode::damaged,
                    arguments.directory + " is a part of " + arguments.source +
                        ": the report says what is lost, and what is not certain");
}

const bool verify_registered =
    Subcommands::add(430, "verify", "Read and check every byte", &add_verify, &run_verify);
const bool salvage_registered =
    Subcommands::add(345, "salvage", "Make a new database of what is left of a damaged one",
                     &add_salvage, &run_salvage);

}  // namespace
}  // namespace stride::cli
