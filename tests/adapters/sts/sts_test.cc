// The STS workload against what .NET gives. Numbers marked "mono" were printed by a C# program that
// made the same calls on System.Random, Math.Round and BinaryWriter of mono 6.8.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/sts/dotnet_random.h"
#include "adapters/sts/key_generator.h"
#include "adapters/sts/tick.h"
#include "adapters/sts/workload.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride {
namespace {

constexpr int32_t kInt32Min = std::numeric_limits<int32_t>::min();
constexpr int32_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr int64_t kInt64Min = std::numeric_limits<int64_t>::min();
constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();

using Five = std::array<int32_t, 5>;

Five five(auto draw) {
  Five numbers{};
  for (int32_t& number : numbers) number = draw();
  return numbers;
}

struct RandomGolden {
  int32_t seed;
  Five next;
  Five below_34;
  Five from_minus_5_to_30;
  Five whole_range;
  Five wide_range;   // [-1500000000, 1500000000)
  Five narrow_edge;  // [-1, INT32_MAX - 1), the widest range of one sample
};

// mono
const RandomGolden kRandomGolden[] = {
    {0,
     {1559595546, 1755192844, 1649316166, 1198642031, 442452829},
     {24, 27, 26, 18, 7},
     {20, 23, 21, 14, 2},
     {-1559595548, 1649316165, 442452828, -1945678310, 2099272108},
     {-1089364906, 1152034034, 309049730, -1359040600, 1466324629},
     {1559595545, 1755192843, 1649316165, 1198642030, 442452828}},
    {1,
     {534011718, 237820880, 1002897798, 1657007234, 1412011072},
     {8, 3, 15, 26, 22},
     {3, -2, 11, 22, 18},
     {-534011720, -1002897800, 1412011071, 760389091, 217468052},
     {-373002877, -700516021, 986278340, 531125645, 151899680},
     {534011717, 237820879, 1002897797, 1657007233, 1412011071}},
    {42,
     {1434747710, 302596119, 269548474, 1122627734, 361709742},
     {22, 4, 4, 17, 5},
     {18, -1, -1, 13, 0},
     {1434747709, -269548476, -361709744, 1555655116, -372913051},
     {1002159698, -188277435, -252651337, 1086612546, -260476757},
     {1434747709, 302596118, 269548473, 1122627733, 361709741}},
    {-1,
     {534011718, 237820880, 1002897798, 1657007234, 1412011072},
     {8, 3, 15, 26, 22},
     {3, -2, 11, 22, 18},
     {-534011720, -1002897800, 1412011071, 760389091, 217468052},
     {-373002877, -700516021, 986278340, 531125645, 151899680},
     {534011717, 237820879, 1002897797, 1657007233, 1412011071}},
    {kInt32Min,
     {1559595546, 1755192844, 1649316172, 1198642031, 442452829},
     {24, 27, 26, 18, 7},
     {20, 23, 21, 14, 2},
     {-1559595548, 1649316171, 442452828, -1945678310, 2099272108},
     {-1089364906, 1152034038, 309049730, -1359040600, 1466324629},
     {1559595545, 1755192843, 1649316171, 1198642030, 442452828}},
    {kInt32Max,
     {1559595546, 1755192844, 1649316172, 1198642031, 442452829},
     {24, 27, 26, 18, 7},
     {20, 23, 21, 14, 2},
     {-1559595548, 1649316171, 442452828, -1945678310, 2099272108},
     {-1089364906, 1152034038, 309049730, -1359040600, 1466324629},
     {1559595545, 1755192843, 1649316171, 1198642030, 442452828}},
    {2147483646,
     {437695727, 1125081161, 148250893, 740276828, 1620378233},
     {6, 17, 2, 11, 25},
     {2, 13, -3, 7, 21},
     {437695726, -148250895, 1620378232, -983483879, -1833592520},
     {305726933, -103552053, 1131821121, -686955554, -1280749580},
     {437695726, 1125081160, 148250892, 740276827, 1620378232}},
    {161803399,
     {613510103, 1016357251, 1046844936, 471173604, 1073983017},
     {9, 16, 16, 7, 17},
     {4, 11, 12, 2, 12},
     {613510102, -1046844938, -1073983019, 1117876517, -1326307319},
     {428531856, -731212742, -750168473, 780827727, -926414960},
     {613510102, 1016357250, 1046844935, 471173603, 1073983016}},
};

TEST_CASE("DotnetRandomTest.GivesTheNumbersOfDotnet", "[DotnetRandomTest]") {
  for (const RandomGolden& golden : kRandomGolden) {
    INFO(golden.seed);
    const DotnetRandom fresh(golden.seed);
    const auto check = [&](const Five& expected, auto draw) {
      DotnetRandom random = fresh;
      CHECK(five([&] { return draw(random); }) == expected);
    };
    check(golden.next, [](DotnetRandom& r) { return r.next(); });
    check(golden.below_34, [](DotnetRandom& r) { return r.next(34); });
    check(golden.from_minus_5_to_30, [](DotnetRandom& r) { return r.next(-5, 30); });
    check(golden.whole_range, [](DotnetRandom& r) { return r.next(kInt32Min, kInt32Max); });
    check(golden.wide_range, [](DotnetRandom& r) { return r.next(-1500000000, 1500000000); });
    check(golden.narrow_edge, [](DotnetRandom& r) { return r.next(-1, kInt32Max - 1); });
  }
}

TEST_CASE("DotnetRandomTest.GoesOnPastTheFirstBlock", "[DotnetRandomTest]") {
  DotnetRandom random(42);
  for (int i = 0; i < 995; ++i) random.next();
  const Five expected = {626910815, 846584919, 831958040, 675780753, 2076300622};  // mono
  CHECK(five([&] { return random.next(); }) == expected);
}

TEST_CASE("DotnetRandomTest.DoublesAreMultiplesOfOneModulus", "[DotnetRandomTest]") {
  DotnetRandom random(42);
  CHECK(random.next_double() == 0.6681064659115423);  // mono
  CHECK(random.next_double() == 0.14090729837348093);
}

TEST_CASE("DotnetRandomTest.EmptyRanges", "[DotnetRandomTest]") {
  DotnetRandom random(1);
  CHECK(random.next(0) == 0);
  CHECK(random.next(17, 17) == 17);
  CHECK(random.next(kInt32Min, kInt32Min) == kInt32Min);
}

std::array<std::byte, kKeyBytes> encoded(int64_t key) {
  std::array<std::byte, kKeyBytes> bytes{};
  encode_key(key, bytes.data());
  return bytes;
}

TEST_CASE("KeyEncodingTest.IsBigEndianWithTheSignFlipped", "[KeyEncodingTest]") {
  const auto bytes = [](std::array<uint8_t, kKeyBytes> numbers) {
    std::array<std::byte, kKeyBytes> out{};
    std::memcpy(out.data(), numbers.data(), kKeyBytes);
    return out;
  };
  CHECK(encoded(0) == bytes({0x80, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(encoded(-2) == bytes({0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}));
  CHECK(encoded(0x0123456789abcdef) == bytes({0x81, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}));
  CHECK(encoded(kInt64Min) == bytes({0, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(encoded(kInt64Max) == bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
}

TEST_CASE("KeyEncodingTest.KeepsTheOrderAndComesBack", "[KeyEncodingTest]") {
  std::vector<int64_t> keys = {
      kInt64Min, kInt64Min + 1,    -256,          -255,     -2, -1, 0, 1, 255,
      256,       int64_t{1} << 32, kInt64Max - 1, kInt64Max};
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 200; ++i) keys.push_back(static_cast<int64_t>(random() >> (random() % 64)));
  for (int i = 0; i < 200; ++i) keys.push_back(static_cast<int64_t>(random()));
  for (const int64_t a : keys) {
    CHECK(decode_key(encoded(a).data()) == a);
    for (const int64_t b : keys) {
      const int order = std::memcmp(encoded(a).data(), encoded(b).data(), kKeyBytes);
      REQUIRE_MESSAGE((order < 0) == (a < b), a << " " << b);
      REQUIRE_MESSAGE((order == 0) == (a == b), a << " " << b);
    }
  }
}

TEST_CASE("SemiRandomGeneratorTest.GivesTheKeysOfTheOriginalRule", "[SemiRandomGeneratorTest]") {
  SemiRandomGenerator jumping(1, 2, 3, 1.0);
  for (const int64_t key :
       {1021432903561852017, 4307413244508346771, 7116791879621898694}) {  // mono
    CHECK(jumping.next() == key);
  }
  SemiRandomGenerator mixed(-5, 0, kInt32Max, 0.5);
  for (const int64_t key :
       {int64_t{726643701}, int64_t{726643702}, int64_t{726643703}, int64_t{726643704},
        int64_t{2623297156155804186}, int64_t{2623297156155804187}, int64_t{2623297156155804188},
        int64_t{2425402277580643852}}) {  // mono
    CHECK(mixed.next() == key);
  }
}

TEST_CASE("SemiRandomGeneratorTest.WithoutRandomnessKeysAreConsecutive",
          "[SemiRandomGeneratorTest]") {
  SemiRandomGenerator keys(7, 8, 9, 0.0);
  const int64_t first = keys.next();
  CHECK(first == 822959692);  // mono
  for (int64_t i = 1; i < 10000; ++i) REQUIRE(keys.next() == first + i);
}

TEST_CASE("SemiRandomGeneratorTest.FillsASpanWithTheSameKeys", "[SemiRandomGeneratorTest]") {
  SemiRandomGenerator one_by_one(4, 5, 6, 0.3);
  SemiRandomGenerator at_once = one_by_one;
  std::vector<int64_t> keys(1000);
  at_once.next(keys);
  for (const int64_t key : keys) REQUIRE(key == one_by_one.next());
  CHECK(*std::min_element(keys.begin(), keys.end()) >= 0);
}

TEST_CASE("RoundToDigitsTest.RoundsTheScaledValueHalvesToEven", "[RoundToDigitsTest]") {
  CHECK(round_to_digits(0.125, 2) == 0.12);
  CHECK(round_to_digits(0.375, 2) == 0.38);
  CHECK(round_to_digits(-0.125, 2) == -0.12);
  CHECK(round_to_digits(1.005, 2) == 1.0);
  CHECK(round_to_digits(2.5, 0) == 2.0);
  CHECK(round_to_digits(3.5, 0) == 4.0);
  CHECK(round_to_digits(1.3403 + 9 * 0.0001, 4) == 1.3412);
}

std::vector<std::byte> stored(const Tick& tick) {
  std::vector<std::byte> bytes;
  append_tick(tick, bytes);
  return bytes;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned>(b) >> 4];
    text += kDigits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

const Tick kEuroTick = {.symbol = "EURUSD",
                        .timestamp_100ns = kTickStart100ns + 17 * 10'000'000,
                        .bid = 1.3406,
                        .ask = 1.3411,
                        .bid_size = 4321,
                        .ask_size = 9999,
                        .provider = "eSignal"};

TEST_CASE("TickTest.IsStoredAsBinaryWriterDoes", "[TickTest]") {
  CHECK(hex(stored(kEuroTick)) ==  // mono
        "06455552555344"
        "8086dd44beadd008"
        "174850fc1873f53f"
        "4ca60a462575f53f"
        "e1100000"
        "0f270000"
        "07655369676e616c");
}

TEST_CASE("TickTest.LongStringsHaveLongLengths", "[TickTest]") {
  for (const size_t length : {0, 1, 127, 128, 300, 16383, 16384, 2'100'000}) {
    const std::string symbol(length, 'x');
    Tick tick = kEuroTick;
    tick.symbol = symbol;
    tick.provider = symbol;
    const std::vector<std::byte> bytes = stored(tick);
    CHECK(bytes.size() == tick_bytes(tick));
    if (length == 300) {
      CHECK(hex(std::span(bytes).first(3)) == "ac0278");  // mono
    }
    CHECK(decode_tick(bytes) == tick);
  }
}

TEST_CASE("TickTest.RefusesWhatIsNoTick", "[TickTest]") {
  std::vector<std::byte> bytes = stored(kEuroTick);
  for (size_t n = 0; n < bytes.size(); ++n) {
    CHECK_FALSE(decode_tick(std::vector(bytes.begin(), bytes.begin() + static_cast<long>(n))));
  }
  bytes.push_back(std::byte{0});
  CHECK_FALSE(decode_tick(bytes));
  bytes.pop_back();
  bytes[0] = std::byte{0x7f};
  CHECK_FALSE(decode_tick(bytes));
  // Five bytes of length without an end, and a length over INT32_MAX.
  std::fill_n(bytes.begin(), 5, std::byte{0xff});
  CHECK_FALSE(decode_tick(bytes));
  bytes[4] = std::byte{0x0f};
  CHECK_FALSE(decode_tick(bytes));
}

TEST_CASE("TickTest.RandomBytesAreReadWithinTheirBounds", "[TickTest]") {
  std::mt19937_64 random(test::seed());
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes = stored(kEuroTick);
    bytes.resize(random() % (bytes.size() + 8));
    for (int flips = 0; flips < 3 && !bytes.empty(); ++flips) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    const auto tick = decode_tick(bytes);
    if (tick) {
      CHECK(tick_bytes(*tick) <= bytes.size());
    }
  }
}

TEST_CASE("TickGeneratorTest.WalksWithinItsBounds", "[TickGeneratorTest]") {
  std::set<std::string_view> symbols;
  std::set<std::string_view> providers;
  TickGenerator ticks(5);
  int64_t last = kTickStart100ns;
  for (int i = 0; i < 20000; ++i) {
    const Tick tick = ticks.next();
    symbols.insert(tick.symbol);
    providers.insert(tick.provider);
    const int64_t seconds = (tick.timestamp_100ns - last) / 10'000'000;
    last = tick.timestamp_100ns;
    REQUIRE((1 <= seconds && seconds < 30));
    REQUIRE((0 <= tick.bid_size && tick.bid_size < 10000));
    REQUIRE((0 <= tick.ask_size && tick.ask_size < 10000));
    const auto symbol = std::ranges::find(tick_symbols(), tick.symbol, &TickSymbol::name);
    REQUIRE(symbol != tick_symbols().end());
    const double spread = std::round((tick.ask - tick.bid) * std::pow(10, symbol->digits));
    REQUIRE_MESSAGE((2 <= spread && spread < 30), spread);
    REQUIRE(tick_bytes(tick) <= kMaxTickBytes);
    REQUIRE(decode_tick(stored(tick)) == tick);
  }
  CHECK(symbols.size() == kTickSymbols);
  CHECK(providers.size() == kTickProviders);
}

TEST_CASE("TickGeneratorTest.GivesTheTicksOfTheOriginalRule", "[TickGeneratorTest]") {
  TickGenerator ticks(4);
  CHECK(ticks.next() == (Tick{"USDCAD", 635198580010000000, 1.0488, 1.0501, 544, 6982, "NASDAQ"}));
  CHECK(ticks.next() ==
        (Tick{"EURAUD", 635198580130000000, 1.4377, 1.4395, 5505, 7820, "Euronext"}));
  CHECK(ticks.next() == (Tick{"EURGBP", 635198580240000000, 0.8431, 0.8457, 8293, 6679, "NASDAQ"}));
}

// FNV-1a, 64 bits.
uint64_t hashed(uint64_t hash, std::span<const std::byte> bytes) {
  for (const std::byte b : bytes) hash = (hash ^ static_cast<uint64_t>(b)) * 1099511628211u;
  return hash;
}

struct Digest {
  uint64_t hash = 14695981039346656037u;
  uint64_t value_bytes = 0;

  friend bool operator==(const Digest&, const Digest&) = default;
};

// Every byte of the first `records` stored keys and ticks.
Digest digest(SemiRandomGenerator keys, TickGenerator ticks, int records) {
  Digest digest;
  for (int i = 0; i < records; ++i) {
    digest.hash = hashed(digest.hash, encoded(keys.next()));
    const std::vector<std::byte> value = stored(ticks.next());
    digest.hash = hashed(digest.hash, value);
    digest.value_bytes += value.size();
  }
  return digest;
}

TEST_CASE("StsWorkloadTest.IsByteForByteWhatDotnetMakes", "[StsWorkloadTest]") {
  // mono
  CHECK(digest({1, 2, 3, 1.0}, TickGenerator(4), 200'000) == (Digest{0x1d2fd51b072a0dc5, 8840923}));
  CHECK(digest({-5, 0, kInt32Max, 0.5}, TickGenerator(kInt32Min), 200'000) ==
        (Digest{0xe4f58a28ca7ecda8, 8842131}));
  CHECK(digest({7, 8, 9, 0.0}, TickGenerator(10), 200'000) ==
        (Digest{0x93ea9f0a0250d19d, 8842176}));
}

struct Columns {
  std::vector<std::byte> keys;
  std::vector<std::byte> values;
  std::vector<uint64_t> value_offsets;
};

struct Record {
  std::array<std::byte, kKeyBytes> key;
  std::vector<std::byte> value;

  friend bool operator==(const Record&, const Record&) = default;
};

// All records of a flow, taken in batches of at most `batch`.
std::vector<Record> records_of(const StsOptions& options, uint32_t flow_number, size_t batch) {
  StsFlow flow(options, flow_number);
  Columns c;
  std::vector<Record> records;
  while (const size_t n = flow.next_batch(batch, c.keys, c.values, c.value_offsets)) {
    CHECK(n <= batch);
    CHECK(c.keys.size() == n * kKeyBytes);
    CHECK(c.value_offsets.size() == n + 1);
    CHECK(c.value_offsets.front() == 0u);
    CHECK(c.value_offsets.back() == c.values.size());
    for (size_t i = 0; i < n; ++i) {
      Record& record = records.emplace_back();
      std::memcpy(record.key.data(), c.keys.data() + i * kKeyBytes, kKeyBytes);
      record.value.assign(c.values.begin() + static_cast<long>(c.value_offsets[i]),
                          c.values.begin() + static_cast<long>(c.value_offsets[i + 1]));
    }
  }
  CHECK(flow.remaining() == 0u);
  CHECK(c.value_offsets == std::vector<uint64_t>{0});
  CHECK((c.keys.empty() && c.values.empty()));
  return records;
}

TEST_CASE("StsFlowTest.GivesTheRecordsOfItsSeedsInBatchesOfAnySize", "[StsFlowTest]") {
  const StsOptions options = {.records = 1000, .flows = 3, .randomness = 0.5, .seed = 11};
  const StsFlowSeeds seeds = sts_flow_seeds(11, 1);
  SemiRandomGenerator keys(seeds.key_high, seeds.key_low, seeds.coin, 0.5);
  TickGenerator ticks(seeds.tick);
  const std::vector<Record> records = records_of(options, 1, 1000);
  REQUIRE(records.size() == 333u);
  for (const Record& record : records) {
    REQUIRE(decode_key(record.key.data()) == keys.next());
    REQUIRE(decode_tick(record.value) == ticks.next());
  }
  for (const size_t batch : {1, 7, 333, 334}) CHECK(records_of(options, 1, batch) == records);
}

TEST_CASE("StsFlowTest.SplitsTheRecordsEvenlyTheRemainderToTheFirst", "[StsFlowTest]") {
  StsOptions options = {.records = 11, .flows = 4};
  std::vector<uint64_t> shares;
  for (uint32_t flow = 0; flow < 4; ++flow) shares.push_back(sts_flow_records(options, flow));
  CHECK(shares == (std::vector<uint64_t>{3, 3, 3, 2}));
  options = {.records = 2, .flows = 3};
  CHECK(sts_flow_records(options, 1) == 1u);
  CHECK(sts_flow_records(options, 2) == 0u);
  CHECK(records_of(options, 2, 10).empty());
}

TEST_CASE("StsFlowTest.SeedsAreFixedAndDistinct", "[StsFlowTest]") {
  CHECK(sts_flow_seeds(1, 0) == (StsFlowSeeds{1028203387, 182662037, 973855557, 501521840}));
  for (const uint64_t base : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    std::set<int32_t> seen;
    constexpr uint32_t kFlows = 5000;
    for (uint32_t flow = 0; flow < kFlows; ++flow) {
      const StsFlowSeeds s = sts_flow_seeds(base, flow);
      seen.insert({s.key_high, s.key_low, s.coin, s.tick});
    }
    CHECK(seen.size() == 4 * kFlows);
    CHECK(*seen.begin() >= 1);
    CHECK(*seen.rbegin() <= 1 << 30);
  }
}

TEST_CASE("StsFlowTest.FlowsAndSeedsDiffer", "[StsFlowTest]") {
  const StsOptions options = {.records = 200, .flows = 2, .seed = 1};
  const StsOptions other_seed = {.records = 200, .flows = 2, .seed = 2};
  CHECK(records_of(options, 0, 64) == records_of(options, 0, 64));
  CHECK(records_of(options, 0, 64) != records_of(options, 1, 64));
  CHECK(records_of(options, 0, 64) != records_of(other_seed, 0, 64));
}

TEST_CASE("StsFlowTest.AValueHasAbout44Bytes", "[StsFlowTest]") {
  const StsOptions options = {.records = 100'000, .seed = 1};
  uint64_t bytes = 0;
  for (const Record& record : records_of(options, 0, 4096)) bytes += record.value.size();
  CHECK(bytes == 4421222u);
}

TEST_CASE("StsFlowTest.ReusesTheColumns", "[StsFlowTest]") {
  StsFlow flow({.records = 10'000}, 0);
  Columns c;
  flow.next_batch(1000, c.keys, c.values, c.value_offsets);
  const void* const keys = c.keys.data();
  const void* const values = c.values.data();
  const void* const offsets = c.value_offsets.data();
  while (flow.next_batch(1000, c.keys, c.values, c.value_offsets) != 0) {
    REQUIRE(c.keys.data() == keys);
    REQUIRE(c.values.data() == values);
    REQUIRE(c.value_offsets.data() == offsets);
  }
}

}  // namespace
}  // namespace stride
