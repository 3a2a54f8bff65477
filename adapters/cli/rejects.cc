#include "adapters/cli/rejects.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace stride::cli {

Rejects::~Rejects() {
  if (fd_ >= 0) ::close(fd_);
}

Outcome Rejects::open(bool append, uint32_t file, uint64_t line, uint64_t count) {
  resumed_file_ = file;
  resumed_line_ = line;
  count_ = count;
  if (path_.empty()) return {};
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0666);
  if (fd_ < 0) return Outcome::from_errno(errno, path_, "open");
  output_ = std::make_unique<Output>(fd_, path_);
  return {};
}

Outcome Rejects::take(const Block& block, ParsedRows* rows) {
  if (block.file.get() != file_) {
    bool resumed = file_ == nullptr && resumed_line_ != 0 && block.file->index == resumed_file_;
    file_ = block.file.get();
    next_line_ = resumed ? resumed_line_ : block.file->first_line;
  }
  block_line_ = next_line_;
  for (const BadRow& bad : rows->bad()) {
    std::string line = std::to_string(block_line_ + bad.line);
    if (count_ == most_) {
      std::string message = block.file->name + ":" + line + ": " + bad.reason;
      if (most_ != 0) message += "; " + std::to_string(most_) + " bad rows before it were let pass";
      return Outcome(ExitCode::bad_input, std::move(message));
    }
    ++count_;
    if (!output_) continue;
    STRIDE_CLI_TRY(
        output_->write(block.file->name + "\t" + line + "\t" + bad.reason + "\t" + bad.row + "\n"));
  }
  next_line_ += rows->lines();
  return {};
}

Outcome Rejects::flush() { return output_ ? output_->flush() : Outcome(); }

Outcome parse_block(const Block& block, ParsedRows* rows) {
  const RowPlan& plan = block.file->plan;
  if (block.batch) return block.batch->parse(plan, rows);
  if (!block.too_long) {
    parse_rows(plan, block.text, rows);
    return {};
  }
  rows->begin(plan, {});
  bool quotes = plan.options.format == Format::csv && block.too_long_lines > 1;
  rows->refuse((quotes ? "an unterminated quote, or a row longer than --max-row-bytes ("
                       : "longer than --max-row-bytes (") +
                   std::to_string(plan.options.max_row_bytes) + ")",
               block.text.substr(0, 200));
  rows->end(block.too_long_lines);
  return {};
}

}  // namespace stride::cli
