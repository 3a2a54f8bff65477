// A bar with rate and time left, where a person watches, and how numbers are shown to one.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "adapters/cli/text/with_commas.h"

namespace stride::cli {

// "1.2 MB", "712 MB"
std::string byte_text(uint64_t bytes);
// "1.23 s", "45.6 ms"
std::string seconds_text(double seconds);

// For one thread at a time. Draws at most ten times a second, and only on a terminal.
class Progress {
 public:
  // total 0: unknown.
  Progress(int err, std::string what, uint64_t total);
  ~Progress() { clear(); }
  // done: of the total; rows: so far.
  void update(uint64_t done, uint64_t rows);
  // The same of what follows reading, such as "committing": how much of it is done, from 0 to 1.
  // update() ends it.
  void update_phase(const std::string& phase, double share, uint64_t rows, uint64_t total_rows);
  // The same of what has no rows, and a total that becomes known on the way.
  void update_bytes(uint64_t done, uint64_t total);
  // Removes the bar, so that something else can be printed.
  void clear();
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  // Whether a bar is to be drawn now.
  bool is_due();
  int err_;
  bool terminal_;
  bool drawn_ = false;
  std::string what_;
  uint64_t total_;
  Clock::time_point start_ = Clock::now(), last_ = start_;
  Clock::time_point phase_start_{};  // zero: there is no phase
};

}  // namespace stride::cli
