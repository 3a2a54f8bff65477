#include "adapters/cli/output/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace stride::cli {
namespace {

void print(int fd, const std::string& text) {
  [[maybe_unused]] ssize_t ignored = ::write(fd, text.data(), text.size());
}

std::string three_digits(double number) {
  char text[32];
  int decimals = number >= 100 ? 0 : number >= 10 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f", decimals, number);
  return text;
}

}  // namespace

std::string byte_text(uint64_t bytes) {
  static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  double number = static_cast<double>(bytes);
  size_t unit = 0;
  for (; number >= 999.5 && unit < 6; ++unit) number /= 1000;
  return three_digits(number) + " " + units[unit];
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? three_digits(seconds * 1e3) + " ms" : three_digits(seconds) + " s";
}

Progress::Progress(int err, std::string what, uint64_t total)
    : err_(err), terminal_(isatty(err) != 0), what_(std::move(what)), total_(total) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::update(uint64_t done, uint64_t rows) {
  if (!terminal_ || Clock::now() - last_ < std::chrono::milliseconds(100)) return;
  last_ = Clock::now();
  double passed = std::max(seconds(), 1e-3);
  std::string line = "\r\x1b[K" + what_ + " ";
  if (total_ != 0) {
    double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
    constexpr size_t width = 24;
    size_t filled = static_cast<size_t>(share * width);
    line += "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] " +
            std::to_string(static_cast<int>(share * 100)) + " %  ";
    if (share > 0.01) line += seconds_text(passed / share - passed) + " left  ";
  }
  line += with_commas(rows) + " rows  " + three_digits(static_cast<double>(rows) / passed / 1e6) +
          " M/s  " + byte_text(static_cast<uint64_t>(static_cast<double>(done) / passed)) + "/s";
  print(err_, line);
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) print(err_, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace stride::cli
