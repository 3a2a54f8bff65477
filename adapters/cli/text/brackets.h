// Arguments in brackets, as [1,2]: CLI11 takes one for a list, which it cuts at the commas and
// leaves its brackets out. A mark before it keeps it as it is.
#pragma once

#include <string>

namespace stride::cli {

inline constexpr char bracket_mark = '\x01';

inline bool is_marked(const std::string& argument) {
  return !argument.empty() && argument.front() == bracket_mark;
}

inline std::string with_mark(const std::string& argument) {
  const bool is_list = argument.size() > 1 && argument.front() == '[' && argument.back() == ']';
  // One that has the mark by itself gets another, so that taking one off is always right.
  return is_list || is_marked(argument) ? bracket_mark + argument : argument;
}

inline std::string without_mark(const std::string& argument) {
  return argument.substr(is_marked(argument) ? 1 : 0);
}

}  // namespace stride::cli
