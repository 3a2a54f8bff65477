// A history of operations under an option set, beside the model; and the shortest one that still
// fails.
//
//   History history = make_history(seed, 400);
//   if (auto mismatch = run(history, set)) FAIL(describe(shrink({history, set, *mismatch},
//   limit)));
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/engine/metamorphic/operation.h"
#include "tests/engine/metamorphic/option_set.h"

namespace stride::test::metamorphic {

using History = std::vector<Operation>;
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
// Leaves out operations, calls and rows, and makes options plain, as long as it fails and there is
// time.
// What fails only now and then is run several times.
using Run = std::function<std::optional<Mismatch>(const History&, const OptionSet&)>;
Failure shrink(Failure failure, std::chrono::seconds limit, const Run& run = metamorphic::run);
std::string describe(const Failure& failure);

}  // namespace stride::test::metamorphic
