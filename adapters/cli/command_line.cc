#include "adapters/cli/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <sstream>

#include "adapters/cli/commands/dedup.h"
#include "adapters/cli/commands/doctor.h"
#include "adapters/cli/commands/dump.h"
#include "adapters/cli/commands/group.h"
#include "adapters/cli/commands/load.h"
#include "adapters/cli/commands/lookup.h"
#include "adapters/cli/commands/read.h"
#include "adapters/cli/commands/upkeep.h"
#include "adapters/cli/context.h"
#include "adapters/cli/help_pages.h"

namespace stride::cli {
namespace {

constexpr const char* exit_codes =
    "Exit codes: 0 done, 1 failure of the system, 2 wrong arguments, 3 bad rows, 4 not found,\n"
    "5 locked or not permitted, 6 damaged database, 7 disk or memory full, 8 not available here,\n"
    "130 interrupted, 141 the reader of the output has gone";

// The commands, their arguments, and what runs each.
class Commands {
 public:
  explicit Commands(Context* context) : context_(*context) {
    app_.require_subcommand(1);
    app_.footer(std::string("stride COMMAND --help says more.\n\n") + exit_codes);
    add("load", "Read rows of files into a table", &add_load, &run_load, &load_);
    add("get", "Look up keys", &add_get, &run_get, &get_);
    add("match", "Look up the prefixes of addresses", &add_match, &run_match, &match_);
    add("join", "Add to each row of a file the value of its key", &add_join, &run_join, &join_);
    add("dedup", "Print the rows of files that did not come before", &add_dedup, &run_dedup,
        &dedup_);
    add("scan", "Print records in the order of their keys", &add_scan, &run_scan, &scan_);
    add("group", "Sums, counts and extremes of values, by the beginning of keys", &add_group,
        &run_group, &group_);
    add<TableArguments>("count", "Print how many keys a table has", &add_count, &run_count,
                        &count_);
    add("tables", "List the tables", &add_tables, &run_tables, &tables_);
    add("dump", "Write tables as one stream", &add_dump, &run_dump, &dump_);
    add("restore", "Read tables from a dump", &add_restore, &run_restore, &restore_);
    add("stats", "Sizes of the database and its tables", &add_stats, &run_stats, &upkeep_);
    add("explain", "How a lookup in a table goes: segments, trees, memory", &add_explain,
        &run_explain, &upkeep_);
    add("verify", "Read and check every byte", &add_verify, &run_verify, &upkeep_);
    add("compact", "Merge what many loads have left behind", &add_compact, &run_compact, &upkeep_);
    add("calibrate", "Measure this machine's memory, by which trees are planned", &add_calibrate,
        &run_calibrate, &upkeep_);
    add("doctor", "What will be fast on this machine, and what not", &add_doctor, &run_doctor,
        &doctor_);
    app_.add_subcommand("bench", "Measure StrideDB beside its peers; see stride bench --help");
    add_help_pages();
  }

  Outcome run(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      std::ostringstream out, err;
      bool fine = app_.exit(error, out, err) == 0;
      STRIDE_CLI_TRY(context_.out.write(out.str()));
      std::string message = err.str();
      while (!message.empty() && message.back() == '\n') message.pop_back();
      return fine ? Outcome() : Outcome::usage(message);
    }
    Outcome outcome = chosen_();
    if (outcome.ok()) outcome = context_.out.flush();
    return outcome;
  }

 private:
  template <class Arguments>
  void add(const char* name, const char* what, void (*add_options)(CLI::App*, Arguments*),
           Outcome (*run)(Context*, const Arguments&), Arguments* arguments) {
    CLI::App* command = app_.add_subcommand(name, what);
    add_options(command, arguments);
    command->add_flag("--json", context_.json, "Data as JSON");
    command->callback(
        [this, run, arguments] { chosen_ = [=, this] { return run(&context_, *arguments); }; });
  }

  void add_help_pages() {
    CLI::App* completion =
        app_.add_subcommand("completion", "Print a shell's completion of these commands");
    completion->add_option("SHELL", shell_, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    completion->footer("Example:\n  source <(stride completion bash)");
    completion->callback([this] {
      chosen_ = [this] {
        return context_.out.write(shell_ == "bash"  ? bash_completion(&app_)
                                  : shell_ == "zsh" ? zsh_completion(&app_)
                                                    : fish_completion(&app_));
      };
    });
    CLI::App* man = app_.add_subcommand("man", "Print the manual page");
    man->footer(
        "Examples:\n  stride man | man -l -\n  stride man > /usr/local/share/man/man1/stride.1");
    man->callback([this] { chosen_ = [this] { return context_.out.write(manual_page(&app_)); }; });
  }

  Context& context_;
  CLI::App app_{"StrideDB from the command line: bulk loads, lookups and joins", "stride"};
  std::function<Outcome()> chosen_;
  LoadArguments load_;
  GetArguments get_;
  MatchArguments match_;
  JoinArguments join_;
  DedupArguments dedup_;
  ScanArguments scan_;
  GroupArguments group_;
  TableArguments count_, tables_;
  DumpArguments dump_;
  RestoreArguments restore_;
  UpkeepArguments upkeep_;
  DoctorArguments doctor_;
  std::string shell_;
};

Outcome run_guarded(int argc, const char* const* argv, Context* context) {
  // Its arguments are not ours to read.
  if (argc > 1 && std::string_view(argv[1]) == "bench") return run_bench(argc - 2, argv + 2);
  try {
    Outcome outcome = Commands(context).run(argc, argv);
    if (outcome.ok()) outcome = context->out.flush();
    return outcome;
  } catch (const std::bad_alloc&) {
    return Outcome(ExitCode::no_room, "out of memory");
  } catch (const std::exception& error) {
    return Outcome(ExitCode::failure, error.what());
  }
}

}  // namespace

int run(int argc, const char* const* argv, const Environment& environment) {
  Context context(environment);
  Outcome outcome = run_guarded(argc, argv, &context);
  if (!outcome.ok() && outcome.code() != ExitCode::closed_pipe) {
    bool colour = isatty(environment.err) && !std::getenv("NO_COLOR");
    context.note((colour ? "\x1b[1;31mstride:\x1b[0m " : "stride: ") + outcome.message());
  }
  return static_cast<int>(outcome.code());
}

}  // namespace stride::cli
