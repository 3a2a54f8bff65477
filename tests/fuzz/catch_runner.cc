// Catch2 2 is a header, whose bodies one file of a program has. The fuzzers have no test cases: an
// assertion that fails aborts (tests/support/catch.cc).
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "tests/support/catch.h"
