// How long a soak test goes on.
//
//   for (Deadline deadline; !deadline.over();) ...
#pragma once

#include <chrono>

#include "tests/support/printed_seed.h"

namespace stride::test {

class Deadline {
 public:
  bool over() const { return std::chrono::steady_clock::now() >= end_; }

 private:
  using Seconds = std::chrono::duration<double>;
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(Seconds(soak_seconds(60)));
};

}  // namespace stride::test
