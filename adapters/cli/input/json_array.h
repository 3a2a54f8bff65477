// The elements of a JSON array, a line each.
#pragma once

#include <string_view>

#include "adapters/cli/output/output.h"

namespace stride::cli {

// Takes the array's text in pieces. Line ends between the elements' members become blanks; what is
// no JSON inside of an element stays as it is, for the reader of lines to see.
class JsonArrayLines {
 public:
  // Appends the lines of whole elements, and of the one that goes on in the next piece as far as it
  // is there. False: error() says what is wrong.
  bool feed(std::string_view piece, TextBuffer* lines);
  // The text has ended. False, too: the array has not.
  bool end();
  const char* error() const { return error_; }

 private:
  enum class State { before, element_begin, element, after };
  bool fail(const char* error) {
    error_ = error;
    return false;
  }
  void take_in_element(char c, TextBuffer* lines);

  State state_ = State::before;
  bool any_ = false;  // elements
  bool in_string_ = false, escaped_ = false;
  unsigned depth_ = 0;  // within the element
  const char* error_ = nullptr;
};

}  // namespace stride::cli
