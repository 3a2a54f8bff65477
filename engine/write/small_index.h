// Finds values by key. The first few lie here and are looked through one by one; from then on there
// is a hash table.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <unordered_map>
#include <utility>

namespace stride {

// Not thread-safe.
template <class Key, class Value, class Hash = std::hash<Key>>
class SmallIndex {
 public:
  // Null: it is not there. Valid until the next add().
  const Value* find(const Key& key) const {
    if (hashed_.empty()) {
      for (size_t i = 0; i < count_; ++i)
        if (few_[i].first == key) return &few_[i].second;
      return nullptr;
    }
    auto found = hashed_.find(key);
    return found == hashed_.end() ? nullptr : &found->second;
  }
  // Precondition: the key is not there. Where it throws, the index is as it was.
  void add(const Key& key, Value value) {
    if (!hashed_.empty()) {
      hashed_.emplace(key, std::move(value));
    } else if (count_ < max_few) {
      few_[count_] = {key, std::move(value)};
      ++count_;
    } else {
      std::unordered_map<Key, Value, Hash> hashed(few_.begin(), few_.end());
      hashed.emplace(key, std::move(value));
      hashed_ = std::move(hashed);
    }
  }
  void clear() {
    few_ = {};
    count_ = 0;
    hashed_.clear();
  }

 private:
  static constexpr size_t max_few = 4;
  std::array<std::pair<Key, Value>, max_few> few_{};
  size_t count_ = 0;
  std::unordered_map<Key, Value, Hash> hashed_;
};

}  // namespace stride
