// What a random read of memory costs on a machine, by how much memory the reads are spread over.
//
//   AccessCosts costs;
//   backend->tree_index().measure_costs(&costs);             // a few seconds at most, once
//   double ns = costs.nanoseconds(64 << 20);    // a read somewhere in 64 MiB
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "storage/status.h"

namespace stride {

struct AccessCosts {
  // Reads are spread over memory of these sizes: 16 KiB, 64 KiB, ..., 256 MiB.
  static constexpr uint32_t sizes = 8;
  static constexpr uint64_t bytes_of(uint32_t i) { return uint64_t{16384} << 2 * i; }

  bool device = false;
  unsigned threads = 1;
  // Per read, with all threads at work and many reads in flight (of 64 bytes, or 32 of a device).
  std::array<double, sizes> nanoseconds_at{};
  // The same with one thread and one read at a time, each the address of the next.
  std::array<double, sizes> latency_at{};

  double nanoseconds(double bytes) const { return between(nanoseconds_at, bytes); }
  double latency(double bytes) const { return between(latency_at, bytes); }

  // What a machine that was busy meanwhile measured the wrong way round: more memory is never
  // faster, nor one read after another than many in flight.
  void drop_noise();

  // These count until a machine has been measured. They are from the machines of
  // docs/results/planner.md.
  static AccessCosts typical_host(unsigned threads);
  static AccessCosts typical_device();

  // One line of text: for a file, and for --access-costs.
  std::string to_text() const;
  // invalid_argument: not what to_text() makes.
  static Result<AccessCosts> parse(const std::string& text);

 private:
  static double between(const std::array<double, sizes>& at, double bytes);
};

}  // namespace stride
