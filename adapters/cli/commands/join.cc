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
  bool match = false;
  RowArguments rows;
};

class JoinWorker final : public LookupWorker {
 public:
  // match: keys are addresses, and what they get is their longest prefix and its value.
  JoinWorker(Lookup* lookup, std::string value_name, bool match)
      : LookupWorker(lookup, true),
        value_name_(std::move(value_name)),
        match_(match),
        prefix_form_(KeyType::prefix, lookup->table.address_bits()),
        value_(lookup->value_text()) {}

 private:
  ExitStatus search(const Bitmap** found) override {
    *found = match_ ? &matches_.found : &result_.found;
    return match_ ? lookup_.snapshot.match(lookup_.table, keys_, &matches_)
                  : lookup_.snapshot.get(lookup_.table, keys_, &result_);
  }
  Bytes value(uint64_t i) const { return match_ ? matches_.value(i) : result_.values[i]; }

  void write(uint64_t i, bool found) override {
    const bool was_ok = value_.ok();
    const RowPlan& plan = block_->file->plan;
    if (plan.options.format == Format::jsonl) {
      write_json(rows_.row(i), i, found);
    } else if (match_ || value_.has_columns() || plan.options.format == Format::csv) {
      write_columns(rows_.row(i), i, found);
    } else {
      write_value(rows_.row(i), value_.of(value(i)));
    }
    if (value_.ok() != was_ok) broken_key_ = KeyText(lookup_.key_form).text(keys_[i]);
  }

  void write_columns(std::string_view row, uint64_t i, bool found) {
    const RowPlan& plan = block_->file->plan;
    const bool csv = plan.options.format == Format::csv;
    text_.append(row);
    text_.append(plan.options.delimiter);
    if (match_) {
      if (found) decode_key(prefix_form_, matches_.prefix(i), &text_);
      text_.append(plan.options.delimiter);
    }
    value_.append_fields(value(i), found, plan.options.delimiter, csv, &text_);
    text_.append(plan.crlf ? std::string_view("\r\n") : std::string_view("\n"));
  }

  // The common case: one check for room, and then only copies.
  void write_value(std::string_view row, std::string_view text) {
    const RowPlan& plan = block_->file->plan;
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

  // The object with one member more, or two.
  void write_json(std::string_view row, uint64_t i, bool found) {
    text_.append(row.substr(0, row.rfind('}')));
    text_.append(',');
    if (match_) {
      text_.append("\"prefix\":");
      if (found) text_.append('"');
      if (found) decode_key(prefix_form_, matches_.prefix(i), &text_);
      text_.append(found ? std::string_view("\",") : std::string_view("null,"));
    }
    value_.append_member(value_name_, value(i), found, &text_);
    text_.append("}\n");
  }

  ExitStatus written() const override {
    return value_.ok() ? ExitStatus() : no_row_of_schema(broken_key_);
  }

  std::string value_name_;
  bool match_;
  KeyForm prefix_form_;
  ValueText value_;
  GetResult result_;
  MatchResult matches_;
  std::string broken_key_;
};

// What becomes of keys in a prefix table.
ExitStatus choose_keys(Context* context, bool match, Lookup* lookup) {
  const Table& table = lookup->table;
  if (match && table.address_bits() == 0)
    return ExitStatus::usage("table '" + table.name() +
                             "' is no prefix table: leave --match out, or load one with --key-type "
                             "prefix");
  if (match) lookup->key_form = {KeyType::address, table.address_bits()};
  if (!match && table.address_bits() != 0)
    context->note("stride: table '" + table.name() +
                  "' has prefixes as keys, and rows are joined to the very same prefix: --match "
                  "joins addresses to the longest prefix of each");
  return {};
}

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
  command->add_flag("--match", a->match,
                    "Of a prefix table: the key is an address, and its longest prefix comes first");
  command->footer(
      "Each row is written as it is, in the same order, with the table's columns, or its value, "
      "as\n"
      "last ones; in jsonl they are one member, an object.\n\n"
      "Examples:\n"
      "  stride join db users orders.tsv --key 3 > orders-with-users.tsv\n"
      "  stride join db users orders.csv.gz --header --key user_id --value-name user\n"
      "  stride join db seen log.jsonl --key ip --missing skip\n"
      "  stride join db routes requests.csv --key address --match --columns asn,name");
}

ExitStatus run_join(Context* context, const JoinArguments& arguments) {
  RowOptions options;
  RowArguments rows = arguments.rows;
  rows.sniffs = true;
  STRIDE_CLI_TRY(parse_row_options(rows, arguments.file, &options));
  if (options.format == Format::raw || is_columnar(options.format))
    return ExitStatus::usage(
        "join reads tsv, csv and jsonl: give rows of one of these, or get --keys takes the keys of "
        "Parquet and Arrow files");
  if (arguments.match) options.added_fields.push_back("prefix");
  options.added_fields.push_back(arguments.value_name);
  if (arguments.match && arguments.value_name == "prefix")
    return ExitStatus::usage(
        "--value-name prefix: --match adds a field of this name, too: give another one");
  std::unique_ptr<Lookup> lookup;
  STRIDE_CLI_TRY(open_lookup(
      context,
      {arguments.database, arguments.table, arguments.file, arguments.missing, arguments.columns},
      arguments.rows, &lookup));
  STRIDE_CLI_TRY(choose_keys(context, arguments.match, lookup.get()));
  lookup->header = ValueText(lookup->table, lookup->columns, arguments.value_name).names();
  if (arguments.match) lookup->header.insert(lookup->header.begin(), "prefix");
  return look_up_file(lookup.get(), arguments.rows, arguments.file, options, [&] {
    return std::make_unique<JoinWorker>(lookup.get(), arguments.value_name, arguments.match);
  });
}

const bool join_registered = Subcommands::add(
    140, "join", "Add to each row of a file the value of its key", &add_join, &run_join,
    /*json=*/false);

}  // namespace
}  // namespace stride::cli
