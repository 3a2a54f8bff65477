// Rows of a load that wait for their commit, and which of them have equal keys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapters/cli/input/block_reader.h"
#include "adapters/cli/input/parsed_rows.h"
#include "engine/row_set.h"

namespace stride::cli {

// The rows of a block.
struct WaitingRows {
  RowColumns rows;
  std::shared_ptr<const FileRows> file;
  std::vector<uint32_t> lines;  // from first_line; only where duplicates are an error
  uint64_t first_line = 0;

  // "file:line". Precondition: there are lines.
  std::string place(uint64_t row) const;
};

// A row of a block.
struct RowPlace {
  uint32_t block, row;
  auto operator<=>(const RowPlace&) const = default;
};

// Two rows with the same key: the first row whose key is in an earlier one, and that one.
struct EqualKeysFound {
  RowPlace again, before;
};
std::optional<EqualKeysFound> find_equal_keys(const std::vector<WaitingRows>& waiting);

// How many different keys all rows, or those of `places`, have.
uint64_t count_keys(const std::vector<WaitingRows>& waiting);
uint64_t count_keys(const std::vector<WaitingRows>& waiting, const std::vector<RowPlace>& places);

}  // namespace stride::cli
