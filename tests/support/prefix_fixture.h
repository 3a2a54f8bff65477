// Keys and addresses from text, as the C interface reads it.
#pragma once

#include "tests/support/c_fixture.h"
#include "tests/support/catch.h"

namespace stride::test {

constexpr int refuse = STRIDE_HOST_BITS_REFUSE, mask = STRIDE_HOST_BITS_MASK;

inline std::string prefix_key(const char* text, uint32_t bits, int host_bits = refuse) {
  char key[512];
  uint64_t n = 0;
  CHECK_C_OK(stride_parse_prefix(text, bits, host_bits, key, sizeof key, &n));
  return {key, n};
}

inline std::string address_of(const char* text, uint32_t bits) {
  char address[512];
  uint64_t n = 0;
  CHECK_C_OK(stride_parse_address(text, bits, address, sizeof address, &n));
  return {address, n};
}

}  // namespace stride::test
