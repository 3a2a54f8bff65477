#pragma once

#include <vector>

namespace stride {

// Makes room in a list, so that adding one more does not throw.
template <class T>
void reserve_one_more(std::vector<T>* list) {
  if (list->size() == list->capacity()) list->reserve(2 * list->size() + 4);
}

}  // namespace stride
