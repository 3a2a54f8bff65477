// What a program writes to its standard output or error.
//
//   CapturedFile out(stdout);
//   std::puts("x");
//   out.text();  // "x\n"
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

namespace stride::test {

// Captures until it ends.
class CapturedFile {
 public:
  explicit CapturedFile(std::FILE* file)
      : file_(file), before_(dup(fileno(file))), captured_(memfd_create("captured", 0)) {
    flush();
    if (before_ < 0 || captured_ < 0 || dup2(captured_, fileno(file)) < 0) std::abort();
  }
  ~CapturedFile() {
    flush();
    dup2(before_, fileno(file_));
    close(before_);
    close(captured_);
  }
  CapturedFile(const CapturedFile&) = delete;
  CapturedFile& operator=(const CapturedFile&) = delete;

  std::string text() const {
    flush();
    std::string text(static_cast<size_t>(lseek(captured_, 0, SEEK_END)), '\0');
    if (pread(captured_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      std::abort();
    return text;
  }

 private:
  void flush() const {
    std::cout.flush();
    std::cerr.flush();
    std::fflush(file_);
  }

  std::FILE* file_;
  int before_, captured_;
};

}  // namespace stride::test
