// Files cut into blocks of whole rows, to be parsed side by side.
//
//   BlockReader reader(files, options, environment.in);
//   Block block;
//   std::vector<char> memory;
//   STRIDE_CLI_TRY(reader.next(&memory, &block, &more));
//
// Where a row ends in CSV depends on the quotes before it, so blocks are cut in order by one thread
// at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/cli/input/arrow_rows.h"
#include "adapters/cli/input/input_stream.h"
#include "adapters/cli/input/json_array.h"
#include "adapters/cli/input/row_plan.h"
#include "adapters/cli/output/output.h"

namespace stride::cli {

// What all blocks of a file share.
struct FileRows {
  uint32_t index = 0;  // of the file among those that are read
  std::string name;
  RowPlan plan;
  std::string header;       // the header's bytes as they are, with the line end
  uint64_t first_line = 1;  // of the first row; records are counted in raw files
};

struct Block {
  std::shared_ptr<const FileRows> file;
  // A file in columns has its rows here, in the place of text; end_offset counts rows then.
  std::shared_ptr<const RowBatch> batch;
  std::string_view text;    // whole rows; the last of a file may lack its line end
  uint64_t end_offset = 0;  // in the unpacked file, of what has been read up to this block's end
  // The only row of the block is longer than max_row_bytes; its first bytes are in `text`, and it
  // took so many lines.
  bool too_long = false;
  uint64_t too_long_lines = 0;
  uint64_t stored_bytes_read = 0;  // of all files, for the progress
};

// Where an interrupted job goes on.
struct ReadFrom {
  uint32_t file = 0;
  uint64_t offset = 0;  // in the unpacked file; rows of a file in columns
};

class BlockReader {
 public:
  BlockReader(std::vector<std::string> files, RowOptions options, int standard_input,
              ReadFrom from = {});

  // The next block, its bytes in *memory. *more false: there is none. bad_input, not_found, ...
  ExitStatus next(TextBuffer* memory, Block* block, bool* more);
  // The first block, or the one behind those that were peeked at before. next() hands them out all
  // the same. Before next().
  ExitStatus peek(Block* block, bool* more);
  // How keys of all blocks are read that next() hands out from now on.
  void set_key_form(const KeyForm& form, uint32_t key_width);
  // What values of all blocks are rows of that next() hands out from now on; those of the file that
  // is open have its columns. Blocks of files before it have no rows. guess: it was told from the
  // first rows.
  void set_schema(std::shared_ptr<const Schema> schema, bool guess);
  // RowOptions::key_names, of the files behind the one that is open.
  void set_key_names(std::vector<std::string> names) { options_.key_names = std::move(names); }
  // What files told that no option says: "z.csv: the first row names the columns". Call when no
  // next() is under way.
  const std::vector<std::string>& told() const { return told_; }
  // Counts bytes of all files as they are stored. Call when no next() is under way.
  uint64_t stored_bytes_read() const {
    return stored_before_ + (stream_ ? stream_->stored_bytes_read() : 0) +
           (batches_ ? batches_->stored_bytes_read() : 0);
  }

 private:
  // Tells which quotes begin and end a field, from one call to the next.
  struct QuoteState {
    bool inside = false;
    size_t scanned = 0;   // of the buffer
    size_t last_end = 0;  // past the last row end outside of quotes
  };

  ExitStatus read_next(TextBuffer* memory, Block* block, bool* more);
  ExitStatus open_next_file();
  // Looks at the first bytes of the file, which are read again afterwards.
  ExitStatus look_ahead(FileRows* file);
  void limit_blocks();
  ExitStatus open_next_batches();
  ExitStatus next_batch(Block* block, bool* more);
  ExitStatus read_first_row(size_t* end);
  ExitStatus read_header(FileRows* file);
  void drop_carried(size_t bytes);  // the first of carry_
  ExitStatus skip_to(uint64_t offset, const std::string& name);
  ExitStatus read_more(TextBuffer* memory, size_t bytes);
  ExitStatus read_array(TextBuffer* memory, size_t bytes);
  size_t last_row_end(std::string_view text, QuoteState* quotes) const;
  size_t last_row_end_of_csv(std::string_view text, QuoteState* quotes) const;
  size_t last_row_end_of_raw(std::string_view text) const;
  ExitStatus too_long(TextBuffer* memory, Block* block);
  void finish(Block* block, std::string_view text);

  std::vector<std::string> files_;
  RowOptions options_;
  bool header_ = false;    // of the files, as the options say,
  char delimiter_ = '\0';  // and what lies between their columns
  int standard_input_;
  ReadFrom from_;
  size_t opened_ = 0;
  std::unique_ptr<InputStream> stream_;
  std::unique_ptr<BatchFile> batches_;  // in its place, of a file in columns
  std::shared_ptr<FileRows> file_;
  struct Peeked {
    TextBuffer memory;
    Block block;
  };
  std::deque<Peeked> peeked_;
  bool ended_ = false;     // the stream; what is left is in carry_
  TextBuffer carry_;       // read, and belongs to the next block
  TextBuffer ahead_;       // what look_ahead() has read,
  size_t ahead_used_ = 0;  // and how much of it was read again
  std::optional<JsonArrayLines> array_;
  std::vector<std::string> told_;
  uint64_t read_ = 0;           // bytes of the unpacked file, carry_ included; rows in columns
  uint64_t stored_before_ = 0;  // of the files before this one
};

// One row of a header, split into its columns. bad_input where it cannot be.
ExitStatus split_header(std::string_view row, const RowOptions& options,
                        std::vector<std::string>* columns);

}  // namespace stride::cli
