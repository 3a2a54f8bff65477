// What a person at a terminal sees while a workload runs.
#pragma once

#include <string>

namespace stride::benchmark {

// Replaces one line of the standard error again and again; silent where no person watches.
class Progress {
 public:
  explicit Progress(bool to_terminal) : to_terminal_(to_terminal) {}
  ~Progress() { show(""); }
  void show(const std::string& text) const;

 private:
  bool to_terminal_;
};

// Shows progress where the standard error is a terminal.
Progress terminal_progress();

}  // namespace stride::benchmark
