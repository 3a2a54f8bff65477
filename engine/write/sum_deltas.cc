#include "engine/write/sum_deltas.h"

#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "engine/device/executor.h"
#include "gpu/backend.h"
#include "gpu/scatter_add.h"
#include "storage/quoted.h"

namespace stride {
namespace {

__extension__ using Wide = __int128;

std::string decimal(Wide n) {
  std::string digits;
  bool negative = n < 0;
  do {
    int digit = static_cast<int>(n % 10);
    digits.insert(digits.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    n /= 10;
  } while (n != 0);
  return negative ? "-" + digits : digits;
}

// The sums of each slot.
class Summation {
 public:
  Summation(const Version& version, const TableRecord& table, const Deltas& deltas,
            const BulkVector<std::byte>& bases)
      : executor_(*version.executor), table_(table), deltas_(deltas), bases_(bases) {}

  Status run(BulkVector<std::byte>* sums) {
    if (!is_integer(table_.numbers) || table_.sums_wrap)
      return add(table_.numbers, deltas_.numbers.data(), bases_.empty() ? nullptr : bases_.data(),
                 sums);
    return table_.numbers == NumberType::i32 ? exact<int32_t>(sums) : exact<int64_t>(sums);
  }

 private:
  // sums = start + what the numbers add up to. start: null, for zeros.
  Status add(NumberType type, const std::byte* numbers, const std::byte* start,
             BulkVector<std::byte>* sums) {
    const uint64_t n = deltas_.slots.size(), slots = deltas_.keys.size();
    sums->resize(slots * width_of(type));
    return executor_.run_bulk(n, [&](Backend& bulk) {
      if (start) {
        std::memcpy(sums->data(), start, sums->size());
      } else {
        std::memset(sums->data(), 0, sums->size());
      }
      return bulk.scatter().apply({type, numbers, n}, Indexes::of(deltas_.slots),
                                  {type, sums->data(), slots}, {.mode = ScatterMode::reproducible});
    });
  }

  // Whatever the sums, without an overflow on the way.
  template <class T>
  Status exact(BulkVector<std::byte>* sums) {
    const auto* numbers = reinterpret_cast<const T*>(deltas_.numbers.data());
    const uint64_t n = deltas_.slots.size(), slots = deltas_.keys.size();
    if (fits(numbers, n)) {
      STRIDE_TRY(add(table_.numbers, deltas_.numbers.data(), nullptr, sums));
      if (bases_.empty()) return {};
      auto* sum = reinterpret_cast<T*>(sums->data());
      return add_bases<T>(sums, [&](uint64_t slot) { return sum[slot]; });
    }
    // As sums of the numbers' upper parts, and of their lower 32 bits.
    BulkVector<std::byte> high, low, halves(n * sizeof(int64_t));
    auto* half = reinterpret_cast<int64_t*>(halves.data());
    for (uint64_t i = 0; i < n; ++i) half[i] = static_cast<int64_t>(numbers[i]) >> 32;
    STRIDE_TRY(add(NumberType::i64, halves.data(), nullptr, &high));
    for (uint64_t i = 0; i < n; ++i)
      half[i] = static_cast<int64_t>(static_cast<uint32_t>(numbers[i] & 0xFFFFFFFF));
    STRIDE_TRY(add(NumberType::i64, halves.data(), nullptr, &low));
    auto* upper = reinterpret_cast<const int64_t*>(high.data());
    auto* lower = reinterpret_cast<const uint64_t*>(low.data());  // of less than 2^32 numbers
    sums->resize(slots * sizeof(T));
    return add_bases<T>(sums, [&](uint64_t slot) {
      return Wide{upper[slot]} * (Wide{1} << 32) + Wide{lower[slot]};
    });
  }

  // Whether no sum of any of them can overflow.
  template <class T>
  static bool fits(const T* numbers, uint64_t n) {
    using Unsigned = std::make_unsigned_t<T>;
    Unsigned bits = 0;
    for (uint64_t i = 0; i < n; ++i)
      bits |= static_cast<Unsigned>(numbers[i] ^ (numbers[i] >> (sizeof(T) * 8 - 1)));
    // Each is less than 2^b, or -2^b.
    return std::bit_width(bits) + std::bit_width(n) < static_cast<int>(sizeof(T) * 8);
  }

  // sums = bases + added(slot), where that fits.
  template <class T, class Added>
  Status add_bases(BulkVector<std::byte>* sums, const Added& added) {
    const auto* base = reinterpret_cast<const T*>(bases_.data());
    auto* sum = reinterpret_cast<T*>(sums->data());
    const uint64_t slots = deltas_.keys.size();
    for (uint64_t slot = 0; slot < slots; ++slot) {
      T result;
      const T before = bases_.empty() ? T{0} : base[slot];
      auto more = added(slot);
      if (__builtin_add_overflow(before, more, &result))
        return does_not_fit(slot, Wide{before} + Wide{more});
      sum[slot] = result;
    }
    return {};
  }

  Status does_not_fit(uint64_t slot, Wide sum) const {
    std::string type(to_string(table_.numbers));
    return Status::invalid("table '" + table_.name + "', key " +
                           in_quotes(deltas_.keys.column()[slot]) + ": the sum is " + decimal(sum) +
                           ", which does not fit " + type)
        .with_key(std::string(as_text(deltas_.keys.column()[slot])))
        .with_remedy(table_.numbers == NumberType::i32
                         ? "add less, or make a table of i64, or one with Overflow::wrap"
                         : "add less, or make a table of f64, or one with Overflow::wrap");
  }

  Executor& executor_;
  const TableRecord& table_;
  const Deltas& deltas_;
  const BulkVector<std::byte>& bases_;
};

}  // namespace

Status sum_deltas(const Version& version, const TableRecord& table, const Deltas& deltas,
                  const BulkVector<std::byte>& bases, BulkVector<std::byte>* sums) {
  return Summation(version, table, deltas, bases).run(sums);
}

}  // namespace stride
