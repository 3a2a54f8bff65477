// The records of the STS DatabaseBenchmark workload: market ticks, their bytes and their source.
//
//   TickGenerator ticks(7);
//   std::vector<std::byte> bytes;
//   append_tick(ticks.next(), bytes);
//   decode_tick(bytes)->bid;
//
// A stored tick is what .NET's BinaryWriter makes of its fields in this order, little-endian
// (docs: System.IO.BinaryWriter). A string is its length in bytes, 7 bits a byte with the lowest
// first and the high bit set on all but the last, and then its characters:
//
//   | Symbol     | Timestamp | Bid     | Ask     | BidSize | AskSize | Provider   |
//   | len, chars | int64     | double  | double  | int32   | int32   | len, chars |
//   06 'EURUSD'    8 bytes     8         8         4         4         07 'eSignal'
//
// Source: TickGenerator of STSSoft/STS.General and the key-value adapters of
// STSSoft/DatabaseBenchmark. From them are the rule of the walk, the order of the fields and the
// lists of symbols, digits, start prices and providers; no code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "adapters/sts/dotnet_random.h"

namespace stride {

// A quote of one symbol. Owns nothing: the strings of a generated tick live as long as the program,
// those of a decoded one as long as the bytes that it was decoded from.
struct Tick {
  std::string_view symbol;
  int64_t timestamp_100ns = 0;  // DateTime.Ticks: since 0001-01-01, without leap seconds
  double bid = 0;
  double ask = 0;
  int32_t bid_size = 0;
  int32_t ask_size = 0;
  std::string_view provider;

  friend bool operator==(const Tick&, const Tick&) = default;
};

struct TickSymbol {
  std::string_view name;
  int digits;  // decimal places of its prices
  double start_price;
};

constexpr size_t kTickSymbols = 34;
constexpr size_t kTickProviders = 11;
// No generated tick is stored in more bytes than this.
constexpr size_t kMaxTickBytes = 49;
// 2013-11-12 13:00, the time of the start prices.
constexpr int64_t kTickStart100ns = 635'198'580'000'000'000;

// In the order in which the generator's random numbers choose them.
const std::array<TickSymbol, kTickSymbols>& tick_symbols();
const std::array<std::string_view, kTickProviders>& tick_providers();

// The length in bytes of the stored tick.
size_t tick_bytes(const Tick& tick);
// Writes the stored tick at `out`, where tick_bytes(tick) bytes are free, and returns its end.
std::byte* write_tick(const Tick& tick, std::byte* out);
void append_tick(const Tick& tick, std::vector<std::byte>& out);
// The tick that is stored in all of `bytes`, or nothing where they are no such tick: cut short, too
// long, or with a length that is no int32. As in .NET a length may have needless leading zeros.
std::optional<Tick> decode_tick(std::span<const std::byte> bytes);

// .NET's Math.Round(value, digits) for |value| < 1e16 / 10^digits and 0 <= digits <= 15: scales by
// 10^digits, rounds halves to even, and divides. Each of the three steps is one IEEE double
// operation, so what is a half is decided by the scaled value: 0.125 gives 0.12, and 1.005, which
// is a little less than that, is scaled to 100.49999999999999 and gives 1.
double round_to_digits(double value, int digits);

// A random walk of the prices of all symbols, in pips (10^-digits). Not thread-safe. Each tick
// draws eight numbers of one DotnetRandom, in this order: symbol, direction, pips moved (0..9),
// spread in pips (2..29), seconds since the tick before (1..29), the two sizes (0..9999), provider.
//
// The original starts at the time of the clock and seeds itself from it, and all its flows share
// one generator; here time starts at kTickStart100ns and each flow has its own.
class TickGenerator {
 public:
  explicit TickGenerator(int32_t seed);

  Tick next();

 private:
  DotnetRandom random_;
  int64_t timestamp_100ns_ = kTickStart100ns;
  std::array<double, kTickSymbols> prices_;
};

}  // namespace stride
