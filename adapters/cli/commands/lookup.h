// What stride get, match and join share: keys of arguments or of a file are looked up in a table,
// by a worker on each thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "adapters/cli/commands/output_arguments.h"
#include "adapters/cli/commands/row_arguments.h"
#include "adapters/cli/context.h"
#include "adapters/cli/input/parsed_rows.h"
#include "adapters/cli/input/pipeline.h"
#include "adapters/cli/input/rejected_rows.h"
#include "adapters/cli/output/progress.h"
#include "adapters/cli/output/value_text.h"
#include "adapters/cli/text/key_codec.h"
#include "engine/database.h"

namespace stride::cli {

enum class Missing : uint8_t { skip, empty, error };

// What all threads of a lookup share.
struct Lookup {
  Context* context = nullptr;
  std::unique_ptr<Database> database;
  Table table;
  KeyForm key_form;             // of what is looked up
  std::vector<size_t> columns;  // of the table's schema, that are wanted
  Snapshot snapshot;
  Missing missing = Missing::skip;
  RejectedRows rejects;
  Progress progress;
  std::vector<std::string> header;  // of the value's columns
  uint64_t rows = 0, found = 0;
  bool header_written = false;

  Lookup(Context* c, std::unique_ptr<Database> d, const RowArguments& arguments, uint64_t total)
      : context(c),
        database(std::move(d)),
        snapshot(database->snapshot()),
        rejects(arguments.rejects, rejects_allowed(arguments), arguments.row_options),
        progress(c->environment.err, "look up", total) {}

  ValueText value_text() const { return ValueText(table, columns); }
  bool of_addresses() const { return key_form.type == KeyType::address; }
  ExitStatus not_there(const std::string& place, Bytes key) const;
  // "3 of 7 keys are not in the table"
  std::string missing_text() const;
};

// Looks up the keys of blocks, in any order, and writes what each has, in the order of the blocks.
class LookupWorker : public BlockWorker {
 public:
  // rows_wanted: write() needs the row of each key.
  LookupWorker(Lookup* lookup, bool rows_wanted)
      : lookup_(*lookup), rows_({.values = false, .rows = rows_wanted, .lines = true}) {}

  // Looks up keys that lie in any memory. text_ then has what is to be written, up to a key that
  // is missing where that is an error.
  ExitStatus look_up(const KeyColumn& keys);
  // Writes what look_up() found. place: of the key that is missing.
  ExitStatus hand_out(const std::string& place);

  ExitStatus process(const Block& block) override;
  ExitStatus emit(const Block& block) override;

 protected:
  // Looks keys_ up, and says which are found.
  virtual ExitStatus search(const Bitmap** found) = 0;
  // Appends what key i has.
  virtual void write(uint64_t i, bool found) = 0;
  // Whether all could be written.
  virtual ExitStatus written() const = 0;

  Lookup& lookup_;
  ParsedRows rows_;
  const Block* block_ = nullptr;  // null: keys are of arguments
  KeyColumn keys_;
  TextBuffer text_;

 private:
  static constexpr uint64_t none = ~uint64_t{0};

  // The columns' names, and that of the value's.
  ExitStatus write_header(const FileRows& file);
  void note_columns_twice(const FileRows& file);

  uint64_t found_ = 0;
  uint64_t missing_ = none;
};

class ValueWorker : public LookupWorker {
 public:
  using LookupWorker::LookupWorker;

 protected:
  GetResult result_;

 private:
  ExitStatus search(const Bitmap** found) override {
    *found = &result_.found;
    return lookup_.snapshot.get(lookup_.table, keys_, &result_);
  }
};

using MakeLookupWorker = std::function<std::unique_ptr<LookupWorker>()>;

// What a command asks for: where to look, and what a key has that is not there.
struct LookupRequest {
  std::string database, table;
  std::string file;                  // whose keys are looked up; empty: those of the command line
  std::string missing;               // "skip", "empty" or "error"
  std::vector<std::string> columns;  // none: all
};

ExitStatus open_lookup(Context* context, const LookupRequest& request, const RowArguments& rows,
                       std::unique_ptr<Lookup>* lookup);

// Looks up the keys of the file, with a worker for each thread.
ExitStatus look_up_file(Lookup* lookup, const RowArguments& arguments, const std::string& file,
                        RowOptions options, const MakeLookupWorker& make_worker);
// Looks up the arguments or, where a file is named, the keys of its first column.
ExitStatus look_up_keys(Lookup* lookup, const RowArguments& rows,
                        const std::vector<std::string>& keys, const std::string& file,
                        const MakeLookupWorker& make_worker);

// --missing
void add_missing(CLI::App* command, std::string* missing, const std::string& what);
// --threads
void add_threads(CLI::App* command, RowArguments* rows);

}  // namespace stride::cli
