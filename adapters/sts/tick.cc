#include "adapters/sts/tick.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

namespace stride {
namespace {

static_assert(std::endian::native == std::endian::little);

// The original gives EURJPY four digits, unlike the other pairs with the yen.
constexpr std::array<TickSymbol, kTickSymbols> kSymbols = {{
    {"USDCHF", 4, 0.9197},   {"GBPUSD", 4, 1.5880},  {"EURUSD", 4, 1.3403}, {"USDJPY", 2, 99.73},
    {"EURCHF", 4, 1.2324},   {"AUDBGN", 4, 1.3596},  {"AUDCHF", 4, 0.8567}, {"AUDJPY", 2, 92.96},
    {"BGNJPY", 2, 68.31},    {"BGNUSD", 4, 0.6848},  {"CADBGN", 4, 1.3901}, {"CADCHF", 4, 0.8759},
    {"CADUSD", 4, 0.9527},   {"CHFBGN", 4, 1.5862},  {"CHFJPY", 2, 108.44}, {"CHFUSD", 4, 1.0875},
    {"EURAUD", 4, 1.4375},   {"EURCAD", 4, 1.4064},  {"EURGBP", 4, 0.8438}, {"EURJPY", 4, 133.66},
    {"GBPAUD", 4, 1.7031},   {"GBPBGN", 4, 2.3169},  {"GBPCAD", 4, 1.6661}, {"GBPCHF", 4, 1.4603},
    {"GBPJPY", 2, 158.37},   {"NZDUSD", 4, 0.8217},  {"USDBGN", 4, 1.4594}, {"USDCAD", 4, 1.0493},
    {"XAUUSD", 2, 1281.15},  {"XAGUSD", 2, 21.21},   {"$DAX", 2, 9078.20},  {"$FTSE", 2, 6707.49},
    {"$NASDAQ", 2, 3361.02}, {"$SP500", 2, 1771.32},
}};

constexpr std::array<std::string_view, kTickProviders> kProviders = {
    "eSignal", "Gain", "NYSE", "TSE", "NASDAQ", "Euronext", "LSE", "SSE", "ASE", "SE", "NSEI"};

constexpr int64_t kSecond100ns = 10'000'000;
// The original starts its clock anew within 30 seconds of the largest DateTime.
constexpr int64_t kLastTimestamp100ns = 3'155'378'975'699'999'999;

constexpr size_t kFixedBytes = 3 * 8 + 2 * 4;
constexpr size_t kMaxStringBytes = INT32_MAX;

consteval size_t longest_tick() {
  size_t symbol = 0;
  size_t provider = 0;
  for (const TickSymbol& s : kSymbols) symbol = std::max(symbol, s.name.size());
  for (const std::string_view p : kProviders) provider = std::max(provider, p.size());
  return 1 + symbol + kFixedBytes + 1 + provider;
}
static_assert(kMaxTickBytes == longest_tick());

size_t string_bytes(std::string_view text) {
  size_t bytes = 1 + text.size();
  for (size_t rest = text.size() >> 7; rest != 0; rest >>= 7) ++bytes;
  return bytes;
}

std::byte* write_string(std::string_view text, std::byte* out) {
  assert(text.size() <= kMaxStringBytes);
  size_t rest = text.size();
  for (; rest >= 0x80; rest >>= 7) *out++ = static_cast<std::byte>(rest | 0x80);
  *out++ = static_cast<std::byte>(rest);
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

template <class T>
std::byte* write_number(T value, std::byte* out) {
  std::memcpy(out, &value, sizeof value);
  return out + sizeof value;
}

// Takes fields off the front of `rest`; false where too little is left.
class TickReader {
 public:
  explicit TickReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  bool number(T& value) {
    if (rest_.size() < sizeof value) return false;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return true;
  }

  bool string(std::string_view& text) {
    size_t length = 0;
    if (!string_length(length) || length > rest_.size()) return false;
    text = {reinterpret_cast<const char*>(rest_.data()), length};
    rest_ = rest_.subspan(length);
    return true;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  bool string_length(size_t& length) {
    constexpr unsigned kMaxLengthBits = 35;
    uint64_t value = 0;
    for (unsigned shift = 0; shift < kMaxLengthBits; shift += 7) {
      std::byte byte{};
      if (!number(byte)) return false;
      value |= static_cast<uint64_t>(byte & std::byte{0x7f}) << shift;
      if ((byte & std::byte{0x80}) == std::byte{0}) {
        length = value;
        return value <= kMaxStringBytes;
      }
    }
    return false;
  }

  std::span<const std::byte> rest_;
};

double power_of_ten(int digits) {
  static constexpr double kPowers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  assert(digits >= 0 && digits <= 15);
  return kPowers[digits];
}

}  // namespace

const std::array<TickSymbol, kTickSymbols>& tick_symbols() { return kSymbols; }

const std::array<std::string_view, kTickProviders>& tick_providers() { return kProviders; }

size_t tick_bytes(const Tick& tick) {
  return string_bytes(tick.symbol) + kFixedBytes + string_bytes(tick.provider);
}

std::byte* write_tick(const Tick& tick, std::byte* out) {
  out = write_string(tick.symbol, out);
  out = write_number(tick.timestamp_100ns, out);
  out = write_number(tick.bid, out);
  out = write_number(tick.ask, out);
  out = write_number(tick.bid_size, out);
  out = write_number(tick.ask_size, out);
  return write_string(tick.provider, out);
}

void append_tick(const Tick& tick, std::vector<std::byte>& out) {
  const size_t begin = out.size();
  out.resize(begin + tick_bytes(tick));
  write_tick(tick, out.data() + begin);
}

std::optional<Tick> decode_tick(std::span<const std::byte> bytes) {
  TickReader reader(bytes);
  Tick tick;
  const bool whole = reader.string(tick.symbol) && reader.number(tick.timestamp_100ns) &&
                     reader.number(tick.bid) && reader.number(tick.ask) &&
                     reader.number(tick.bid_size) && reader.number(tick.ask_size) &&
                     reader.string(tick.provider) && reader.at_end();
  if (!whole) return std::nullopt;
  return tick;
}

double round_to_digits(double value, int digits) {
  const double scale = power_of_ten(digits);
  return std::nearbyint(value * scale) / scale;
}

TickGenerator::TickGenerator(int32_t seed) : random_(seed) {
  for (size_t i = 0; i < kTickSymbols; ++i) prices_[i] = kSymbols[i].start_price;
}

Tick TickGenerator::next() {
  const auto id = static_cast<size_t>(random_.next(kTickSymbols));
  const int digits = kSymbols[id].digits;
  const double pip = 1 / power_of_ten(digits);
  const int direction = random_.next() % 2 == 0 ? 1 : -1;
  const int pips = random_.next(0, 10);
  const int spread = random_.next(2, 30);
  const int seconds = random_.next(1, 30);
  timestamp_100ns_ = timestamp_100ns_ < kLastTimestamp100ns
                         ? timestamp_100ns_ + seconds * kSecond100ns
                         : kTickStart100ns;

  Tick tick;
  tick.symbol = kSymbols[id].name;
  tick.timestamp_100ns = timestamp_100ns_;
  tick.bid = round_to_digits(prices_[id] + direction * pips * pip, digits);
  tick.ask = round_to_digits(tick.bid + spread * pip, digits);
  tick.bid_size = random_.next(0, 10000);
  tick.ask_size = random_.next(0, 10000);
  tick.provider = kProviders[static_cast<size_t>(random_.next(kTickProviders))];
  prices_[id] = tick.bid;
  return tick;
}

}  // namespace stride
