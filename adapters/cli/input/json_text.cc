#include "adapters/cli/input/json_text.h"

#include <cstdint>

namespace stride::cli {
namespace {

constexpr int deepest = 512;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Four hex digits; negative where they are not.
int32_t code_unit(const char* p) {
  int32_t unit = 0;
  for (int i = 0; i < 4; ++i) {
    int digit = hex_value(p[i]);
    if (digit < 0) return -1;
    unit = unit << 4 | digit;
  }
  return unit;
}

size_t put_utf8(uint32_t c, char* to) {
  if (c < 0x80) {
    to[0] = static_cast<char>(c);
    return 1;
  }
  if (c < 0x800) {
    to[0] = static_cast<char>(0xC0 | c >> 6);
    to[1] = static_cast<char>(0x80 | (c & 63));
    return 2;
  }
  if (c < 0x10000) {
    to[0] = static_cast<char>(0xE0 | c >> 12);
    to[1] = static_cast<char>(0x80 | (c >> 6 & 63));
    to[2] = static_cast<char>(0x80 | (c & 63));
    return 3;
  }
  to[0] = static_cast<char>(0xF0 | c >> 18);
  to[1] = static_cast<char>(0x80 | (c >> 12 & 63));
  to[2] = static_cast<char>(0x80 | (c >> 6 & 63));
  to[3] = static_cast<char>(0x80 | (c & 63));
  return 4;
}

}  // namespace

bool JsonObject::take(char c, const char* error) {
  skip_space();
  if (p_ == end_ || *p_ != c) return fail(error);
  ++p_;
  return true;
}

// After the backslash.
bool JsonObject::escape() {
  if (p_ == end_) return fail("unterminated string");
  char c = *p_++;
  if (c != 'u')
    return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos ||
           fail("a backslash before what needs none");
  int32_t unit = end_ - p_ >= 4 ? code_unit(p_) : -1;
  if (unit < 0) return fail("\\u without four hex digits");
  p_ += 4;
  if (unit >= 0xDC00 && unit < 0xE000) return fail("half of a surrogate pair");
  if (unit < 0xD800 || unit >= 0xE000) return true;
  bool pair = end_ - p_ >= 6 && p_[0] == '\\' && p_[1] == 'u';
  int32_t low = pair ? code_unit(p_ + 2) : -1;
  if (low < 0xDC00 || low >= 0xE000) return fail("half of a surrogate pair");
  p_ += 6;
  return true;
}

bool JsonObject::string(JsonSlice* slice) {
  if (!take('"', "a string in quotes is missing")) return false;
  const char* begin = p_;
  bool escaped = false;
  for (;;) {
    if (p_ == end_) return fail("unterminated string");
    unsigned char c = static_cast<unsigned char>(*p_);
    if (c == '"') break;
    if (c < 0x20) return fail("a control character in a string");
    if (c == '\\') {
      escaped = true;
      ++p_;
      if (!escape()) return false;
      continue;
    }
    size_t n =
        utf8_bytes(reinterpret_cast<const unsigned char*>(p_), static_cast<size_t>(end_ - p_));
    if (n == 0) return fail("a string that is not UTF-8");
    p_ += n;
  }
  *slice = {{begin, static_cast<size_t>(p_ - begin)}, JsonSlice::Kind::string, escaped};
  ++p_;
  return true;
}

bool JsonObject::number() {
  auto digit = [&] { return p_ < end_ && *p_ >= '0' && *p_ <= '9'; };
  auto digits = [&] {
    if (!digit()) return fail("a number that is none");
    while (digit()) ++p_;
    return true;
  };
  if (p_ < end_ && *p_ == '-') ++p_;
  if (p_ < end_ && *p_ == '0') {
    ++p_;
  } else if (!digits()) {
    return false;
  }
  if (p_ < end_ && *p_ == '.') {
    ++p_;
    if (!digits()) return false;
  }
  if (p_ < end_ && (*p_ == 'e' || *p_ == 'E')) {
    ++p_;
    if (p_ < end_ && (*p_ == '+' || *p_ == '-')) ++p_;
    if (!digits()) return false;
  }
  return true;
}

bool JsonObject::literal(std::string_view word) {
  if (!std::string_view(p_, static_cast<size_t>(end_ - p_)).starts_with(word))
    return fail("neither a string nor a number, object, list, true, false or null");
  p_ += word.size();
  return true;
}

bool JsonObject::value(JsonSlice* slice, int depth) {
  if (depth > deepest) return fail("nested more than 512 deep");
  skip_space();
  if (p_ == end_) return fail("a value is missing");
  if (*p_ == '"') return string(slice);
  const char* begin = p_;
  JsonSlice::Kind kind = JsonSlice::Kind::other;
  bool fine;
  switch (*p_) {
    case '{':
      fine = members(depth);
      break;
    case '[':
      fine = elements(depth);
      break;
    case 't':
      fine = literal("true");
      break;
    case 'f':
      fine = literal("false");
      break;
    case 'n':
      fine = literal("null");
      break;
    default:
      if (*p_ != '-' && (*p_ < '0' || *p_ > '9')) return literal("null");
      kind = JsonSlice::Kind::number;
      fine = number();
  }
  if (fine) *slice = {{begin, static_cast<size_t>(p_ - begin)}, kind, false};
  return fine;
}

bool JsonObject::members(int depth) {
  JsonSlice ignored;
  ++p_;
  skip_space();
  if (p_ < end_ && *p_ == '}') return ++p_, true;
  for (;;) {
    skip_space();
    if (!string(&ignored) || !take(':', "':' is missing") || !value(&ignored, depth + 1))
      return false;
    skip_space();
    if (p_ < end_ && *p_ == '}') return ++p_, true;
    if (!take(',', "',' or '}' is missing")) return false;
  }
}

bool JsonObject::elements(int depth) {
  JsonSlice ignored;
  ++p_;
  skip_space();
  if (p_ < end_ && *p_ == ']') return ++p_, true;
  for (;;) {
    if (!value(&ignored, depth + 1)) return false;
    skip_space();
    if (p_ < end_ && *p_ == ']') return ++p_, true;
    if (!take(',', "',' or ']' is missing")) return false;
  }
}

bool JsonObject::next(JsonSlice* name, JsonSlice* value_slice) {
  if (!begun_) {
    begun_ = true;
    if (!take('{', "the line is no JSON object")) return false;
    skip_space();
    if (p_ < end_ && *p_ == '}') {
      ++p_;
      skip_space();
      return p_ == end_ ? false : fail("text after the object");
    }
  } else {
    skip_space();
    if (p_ < end_ && *p_ == '}') {
      ++p_;
      skip_space();
      return p_ == end_ ? false : fail("text after the object");
    }
    if (!take(',', "',' or '}' is missing")) return false;
  }
  return string(name) && take(':', "':' is missing") && value(value_slice, 0);
}

size_t unescape(const JsonSlice& slice, char* to) {
  const char* p = slice.text.data();
  const char* end = p + slice.text.size();
  char* begin = to;
  while (p < end) {
    if (*p != '\\') {
      *to++ = *p++;
      continue;
    }
    char c = p[1];
    p += 2;
    if (c != 'u') {
      *to++ = c == 'b'   ? '\b'
              : c == 'f' ? '\f'
              : c == 'n' ? '\n'
              : c == 'r' ? '\r'
              : c == 't' ? '\t'
                         : c;
      continue;
    }
    uint32_t unit = static_cast<uint32_t>(code_unit(p));
    p += 4;
    if (unit >= 0xD800 && unit < 0xDC00) {
      unit = 0x10000 + ((unit - 0xD800) << 10) + (static_cast<uint32_t>(code_unit(p + 2)) - 0xDC00);
      p += 6;
    }
    to += put_utf8(unit, to);
  }
  return static_cast<size_t>(to - begin);
}

void append_json_string(std::string_view text, TextBuffer* out) {
  static constexpr char digits[] = "0123456789abcdef";
  char* begin = out->room(6 * text.size() + 2);
  char* to = begin;
  *to++ = '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      *to++ = '\\';
      *to++ = c;
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      *to++ = c;
    } else {
      *to++ = '\\';
      if (c == '\n' || c == '\t' || c == '\r') {
        *to++ = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
      } else {
        std::memcpy(to, "u00", 3);
        to[3] = digits[static_cast<unsigned char>(c) >> 4];
        to[4] = digits[c & 15];
        to += 5;
      }
    }
  }
  *to++ = '"';
  out->grow(static_cast<size_t>(to - begin));
}

}  // namespace stride::cli
