#include "adapters/cli/output/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "adapters/cli/interrupt.h"

namespace stride::cli {
namespace {

constexpr size_t buffered_bytes = 256 << 10;

}  // namespace

void TextBuffer::enlarge(size_t n) {
  size_t capacity = std::max(size_ + n, 2 * capacity_ + 64);
  std::unique_ptr<char, Free> larger(static_cast<char*>(::operator new(capacity)));
  if (size_) std::memcpy(larger.get(), data_.get(), size_);
  data_ = std::move(larger);
  capacity_ = capacity;
}

ExitStatus Output::write(std::string_view text) {
  if (buffer_.size() + text.size() <= buffered_bytes) {
    buffer_.append(text);
    return {};
  }
  STRIDE_CLI_TRY(flush());
  if (text.size() >= buffered_bytes) return write_through(text);
  buffer_.append(text);
  return {};
}

ExitStatus Output::flush() {
  std::string_view text = buffer_.text();
  buffer_.clear();  // its bytes stay
  return write_through(text);
}

ExitStatus Output::write_through(std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(fd_, text.data(), text.size());
    if (n < 0 && errno == EINTR) {
      if (interrupted() && !ignores_interrupts_) return ExitStatus::interrupted();
      continue;
    }
    if (n < 0) return ExitStatus::from_errno(errno, name_, "write");
    written_ += static_cast<uint64_t>(n);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace stride::cli
