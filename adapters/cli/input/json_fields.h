// Fields of JSON that others may have written.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace stride::cli {

inline bool take_json(const nlohmann::json& from, std::string* to) {
  if (!from.is_string()) return false;
  *to = from.get_ref<const std::string&>();
  return true;
}

inline bool take_json(const nlohmann::json& from, bool* to) {
  if (!from.is_boolean()) return false;
  *to = from.get<bool>();
  return true;
}

// Numbers that the type holds.
template <class Number>
requires std::is_unsigned_v<Number>
bool take_json(const nlohmann::json& from, Number* to) {
  if (!from.is_number_unsigned() || from.get<uint64_t>() > std::numeric_limits<Number>::max())
    return false;
  *to = from.get<Number>();
  return true;
}

template <class Element>
bool take_json(const nlohmann::json& from, std::vector<Element>* to) {
  if (!from.is_array()) return false;
  to->resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    if (!take_json(from[i], &(*to)[i])) return false;
  return true;
}

// False: the field is there, and of another type. Where it is not there *to stays as it is.
// Precondition: an object.
template <class T>
bool read_field(const nlohmann::json& object, const char* name, T* to) {
  auto found = object.find(name);
  return found == object.end() || take_json(*found, to);
}

}  // namespace stride::cli
