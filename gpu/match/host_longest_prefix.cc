#include "gpu/match/host_longest_prefix.h"

#include "gpu/host/no_device.h"
#include "gpu/match/match_build_host.h"
#include "gpu/match/match_search_host.h"
#include "storage/no_throw.h"

namespace stride {

namespace {

class HostLongestPrefix final : public LongestPrefix {
 public:
  explicit HostLongestPrefix(TaskPool& pool) : pool_(pool) {}

  Status build_matches(const PackedColumn& prefixes, uint32_t address_bits,
                       std::vector<std::byte>* image, std::vector<uint32_t>* parents) override {
    return no_throw(
        [&] { return build_matches_host(pool_, prefixes, address_bits, image, parents); });
  }
  Status longest_match(const MatchView& matches, const KeyColumn& addresses,
                       std::span<uint32_t> out) override {
    return no_throw([&] { return longest_match_host(pool_, matches, addresses, out); });
  }
  Result<std::shared_ptr<ResidentMatches>> make_resident(const MatchView&,
                                                         const MatchRows&) override {
    return no_device();
  }
  Status match_on_device(const ResidentMatches&, uint32_t, const ResidentMatches*, const KeyColumn&,
                         Location*, void*) override {
    return no_device();
  }

 private:
  TaskPool& pool_;
};

}  // namespace

std::unique_ptr<LongestPrefix> make_host_longest_prefix(TaskPool& pool) {
  return std::make_unique<HostLongestPrefix>(pool);
}

}  // namespace stride
