// stride join: the rows of a file, each with the value that a table has for its key.
#include <CLI/CLI.hpp>
#include <cstring>

#include "adapters/cli/commands/lookup.h"
#include "adapters/cli/output/record_writer.h"
#include "adapters/cli/subcommands.h"

namespace stride::cli {
namespace {

struct JoinArguments {
  std::string database, table, file;
  std::string missing = "empty";
  std::string value_name = "value";
  std::vector<std::string> columns;
  RowArguments rows;
};

class JoinWorker final : public ValueWorker {
 public:
  JoinWorker(Lookup* lookup, std::string value_name)
      : ValueWorker(lookup, true),
        value_name_(std::move(value_name)),
        value_(lookup->value_text()) {}

 private:
  void write(uint64_t i, bool found) override {
    const RowPlan& plan = block_->file->plan;
    std::string_view row = rows_.row(i);
    if (plan.options.format == Format::jsonl) return write_json(row, i, found);
    const bool csv = plan.options.format == Format::csv;
    if (csv || value_.has_columns()) {
      const bool was_ok = value_.ok();
      text_.append(row);
      text_.append(plan.options.delimiter);
      value_.append_fields(result_.values[i], found, plan.options.delimiter, csv, &text_);
      if (value_.ok() != was_ok) note_broken(i);
      return text_.append(plan.crlf ? std::string_view("\r\n") : std::string_view("\n"));
    }
    const std::string_view text = value_.of(result_.values[i]);
    // The common case: one check for room, and then only copies.
    char* to = text_.room(row.size() + text.size() + 3);
    char* begin = to;
    std::memcpy(to, row.data(), row.size());
    to += row.size();
    *to++ = plan.options.delimiter;
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    to += text.size();
    if (plan.crlf) *to++ = '\r';
    *to++ = '\n';
    text_.grow(static_cast<size_t>(to - begin));
  }

  // The object with one member more.
  void write_json(std::string_view row, uint64_t i, bool found) {
    const bool was_ok = value_.ok();
    text_.append(row.substr(0, row.rfind('}')));
    text_.append(',');
    value_.append_member(value_name_, result_.values[i], found, &text_);
    if (value_.ok() != was_ok) note_broken(i);
    text_.append("}\n");
  }

  void note_broken(uint64_t i) {
    TextBuffer key;
    decode_key(lookup_.key_form, keys_[i], &key);
    broken_key_ = key.text();
  }
  ExitStatus written() const override {
    return value_.ok() ? ExitStatus() : no_row_of_schema(broken_key_);
  }

  std::string value_name_;
  ValueText value_;
  std::string broken_key_;
};

void add_join(CLI::App* command, JoinArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the table")->required();
  command->add_option("FILE", a->file, "File whose rows get a value; -: standard input")
      ->required();
  add_row_options(command, &a->rows, "tsv, csv, jsonl; the output is of the same format");
  add_missing(
      command, &a->missing,
      "Rows whose key is not there: left out, with an empty value (null in JSON), or the end "
      "(exit code 4)");
  command
      ->add_option(
          "--value-name", a->value_name,
          "Of the value of a table without columns in the header, and of the member in jsonl")
      ->capture_default_str()
      ->type_name("NAME");
  add_columns(command, &a->columns);
  command->footer(
      "Each row is written as it is, in the same order, with the table's columns, or its value, "
      "as\n"
      "last ones; in jsonl they are one member, an object.\n\n"
      "Examples:\n"
      "  stride join db users orders.tsv --key 3 > orders-with-users.tsv\n"
      "  stride join db users orders.csv.gz --header --key user_id --value-name user\n"
      "  stride join db seen log.jsonl --key ip --missing skip");
}

ExitStatus run_join(Context* context, const JoinArguments& arguments) {
  RowOptions options;
  STRIDE_CLI_TRY(parse_row_options(arguments.rows, arguments.file, &options));
  if (options.format == Format::raw || is_columnar(options.format))
    return ExitStatus::usage(
        "join reads tsv, csv and jsonl: give rows of one of these, or get --keys takes the keys of "
        "Parquet and Arrow files");
  std::unique_ptr<Lookup> lookup;
  STRIDE_CLI_TRY(open_lookup(
      context,
      {arguments.database, arguments.table, arguments.file, arguments.missing, arguments.columns},
      arguments.rows, &lookup));
  lookup->header = ValueText(lookup->table, lookup->columns, arguments.value_name).names();
  return look_up_file(lookup.get(), arguments.rows, arguments.file, options, [&] {
    return std::make_unique<JoinWorker>(lookup.get(), arguments.value_name);
  });
}

const bool join_registered = Subcommands::add(
    140, "join", "Add to each row of a file the value of its key", &add_join, &run_join,
    /*json=*/false);

}  // namespace
}  // namespace stride::cli
