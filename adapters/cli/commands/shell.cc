// stride shell: the commands of one database, line by line.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "adapters/cli/command_set.h"
#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/context.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/shell/line_source.h"
#include "adapters/cli/shell/words.h"
#include "adapters/cli/subcommands.h"

namespace stride::cli {
namespace {

struct ShellArguments {
  std::string database;
};

void add_shell(CLI::App* command, ShellArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->footer(
      "The commands that take a database, without it, and help, exit and quit. Words are quoted as "
      "in a\nshell, and lines that begin with # are passed over. Each command opens the database "
      "and closes it, so\nthat other programs can use it meanwhile. Where the standard input is no "
      "terminal there is no prompt,\nand the first command that fails is the end.\n\n"
      "Examples:\n"
      "  stride shell db\n"
      "  printf 'put users 17 Ada\\ncount users\\n' | stride shell db");
}

class Shell {
 public:
  Shell(const Context& context, std::string database)
      : context_(context), database_(std::move(database)) {}

  // The database is there and can be read: better told before the first command.
  ExitStatus look(size_t* tables) const {
    std::vector<std::string> names;
    STRIDE_CLI_TRY(list_tables(&names));
    *tables = names.size();
    return {};
  }

  // A person is told what goes wrong and goes on.
  ExitStatus talk(size_t tables) {
    const Terminal terminal{
        context_.environment.in,
        isatty(context_.environment.err) ? context_.environment.err : context_.environment.out,
        "stride> "};
    std::unique_ptr<LineSource> lines =
        edited_lines(terminal, HistoryFile(HistoryFile::usual_path()),
                     [this](std::string_view line) { return completion(line); });
    if (!lines) lines = plain_lines(terminal.in, &terminal);
    context_.note("database " + database_ + ", " + std::to_string(tables) +
                  (tables == 1 ? " table" : " tables") +
                  ". help lists the commands; exit or Ctrl-D leaves");
    for (std::string line;;) {
      // The interrupt of one command or line is none of the next.
      set_interrupted(false);
      catch_interrupts();
      bool end = false;
      ExitStatus outcome = lines->next(&line, &end);
      if (terminated()) return ExitStatus(ExitCode::interrupted, "ended by SIGTERM");
      if (outcome.code() == ExitCode::interrupted) continue;
      STRIDE_CLI_TRY(outcome);
      if (end) return {};
      outcome = run(line, true);
      if (terminated() || outcome.code() == ExitCode::closed_pipe) return outcome;
      // Behind the ^C that the terminal shows.
      if (outcome.code() == ExitCode::interrupted) context_.note("");
      context_.complain(outcome);
      if (left_) return {};
    }
  }

  // A pipe or a file ends where something goes wrong.
  ExitStatus follow() {
    const std::unique_ptr<LineSource> lines = plain_lines(context_.environment.in);
    std::string line;
    for (uint64_t number = 1; !left_; ++number) {
      bool end = false;
      STRIDE_CLI_TRY(lines->next(&line, &end));
      if (end) break;
      const ExitStatus outcome = run(line, false);
      if (!outcome.ok())
        return ExitStatus(outcome.code(),
                          "line " + std::to_string(number) + ": " + outcome.message());
    }
    return {};
  }

 private:
  ExitStatus run(const std::string& line, bool has_input) {
    const Words parted = split_words(line);
    if (parted.words.empty() || line[parted.words[0].begin] == '#') return {};
    if (parted.open == '\\')
      return ExitStatus::usage("the \\ at the end of the line has nothing behind it: write \\\\");
    if (parted.open)
      return ExitStatus::usage(std::string("the ") + parted.open + " at byte " +
                               std::to_string(parted.open_at + 1) +
                               " of the line opens a quote that is not closed: close it, or write "
                               "\\" +
                               parted.open);
    std::vector<std::string> arguments;
    for (const Word& word : parted.words) arguments.push_back(word.text);
    Context context(context_.environment);
    return guarded(&context, [&] {
      CommandSet commands(&context, database_, has_input);
      ExitStatus outcome = commands.run(std::move(arguments));
      left_ = commands.left();
      return outcome;
    });
  }

  ExitStatus list_tables(std::vector<std::string>* names) const {
    std::unique_ptr<Database> database;
    STRIDE_CLI_TRY(open_database(context_, database_, Access::read, 1, &database));
    for (const TableStatistics& table : database->tables())
      if (table.name != notes_table) names->push_back(table.name);
    return {};
  }

  // Where the names cannot be had, there are none to offer.
  Completion completion(std::string_view line) const {
    Completion found;
    Context context(context_.environment);
    const ExitStatus outcome = guarded(&context, [&] {
      CommandSet commands(&context, database_, true);
      found = complete(commands.app(), line, [this] {
        std::vector<std::string> names;
        return list_tables(&names).ok() ? names : std::vector<std::string>();
      });
      return ExitStatus();
    });
    return outcome.ok() ? found : Completion();
  }

  const Context& context_;
  std::string database_;
  bool left_ = false;
};

ExitStatus run_shell(Context* context, const ShellArguments& arguments) {
  Shell shell(*context, arguments.database);
  size_t tables = 0;
  STRIDE_CLI_TRY(shell.look(&tables));
  return isatty(context->environment.in) ? shell.talk(tables) : shell.follow();
}

const bool shell_registered = Subcommands::add(260, "shell", "Type commands for one database",
                                               &add_shell, &run_shell, /*json=*/false);

}  // namespace
}  // namespace stride::cli
