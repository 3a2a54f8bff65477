// JSON as it lies in a line: checked strictly (RFC 8259), sliced, not copied.
#pragma once

#include <string_view>

#include "adapters/cli/output/output.h"
#include "storage/utf8.h"

namespace stride::cli {

// A value's text: of a string the part between the quotes, else all of it.
struct JsonSlice {
  enum class Kind : unsigned char { absent, string, number, other };
  std::string_view text;
  Kind kind = Kind::absent;
  bool escaped = false;  // a string with a backslash in it
};

// Reads one object, member by member.
//
//   JsonObject object(line);
//   JsonSlice name, value;
//   while (object.next(&name, &value)) ...
//   if (object.error()) ...
class JsonObject {
 public:
  explicit JsonObject(std::string_view line) : p_(line.data()), end_(p_ + line.size()) {}
  // False at the end, or where error() says what is wrong.
  bool next(JsonSlice* name, JsonSlice* value);
  const char* error() const { return error_; }

 private:
  void skip_space() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r' || *p_ == '\n')) ++p_;
  }
  bool fail(const char* error) {
    error_ = error;
    return false;
  }
  bool take(char c, const char* error);
  bool string(JsonSlice* slice);
  bool escape();
  bool number();
  bool literal(std::string_view word);
  bool value(JsonSlice* slice, int depth);
  bool members(int depth);
  bool elements(int depth);

  const char* p_;
  const char* end_;
  const char* error_ = nullptr;
  bool begun_ = false;
};

// The string that a slice of kind string means. `to` has room for slice.text.size() bytes; returns
// how many there are.
size_t unescape(const JsonSlice& slice, char* to);
// A string with its quotes. Precondition: is_utf8(text).
void append_json_string(std::string_view text, TextBuffer* out);

}  // namespace stride::cli
