// Flattens nested prefixes into boundaries (match_layout.h), one after the other, with a stack.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/location.h"
#include "gpu/match/match_layout.h"

namespace stride {

// Prefixes is a sequence in the order of prefix keys:
//   size()
//   begins_with_last(i)      whether prefixes i - 1 and i begin at the same address
//   ends_by(i, j)            whether no address of prefix i is at or behind the begin of j
//   ends_at(i, j)            whether prefix i ends where j begins
//   ends_together(i, j)      whether i and j end at the same address
//   ends(i)                  whether there are addresses behind prefix i
// emit(i, end, answer) is called for each boundary in order: where prefix i begins, or ends.
// parents: null, or room for size() numbers, as LongestPrefix::build_matches() returns them.
template <class Prefixes, class Emit>
void flatten(const Prefixes& prefixes, uint32_t* parents, const Emit& emit) {
  std::vector<uint32_t> open;  // ranks of the prefixes around an address, the longest last
  auto answer = [&] { return open.empty() ? no_match : open.back(); };
  auto close = [&](bool begins_here) {
    uint32_t closed = open.back();
    open.pop_back();
    // The outermost of those that end together says what goes on.
    if (begins_here || (!open.empty() && prefixes.ends_together(closed, open.back()))) return;
    emit(closed, true, answer());
  };
  auto size = static_cast<uint32_t>(prefixes.size());
  for (uint32_t i = 0; i < size; ++i) {
    while (!open.empty() && prefixes.ends_by(open.back(), i)) {
      close(prefixes.ends_at(open.back(), i));
    }
    if (parents) parents[i] = open.empty() ? Location::absent : open.back();
    open.push_back(i);
    // The last of those that begin together is the longest.
    if (i + 1 == size || !prefixes.begins_with_last(i + 1)) emit(i, false, i);
  }
  while (!open.empty() && prefixes.ends(open.back())) close(false);
}

}  // namespace stride
