// The same random work for any backend, with the answers that std:: gives.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/backend.h"
#include "gpu/match/match_layout.h"
#include "storage/prefix_key.h"
#include "tests/gpu/tree/stored_runs.h"
#include "tests/support/catch.h"
#include "tests/support/key_sets.h"

namespace stride::test {

// Searches of one index by rank.
class RankSearches {
 public:
  RankSearches(Random& random, const KeySet& set, size_t keys, size_t queries)
      : index_(sorted_unique(set.make(random, keys)), random() % 2 == 0) {
    REQUIRE_OK(Backend::host(2)->tree_index().build_tree(index_.column(), {}, &index_.image()));
    queries_ = set.make(random, queries / 2);
    while (queries_.size() < queries && !index_.keys().empty())
      queries_.push_back(index_.keys()[random() % index_.keys().size()]);
    std::shuffle(queries_.begin(), queries_.end(), random);
    owned_ = std::make_unique<OwnedColumn>(queries_, true);
  }

  // Where the index is resident on the backend.
  void make_resident(Backend& backend) {
    auto made = backend.tree_index().make_resident(index_.view());
    REQUIRE_OK(made);
    resident_ = std::move(*made);
  }
  KeyColumn queries() const { return owned_->column(); }
  IndexView view() const {
    IndexView view = index_.view();
    view.resident = resident_.get();
    return view;
  }
  // Answers in memory that the host can read.
  void expect(Backend& backend, const KeyColumn& column) const {
    TreeIndex& trees = backend.tree_index();
    std::vector<uint32_t> found(column.size), lower(column.size), upper(column.size);
    std::vector<RankInterval> prefixes(column.size);
    REQUIRE_OK(trees.find_ranks(view(), column, found));
    REQUIRE_OK(trees.lower_bound(view(), column, lower));
    REQUIRE_OK(trees.upper_bound(view(), column, upper));
    REQUIRE_OK(trees.prefix_interval(view(), column, prefixes));
    for (size_t i = 0; i < queries_.size(); ++i) {
      const Keys& keys = index_.keys();
      const uint32_t rank = rank_below(keys, queries_[i]);
      const bool is_there = rank < keys.size() && keys[rank] == queries_[i];
      REQUIRE_MESSAGE(found[i] == (is_there ? rank : Location::absent), i);
      REQUIRE_MESSAGE(lower[i] == rank, i);
      REQUIRE_MESSAGE(upper[i] == rank + is_there, i);
      REQUIRE_MESSAGE(prefixes[i].first == rank, i);
      uint32_t last = rank;
      while (last < keys.size() && keys[last].starts_with(queries_[i])) ++last;
      REQUIRE_MESSAGE(prefixes[i].last == last, i);
    }
  }
  // Queries and answers in the memory of devices.
  void expect_on_device(Backend& backend) const {
    const DeviceRows rows(backend, queries());
    expect(backend, rows.column);
    auto room = backend.allocate(std::max<uint64_t>(8, queries_.size() * 4));
    REQUIRE_OK(room);
    std::vector<uint32_t> found(queries_.size()), here(queries_.size());
    REQUIRE_OK(backend.tree_index().find_ranks(view(), queries(), here));
    const std::span<uint32_t> there{reinterpret_cast<uint32_t*>((*room)->data()), found.size()};
    for (const KeyColumn& column : {rows.column, queries()}) {
      REQUIRE_OK(backend.tree_index().find_ranks(view(), column, there));
      REQUIRE_OK(backend.copy(found.data(), (*room)->data(), found.size() * 4));
      REQUIRE(found == here);
    }
  }

 private:
  OwnedIndex index_;
  Keys queries_;
  std::unique_ptr<OwnedColumn> owned_;
  std::shared_ptr<ResidentIndex> resident_;
};

// Longest prefixes of IPv4 addresses.
class PrefixSearches {
 public:
  PrefixSearches(Random& random, size_t prefixes, size_t addresses) {
    std::map<std::string, int> sorted;
    for (size_t i = 0; i < prefixes; ++i) {
      const auto length = static_cast<uint32_t>(random() % 33);
      const uint64_t bits =
          length == 0 ? 0 : random() % 64 * 0x01010101u & ~uint64_t{0} << (32 - length);
      sorted[big_endian(bits & 0xFFFFFFFF, 4) + static_cast<char>(length)] = 0;
    }
    Keys keys;
    for (const auto& [key, rank] : sorted) keys.push_back(key);
    index_ = std::make_unique<OwnedIndex>(keys, true);
    REQUIRE_OK(Backend::host(2)->longest_prefix().build_matches(index_->column(), 32, &image_));
    for (size_t i = 0; i < addresses; ++i)
      addresses_.push_back(big_endian(random() % 64 * 0x01010101u + random() % 3, 4));
    owned_ = std::make_unique<OwnedColumn>(addresses_, true);
    for (const std::string& address : addresses_) expected_.push_back(longest(address));
  }

  void make_resident(Backend& backend) {
    auto made = backend.longest_prefix().make_resident({image_.data(), image_.size()});
    REQUIRE_OK(made);
    resident_ = std::move(*made);
  }
  void expect(Backend& backend) const {
    std::vector<uint32_t> ranks(addresses_.size());
    const MatchView matches{image_.data(), image_.size(), resident_.get()};
    REQUIRE_OK(backend.longest_prefix().longest_match(matches, owned_->column(), ranks));
    REQUIRE(ranks == expected_);
  }
  void expect_on_device(Backend& backend) const {
    const DeviceRows rows(backend, owned_->column());
    std::vector<uint32_t> ranks(addresses_.size());
    const MatchView matches{image_.data(), image_.size(), resident_.get()};
    REQUIRE_OK(backend.longest_prefix().longest_match(matches, rows.column, ranks));
    REQUIRE(ranks == expected_);
  }

 private:
  uint32_t longest(const std::string& address) const {
    uint32_t number = 0;
    for (char c : address) number = number << 8 | static_cast<uint8_t>(c);
    for (uint32_t length = 33; length-- > 0;) {
      const uint64_t bits = length == 0 ? 0 : number & ~uint64_t{0} << (32 - length);
      const std::string key = big_endian(bits & 0xFFFFFFFF, 4) + static_cast<char>(length);
      const Keys& keys = index_->keys();
      auto at = std::lower_bound(keys.begin(), keys.end(), key);
      if (at != keys.end() && *at == key) return static_cast<uint32_t>(at - keys.begin());
    }
    return Location::absent;
  }

  std::unique_ptr<OwnedIndex> index_;
  std::vector<std::byte> image_;
  Keys addresses_;
  std::unique_ptr<OwnedColumn> owned_;
  std::vector<uint32_t> expected_;
  std::shared_ptr<ResidentMatches> resident_;
};

}  // namespace stride::test
