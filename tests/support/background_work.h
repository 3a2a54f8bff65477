// Whether a database flushes and compacts in the background, where it has such an option: the one
// place of the tests that knows of it.
#pragma once

#include "engine/options.h"

namespace stride::test {

template <class Any>
void set_background_work(Any* options, bool on) {
  if constexpr (requires { options->background_work; }) options->background_work = on;
}

}  // namespace stride::test
