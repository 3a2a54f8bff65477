// What the same lookups take from C++: benchmark/python/run starts it, and each line that it writes
// here is answered with the seconds of so many batches.
//
//   lookup_rate DATABASE TABLE KEYS BATCH     (KEYS: a file of 64-bit integers)
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "engine/database.h"
#include "engine/key_columns.h"

namespace {

using namespace stride;

[[noreturn]] void fail(const std::string& why) {
  std::cerr << "lookup_rate: " << why << "\n";
  std::exit(1);
}

void check(const Status& status) {
  if (!status.ok()) fail(status.to_string());
}

template <class T>
T take(Result<T> result) {
  check(result.status());
  return std::move(*result);
}

std::vector<int64_t> read_keys(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<int64_t> keys(static_cast<size_t>(file.tellg()) / sizeof(int64_t));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(keys.data()),
            static_cast<std::streamsize>(keys.size() * sizeof(int64_t)));
  if (!file || keys.empty()) fail(std::string("no keys in ") + path);
  return keys;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) fail("DATABASE TABLE KEYS BATCH are expected");
  const auto database = take(Database::open(argv[1], {.read_only = true}));
  const Table table = take(database->open_table(argv[2]));
  const std::vector<int64_t> keys = read_keys(argv[3]);
  const CellColumn cells[] = {CellColumn::of(keys)};
  EncodedKeys encoded;  // as they are stored: C++ programs have them so
  check(encode_keys(table.schema(), cells, &encoded));
  const uint64_t batch = std::stoull(argv[4]), batches = keys.size() / batch;
  check(database->verify());  // so that no call checks bytes that it is the first to read
  GetResult result;
  result.row_width = table.schema().fixed_bytes();
  uint64_t next = 0, count = 0;
  while (std::cin >> count) {
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < count; ++i, ++next) {
      const uint64_t first = next % batches * batch;
      const auto queries =
          Column::fixed(encoded.keys.data + first * sizeof(int64_t), sizeof(int64_t), batch);
      check(database->snapshot().get(table, queries, &result));
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    std::cout << taken.count() << std::endl;
  }
}
