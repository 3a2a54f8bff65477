// Objects that stay where they are made. The first lies in the list itself, so that a list of one
// takes no memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace stride {

// Not thread-safe.
template <class T>
class OwnedList {
 public:
  // Throws std::bad_alloc; the list is then as it was.
  T* add(T object) {
    if (!first_) return &first_.emplace(std::move(object));
    others_.push_back(std::make_unique<T>(std::move(object)));
    return others_.back().get();
  }
  // Precondition: it is not empty.
  void remove_last() noexcept {
    if (others_.empty())
      first_.reset();
    else
      others_.pop_back();
  }
  size_t size() const { return others_.size() + first_.has_value(); }
  // Calls use(object) for each, in the order in which they were added.
  template <class Use>
  void for_each(const Use& use) {
    if (first_) use(*first_);
    for (auto& object : others_) use(*object);
  }
  template <class Use>
  void for_each(const Use& use) const {
    if (first_) use(*first_);
    for (const auto& object : others_) use(std::as_const(*object));
  }
  void clear() noexcept {
    first_.reset();
    others_.clear();
  }

 private:
  std::optional<T> first_;
  std::vector<std::unique_ptr<T>> others_;
};

}  // namespace stride
