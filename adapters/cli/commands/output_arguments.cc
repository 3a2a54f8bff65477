#include "adapters/cli/commands/output_arguments.h"

#include <CLI/CLI.hpp>

#include "adapters/cli/text/key_columns.h"

namespace stride::cli {

void add_output_options(CLI::App* command, OutputArguments* a, const std::string& first, bool raw,
                        bool columnar) {
  std::vector<std::string> formats = {"tsv", "csv", "jsonl"};
  if (raw) formats.push_back("raw");
  if (columnar) formats.insert(formats.end(), {"parquet", "arrow"});
  command
      ->add_option("--format", a->format,
                   "Of the output: tsv (" + first + "), csv, jsonl" + (raw ? ", raw" : "") +
                       (columnar ? ", parquet, arrow (IPC, a stream)" : ""))
      ->check(CLI::IsMember(formats))
      ->capture_default_str()
      ->type_name("FORMAT");
  add_columns(command, &a->columns);
  CLI::Option* header =
      command->add_flag("--header", a->header, "The first line names the columns (tsv, csv)");
  command
      ->add_flag("--no-header", a->no_header,
                 "It does not, as csv of a table with columns else has it")
      ->excludes(header);
}

void add_columns(CLI::App* command, std::vector<std::string>* columns) {
  add_names(command, "--columns", columns,
            "Of the table's columns, in this order, with commas between. Default: all", "NAMES");
}

CLI::Option* add_names(CLI::App* command, const std::string& option,
                       std::vector<std::string>* names, const std::string& help,
                       const std::string& type) {
  const auto take = [names](const std::vector<std::string>& given) {
    names->clear();
    for (const std::string& text : given)
      for (std::string& name : split_names(text)) names->push_back(std::move(name));
  };
  return command->add_option_function<std::vector<std::string>>(option, take, help)
      ->allow_extra_args(false)
      ->type_name(type);
}

Format output_format(const Context& context, const OutputArguments& arguments) {
  const std::string name = context.json ? "jsonl" : arguments.format;
  return name == "csv"       ? Format::csv
         : name == "jsonl"   ? Format::jsonl
         : name == "raw"     ? Format::raw
         : name == "parquet" ? Format::parquet
         : name == "arrow"   ? Format::arrow
                             : Format::tsv;
}

bool wants_header(const OutputArguments& arguments, Format format, const Table& table) {
  if (format != Format::tsv && format != Format::csv) return false;
  if (arguments.header || arguments.no_header) return arguments.header;
  return format == Format::csv && table.schema().has_values();
}

KeyText key_text(const Table& table, const KeyForm& form) {
  std::vector<std::string> names;
  for (const Field& field : table.schema().key()) names.push_back(field.name);
  if (names.empty() && form.parts() == 1) names = {"key"};
  for (std::string& name : names)
    while (table.schema().find(name)) name += "_";
  return KeyText(form, std::move(names));
}

}  // namespace stride::cli
