// Lines and words of text files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/column.h"
#include "storage/status.h"

namespace stride::benchmark {

// The whole file; one whose name ends in .zst is unpacked. not_found, permission_denied, io_error;
// corruption where it is no Zstandard file or ends early.
Result<std::string> read_text_file(const std::string& path);

// Views on the text. Without the ends of lines; no empty last line.
std::vector<std::string_view> split_lines(std::string_view text);
// [A-Za-z]+('[A-Za-z]+)*: words of ASCII letters with apostrophes inside.
std::vector<std::string_view> split_words(std::string_view text);

std::string to_lower(std::string_view word);

// "dir/text_kjv_bible.txt.zst" -> "kjv_bible"
std::string text_name(const std::string& path);

// A column of strings that owns them.
class TextColumn {
 public:
  void add(std::string_view text) {
    data_.append(text);
    offsets_.push_back(data_.size());
  }
  Column view() const { return Column::variable(data_.data(), offsets_.data(), size()); }
  uint64_t size() const { return offsets_.size() - 1; }

 private:
  std::string data_;
  std::vector<uint64_t> offsets_ = {0};
};

}  // namespace stride::benchmark
