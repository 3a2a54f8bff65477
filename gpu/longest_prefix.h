// The longest prefix of a table that an address begins with, for batches of addresses.
//
//   LongestPrefix& prefixes = backend->longest_prefix();
//   std::vector<std::byte> image;
//   prefixes.build_matches(column, 32, &image);
//   prefixes.longest_match({image.data(), image.size()}, addresses, ranks);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/location.h"
#include "storage/column.h"
#include "storage/prefix_key.h"
#include "storage/status.h"

namespace stride {

// build_matches() takes at most this many prefixes.
inline constexpr uint64_t max_match_prefixes = 0x7FFFFFFE;

class ResidentMatches;

// What LongestPrefix::build_matches() made. Owns nothing.
struct MatchView {
  const std::byte* image = nullptr;  // in host memory, aligned to 8 bytes
  uint64_t image_bytes = 0;
  // Null: searched on the host.
  const ResidentMatches* resident = nullptr;
};

// What belongs to the prefixes of matches, and may be kept on a device beside them.
struct MatchRows {
  const Location* rows = nullptr;    // of each rank; null: rank r is row r of index 0
  const uint8_t* lengths = nullptr;  // of each prefix, in bits; null: only ranks are asked for
};

// A copy of what build_matches() made in the memory of a backend's device. Immutable. Must not
// outlive the backend that made it.
class ResidentMatches {
 public:
  virtual ~ResidentMatches() = default;
  virtual uint64_t memory_bytes() const = 0;
};

// Every call is one virtual call for a whole batch, returns when the batch is done, and may be made
// from several threads at once.
class LongestPrefix {
 public:
  virtual ~LongestPrefix() = default;

  // Builds what longest_match() searches (gpu/match/match_layout.h) over a strictly ascending
  // column of prefix keys (storage/prefix_key.h). The same bytes from every backend. parents: null,
  // or set to the rank of the longest other prefix that covers each, or Location::absent.
  // invalid_argument: more than max_match_prefixes, or a row that is no prefix key.
  virtual Status build_matches(const PackedColumn& prefixes, uint32_t address_bits,
                               std::vector<std::byte>* image, std::vector<uint32_t>* parents) = 0;
  Status build_matches(const PackedColumn& prefixes, uint32_t address_bits,
                       std::vector<std::byte>* image) {
    return build_matches(prefixes, address_bits, image, nullptr);
  }
  // For each address the rank of the longest prefix that it begins with, or Location::absent.
  // Addresses have address_bytes(address_bits) bytes each, or are byte strings of any length. Of
  // matches that are resident, addresses and results may lie in host memory or the device's.
  // invalid_argument: addresses of another width.
  virtual Status longest_match(const MatchView& matches, const KeyColumn& addresses,
                               std::span<uint32_t> out) = 0;

  // Copies matches to the device: MatchView::resident. unavailable: no device, or matches of byte
  // strings or of addresses of more than 128 bits, which the host searches. resource_exhausted: no
  // room within the memory limit.
  virtual Result<std::shared_ptr<ResidentMatches>> make_resident(const MatchView& matches,
                                                                 const MatchRows& rows) = 0;
  Result<std::shared_ptr<ResidentMatches>> make_resident(const MatchView& matches) {
    return make_resident(matches, MatchRows());
  }

  // The rows of the longest prefixes of addresses, likewise. `changes` (null: none) lie over
  // `base`: the row is theirs where their longest prefix is not shorter than that of `base`. The
  // indexes of the rows of `base` count `newer` more. Both were made resident with lengths.
  virtual Status match_on_device(const ResidentMatches& base, uint32_t newer,
                                 const ResidentMatches* changes, const KeyColumn& addresses,
                                 Location* out, void* stream) = 0;
};

}  // namespace stride
