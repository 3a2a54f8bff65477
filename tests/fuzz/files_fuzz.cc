// A database with one file replaced by the fuzzer's bytes, whose checksums are made right: all that
// can be asked of it gives an answer, or says which file is damaged, and what verify() calls whole
// is.
//
// Input: a byte that chooses the file, a byte of flags, and the file.
#include <algorithm>
#include <random>

#include "gpu/access_costs.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/support/forged_database.h"

namespace stride::test {
namespace {

constexpr uint32_t rows = 12;
constexpr size_t head_bytes = 2;
enum Flag : uint8_t {
  changes = 1,
  keeps_checksums = 2,
  logs = 4,
  has_pages = 8,  // segments have checksums of pages, as large ones do
  keeps_page_checksums = 16
};

// Of segments alone, or with a log.
const Files& database(uint8_t flags) {
  static const auto made = [](bool with_log, bool with_pages) {
    Files files = ForgedDatabase(rows, with_log).files();
    files["COSTS"] = "host\t" + AccessCosts::typical_host(1).to_text() + "\n";
    for (auto& [name, bytes] : files)
      if (with_pages && name.ends_with(".seg")) add_page_checksums(&bytes);
    return files;
  };
  static const Files segments = made(false, false), with_log = made(true, false),
                     with_pages = made(false, true);
  return flags & has_pages ? with_pages : flags & logs ? with_log : segments;
}

std::string head_of(size_t file, uint8_t flags) {
  return {static_cast<char>(file), static_cast<char>(flags)};
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const uint8_t kind : {uint8_t{0}, uint8_t{logs}, uint8_t{has_pages}}) {
    size_t file = 0;
    for (const auto& [name, bytes] : database(kind))
      for (const uint8_t flags : {uint8_t{0}, uint8_t{changes}})
        seeds.push_back(head_of(flags ? file++ : file, static_cast<uint8_t>(kind | flags)) + bytes);
  }
  return seeds;
}

}  // namespace stride::test

using namespace stride::test;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < head_bytes) return -1;
  FuzzInput input(data, size);
  const size_t file = input.take<uint8_t>();
  const auto flags = input.take<uint8_t>();
  Files files = database(flags);
  if (file >= files.size()) return -1;
  auto replaced = files.begin();
  std::advance(replaced, static_cast<ptrdiff_t>(file));
  replaced->second = input.rest();
  if (replaced->first.ends_with(".seg") && !(flags & (keeps_checksums | keeps_page_checksums)))
    seal_pages(&replaced->second);
  if (!(flags & keeps_checksums)) seal(replaced->first, &replaced->second);
  Asked(*file_system_of(files), rows, flags & changes).expect_sound();
  return 0;
}

// Files have their parts where tables of theirs say: mostly bytes change where they are.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::minstd_rand random(seed);
  if (size <= head_bytes || random() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  uint8_t window[16];
  const size_t at = random() % size, width = std::min<size_t>(size_t{1} << random() % 5, size - at);
  std::memcpy(window, data + at, width);
  std::memcpy(data + at, window, LLVMFuzzerMutate(window, width, width));
  return size;
}
