#include "benchmark/peers/route_intervals.h"

#include <algorithm>

#include "benchmark/datasets/key_columns.h"
#include "gpu/location.h"
#include "storage/prefix_key.h"

namespace stride::benchmark {
namespace {

__extension__ using Wide = unsigned __int128;

// The addresses [first, last] of a prefix, as numbers.
struct Range {
  Wide first, last;
  uint32_t rank;
};

Wide number_of(Bytes address) {
  Wide number = 0;
  for (std::byte byte : address) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

}  // namespace

RouteIntervals::RouteIntervals(const KeyColumn& prefixes, uint32_t address_bits)
    : address_bits_(address_bits) {
  Wide max_address = address_bits == 128 ? ~Wide{0} : (Wide{1} << address_bits) - 1;
  std::vector<Range> around;  // the prefixes of an address, the longest last
  auto begin = [&](Wide at) {
    uint32_t answer = around.empty() ? Location::absent : around.back().rank;
    bool again =
        answers_.size() && (address_bits_ == 32 ? narrow_.back() == at : wide_.back() == at);
    if (again) {
      answers_.back() = answer;
      return;
    }
    answers_.push_back(answer);
    if (address_bits_ == 32) {
      narrow_.push_back(static_cast<uint32_t>(at));
    } else {
      wide_.push_back(at);
    }
  };
  auto leave = [&] {
    Wide last = around.back().last;
    around.pop_back();
    if (last != max_address) begin(last + 1);
  };
  begin(0);
  for (uint64_t i = 0; i < prefixes.size; ++i) {
    Bytes key = prefixes[i];
    Wide first = number_of(key.first(address_bytes(address_bits)));
    uint32_t length = prefix_length(key, address_bits);
    Wide last = length == address_bits ? first : first | max_address >> length;
    while (!around.empty() && around.back().last < first) leave();
    around.push_back({first, last, static_cast<uint32_t>(i)});
    begin(first);
  }
  while (!around.empty()) leave();
}

template <class Begins, class Number>
void RouteIntervals::match_in(const Begins& begins, const Number& number,
                              const KeyColumn& addresses, Parallel* parallel,
                              std::span<uint32_t> ranks) const {
  parallel->for_parts(addresses.size, min_rows_per_part,
                      [&](unsigned, uint64_t first, uint64_t last) {
                        for (uint64_t i = first; i < last; ++i) {
                          auto behind = std::upper_bound(begins.begin(), begins.end(), number(i));
                          ranks[i] = answers_[static_cast<size_t>(behind - begins.begin()) - 1];
                        }
                      });
}

void RouteIntervals::match(const KeyColumn& addresses, Parallel* parallel,
                           std::span<uint32_t> ranks) const {
  const std::byte* data = addresses.data;
  if (address_bits_ == 32) {
    match_in(
        narrow_, [&](uint64_t i) { return load_big_endian<uint32_t>(data + i * 4); }, addresses,
        parallel, ranks);
  } else {
    auto number = [&](uint64_t i) {
      return Wide{load_big_endian<uint64_t>(data + i * 16)} << 64 |
             load_big_endian<uint64_t>(data + i * 16 + 8);
    };
    match_in(wide_, number, addresses, parallel, ranks);
  }
}

}  // namespace stride::benchmark
