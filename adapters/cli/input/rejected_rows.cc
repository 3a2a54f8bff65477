#include "adapters/cli/input/rejected_rows.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "adapters/cli/input/same_file.h"
#include "adapters/cli/interrupt.h"

namespace stride::cli {

RejectedRows::~RejectedRows() {
  if (output_) [[maybe_unused]]
    const ExitStatus ignored = output_->flush();
  if (fd_ >= 0) ::close(fd_);
}

ExitStatus RejectedRows::open(const Environment& environment,
                              const std::vector<std::string>& inputs, const ResumedAt& from) {
  resumed_file_ = from.file;
  resumed_line_ = from.line;
  count_ = from.count;
  return path_.empty() ? ExitStatus() : open_file(environment, inputs, from);
}

ExitStatus RejectedRows::open_file(const Environment& environment,
                                   const std::vector<std::string>& inputs,
                                   const ResumedAt& from) {
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::weakly_canonical(path_, ignored).parent_path();
  if (std::filesystem::exists(folder / "CURRENT", ignored))
    return ExitStatus::usage("--rejects " + path_ +
                             " is in the directory of a database: give it another one");
  do {  // a named pipe waits for somebody who reads from it
    if (interrupted()) return ExitStatus::interrupted();
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (from.resumed ? O_APPEND : 0), 0666);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) return ExitStatus::from_errno(errno, path_, "open");
  // Emptied only when it is known to be nobody else's.
  STRIDE_CLI_TRY(check_not_read(fd_, "--rejects " + path_, inputs, environment.in));
  for (int printed : {environment.out, environment.err})
    if (is_same_file(fd_, printed))
      return ExitStatus::usage("--rejects " + path_ +
                               " is the file that the output goes to: give it another file");
  struct stat info {};
  if (fstat(fd_, &info) == 0 && S_ISREG(info.st_mode)) {
    // Another file than that of the interrupted job is shorter, or goes on where it ends.
    begin_ = from.resumed ? std::min(from.bytes, static_cast<uint64_t>(info.st_size)) : 0;
    if (ftruncate(fd_, static_cast<off_t>(begin_)) != 0)
      return ExitStatus::from_errno(errno, path_, "truncate");
  }
  output_ = std::make_unique<Output>(fd_, path_);
  return {};
}

std::string RejectedRows::what_to_do(const BadRow& bad) const {
  if (!offered_) return "correct the row";
  return (bad.advice.empty() ? "correct the row" : bad.advice) +
         (path_.empty() ? ", or leave bad rows out with --rejects FILE"
                        : ", or leave more bad rows out with --max-rejects");
}

ExitStatus RejectedRows::take(const Block& block, ParsedRows* rows) {
  if (block.file.get() != file_) {
    bool resumed = file_ == nullptr && resumed_line_ != 0 && block.file->index == resumed_file_;
    file_ = block.file.get();
    next_line_ = resumed ? resumed_line_ : block.file->first_line;
  }
  block_line_ = next_line_;
  for (const BadRow& bad : rows->bad()) {
    std::string line = std::to_string(block_line_ + bad.line);
    if (count_ == max_count_) {
      std::string message = block.file->name + ":" + line + ": " + bad.reason;
      if (max_count_ != 0)
        message += "; " + std::to_string(max_count_) + " bad rows before it were let pass";
      return ExitStatus(ExitCode::bad_input, message + ": " + what_to_do(bad));
    }
    ++count_;
    if (!output_) continue;
    STRIDE_CLI_TRY(
        output_->write(block.file->name + "\t" + line + "\t" + bad.reason + "\t" + bad.row + "\n"));
  }
  next_line_ += rows->lines();
  return {};
}

ExitStatus RejectedRows::flush() { return output_ ? output_->flush() : ExitStatus(); }

ExitStatus parse_block(const Block& block, ParsedRows* rows) {
  const RowPlan& plan = block.file->plan;
  if (block.batch) return block.batch->parse(plan, rows);
  if (!block.too_long) {
    parse_rows(plan, block.text, rows);
    return {};
  }
  rows->begin(plan, {});
  bool quotes = plan.options.format == Format::csv && block.too_long_lines > 1;
  rows->refuse((quotes ? "an unterminated quote that opens in this row, or a row longer than "
                         "--max-row-bytes ("
                       : "longer than --max-row-bytes (") +
                   std::to_string(plan.options.max_row_bytes) + ")",
               block.text.substr(0, 200));
  rows->end(block.too_long_lines);
  return {};
}

}  // namespace stride::cli
