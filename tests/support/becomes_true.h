// Waits for what other threads or processes are about to do.
//
//   REQUIRE(becomes_true([&] { return merges() == 2; }));
#pragma once

#include <chrono>
#include <thread>

namespace stride::test {

// Whether it is so within a minute; returns as soon as it is.
template <class Condition>
bool becomes_true(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace stride::test
