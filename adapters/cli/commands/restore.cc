// stride restore.
#include <xxhash.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters/cli/commands/copies.h"
#include "adapters/cli/commands/machine_memory.h"
#include "adapters/cli/commands/row_arguments.h"
#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/context.h"
#include "adapters/cli/input/input_stream.h"
#include "adapters/cli/input/json_fields.h"
#include "adapters/cli/input/parsed_rows.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/output/dump_format.h"
#include "adapters/cli/output/json_output.h"
#include "adapters/cli/output/progress.h"
#include "adapters/cli/subcommands.h"
#include "adapters/cli/text/number_text.h"

namespace stride::cli {
namespace {

struct RestoreArguments {
  std::string database, file;
  uint64_t commit_every = 0;
};

using nlohmann::json;

// Tables are made, and rows committed, when all of the dump has been read; or from time to time.
class Restore {
 public:
  Restore(Context* context, const RestoreArguments& arguments)
      : context_(*context),
        arguments_(arguments),
        max_bytes_(memory_for_rows(context->environment.meminfo)) {}

  ExitStatus run() {
    ExitStatus opened = open_database(context_, arguments_.database, Access::write, 0, &database_);
    if (!opened.ok() && opened.code() != ExitCode::not_found) return opened;
    STRIDE_CLI_TRY(
        InputStream::open(arguments_.file, context_.environment.in, Compression::automatic, &in_));
    Progress progress(context_.environment.err, "restore", in_->stored_bytes());
    ExitStatus outcome = read(&progress);
    if (!outcome.ok()) {
      for (const TableRows& table : tables_)
        if (table.made) Status ignored = database_->drop_table(table.name);
      return outcome;
    }
    progress.clear();
    context_.done = all_done;
    context_.note("restored " + with_commas(rows_) + " rows of " + std::to_string(tables_.size()) +
                  (tables_.size() == 1 ? " table" : " tables") + " in " +
                  seconds_text(progress.seconds()));
    if (!context_.json) return {};
    json result = {{"tables", tables_.size()}, {"rows", rows_}, {"seconds", progress.seconds()}};
    return context_.out.write(text_of(result) + "\n");
  }

 private:
  struct TableRows {
    std::string name;
    TableOptions options;
    std::optional<TableNotes> notes;
    std::vector<RowColumns> waiting;
    bool made = false;
  };

  ExitStatus broken(const std::string& why) const {
    return ExitStatus(ExitCode::bad_input, in_->name() + ": " + why);
  }

  ExitStatus broken_field(const std::string& name) const {
    return broken("has a table header whose field '" + name + "' is broken");
  }

  ExitStatus read(Progress* progress) {
    char magic[8];
    size_t got = 0;
    STRIDE_CLI_TRY(in_->read(reinterpret_cast<std::byte*>(magic), sizeof magic, &got));
    if (std::string_view(magic, got) != dump_magic) return broken("is no dump of stride");
    for (bool ended = false; !ended;) {
      if (interrupted()) return ExitStatus::interrupted();
      STRIDE_CLI_TRY(read_frame(&ended));
      progress->update(in_->stored_bytes_read(), rows_);
    }
    return commit(/*last=*/true);
  }

  ExitStatus read_frame(bool* ended) {
    FrameHeader header;
    size_t got = 0;
    uint64_t offset = offset_;
    STRIDE_CLI_TRY(in_->read(reinterpret_cast<std::byte*>(&header), sizeof header, &got));
    if (got < sizeof header) return broken("the dump is cut short");
    payload_.clear();
    STRIDE_CLI_TRY(read_payload(header.bytes));
    offset_ += sizeof header + header.bytes;
    if (XXH3_64bits_withSeed(payload_.text().data(), header.bytes, header.kind) != header.checksum)
      return broken("is damaged at byte " + std::to_string(offset));
    switch (static_cast<FrameKind>(header.kind)) {
      case FrameKind::table:
      case FrameKind::prefixes:
      case FrameKind::numbers:
      case FrameKind::schema:
      case FrameKind::expiring:
        return begin_table(static_cast<FrameKind>(header.kind));
      case FrameKind::rows:
        return take_rows();
      case FrameKind::end:
        *ended = true;
        return check_end();
    }
    return broken("was written by a newer version");
  }

  // In pieces: a damaged length must not ask for more memory than there is file.
  ExitStatus read_payload(uint64_t bytes) {
    while (payload_.size() < bytes) {
      size_t n = std::min<uint64_t>(bytes - payload_.size(), dump_frame_bytes), got = 0;
      STRIDE_CLI_TRY(in_->read(reinterpret_cast<std::byte*>(payload_.room(n)), n, &got));
      payload_.grow(got);
      if (got < n) return broken("the dump is cut short");
    }
    return {};
  }

  ExitStatus begin_table(FrameKind kind) {
    json header = json::parse(payload_.text(), nullptr, /*allow_exceptions=*/false);
    if (!header.is_object()) return broken("has a broken table header");
    TableRows table;
    std::vector<uint8_t> bytes;
    if (!read_field(header, "table_bytes", &bytes)) return broken_field("table_bytes");
    table.name.assign(bytes.begin(), bytes.end());
    if (!read_field(header, "table", &table.name)) return broken_field("table");
    TableOptions& options = table.options;
    const bool has_schema = kind == FrameKind::schema || kind == FrameKind::expiring;
    if (kind == FrameKind::numbers || (has_schema && header.contains("numbers")))
      STRIDE_CLI_TRY(read_numbers(header, &options));
    if (has_schema) STRIDE_CLI_TRY(read_schema(header, &options));
    if (kind == FrameKind::expiring) {
      if (!read_field(header, "expires", &options.expiry_column) || options.expiry_column.empty())
        return broken_field("expires");
      uint64_t live = 0;
      if (!read_field(header, "time_to_live", &live) ||
          live > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return broken_field("time_to_live");
      options.time_to_live = static_cast<int64_t>(live);
    }
    if (kind == FrameKind::prefixes ||
        (kind != FrameKind::table && header.contains("address_bits"))) {
      STRIDE_CLI_TRY(read_address_bits(header, &options.address_bits));
    } else if (!read_field(header, "key_width", &options.key_width) ||
               options.key_width > max_key_bytes) {
      return broken_field("key_width");
    }
    if (!read_field(header, "share_equal_values", &options.share_equal_values))
      return broken_field("share_equal_values");
    STRIDE_CLI_TRY(read_table_notes(header, &table.notes));
    STRIDE_CLI_TRY(check_name(table.name));
    STRIDE_CLI_TRY(make_room(table.name));
    tables_.push_back(std::move(table));
    return {};
  }

  ExitStatus check_name(const std::string& name) const {
    if (name.empty() || name == notes_table)
      return broken("has a table of the name " + in_quotes(name) + ", which no dump has");
    for (const TableRows& table : tables_)
      if (table.name == name) return broken("has table " + in_quotes(name) + " twice");
    return {};
  }

  // What an earlier restore has left that was killed between two commits goes.
  ExitStatus make_room(const std::string& name) {
    if (!database_) return {};
    auto table = database_->open_table(name);
    if (!table.ok() && table.status().code() != StatusCode::not_found) return table.status();
    if (!table.ok()) return {};
    bool unfinished = false;
    STRIDE_CLI_TRY(read_restoring(*database_, *table, &unfinished));
    if (!unfinished)
      return ExitStatus::usage("table '" + name + "' is in " + arguments_.database +
                               " already: restore into another database");
    context_.note("stride: table '" + name + "' is of a restore that was cut off: begins anew");
    return database_->drop_table(name);
  }

  ExitStatus read_table_notes(const json& header, std::optional<TableNotes>* notes) const {
    auto found = header.find("notes");
    if (found == header.end()) return {};
    std::string type;
    TableNotes read;
    if (!found->is_object() || !read_field(*found, "key_type", &type) ||
        !read_field(*found, "key", &read.key) || !read_field(*found, "values", &read.values))
      return broken_field("notes");
    if (!key_form_named(type)) return {};
    read.key_type = type;
    *notes = std::move(read);
    return {};
  }

  ExitStatus read_address_bits(const json& header, uint32_t* address_bits) const {
    auto found = header.find("address_bits");
    std::optional<uint32_t> bits;
    if (found != header.end())
      bits = address_bits_named(found->is_string() ? found->get<std::string>() : found->dump());
    if (!bits) return broken_field("address_bits");
    *address_bits = *bits;
    return {};
  }

  ExitStatus read_numbers(const json& header, TableOptions* options) const {
    std::string type, overflow;
    if (!read_field(header, "numbers", &type) || !number_type_named(type))
      return broken_field("numbers");
    if (!read_field(header, "overflow", &overflow)) return broken_field("overflow");
    options->numbers = *number_type_named(type);
    options->overflow = overflow == "wrap" ? Overflow::wrap : Overflow::error;
    return {};
  }

  ExitStatus read_schema(const json& header, TableOptions* options) const {
    std::string text;
    if (!read_field(header, "schema", &text)) return broken_field("schema");
    auto schema = Schema::parse(text);
    if (!schema.ok() || schema->empty()) return broken_field("schema");
    options->schema = std::move(*schema);
    return {};
  }

  ExitStatus take_rows() {
    if (tables_.empty()) return broken("has rows before a table");
    TableRows& table = tables_.back();
    RowPlan plan;
    plan.options.format = Format::raw;
    uint32_t bits = table.options.address_bits;
    plan.options.key_form = {KeyType::bytes, bits};
    plan.options.key_width = bits ? prefix_key_width(bits) : table.options.key_width;
    plan.options.allow_empty_key = true;
    plan.options.numbers = table.options.numbers;
    parse_rows(plan, payload_.text(), &parsed_);
    if (!parsed_.bad().empty()) return broken("has a broken record: " + parsed_.bad()[0].reason);
    rows_ += parsed_.size();
    waiting_rows_ += parsed_.size();
    table.waiting.push_back(parsed_.take());
    waiting_bytes_ += table.waiting.back().bytes();
    if (arguments_.commit_every && waiting_rows_ >= arguments_.commit_every)
      return commit(/*last=*/false);
    if (waiting_bytes_ <= max_bytes_) return {};
    return ExitStatus(ExitCode::no_room, "the rows need more than " + byte_text(max_bytes_) +
                                             " of memory before they can be committed as a whole; "
                                             "give --commit-every N to commit them in parts");
  }

  ExitStatus check_end() {
    json end = json::parse(payload_.text(), nullptr, /*allow_exceptions=*/false);
    uint64_t tables = 0, rows = 0;
    if (!end.is_object() || !read_field(end, "tables", &tables) ||
        !read_field(end, "rows", &rows) || tables != tables_.size() || rows != rows_)
      return broken("does not have the rows that its end says");
    std::byte more;
    size_t got = 0;
    STRIDE_CLI_TRY(in_->read(&more, 1, &got));
    return got == 0 ? ExitStatus() : broken("has more bytes after the dump's end");
  }

  // Tables come with their first rows. One that a later commit goes on with is marked until the
  // last, so that nobody takes a part of it for the whole if this process is killed.
  ExitStatus commit(bool last) {
    if (interrupted()) return ExitStatus::interrupted();
    if (!database_) {
      STRIDE_CLI_TRY(open_database(context_, arguments_.database, Access::create, 0, &database_));
    }
    WriteTransaction transaction = database_->begin();
    for (TableRows& table : tables_) {
      auto opened = table.made ? database_->open_table(table.name)
                               : transaction.create_table(table.name, table.options);
      if (!opened.ok()) return opened.status();
      for (const RowColumns& rows : table.waiting)
        STRIDE_CLI_TRY(transaction.put_view(*opened, rows.keys, rows.values));
      if (table.notes && !table.made)
        STRIDE_CLI_TRY(write_notes(&transaction, table.name, *table.notes));
      if (last ? table.made : !table.made)
        STRIDE_CLI_TRY(write_restoring(&transaction, *opened, !last));
    }
    STRIDE_CLI_TRY(transaction.commit());
    for (TableRows& table : tables_) {
      table.made = true;
      table.waiting.clear();
    }
    waiting_rows_ = waiting_bytes_ = 0;
    return {};
  }

  Context& context_;
  const RestoreArguments& arguments_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<InputStream> in_;
  TextBuffer payload_;
  uint64_t offset_ = dump_magic.size();  // of the frame that is read next
  ParsedRows parsed_{{.values = true, .rows = false, .lines = false}};
  std::deque<TableRows> tables_;
  uint64_t rows_ = 0, waiting_rows_ = 0, waiting_bytes_ = 0, max_bytes_;
};

void add_restore(CLI::App* command, RestoreArguments* a) {
  command->add_option("DB", a->database, "Directory of the database; made where it is missing")
      ->required();
  command
      ->add_option("FILE", a->file,
                   "A dump, packed or not; -: standard input. Or the directory of a backup")
      ->required();
  add_count(
      command, "--commit-every", &a->commit_every,
      "Commit whenever N rows have been read. Default: once. All or nothing either way: tables "
      "are dropped again where the dump turns out to be broken");
  command->footer(
      "Of a dump, the tables must not be there yet; of a backup, the database. Every byte of a\n"
      "backup is checked.\n\n"
      "Examples:\n"
      "  stride restore copy db.dump.zst\n"
      "  stride restore copy /backups/db");
}

ExitStatus run_restore(Context* context, const RestoreArguments& arguments) {
  std::error_code unknown;
  if (std::filesystem::is_directory(arguments.file, unknown)) {
    if (arguments.commit_every != 0)
      return ExitStatus::usage("--commit-every is for dumps, and " + arguments.file +
                               " is a directory: leave it out");
    return restore_backup(context, arguments.file, arguments.database);
  }
  return Restore(context, arguments).run();
}

const bool restore_registered =
    Subcommands::add(320, "restore", "Read tables from a dump, or a database from a backup",
                     &add_restore, &run_restore);

}  // namespace
}  // namespace stride::cli
