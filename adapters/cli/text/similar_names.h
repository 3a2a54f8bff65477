// Names in messages about one that is not there: those that it may have meant, and those there are.
//
//   did_you_mean("laod", {"load", "get"}, "give another")   // "did you mean 'load'?"
//   names_text({"id", "name", "city"})      // "'id', 'name' and 'city'"
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "storage/quoted.h"

namespace stride {

// Counts the bytes to insert, delete or replace, and the neighbours to swap, that make one name the
// other: the distance of Damerau and Levenshtein, in the form that edits no byte twice. Upper and
// lower case of ASCII letters are the same.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  auto same = [&](size_t i, size_t j) { return lower(a[i]) == lower(b[j]); };
  // Distances of the first i, i - 1 and i - 2 bytes of a from each beginning of b.
  std::vector<size_t> row(b.size() + 1), above(row), second(row);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    second.swap(above);
    above.swap(row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({above[j + 1] + 1, row[j] + 1, above[j] + (same(i, j) ? 0 : 1)});
      if (i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j))
        row[j + 1] = std::min(row[j + 1], second[j - 1] + 1);
    }
  }
  return row[b.size()];
}

// The names nearest to this one, three at most: a third of the longer one's bytes may differ.
inline std::vector<std::string> similar_names(std::string_view name,
                                              const std::vector<std::string>& known) {
  constexpr size_t max_distance = 3, max_names = 3, max_bytes = 255;
  std::vector<std::string> nearest;
  size_t least = max_distance;
  for (const std::string& candidate : known) {
    const size_t longer = std::max(name.size(), candidate.size());
    const size_t shorter = std::min(name.size(), candidate.size());
    if (longer > max_bytes || longer - shorter > least) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance > std::min(least, longer / 3)) continue;
    if (distance < least) nearest.clear();
    least = distance;
    if (nearest.size() < max_names) nearest.push_back(candidate);
  }
  return nearest;
}

// "'a', 'b' and 'c'", or with another word than "and". Of more than ten names the first ten, and
// how many there are besides.
inline std::string names_text(const std::vector<std::string>& names,
                              const std::string& last_word = "and") {
  constexpr size_t max_shown = 10;
  const size_t shown = std::min(names.size(), max_shown);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == names.size();
    text += (i == 0 ? "" : last ? " " + last_word + " " : ", ") + in_quotes(names[i]);
  }
  if (shown < names.size()) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

// "did you mean 'load'?", or something else where no known name is near.
inline std::string did_you_mean(std::string_view name, const std::vector<std::string>& known,
                                const std::string& otherwise) {
  const std::vector<std::string> near = similar_names(name, known);
  return near.empty() ? otherwise : "did you mean " + names_text(near, "or") + "?";
}

}  // namespace stride
