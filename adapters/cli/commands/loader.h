// The state of a load: rows that wait for their commit, and how far it has come.
//
// Nothing of the database changes before the first commit, which makes the database and the table
// where they are missing. Without commit_every there is one commit, of everything.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/cli/commands/load.h"
#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/commands/waiting_rows.h"
#include "adapters/cli/context.h"
#include "adapters/cli/input/parsed_rows.h"
#include "adapters/cli/input/rejected_rows.h"
#include "adapters/cli/output/progress.h"

namespace stride::cli {

enum class OnDuplicate : uint8_t { last, first, error };

class Loader {
 public:
  Loader(Context* context, const LoadArguments& arguments, RowOptions options);

  // Opens what there is already, and finds where an interrupted job goes on.
  ExitStatus prepare(ReadFrom* from);
  // Decides by the first rows what no option tells: the schema of a new table, and the address bits
  // of one of prefixes.
  ExitStatus look_at_first_rows(BlockReader* reader);
  // Takes a block's rows, and commits where that is due. One block at a time, in order.
  ExitStatus take(const Block& block, ParsedRows* rows);
  ExitStatus finish();

  // Shows how far commits are from now on.
  void show_commits(Progress* progress) { progress_ = progress; }

  const RowOptions& options() const { return options_; }
  bool wants_lines() const { return on_duplicate_ == OnDuplicate::error; }
  OnDuplicate on_duplicate() const { return on_duplicate_; }
  uint64_t rows() const { return position_.rows + waiting_rows_; }
  uint64_t committed_rows() const { return position_.rows; }
  // They are part of these: an interrupted load had committed them before.
  uint64_t rows_before() const { return rows_before_; }
  uint64_t skipped() const { return skipped_; }
  uint64_t rejected() const { return rejects_.count(); }
  uint64_t commits() const { return commits_; }
  uint64_t new_keys() const { return new_keys_; }
  // It is the table's; null: it has none.
  const std::shared_ptr<const Schema>& schema() const { return options_.schema; }
  bool made_schema() const { return made_schema_; }

 private:
  OnDuplicate rule_for_duplicates() const;
  // Whether the next commit erases what the table has.
  bool replaces_table() const {
    return arguments_.replace && table_is_there_ && position_.rows == 0;
  }
  ExitStatus find_key_form(const Table* table);
  void set_key_form();
  // table: null where there is none yet.
  ExitStatus find_numbers(const Table* table);
  ExitStatus find_schema(const Table* table);
  // What --expires and --ttl ask for. table: as before.
  ExitStatus check_expiry(const Table* table) const;
  ExitStatus check_expiry_column() const;
  ExitStatus look_at_first_key(BlockReader* reader, const Block* block);
  // The schema with the key's column, as the table is made.
  Schema table_schema() const;
  ExitStatus find_position(ReadFrom* from);
  std::string job() const;
  ExitStatus check_memory() const;
  ExitStatus commit(bool last);
  // The table, which the transaction creates where it is missing.
  Result<Table> open_table(WriteTransaction* transaction) const;
  ExitStatus write(bool last);
  ExitStatus in_shell_words(const Status& status) const;
  // Rows that are so few go through the log, as small commits do, and are looked at here; for more
  // the commit, which sorts them, does that.
  bool is_small() const { return waiting_rows_ <= 65'536; }
  ExitStatus commit(WriteTransaction* transaction);
  // What the table has of the keys that wait: refuses or drops the rows, or counts the keys.
  ExitStatus look_at_keys();
  ExitStatus check_not_stored(const Table& table) const;
  ExitStatus drop_stored(const Table& table);
  ExitStatus count_stored(const Table& table);
  // bad_input, and says where, if two of the rows that wait have the same key.
  ExitStatus check_no_duplicates() const;

  Context& context_;
  const LoadArguments& arguments_;
  RowOptions options_;
  Progress* progress_ = nullptr;  // null: nobody looks
  uint64_t rows_before_ = 0;
  KeyForm key_form_;  // of the table; raw records are bytes all the same
  OnDuplicate on_duplicate_ = OnDuplicate::last;
  RejectedRows rejects_;
  std::unique_ptr<Database> database_;
  bool table_is_there_ = false;
  bool guesses_schema_ = false, made_schema_ = false;
  std::vector<std::string> key_columns_;  // what they are called; none: nobody knows
  std::optional<TableNotes> notes_;       // as stored
  LoadPosition position_;                 // of the last commit
  ReadFrom reached_;                      // behind the rows that were taken last
  std::vector<WaitingRows> waiting_;
  uint64_t waiting_rows_ = 0, waiting_bytes_ = 0;
  uint64_t max_bytes_ = 0;
  uint64_t skipped_ = 0;  // keys that were there before, under OnDuplicate::first
  uint64_t commits_ = 0;
  // Different keys: those that wait and are in the table, those that the last commit has written,
  // and those that were not in the table before.
  uint64_t stored_keys_ = 0, written_keys_ = 0, new_keys_ = 0;
};

}  // namespace stride::cli
