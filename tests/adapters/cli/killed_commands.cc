#include "tests/adapters/cli/killed_commands.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/adapters/cli/process_fixture.h"
#include "tests/support/printed_seed.h"

namespace stride::cli {
namespace {

using Rows = std::map<std::string, std::string>;
using Tables = std::map<std::string, Rows>;

struct Command {
  std::string kind;
  std::vector<std::string> arguments;
  std::string input;
  // What it does to the tables, commit by commit.
  std::vector<std::function<void(Tables*)>> commits;
  // A database or a backup that it makes.
  std::string copy;
};

const std::vector<std::string> names = {"t", "u", "v"};

class KilledCommands : private ProcessFixture {
 public:
  void run_until_killed(uint64_t kills) {
    for (uint64_t n = 0; killed_ < kills; ++n) {
      const Command command = draw();
      INFO("command " << n << ", after " << killed_ << " kills: stride " << joined(command));
      const bool finished = run_and_kill(command);
      check_database(command, finished);
      if (!command.copy.empty()) check_copy(command);
    }
    std::fprintf(stderr, "%llu commands killed:", static_cast<unsigned long long>(killed_));
    for (const auto& [kind, count] : kills_of_)
      std::fprintf(stderr, " %s %llu", kind.c_str(), static_cast<unsigned long long>(count));
    std::fprintf(stderr, "\n");
  }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  std::string some_key() { return "key" + std::to_string(below(4000)); }
  std::string some_value() { return std::to_string(below(100'000)) + std::string(below(60), 'x'); }
  static std::string joined(const Command& command) {
    std::string text;
    for (const std::string& argument : command.arguments) text += argument + " ";
    return text + "\n" + command.input.substr(0, 2000);
  }

  Command draw() {
    const std::string table = names[below(2)];
    if (!tables_.contains(table)) return load_of(table, 1 + below(3000));
    switch (below(10)) {
      case 0:
      case 1:
        return load_of(table, 1 + below(below(8) == 0 ? 60'000 : 3000));
      case 2:
        return shell_of(table);
      case 3:
        return deletion_of(table);
      case 4:
        return renaming_of(table);
      case 5:
        return {"compact", {"compact", database_}, "", {}, ""};
      case 6:
        return copying("checkpoint", {"checkpoint", database_}, "checkpoint");
      case 7:
        return copying("backup", {"backup", database_}, "backup");
      case 8:
        return restoring();
      default:
        return copying("salvage", {"salvage", database_}, "salvaged");
    }
  }
  Command load_of(const std::string& table, uint64_t rows) {
    std::string text;
    Rows loaded;
    while (rows-- > 0) {
      const std::string key = some_key(), value = some_value();
      text += key + "\t" + value + "\n";
      loaded[key] = value;
    }
    return {"load",
            {"load", database_, table, file("rows.tsv", text), "--format", "tsv", "--schema",
             "none", "--on-duplicate", "last"},
            "",
            {[=](Tables* tables) {
              for (const auto& [key, value] : loaded) (*tables)[table][key] = value;
            }},
            ""};
  }
  // Each line is a commit of its own.
  Command shell_of(const std::string& table) {
    Command shell{"shell", {"shell", database_}, "", {}, ""};
    for (uint64_t lines = 1 + below(60); lines > 0; --lines) {
      const std::string key = some_key(), value = some_value();
      const bool erases = below(4) == 0;
      shell.input += erases ? "delete " + table + " " + key + "\n"
                            : "put " + table + " " + key + " " + value + "\n";
      shell.commits.push_back([=](Tables* tables) {
        if (erases)
          (*tables)[table].erase(key);
        else
          (*tables)[table][key] = value;
      });
    }
    return shell;
  }
  Command deletion_of(const std::string& table) {
    const std::string prefix = "key" + std::to_string(1 + below(39));
    return {"delete",
            {"delete", database_, table, "--prefix", prefix},
            "",
            {[=](Tables* tables) {
              std::erase_if((*tables)[table],
                            [&](const auto& row) { return row.first.starts_with(prefix); });
            }},
            ""};
  }
  Command renaming_of(const std::string& table) {
    const bool renames = !tables_.contains("v");
    const std::string dropped = renames ? table : "v";
    if (!renames || below(4) == 0)
      return {"drop",
              {"drop", database_, dropped},
              "",
              {[=](Tables* tables) { tables->erase(dropped); }},
              ""};
    return {"rename",
            {"rename", database_, table, "v"},
            "",
            {[=](Tables* tables) {
              auto node = tables->extract(table);
              node.key() = "v";
              tables->insert(std::move(node));
            }},
            ""};
  }
  Command copying(std::string kind, std::vector<std::string> arguments, const std::string& copy) {
    const std::string path = directory_ + "/" + copy;
    // A backup is brought up to date, or begun anew.
    if (copy != "backup" || below(3) == 0) std::filesystem::remove_all(path);
    arguments.push_back(path);
    return {std::move(kind), std::move(arguments), "", {}, path};
  }
  Command restoring() {
    const std::string backup = directory_ + "/backup";
    REQUIRE_MESSAGE(run({"backup", database_, backup}) == 0, error_);
    const std::string path = directory_ + "/restored";
    std::filesystem::remove_all(path);
    return {"restore", {"restore", path, backup}, "", {}, path};
  }

  // Salvage says so where a load that was killed before has left files that nothing names.
  static bool is_done(const Command& command, int code) {
    return code == 0 || (code == 6 && command.kind == "salvage");
  }

  // Whether it came to its end first.
  bool run_and_kill(const Command& command) {
    const MemoryFile in(command.input), out, error;
    double& usual = seconds_of_.try_emplace(command.kind, 0.02).first->second;
    const std::chrono::duration<double> delay(usual * 1.2 * static_cast<double>(below(1000)) /
                                              1000);
    const auto begun = std::chrono::steady_clock::now();
    const pid_t pid = start(command.arguments, in.fd(), out.fd(), error.fd());
    siginfo_t ended{};
    while (std::chrono::steady_clock::now() - begun < delay && ended.si_pid == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    kill(pid, SIGKILL);
    const int code = wait(pid);
    const std::string printed = out.text();
    // Each commit of a shell answers with a line.
    answered_ = static_cast<uint64_t>(std::count(printed.begin(), printed.end(), '\n'));
    if (code == -SIGKILL) {
      ++killed_;
      ++kills_of_[command.kind];
      usual *= 1.05;  // it may have had more to do
      return false;
    }
    usual = usual * 0.8 + took.count() * 0.2;
    CHECK_MESSAGE(is_done(command, code), error.text());
    return true;
  }

  Tables tables_in(const std::string& database) {
    Tables tables;
    for (const std::string& name : names) {
      if (run({"count", database, name}) != 0) {
        REQUIRE_MESSAGE(error_.find("no table") != std::string::npos, error_);
        continue;
      }
      REQUIRE_MESSAGE(run({"scan", database, name}) == 0, error_);
      Rows& rows = tables[name];
      for (size_t at = 0; at < out_.size();) {
        const size_t tab = out_.find('\t', at), end = out_.find('\n', tab);
        rows[out_.substr(at, tab - at)] = out_.substr(tab + 1, end - tab - 1);
        at = end + 1;
      }
    }
    return tables;
  }

  void check_database(const Command& command, bool finished) {
    if (tables_.empty() && !finished && !std::filesystem::exists(database_ + "/CURRENT")) return;
    REQUIRE_MESSAGE(run({"verify", database_}) == 0, error_);
    Tables found = tables_in(database_);
    // The load that was killed may have made its table, with no rows.
    if (command.kind == "load" && !tables_.contains(command.arguments[2]) &&
        found.contains(command.arguments[2]) && found[command.arguments[2]].empty())
      found.erase(command.arguments[2]);
    const uint64_t least = finished                  ? command.commits.size()
                           : command.kind == "shell" ? answered_
                                                     : 0;
    Tables expected = tables_;
    uint64_t commits = 0;
    for (; commits < least; ++commits) command.commits[commits](&expected);
    while (found != expected && commits < command.commits.size())
      command.commits[commits++](&expected);
    REQUIRE_MESSAGE(found == expected, "the rows are those of no commit from " << least << " on");
    tables_ = std::move(found);
  }

  void check_copy(const Command& command) {
    const bool is_backup = command.kind == "backup";
    const std::string copy = is_backup ? directory_ + "/of-backup" : command.copy;
    if (is_backup) std::filesystem::remove_all(copy);
    const auto is_whole = [&] {
      return is_backup ? run({"restore", copy, command.copy}) == 0 : run({"verify", copy}) == 0;
    };
    // What it has left is whole, though that of a backup may be an older one.
    if (!is_backup && is_whole()) return check_rows(copy);
    if (!is_backup && std::filesystem::exists(copy)) {
      // What is not whole says so, once it has any file.
      const int code = run(command.arguments);
      const bool told = error_.find("was begun here, and is not whole") != std::string::npos;
      REQUIRE_MESSAGE((code == 2 && (told || has_no_files(copy))), error_);
      std::filesystem::remove_all(copy);
    }
    REQUIRE_MESSAGE(is_done(command, run(command.arguments)), error_);
    REQUIRE_MESSAGE(is_whole(), error_);
    check_rows(copy);
  }
  static bool has_no_files(const std::string& copy) {
    for (const auto& entry : std::filesystem::directory_iterator(copy))
      if (entry.path().filename() != "LOCK" && entry.path().extension() != ".tmp") return false;
    return true;
  }
  void check_rows(const std::string& copy) {
    REQUIRE_MESSAGE(tables_in(copy) == tables_, copy << " has other rows than its source");
  }

  std::mt19937_64 random_{test::seed()};
  Tables tables_;
  std::map<std::string, double> seconds_of_;
  std::map<std::string, uint64_t> kills_of_;
  uint64_t killed_ = 0, answered_ = 0;
};

}  // namespace

void run_killed_commands(uint64_t kills) { KilledCommands().run_until_killed(kills); }

}  // namespace stride::cli
