#include "adapters/cli/commands/waiting_rows.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace stride::cli {
namespace {

// A row, found again by its key's hash.
struct HashedRow {
  uint64_t hash;
  RowPlace place;
  auto operator<=>(const HashedRow&) const = default;
};

std::string_view key_at(const std::vector<WaitingRows>& waiting, RowPlace place) {
  return as_text(waiting[place.block].rows.keys[place.row]);
}

HashedRow hashed(const std::vector<WaitingRows>& waiting, RowPlace place) {
  return {std::hash<std::string_view>()(key_at(waiting, place)), place};
}

std::vector<HashedRow> all_hashed(const std::vector<WaitingRows>& waiting) {
  std::vector<HashedRow> rows;
  for (uint32_t b = 0; b < waiting.size(); ++b)
    for (uint32_t i = 0; i < waiting[b].rows.keys.size; ++i)
      rows.push_back(hashed(waiting, {b, i}));
  return rows;
}

// Calls use(first, end) for each group of rows whose hashes are equal.
template <class Use>
void for_each_group(std::vector<HashedRow>* rows, const Use& use) {
  std::sort(rows->begin(), rows->end());
  for (size_t first = 0, end = 0; first < rows->size(); first = end) {
    for (end = first + 1; end < rows->size() && (*rows)[end].hash == (*rows)[first].hash;) ++end;
    use(first, end);
  }
}

uint64_t count_keys(const std::vector<WaitingRows>& waiting, std::vector<HashedRow> rows) {
  uint64_t keys = 0;
  std::vector<std::string_view> of_group;
  for_each_group(&rows, [&](size_t first, size_t end) {
    of_group.clear();
    for (size_t i = first; i < end; ++i) {
      const std::string_view key = key_at(waiting, rows[i].place);
      if (std::find(of_group.begin(), of_group.end(), key) == of_group.end())
        of_group.push_back(key);
    }
    keys += of_group.size();
  });
  return keys;
}

}  // namespace

std::string WaitingRows::place(uint64_t row) const {
  return file->name + ":" + std::to_string(first_line + lines[row]);
}

std::optional<EqualKeysFound> find_equal_keys(const std::vector<WaitingRows>& waiting) {
  std::vector<HashedRow> rows = all_hashed(waiting);
  std::optional<EqualKeysFound> found;
  // In a group rows are in their order, so that its first pair is found first.
  for_each_group(&rows, [&](size_t first, size_t end) {
    for (size_t again = first + 1; again < end; ++again) {
      if (found && found->again < rows[again].place) return;
      for (size_t before = first; before < again; ++before) {
        if (key_at(waiting, rows[before].place) != key_at(waiting, rows[again].place)) continue;
        found = {rows[again].place, rows[before].place};
        return;
      }
    }
  });
  return found;
}

uint64_t count_keys(const std::vector<WaitingRows>& waiting) {
  return count_keys(waiting, all_hashed(waiting));
}

uint64_t count_keys(const std::vector<WaitingRows>& waiting, const std::vector<RowPlace>& places) {
  std::vector<HashedRow> rows;
  rows.reserve(places.size());
  for (RowPlace place : places) rows.push_back(hashed(waiting, place));
  return count_keys(waiting, std::move(rows));
}

}  // namespace stride::cli
