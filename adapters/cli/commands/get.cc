// stride get: keys of arguments or of a file, with the values that a table has for them.
#include <CLI/CLI.hpp>

#include "adapters/cli/commands/lookup.h"
#include "adapters/cli/output/record_writer.h"
#include "adapters/cli/subcommands.h"

namespace stride::cli {
namespace {

struct GetArguments {
  std::string database, table;
  std::vector<std::string> keys;
  OutputArguments output;
  std::string missing = "skip";
  RowArguments rows;
};

class GetWorker final : public ValueWorker {
 public:
  GetWorker(Lookup* lookup, Format format)
      : ValueWorker(lookup, false),
        writer_(format, key_text(lookup->table, lookup->key_form), lookup->value_text()) {}

 private:
  void write(uint64_t i, bool found) override {
    writer_.write(keys_[i], result_.values[i], found, &text_);
  }
  ExitStatus written() const override { return writer_.status(); }
  RecordWriter writer_;
};

void add_get(CLI::App* command, GetArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  command->add_option("KEY", a->keys, "Keys to look up");
  add_keys_options(command, &a->rows, "a key");
  add_output_options(command, &a->output, "key, value", /*raw=*/true);
  add_missing(command, &a->missing,
              "Keys that are not there: left out, with an empty value, or the end (exit code 4)");
  add_key_type(command, &a->rows.key_type);
  add_threads(command, &a->rows);
  command->footer(
      "Examples:\n"
      "  stride get db users 17 42\n"
      "  stride get db users --keys ids.txt.gz --missing empty > users.tsv\n"
      "  stride get db users 17 --columns city,score --format csv\n"
      "  cut -f 3 orders.tsv | stride get db users --keys - --format jsonl");
}

ExitStatus run_get(Context* context, const GetArguments& arguments) {
  if (arguments.keys.empty() == arguments.rows.keys.empty())
    return ExitStatus::usage("give keys, or --keys FILE");
  Format format = output_format(*context, arguments.output);
  std::unique_ptr<Lookup> lookup;
  STRIDE_CLI_TRY(open_lookup(context,
                             {arguments.database, arguments.table, arguments.rows.keys,
                              arguments.missing, arguments.output.columns},
                             arguments.rows, &lookup));
  if (wants_header(arguments.output, format, lookup->table)) {
    TextBuffer header;
    RecordWriter(format, key_text(lookup->table, lookup->key_form), lookup->value_text())
        .write_header(&header);
    STRIDE_CLI_TRY(context->out.write(header.text()));
  }
  return look_up_keys(lookup.get(), arguments.rows, arguments.keys, arguments.rows.keys,
                      [&] { return std::make_unique<GetWorker>(lookup.get(), format); });
}

const bool get_registered = Subcommands::add(120, "get", "Look up keys", &add_get, &run_get);

}  // namespace
}  // namespace stride::cli
