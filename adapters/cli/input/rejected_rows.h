// Rows that cannot be read: a job ends at the first one too many, and the others are written down.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "adapters/cli/environment.h"
#include "adapters/cli/input/block_reader.h"
#include "adapters/cli/input/parsed_rows.h"
#include "adapters/cli/output/output.h"

namespace stride::cli {

// Where an interrupted job ended that is gone on with: in this line (0: the first) of this input
// file, after so many bad rows.
struct ResumedAt {
  bool resumed = false;  // what is in the file of bad rows stays
  uint32_t file = 0;
  uint64_t line = 0;
  uint64_t count = 0;
  uint64_t bytes = 0;  // RejectedRows::bytes()
};

// Knows in which line a block begins, and so takes all blocks, in order. Not thread-safe.
class RejectedRows {
 public:
  // path empty: not written down. max_count: how many are fine. offered: the command has the
  // options
  // --rejects and --max-rejects, and those that say how rows are read.
  RejectedRows(std::string path, uint64_t max_count, bool offered)
      : path_(std::move(path)), max_count_(max_count), offered_(offered) {}
  ~RejectedRows();
  // usage: it is one of the inputs, or what is printed goes there.
  ExitStatus open(const Environment& environment, const std::vector<std::string>& inputs,
                  const ResumedAt& from = {});
  // bad_input: "FILE:LINE: reason: what to do", for the first bad row that is one too many.
  ExitStatus take(const Block& block, ParsedRows* rows);
  ExitStatus flush();

  uint64_t count() const { return count_; }
  // The file has so many, once it is flushed: what a resumed job finds behind them was not
  // committed.
  uint64_t bytes() const { return begin_ + (output_ ? output_->written_bytes() : 0); }
  // Tells the first line of the block that was taken last.
  uint64_t block_line() const { return block_line_; }
  // Past the last line of that block.
  uint64_t next_line() const { return next_line_; }

 private:
  ExitStatus open_file(const Environment& environment, const std::vector<std::string>& inputs,
                       const ResumedAt& from);

  std::string what_to_do(const BadRow& bad) const;

  std::string path_;
  uint64_t max_count_;
  bool offered_;
  uint64_t count_ = 0;
  int fd_ = -1;
  std::unique_ptr<Output> output_;
  uint64_t begin_ = 0;  // bytes of the file before it
  const FileRows* file_ = nullptr;
  uint64_t resumed_file_ = 0, resumed_line_ = 0;
  uint64_t block_line_ = 1, next_line_ = 1;
};

// A block's rows, also where there is but one that is too long. bad_input: of columns that are
// damaged, and no_room.
ExitStatus parse_block(const Block& block, ParsedRows* rows);

}  // namespace stride::cli
