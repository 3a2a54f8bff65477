// Lets tests make the calls to a device fail.
//
//   DeviceFaults::fail_call(7, DeviceFault::out_of_memory);   // the 7th from now
//   Status s = database->...;
//   DeviceFaults::clear();
#pragma once

#include <cstdint>

namespace stride {

enum class DeviceFault : uint8_t {
  out_of_memory,  // that call alone
  lost,           // that call and all after it
};

// Counts the calls to all devices of the process, or those of one group alone
// (CudaOptions::fault_group). Without a device nothing ever counts.
struct DeviceFaults {
  static constexpr uint32_t any_group = UINT32_MAX;

  static void fail_call(uint64_t call, DeviceFault fault, uint32_t group = any_group);
  static void clear();
  // How many calls there were since clear() or fail_call().
  static uint64_t calls();
};

}  // namespace stride
