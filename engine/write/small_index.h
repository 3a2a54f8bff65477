// Finds values by key. The first few are looked through one by one, which costs hardly any memory;
// from then on there is a hash table.
#pragma once

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stride {

// Not thread-safe.
template <class Key, class Value, class Hash = std::hash<Key>>
class SmallIndex {
 public:
  // Null: it is not there. Valid until the next add().
  const Value* find(const Key& key) const {
    if (hashed_.empty()) {
      for (const auto& entry : few_)
        if (entry.first == key) return &entry.second;
      return nullptr;
    }
    auto found = hashed_.find(key);
    return found == hashed_.end() ? nullptr : &found->second;
  }
  // Precondition: the key is not there. Where it throws, the index is as it was.
  void add(const Key& key, Value value) {
    if (!hashed_.empty()) {
      hashed_.emplace(key, std::move(value));
    } else if (few_.size() < max_few) {
      few_.emplace_back(key, std::move(value));
    } else {
      std::unordered_map<Key, Value, Hash> hashed(few_.begin(), few_.end());
      hashed.emplace(key, std::move(value));
      hashed_ = std::move(hashed);
    }
  }
  void clear() {
    few_.clear();
    hashed_.clear();
  }

 private:
  static constexpr size_t max_few = 16;
  std::vector<std::pair<Key, Value>> few_;
  std::unordered_map<Key, Value, Hash> hashed_;
};

}  // namespace stride
