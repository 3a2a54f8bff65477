// What remembers the rows that dedup has seen, and prints those that are new.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/cli/commands/table_notes.h"
#include "adapters/cli/context.h"
#include "adapters/cli/input/parsed_rows.h"
#include "engine/row_set.h"

namespace stride::cli {

// Takes the rows of all blocks, in order. Not thread-safe.
class DuplicateRows {
 public:
  virtual ~DuplicateRows() = default;
  // Rows of `text`, which were parsed with where each lies.
  virtual ExitStatus take(std::string_view text, ParsedRows* rows, bool crlf) = 0;
  // Once all rows were taken.
  virtual ExitStatus finish() = 0;

  uint64_t rows() const { return rows_; }
  uint64_t fresh() const { return fresh_; }

 protected:
  uint64_t rows_ = 0, fresh_ = 0;
};

// In memory.
class DuplicatesInMemory final : public DuplicateRows {
 public:
  // out: null where rows are only counted.
  DuplicatesInMemory(RowSet seen, Output* out) : seen_(std::move(seen)), out_(out) {}
  ExitStatus take(std::string_view text, ParsedRows* rows, bool crlf) override;
  ExitStatus finish() override { return {}; }

 private:
  RowSet seen_;
  Output* out_;
  std::vector<uint64_t> was_new_;
};

// In a table, which is changed a batch of rows at a time. Rows are printed once their batch is
// committed, and what cannot be printed then is taken back.
class DuplicatesInTable final : public DuplicateRows {
 public:
  struct Place {
    std::string database, table;
    uint64_t commit_every = 0;  // rows; 0: as batch_bytes says
    unsigned threads = 0;
  };
  DuplicatesInTable(Context* context, Place place, Output* out)
      : context_(*context), place_(std::move(place)), out_(out) {}

  // Looks at what is there, and says how keys are to be read. asked: --key-type.
  ExitStatus open(const std::string& asked, RowOptions* options);
  ExitStatus take(std::string_view text, ParsedRows* rows, bool crlf) override;
  ExitStatus finish() override;

 private:
  static constexpr uint64_t batch_bytes = 128 << 20;
  static constexpr uint64_t max_runs = 24;  // a lookup visits each

  struct Waiting {
    RowColumns rows;
    std::vector<uint64_t> was_new;
  };
  ExitStatus commit();
  ExitStatus write();
  ExitStatus print();
  ExitStatus take_back(uint64_t printed_bytes, ExitStatus failure);
  // Calls use(waiting, row in it, row of all) for each row that is new.
  template <class Use>
  void for_each_new(const Use& use) const;

  Context& context_;
  Place place_;
  Output* out_;
  std::unique_ptr<Database> database_;
  std::optional<Table> table_;
  KeyForm key_form_;
  uint32_t key_width_ = 0;
  std::string key_;  // the column's name
  std::vector<Waiting> waiting_;
  uint64_t waiting_rows_ = 0, waiting_bytes_ = 0;
  TextBuffer text_;             // of the rows that wait, with their line ends
  std::vector<uint64_t> ends_;  // in it
};

}  // namespace stride::cli
