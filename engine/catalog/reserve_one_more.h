#pragma once

#include <cstddef>
#include <vector>

namespace stride {

// Makes room in a list, so that adding so many more does not throw.
template <class T>
void reserve_more(std::vector<T>* list, size_t added) {
  if (list->capacity() - list->size() < added) list->reserve(2 * list->size() + 3 + added);
}

template <class T>
void reserve_one_more(std::vector<T>* list) {
  reserve_more(list, 1);
}

}  // namespace stride
