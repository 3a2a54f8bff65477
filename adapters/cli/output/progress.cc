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

// "[######......] 50 %  "
std::string bar(double share) {
  constexpr size_t width = 24;
  const auto filled = static_cast<size_t>(share * width);
  return "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] " +
         std::to_string(static_cast<int>(share * 100)) + " %  ";
}

// How long it takes to the end, where so much was done in so many seconds.
std::string left(double share, double passed) {
  return share > 0.01 ? seconds_text(passed / share - passed) + " left  " : "";
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

bool Progress::is_due() {
  const auto now = Clock::now();
  if (!terminal_ || now - last_ < std::chrono::milliseconds(100)) return false;
  last_ = now;
  return true;
}

void Progress::update_phase(const std::string& phase, double share, uint64_t rows,
                            uint64_t total_rows) {
  if (phase_start_ == Clock::time_point()) phase_start_ = Clock::now();
  if (!is_due()) return;
  const double passed = std::chrono::duration<double>(Clock::now() - phase_start_).count();
  print(err_, "\r\x1b[K" + phase + " " + bar(share) + left(share, passed) + with_commas(rows) +
                  " of " + with_commas(total_rows) + " rows written");
  drawn_ = true;
}

void Progress::update(uint64_t done, uint64_t rows) {
  phase_start_ = {};
  if (!is_due()) return;
  double passed = std::max(seconds(), 1e-3);
  std::string line = "\r\x1b[K" + what_ + " ";
  if (total_ != 0) {
    double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
    line += bar(share) + left(share, passed);
  }
  line += with_commas(rows) + " rows  " + three_digits(static_cast<double>(rows) / passed / 1e6) +
          " M/s  " + byte_text(static_cast<uint64_t>(static_cast<double>(done) / passed)) + "/s";
  print(err_, line);
  drawn_ = true;
}

void Progress::update_bytes(uint64_t done, uint64_t total) {
  if (total == 0 || !is_due()) return;
  const double passed = std::max(seconds(), 1e-3);
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  print(err_, "\r\x1b[K" + what_ + " " + bar(share) + left(share, passed) + byte_text(done) +
                  " of " + byte_text(total) + "  " +
                  byte_text(static_cast<uint64_t>(static_cast<double>(done) / passed)) + "/s");
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) print(err_, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace stride::cli
