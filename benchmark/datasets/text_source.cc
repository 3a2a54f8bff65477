#include "benchmark/datasets/text_source.h"

#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace stride::benchmark {
namespace {

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

Result<std::string> read_bytes(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                       &std::fclose);
  if (file == nullptr) return Status::from_errno(errno, "open", path);
  std::string bytes;
  char block[65536];
  while (size_t n = std::fread(block, 1, sizeof(block), file.get())) bytes.append(block, n);
  if (std::ferror(file.get())) return Status::from_errno(errno, "read", path);
  return bytes;
}

Result<std::string> unpack(const std::string& packed, const std::string& path) {
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                  &ZSTD_freeDStream);
  std::string text, block(ZSTD_DStreamOutSize(), '\0');
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  size_t left = 1;  // 0 once a frame is complete
  while (in.pos < in.size || left != 0) {
    ZSTD_outBuffer out{block.data(), block.size(), 0};
    size_t before = in.pos;
    left = ZSTD_decompressStream(stream.get(), &out, &in);
    if (ZSTD_isError(left)) {
      return Status::corruption(path, in.pos, std::string("zstd: ") + ZSTD_getErrorName(left));
    }
    text.append(block, 0, out.pos);
    if (in.pos == before && out.pos == 0) {
      return Status::corruption(path, in.pos, "zstd: the file ends early");
    }
  }
  return text;
}

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  Result<std::string> bytes = read_bytes(path);
  if (!bytes.ok() || !path.ends_with(".zst")) return bytes;
  return unpack(*bytes, path);
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    if (!is_letter(text[at])) {
      ++at;
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() &&
           (is_letter(text[end]) ||
            (text[end] == '\'' && end + 1 < text.size() && is_letter(text[end + 1])))) {
      ++end;
    }
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::string to_lower(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::string text_name(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  for (const char* suffix : {".zst", ".txt"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - 4);
  }
  if (name.starts_with("text_")) name.erase(0, 5);
  return name;
}

}  // namespace stride::benchmark
