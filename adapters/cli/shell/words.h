// A line of `stride shell` as words, with the quotes of a shell:
//
//   put users 17 'Ada Lovelace'      // "put", "users", "17", "Ada Lovelace"
//
// Blanks part words. Between single quotes all is as it is, between double ones \ quotes a " or a
// \, outside of both it quotes any byte. Nothing is expanded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stride::cli {

struct Word {
  std::string text;           // without its quotes
  size_t begin = 0, end = 0;  // its bytes in the line, with quotes
};

struct Words {
  std::vector<Word> words;
  char open = 0;       // ', " or \ that has nothing to close it or behind it; else 0
  size_t open_at = 0;  // where that is in the line
};

Words split_words(std::string_view line);

// The text as split_words() takes it for one word.
std::string as_word(const std::string& text);

}  // namespace stride::cli
