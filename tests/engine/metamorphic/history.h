// A history of operations under an option set, beside the model; and the shortest one that still
// fails.
//
//   History history(seed, 400);
//   if (auto failure = run(history, options)) report(shrink(history, options));
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/engine/metamorphic/option_set.h"

namespace stride::test::metamorphic {

// The seeds of its operations.
using History = std::vector<uint64_t>;
History make_history(uint64_t seed, size_t operations);

struct Mismatch {
  size_t operation;  // its index; that of the end: what is there after all
  std::string expected, seen;
};

// The first operation that is not answered as the model does, or what is there in the end.
std::optional<Mismatch> run(const History& history, const OptionSet& set);

struct Failure {
  History history;
  OptionSet set;
  Mismatch mismatch;
};
// Leaves out operations and makes options plain as long as it fails, until there is no more time.
// What fails only now and then is run several times.
Failure shrink(Failure failure, std::chrono::seconds limit);
std::string describe(const Failure& failure);

}  // namespace stride::test::metamorphic
