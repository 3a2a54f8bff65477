// stride rename.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/context.h"
#include "adapters/cli/output/json_output.h"
#include "adapters/cli/subcommands.h"
#include "storage/quoted.h"

namespace stride::cli {
namespace {

struct RenameArguments {
  std::string database, table, new_name;
};

void add_rename(CLI::App* command, RenameArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  command->add_option("NEW_NAME", a->new_name, "Name that it gets")->required();
  command->footer(
      "Rows stay where they are, and all that is known of the table: its columns, how its keys are "
      "written,\nhow far a load came. It has one of the names or the other, whatever happens.\n\n"
      "Example:\n"
      "  stride rename db users customers");
}

ExitStatus check_names(const RenameArguments& arguments) {
  for (const std::string& name : {arguments.table, arguments.new_name})
    if (name == notes_table)
      return ExitStatus::usage(
          "'.stride' is where these commands remember key types: no table gets that name or loses "
          "it");
  if (arguments.table == arguments.new_name)
    return ExitStatus::usage("the table is called " + in_quotes(arguments.table) +
                             " already: give another name");
  return {};
}

ExitStatus run_rename(Context* context, const RenameArguments& arguments) {
  STRIDE_CLI_TRY(check_names(arguments));
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::write, 1, &database));
  Table table;
  STRIDE_CLI_TRY(find_table(*database, arguments.table, &table));
  Status renamed = database->rename_table(arguments.table, arguments.new_name);
  if (renamed.code() == StatusCode::already_exists)
    renamed = std::move(renamed).with_remedy("give another name, or stride drop that table first");
  STRIDE_CLI_TRY(renamed);
  context->done = all_done;
  if (context->json)
    return context->out.write(
        text_of(nlohmann::json{{"table", arguments.table}, {"renamed_to", arguments.new_name}}) +
        "\n");
  context->note("renamed table " + in_quotes(arguments.table) + " to " +
                in_quotes(arguments.new_name));
  return {};
}

const bool rename_registered =
    Subcommands::add(245, "rename", "Give a table another name", &add_rename, &run_rename);

}  // namespace
}  // namespace stride::cli
