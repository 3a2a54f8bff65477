#include "adapters/sts/key_generator.h"

namespace stride {
namespace {

constexpr uint64_t kSignBit = uint64_t{1} << 63;

}  // namespace

void encode_key(int64_t key, std::byte out[kKeyBytes]) {
  const uint64_t ordered = static_cast<uint64_t>(key) ^ kSignBit;
  for (size_t i = 0; i < kKeyBytes; ++i) {
    out[i] = static_cast<std::byte>(ordered >> (8 * (kKeyBytes - 1 - i)));
  }
}

int64_t decode_key(const std::byte in[kKeyBytes]) {
  uint64_t ordered = 0;
  for (size_t i = 0; i < kKeyBytes; ++i) ordered = ordered << 8 | static_cast<uint64_t>(in[i]);
  return static_cast<int64_t>(ordered ^ kSignBit);
}

SemiRandomGenerator::SemiRandomGenerator(int32_t seed1, int32_t seed2, int32_t seed3,
                                         double randomness)
    : high_(seed1), low_(seed2), coin_(seed3), randomness_(randomness), last_(high_.next()) {}

int64_t SemiRandomGenerator::next() {
  if (coin_.next_double() <= randomness_) {
    last_ = int64_t{high_.next()} << 32;
    last_ |= low_.next();
  } else {
    ++last_;
  }
  return last_;
}

void SemiRandomGenerator::next(std::span<int64_t> keys) {
  for (int64_t& key : keys) key = next();
}

}  // namespace stride
