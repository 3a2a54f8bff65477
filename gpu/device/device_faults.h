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

// Counts the calls to all devices of the process. Without a device nothing ever counts.
struct DeviceFaults {
  static void fail_call(uint64_t call, DeviceFault fault);
  static void clear();
  // How many calls there were since clear().
  static uint64_t calls();
};

}  // namespace stride
