#include "gpu/several/several_matches.h"

#include <string>
#include <utility>
#include <vector>

namespace stride {

namespace {

class ReplicatedMatches final : public ResidentMatches {
 public:
  explicit ReplicatedMatches(std::vector<std::shared_ptr<ResidentMatches>> replicas)
      : replicas_(std::move(replicas)) {}

  // Null where the device had failed before.
  const ResidentMatches* on(size_t device) const { return replicas_[device].get(); }
  uint64_t memory_bytes() const override {
    uint64_t bytes = 0;
    for (const auto& replica : replicas_)
      if (replica) bytes += replica->memory_bytes();
    return bytes;
  }

 private:
  const std::vector<std::shared_ptr<ResidentMatches>> replicas_;
};

// Every copy that a set of devices is given is one of its own.
const ReplicatedMatches* as_replicated(const ResidentMatches* matches) {
  return static_cast<const ReplicatedMatches*>(matches);
}

class SeveralMatches final : public LongestPrefix {
 public:
  explicit SeveralMatches(DeviceSet& devices) : devices_(devices) {}

  Status build_matches(const PackedColumn& prefixes, uint32_t address_bits,
                       std::vector<std::byte>* image, std::vector<uint32_t>* parents) override {
    return devices_.run_on_first(no_device_number, [&](size_t device) {
      return matcher(device).build_matches(prefixes, address_bits, image, parents);
    });
  }
  Status longest_match(const MatchView& matches, const KeyColumn& addresses,
                       std::span<uint32_t> out) override;
  Result<std::shared_ptr<ResidentMatches>> make_resident(const MatchView& matches,
                                                         const MatchRows& rows) override;
  Status match_on_device(const ResidentMatches& base, uint32_t newer,
                         const ResidentMatches* changes, const KeyColumn& addresses, Location* out,
                         void* stream) override;

 private:
  LongestPrefix& matcher(size_t device) const { return devices_[device].longest_prefix(); }

  DeviceSet& devices_;
};

Status SeveralMatches::longest_match(const MatchView& matches, const KeyColumn& addresses,
                                     std::span<uint32_t> out) {
  if (out.size() != addresses.size)
    return Status::invalid("room for " + std::to_string(out.size()) + " ranks of " +
                           std::to_string(addresses.size) + " addresses")
        .with_remedy("give one rank for each address");
  const ReplicatedMatches* all = as_replicated(matches.resident);
  const size_t home = devices_.home_of(addresses);
  // A device matches addresses in its own memory faster than another one fetches them.
  const bool is_divisible =
      home == no_device_number || (addresses.is_fixed() && !devices_.is_on_one(addresses.data));
  const SharedBatch batch{.size = addresses.size,
                          .divisible = all != nullptr && is_divisible,
                          .home = home != no_device_number ? home : devices_.home_of(out.data()),
                          .has = [&](size_t device) { return !all || all->on(device); }};
  return devices_.run(batch, [&](size_t device, Share share) {
    MatchView here = matches;
    here.resident = all ? all->on(device) : nullptr;
    return matcher(device).longest_match(here, addresses.slice(share.first, share.count),
                                         out.subspan(share.first, share.count));
  });
}

Result<std::shared_ptr<ResidentMatches>> SeveralMatches::make_resident(const MatchView& matches,
                                                                       const MatchRows& rows) {
  std::vector<std::shared_ptr<ResidentMatches>> replicas(devices_.size());
  STRIDE_TRY(devices_.run_on_all([&](size_t device) {
    auto made = matcher(device).make_resident(matches, rows);
    if (made.ok()) replicas[device] = std::move(*made);
    return made.status();
  }));
  return std::shared_ptr<ResidentMatches>(std::make_shared<ReplicatedMatches>(std::move(replicas)));
}

Status SeveralMatches::match_on_device(const ResidentMatches& base, uint32_t newer,
                                       const ResidentMatches* changes, const KeyColumn& addresses,
                                       Location* out, void* stream) {
  const ReplicatedMatches *under = as_replicated(&base), *over = as_replicated(changes);
  const size_t home = devices_.home_of(addresses);
  const SharedBatch batch{
      .size = 1,
      .divisible = false,
      .home = home == no_device_number ? devices_.first() : home,
      .has = [&](size_t device) { return under->on(device) && (!over || over->on(device)); }};
  return devices_.run(batch, [&](size_t device, Share) {
    return matcher(device).match_on_device(
        *under->on(device), newer, over ? over->on(device) : nullptr, addresses, out, stream);
  });
}

}  // namespace

std::unique_ptr<LongestPrefix> make_several_matches(DeviceSet& devices) {
  return std::make_unique<SeveralMatches>(devices);
}

}  // namespace stride
