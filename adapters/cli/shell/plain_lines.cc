#include <unistd.h>

#include <optional>

#include "adapters/cli/input/interruptible_read.h"
#include "adapters/cli/shell/line_source.h"

namespace stride::cli {
namespace {

class PlainLines final : public LineSource {
 public:
  PlainLines(int in, const Terminal* prompt_on) : in_(in) {
    if (prompt_on) terminal_ = *prompt_on;
  }

  ExitStatus next(std::string* line, bool* end) override {
    *end = false;
    show(terminal_ ? terminal_->prompt : "");
    size_t behind;
    for (size_t searched = 0; (behind = buffer_.find('\n', searched)) == std::string::npos;) {
      searched = buffer_.size();
      bool more = false;
      ExitStatus outcome = fill(&more);
      if (outcome.code() == ExitCode::interrupted) {
        show("\n");
        buffer_.clear();
      }
      STRIDE_CLI_TRY(outcome);
      if (more) continue;
      show("\n");
      *end = buffer_.empty();
      *line = std::move(buffer_);
      buffer_.clear();
      return {};
    }
    *line = buffer_.substr(0, behind);
    buffer_.erase(0, behind + 1);
    return {};
  }

 private:
  ExitStatus fill(bool* more) {
    char some[4096];
    size_t got = 0;
    STRIDE_CLI_TRY(interruptible_read(in_, "standard input", some, sizeof some, &got));
    buffer_.append(some, got);
    *more = got > 0;
    return {};
  }
  void show(const std::string& text) const {
    if (!terminal_ || text.empty()) return;
    [[maybe_unused]] ssize_t ignored = ::write(terminal_->out, text.data(), text.size());
  }

  int in_;
  std::optional<Terminal> terminal_;
  std::string buffer_;  // what was read and not yet handed out
};

}  // namespace

std::unique_ptr<LineSource> plain_lines(int in, const Terminal* prompt_on) {
  return std::make_unique<PlainLines>(in, prompt_on);
}

}  // namespace stride::cli
