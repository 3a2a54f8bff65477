// Tables of prefixes as files have them, and addresses to look up in them.
//
//   Result<std::vector<RouteTable>> tables = read_routes({"asn4.tsv.zst", "asn6.tsv.zst"});
//   OwnedColumn addresses = uniform_addresses((*tables)[0], 1'000'000, seed);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/datasets/key_columns.h"
#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

// The prefixes of one family, ascending, each once.
struct RouteTable {
  std::string name;           // "ipv4" or "ipv6"
  uint32_t address_bits = 0;  // 32 or 128
  OwnedColumn keys;           // storage/prefix_key.h
  OwnedColumn values;         // as text

  uint64_t size() const { return keys.rows; }
  PackedColumn packed_keys() const;
};

// Lines of a prefix, a tab and a value; a file whose name ends in .zst is unpacked. The prefixes of
// all files together make a table for each family; of equal ones the last counts.
// invalid_argument names file and line; else what read_text_file() returns.
Result<std::vector<RouteTable>> read_routes(const std::vector<std::string>& files);

// Any bits.
OwnedColumn uniform_addresses(const RouteTable& table, uint64_t addresses, uint64_t seed);
// Each of a random prefix of the table, with any bits behind it.
OwnedColumn table_addresses(const RouteTable& table, uint64_t addresses, uint64_t seed);
// Those lines of the file that are addresses of the table's family, in turn, as many as are wanted;
// no rows where there are none. invalid_argument names a line that is no address at all.
Result<OwnedColumn> file_addresses(const RouteTable& table, const std::string& file,
                                   uint64_t addresses);

}  // namespace stride::benchmark
