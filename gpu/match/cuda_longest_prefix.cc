#include "gpu/match/cuda_longest_prefix.h"

#include <vector>

#include "gpu/device/cuda_fallback.h"
#include "gpu/device/cuda_pipeline.h"
#include "gpu/device/cuda_stream_work.h"
#include "gpu/match/cuda_match.h"
#include "gpu/match/match_build_host.h"
#include "gpu/match/match_layout.h"
#include "gpu/match/match_search_host.h"
#include "storage/no_throw.h"

namespace stride {

namespace {

// The host builds fewer before the device has started.
constexpr uint64_t min_device_prefixes = 1 << 14;

class CudaLongestPrefix final : public LongestPrefix {
 public:
  CudaLongestPrefix(const CudaContext& context, LongestPrefix& host)
      : context_(context), host_(host) {}

  Status build_matches(const PackedColumn& prefixes, uint32_t address_bits,
                       std::vector<std::byte>* image, std::vector<uint32_t>* parents) override {
    auto on_host = [&] { return host_.build_matches(prefixes, address_bits, image, parents); };
    if (prefixes.size < min_device_prefixes || address_bits > max_tree_address_bits)
      return on_host();
    auto on_device = [&] {
      auto run = [&](uint64_t n, uint64_t grain, const auto& body) {
        context_.transfer.host().parallel_for(n, grain, body);
      };
      STRIDE_TRY(check_prefixes(run, prefixes, address_bits));
      return build_matches_cuda(context_, prefixes, address_bits, image, parents);
    };
    return device_or_host(on_device, on_host);
  }

  Status longest_match(const MatchView& matches, const KeyColumn& addresses,
                       std::span<uint32_t> out) override {
    STRIDE_TRY(check_room(addresses.size, out.size()));
    auto on_host = [&] {
      return no_throw([&] {
        return search_on_host(context_, addresses, out,
                              [&](const KeyColumn& there, std::span<uint32_t> room) {
                                return host_.longest_match(matches, there, room);
                              });
      });
    };
    if (!matches.resident || !(addresses.is_fixed() || !context_.is_of_device(addresses)))
      return on_host();
    STRIDE_TRY(check_addresses(matches, addresses));
    // All have one width: a column of that width.
    KeyColumn rows = addresses;
    if (!rows.is_fixed() && rows.size > 0)
      rows = Column::fixed(rows.data + rows.begin(0), rows[0].size(), rows.size);
    auto on_device = [&] {
      auto start = [&](const KeyColumn& chunk, void* room, const QueryPieces* pieces,
                       cudaStream_t on) {
        match_cuda(*matches.resident, chunk, static_cast<uint32_t*>(room), pieces, on);
      };
      search_in_chunks(context_.transfer, rows, out.data(),
                       {sizeof(uint32_t), QueryAccess::once, start});
      return Status();
    };
    return device_or_host(on_device, on_host);
  }

  Result<std::shared_ptr<ResidentMatches>> make_resident(const MatchView& matches,
                                                         const MatchRows& rows) override {
    if (reinterpret_cast<const MatchHeader*>(matches.image)->levels == 0) {
      return Status(StatusCode::unavailable,
                    "matches of byte strings or of long addresses are searched on the host");
    }
    return cuda_guarded([&]() -> Result<std::shared_ptr<ResidentMatches>> {
      return make_resident_cuda(context_, matches, rows);
    });
  }

  Status match_on_device(const ResidentMatches& base, uint32_t newer,
                         const ResidentMatches* changes, const KeyColumn& addresses, Location* out,
                         void* stream) override {
    STRIDE_TRY(check_rows_cuda(base, addresses));
    if (changes) STRIDE_TRY(check_rows_cuda(*changes, addresses));
    auto mark = [&](cudaStream_t to) {
      mark_use_cuda(base, to);
      if (changes) mark_use_cuda(*changes, to);
    };
    return on_stream(context_.device, stream, mark, [&](cudaStream_t to) {
      match_rows_cuda(base, newer, changes, addresses, out, to);
    });
  }

 private:
  CudaContext context_;
  LongestPrefix& host_;
};

}  // namespace

std::unique_ptr<LongestPrefix> make_cuda_longest_prefix(const CudaContext& context,
                                                        LongestPrefix& host) {
  return std::make_unique<CudaLongestPrefix>(context, host);
}

}  // namespace stride
