// The commands of a program. Each registers itself in its own file, and the program offers what is
// registered: nothing lists the commands.
//
//   using Commands = CommandRegistry<Status(Context*)>;
//   const bool group_registered =                  // in the file of `group`, before main()
//       Commands::add(220, "group", "Sums and counts of values", &add_group, &run_group);
//   for (const Commands::Command& command : Commands::all()) ...
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace stride {

template <class Signature>
class CommandRegistry;

// `Result(Given...)` is what running a command returns and is given, besides its arguments.
template <class Result, class... Given>
class CommandRegistry<Result(Given...)> {
 public:
  // A command with arguments of its own, which live as long as it does.
  struct Bound {
    std::function<void(CLI::App*)> add_options;
    std::function<Result(Given...)> run;  // with the arguments that were parsed
  };
  struct Command {
    int order;  // place in --help: a smaller number comes first
    const char* name;
    const char* summary;  // one line of --help
    std::function<Bound()> bind;
    bool json;  // whether its data can be JSON
  };

  // Before main() alone. Always returns true, so that a variable can be initialised with it.
  template <class Arguments>
  static bool add(int order, const char* name, const char* summary,
                  void (*add_options)(CLI::App*, Arguments*),
                  Result (*run)(Given..., const Arguments&), bool json = true) {
    registered().push_back({order, name, summary,
                            [=] {
                              auto arguments = std::make_shared<Arguments>();
                              return Bound{
                                  [=](CLI::App* command) { add_options(command, arguments.get()); },
                                  [=](Given... given) { return run(given..., *arguments); }};
                            },
                            json});
    return true;
  }

  // All commands whose files are linked, in the order of --help.
  static std::vector<Command> all() {
    std::vector<Command> commands = registered();
    std::ranges::sort(commands, {}, &Command::order);
    return commands;
  }

 private:
  // A local variable, because it is used while the variables of other files are initialised.
  static std::vector<Command>& registered() {
    static std::vector<Command> commands;
    return commands;
  }
};

}  // namespace stride
