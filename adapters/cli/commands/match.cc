// stride match: addresses with the longest of their prefixes, or with all of them.
#include <CLI/CLI.hpp>

#include "adapters/cli/commands/lookup.h"
#include "adapters/cli/output/record_writer.h"
#include "adapters/cli/subcommands.h"

namespace stride::cli {
namespace {

struct MatchArguments {
  std::string database, table;
  std::vector<std::string> addresses;
  OutputArguments output;
  std::string missing = "empty";
  bool all = false;
  RowArguments rows;
};

class MatchWorker final : public LookupWorker {
 public:
  MatchWorker(Lookup* lookup, Format format)
      : LookupWorker(lookup, false),
        writer_(format, lookup->table.address_bits(), lookup->value_text()) {}

 private:
  ExitStatus search(const Bitmap** found) override {
    *found = &result_.found;
    return lookup_.snapshot.match(lookup_.table, keys_, &result_);
  }
  void write(uint64_t i, bool found) override {
    writer_.write(keys_[i], result_.prefix(i), result_.value(i), found, &text_);
  }
  ExitStatus written() const override { return writer_.status(); }
  MatchResult result_;
  MatchWriter writer_;
};

// Asks for one address after the other: for all its prefixes, a line each, the shortest first. Or
// for the longest: a few addresses are not worth what the first Snapshot::match() builds.
class OneByOneWorker final : public LookupWorker {
 public:
  OneByOneWorker(Lookup* lookup, Format format, bool all)
      : LookupWorker(lookup, false),
        all_(all),
        writer_(format, lookup->table.address_bits(), lookup->value_text()) {}

 private:
  ExitStatus search(const Bitmap** found) override {
    *found = &found_;
    found_.reset(keys_.size);
    entries_.clear();
    first_.assign(1, 0);
    for (uint64_t i = 0; i < keys_.size; ++i) {
      auto entries = lookup_.snapshot.match_all(lookup_.table, keys_[i]);
      if (!entries.ok()) return entries.status();
      if (!entries->empty()) found_.set(i);
      auto first = all_ || entries->empty() ? entries->begin() : entries->end() - 1;
      entries_.insert(entries_.end(), first, entries->end());
      first_.push_back(entries_.size());
    }
    return {};
  }
  void write(uint64_t i, bool found) override {
    if (!found) return writer_.write(keys_[i], {}, {}, false, &text_);
    for (uint64_t e = first_[i]; e < first_[i + 1]; ++e)
      writer_.write(keys_[i], entries_[e].key, entries_[e].value, true, &text_);
  }
  ExitStatus written() const override { return writer_.status(); }
  bool all_;
  Bitmap found_;
  std::vector<PrefixEntry> entries_;
  std::vector<uint64_t> first_;  // entry of each address, and the end
  MatchWriter writer_;
};

void add_match(CLI::App* command, MatchArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->table, "Name of the prefix table")->required();
  command->add_option("ADDRESS", a->addresses, "Addresses to look up");
  add_keys_options(command, &a->rows, "an address");
  command->add_flag("--all", a->all,
                    "All prefixes of each address, a line each, the shortest first");
  add_output_options(command, &a->output, "address, prefix, value", /*raw=*/false);
  add_missing(command, &a->missing,
              "Addresses without a prefix: left out, with empty fields, or the end (exit code 4)");
  add_threads(command, &a->rows);
  command->footer(
      "Prints each address with the longest prefix that covers it, and that prefix's value.\n\n"
      "Examples:\n"
      "  stride match db routes 10.1.2.3 192.0.2.1\n"
      "  stride match db routes --keys addresses.txt.gz --missing skip > routes.tsv\n"
      "  stride match db routes 10.1.2.3 --all --json");
}

ExitStatus run_match(Context* context, const MatchArguments& arguments) {
  if (arguments.addresses.empty() == arguments.rows.keys.empty())
    return ExitStatus::usage("give addresses, or --keys FILE");
  Format format = output_format(*context, arguments.output);
  std::unique_ptr<Lookup> lookup;
  STRIDE_CLI_TRY(open_lookup(context,
                             {arguments.database, arguments.table, arguments.rows.keys,
                              arguments.missing, arguments.output.columns},
                             arguments.rows, &lookup));
  if (lookup->table.address_bits() == 0)
    return ExitStatus::usage("table '" + arguments.table +
                             "' is no prefix table: stride get looks its keys up");
  lookup->key_form = {KeyType::address, lookup->table.address_bits()};
  if (wants_header(arguments.output, format, lookup->table)) {
    TextBuffer header;
    MatchWriter(format, lookup->table.address_bits(), lookup->value_text()).write_header(&header);
    STRIDE_CLI_TRY(context->out.write(header.text()));
  }
  bool few = arguments.rows.keys.empty() && lookup->table.address_bits() <= 128;
  return look_up_keys(lookup.get(), arguments.rows, arguments.addresses, arguments.rows.keys,
                      [&]() -> std::unique_ptr<LookupWorker> {
                        if (arguments.all || few)
                          return std::make_unique<OneByOneWorker>(lookup.get(), format,
                                                                  arguments.all);
                        return std::make_unique<MatchWorker>(lookup.get(), format);
                      });
}

const bool match_registered =
    Subcommands::add(130, "match", "Look up the prefixes of addresses", &add_match, &run_match);

}  // namespace
}  // namespace stride::cli
