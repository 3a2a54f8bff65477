#include "engine/watched_call.h"

#include "engine/write/watched_work.h"
#include "storage/no_throw.h"

namespace stride {

Status call_watched(const std::function<Status()>& call, const std::function<bool()>& goes_on) {
  return no_throw([&] {
    return run_watched(
        [&](WorkWatch* watch) {
          const WorkWatch::Offer offer(watch);
          return call();
        },
        [&](const WorkWatch&) { return goes_on(); });
  });
}

}  // namespace stride
