// Buffered writing to a file descriptor.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "adapters/cli/exit_status.h"

namespace stride::cli {

// Bytes that grow without being cleared first. Keeps its memory.
class TextBuffer {
 public:
  void clear() { size_ = 0; }
  size_t size() const { return size_; }
  std::string_view text() const { return {data_.get(), size_}; }
  // Room for n more bytes, to be written at the result and then taken with grow().
  char* room(size_t n) {
    if (capacity_ - size_ < n) enlarge(n);
    return data_.get() + size_;
  }
  void grow(size_t n) { size_ += n; }
  void append(std::string_view s) {
    char* to = room(s.size());
    if (!s.empty()) std::memcpy(to, s.data(), s.size());
    size_ += s.size();
  }
  void append(char c) {
    *room(1) = c;
    ++size_;
  }
  void append_number(uint64_t number) {
    char* to = room(20);
    size_ += static_cast<size_t>(std::to_chars(to, to + 20, number).ptr - to);
  }

 private:
  struct Free {
    void operator()(char* p) const { ::operator delete(p); }
  };
  void enlarge(size_t n);

  std::unique_ptr<char, Free> data_;
  size_t size_ = 0, capacity_ = 0;
};

// For one thread at a time. Nothing is certain to be written before flush().
class Output {
 public:
  // name: for messages.
  Output(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  // closed_pipe, no_room, failure or interrupted.
  ExitStatus write(std::string_view text);
  ExitStatus flush();
  uint64_t written_bytes() const { return written_; }
  // From now on what is to be written is written, an interrupt or not.
  void ignore_interrupts() { ignores_interrupts_ = true; }

 private:
  ExitStatus write_through(std::string_view text);

  int fd_;
  std::string name_;
  TextBuffer buffer_;
  uint64_t written_ = 0;
  bool ignores_interrupts_ = false;
};

}  // namespace stride::cli
