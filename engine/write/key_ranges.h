// What several ranges of keys cover together.
#pragma once

#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/write/staging.h"
#include "storage/column.h"

namespace stride {

// Disjoint ranges in ascending order.
class RangeSet {
 public:
  bool empty() const { return ranges_.empty(); }
  // To (null: no end) by from.
  const std::map<std::string, std::optional<std::string>, std::less<>>& ranges() const {
    return ranges_;
  }

  void add(KeyRange range) {
    if (range.to && *range.to <= range.from) return;
    auto at = ranges_.upper_bound(range.from);
    if (at != ranges_.begin()) {
      auto before = std::prev(at);
      if (!before->second || *before->second >= range.from) {
        range.from = before->first;
        at = before;
      }
    }
    // Those that begin within it, or where it ends, become a part of it.
    while (at != ranges_.end() && (!range.to || at->first <= *range.to)) {
      if (range.to && (!at->second || *at->second > *range.to)) range.to = std::move(at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace_hint(at, std::move(range.from), std::move(range.to));
  }

  bool contains(Bytes key) const {
    auto above = ranges_.upper_bound(as_text(key));
    if (above == ranges_.begin()) return false;
    const auto& [from, to] = *--above;
    return !to || as_text(key) < *to;
  }

 private:
  std::map<std::string, std::optional<std::string>, std::less<>> ranges_;
};

}  // namespace stride
