// What a fuzzer needs beside libFuzzer: its first run, with STRIDE_FUZZ_SEEDS=FOLDER, writes the
// inputs to begin with and ends.
#include <cstdlib>
#include <fstream>

#include "tests/fuzz/fuzzer.h"

int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("STRIDE_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  const auto seeds = stride::test::fuzz_seeds();
  for (size_t i = 0; i < seeds.size(); ++i)
    std::ofstream(std::string(folder) + "/seed-" + std::to_string(i), std::ios::binary) << seeds[i];
  std::exit(0);
}
