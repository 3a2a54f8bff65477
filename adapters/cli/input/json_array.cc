#include "adapters/cli/input/json_array.h"

namespace stride::cli {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

bool JsonArrayLines::feed(std::string_view piece, TextBuffer* lines) {
  for (char c : piece) {
    switch (state_) {
      case State::before:
        if (is_space(c)) break;
        if (c != '[') return fail("the array does not begin with [");
        state_ = State::element_begin;
        break;
      case State::element_begin:
        if (is_space(c)) break;
        if (c == ']' && !any_) {
          state_ = State::after;
          break;
        }
        if (c == ',' || c == ']') return fail("an element of the array is missing");
        state_ = State::element;
        any_ = true;
        take_in_element(c, lines);
        break;
      case State::element:
        take_in_element(c, lines);
        break;
      case State::after:
        if (!is_space(c)) return fail("there is more behind the array's end");
        break;
    }
  }
  return true;
}

void JsonArrayLines::take_in_element(char c, TextBuffer* lines) {
  if (in_string_) {
    if (!escaped_ && c == '"') in_string_ = false;
    escaped_ = !escaped_ && c == '\\';
  } else if (c == '"') {
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if (depth_ == 0 && (c == ',' || c == ']')) {
    state_ = c == ',' ? State::element_begin : State::after;
    return lines->append('\n');
  } else if (depth_ > 0 && (c == '}' || c == ']')) {
    --depth_;
  }
  lines->append(!in_string_ && (c == '\n' || c == '\r') ? ' ' : c);
}

bool JsonArrayLines::end() {
  if (error_) return false;
  return state_ == State::after || fail("the array has no end: a ] is missing");
}

}  // namespace stride::cli
