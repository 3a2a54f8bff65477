// stride dump.
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters/cli/commands/row_arguments.h"
#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/context.h"
#include "adapters/cli/interrupt.h"
#include "adapters/cli/output/dump_format.h"
#include "adapters/cli/output/json_output.h"
#include "adapters/cli/output/progress.h"
#include "adapters/cli/output/record_writer.h"
#include "adapters/cli/subcommands.h"
#include "storage/utf8.h"

namespace stride::cli {
namespace {

struct DumpArguments {
  std::string database;
  std::vector<std::string> tables;
  bool zst = false;
};

using nlohmann::json;

// The standard output, packed where that is asked for.
class PackedOutput {
 public:
  PackedOutput(Output* out, bool packed) : out_(*out) {
    if (!packed) return;
    stream_.reset(ZSTD_createCStream());
    if (!stream_) throw std::bad_alloc();
    packed_.resize(ZSTD_CStreamOutSize());
  }

  ExitStatus write(std::string_view text) { return pass(text, ZSTD_e_continue); }
  ExitStatus finish() {
    STRIDE_CLI_TRY(pass({}, ZSTD_e_end));
    return out_.flush();
  }

 private:
  struct Free {
    void operator()(ZSTD_CStream* stream) const { ZSTD_freeCStream(stream); }
  };

  ExitStatus pass(std::string_view text, ZSTD_EndDirective directive) {
    if (!stream_) return out_.write(text);
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    for (size_t left = 1; in.pos < in.size || (directive == ZSTD_e_end && left != 0);) {
      ZSTD_outBuffer out{packed_.data(), packed_.size(), 0};
      left = ZSTD_compressStream2(stream_.get(), &out, &in, directive);
      if (ZSTD_isError(left)) return ExitStatus(ExitCode::failure, ZSTD_getErrorName(left));
      STRIDE_CLI_TRY(out_.write({packed_.data(), out.pos}));
    }
    return {};
  }

  Output& out_;
  std::unique_ptr<ZSTD_CStream, Free> stream_;
  std::string packed_;
};

ExitStatus write_frame(PackedOutput* out, FrameKind kind, std::string_view payload) {
  FrameHeader header{
      static_cast<uint32_t>(kind), static_cast<uint32_t>(payload.size()),
      XXH3_64bits_withSeed(payload.data(), payload.size(), static_cast<uint64_t>(kind))};
  STRIDE_CLI_TRY(out->write({reinterpret_cast<const char*>(&header), sizeof header}));
  return out->write(payload);
}

ExitStatus dump_table(const Database& database, const Snapshot& snapshot, const std::string& name,
                      PackedOutput* out, Progress* progress, uint64_t* rows) {
  auto table = database.open_table(name);
  if (!table.ok()) return table.status();
  std::optional<TableNotes> notes;
  STRIDE_CLI_TRY(read_notes(database, *table, &notes));
  json header = {{"key_width", table->key_width()}};
  if (is_utf8(name)) {
    header["table"] = name;
  } else {
    header["table_bytes"] = std::vector<uint8_t>(name.begin(), name.end());
  }
  if (notes) {
    header["notes"] = {
        {"key_type", notes->key_type}, {"key", notes->key}, {"values", notes->values}};
  }
  if (table->share_equal_values()) header["share_equal_values"] = true;
  add_address_bits(table->address_bits(), &header);
  add_numbers(table->numbers(), table->overflow(), &header);
  const Schema& schema = table->schema();
  if (!schema.empty()) header["schema"] = schema.to_string();
  add_expiry(*table, &header);
  FrameKind kind = !table->expiry_column().empty()        ? FrameKind::expiring
                   : !schema.empty()                      ? FrameKind::schema
                   : table->numbers() != NumberType::none ? FrameKind::numbers
                   : table->address_bits()                ? FrameKind::prefixes
                                                          : FrameKind::table;
  STRIDE_CLI_TRY(write_frame(out, kind, text_of(header)));
  auto scan = snapshot.scan(*table);
  if (!scan.ok()) return scan.status();
  RecordWriter writer(Format::raw, KeyText(KeyType::bytes), ValueText(Table(), {}));
  TextBuffer frame;
  ScanBatch batch;
  uint64_t dumped = 0;
  while (scan->next(&batch)) {
    if (interrupted()) return ExitStatus::interrupted();
    for (uint64_t i = 0; i < batch.keys.size; ++i) {
      uint64_t bytes = 8 + batch.keys[i].size() + batch.values[i].size();
      if (bytes > UINT32_MAX) {
        return ExitStatus(
            ExitCode::unavailable,
            "table '" + name + "' has a record of more than 4 GiB, which a dump cannot hold");
      }
      if (frame.size() != 0 && frame.size() + bytes > dump_frame_bytes) {
        STRIDE_CLI_TRY(write_frame(out, FrameKind::rows, frame.text()));
        frame.clear();
      }
      writer.write(batch.keys[i], batch.values[i], true, &frame);
      ++dumped;
    }
    progress->update(0, *rows + dumped);
  }
  if (!scan->status().ok()) return scan->status();
  *rows += dumped;
  return frame.size() ? write_frame(out, FrameKind::rows, frame.text()) : ExitStatus();
}

void add_dump(CLI::App* command, DumpArguments* a) {
  command->add_option("DB", a->database, "Directory of the database")->required();
  command->add_option("TABLE", a->tables, "Names of the tables. Default: all");
  command->add_flag("--zst", a->zst, "Pack it with zstd");
  command->footer(
      "Examples:\n"
      "  stride dump db --zst > db.dump.zst\n"
      "  stride dump db users | ssh other stride restore db -");
}

ExitStatus run_dump(Context* context, const DumpArguments& arguments) {
  if (isatty(context->environment.out))
    return ExitStatus::usage("a dump is no text for a terminal: send it to a file or a pipe");
  std::unique_ptr<Database> database;
  STRIDE_CLI_TRY(open_database(*context, arguments.database, Access::read, 0, &database));
  std::vector<std::string> names = arguments.tables;
  if (names.empty()) {
    for (const TableStatistics& table : database->tables())
      if (table.name != notes_table) names.push_back(table.name);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (name == notes_table)
      return ExitStatus::usage("table '" + name +
                               "' is this program's own: a dump has its notes anyway");
    if (std::find(names.begin(), names.begin() + static_cast<ptrdiff_t>(i), name) !=
        names.begin() + static_cast<ptrdiff_t>(i))
      return ExitStatus::usage("table '" + name + "' is named twice");
    Table table;
    STRIDE_CLI_TRY(find_table(*database, name, &table));
  }
  Progress progress(context->environment.err, "dump", 0);
  PackedOutput out(&context->out, arguments.zst);
  STRIDE_CLI_TRY(out.write(dump_magic));
  Snapshot snapshot = database->snapshot();
  uint64_t rows = 0;
  for (const std::string& name : names)
    STRIDE_CLI_TRY(dump_table(*database, snapshot, name, &out, &progress, &rows));
  json end = {{"tables", names.size()}, {"rows", rows}};
  STRIDE_CLI_TRY(write_frame(&out, FrameKind::end, end.dump()));
  return out.finish();
}

const bool dump_registered =
    Subcommands::add(310, "dump", "Write tables as one stream", &add_dump, &run_dump,
                     /*json=*/false);
}  // namespace
}  // namespace stride::cli
