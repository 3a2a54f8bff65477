#include "adapters/cli/shell/words.h"

#include <algorithm>

namespace stride::cli {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Reads one word from `at` on, which is no blank.
Word read_word(std::string_view line, size_t at, Words* into) {
  Word word;
  word.begin = at;
  char quote = 0;
  for (; at < line.size() && (quote != 0 || !is_blank(line[at])); ++at) {
    const char c = line[at];
    const bool ends = at + 1 == line.size();
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      into->open_at = at;
    } else if (c != '\\' || quote == '\'') {
      word.text += c;
    } else if (quote == 0 && ends) {
      quote = '\\';
      into->open_at = at;
    } else if (quote == 0 || (!ends && (line[at + 1] == '"' || line[at + 1] == '\\'))) {
      word.text += line[++at];
    } else {
      word.text += c;
    }
  }
  into->open = quote;
  word.end = at;
  return word;
}

}  // namespace

Words split_words(std::string_view line) {
  Words result;
  for (size_t at = 0; at < line.size();) {
    if (is_blank(line[at])) {
      ++at;
      continue;
    }
    result.words.push_back(read_word(line, at, &result));
    at = result.words.back().end;
  }
  return result;
}

std::string as_word(const std::string& text) {
  const bool plain = !text.empty() && std::ranges::none_of(text, [](char c) {
    return is_blank(c) || c == '\'' || c == '"' || c == '\\' || c == '#';
  });
  if (plain) return text;
  std::string word = "'";
  for (char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace stride::cli
