#include <unistd.h>
#include <zstd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "benchmark/datasets/text_source.h"
#include "benchmark/workloads/dictionary/workload.h"
#include "tests/support/catch.h"

namespace stride::benchmark {
namespace {

TEST_CASE("TextSourceTest.Words", "[TextSourceTest]") {
  using Words = std::vector<std::string_view>;
  CHECK(split_words("Don't 'quote' o'er-the x2y rock'n'roll it''s d'") ==
        (Words{"Don't", "quote", "o'er", "the", "x", "y", "rock'n'roll", "it", "s", "d"}));
  CHECK(split_words("") == Words{});
  CHECK(split_words(" 12 -- '") == Words{});
  CHECK(to_lower("ZaZ's") == "zaz's");
}

TEST_CASE("TextSourceTest.Lines", "[TextSourceTest]") {
  using Lines = std::vector<std::string_view>;
  CHECK(split_lines("a\nb\r\n\nc") == (Lines{"a", "b", "", "c"}));
  CHECK(split_lines("a\n") == Lines{"a"});
  CHECK(split_lines("") == Lines{});
}

TEST_CASE("TextSourceTest.Names", "[TextSourceTest]") {
  CHECK(text_name("a/text_kjv_bible.txt.zst") == "kjv_bible");
  CHECK(text_name("novel") == "novel");
}

class FilesTest {
 protected:
  ~FilesTest() { std::remove(path_.c_str()); }
  void write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  static std::string pack(const std::string& text) {
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
    return packed;
  }

  std::string path_ = std::filesystem::temp_directory_path().string() + "/stride-text-" +
                      std::to_string(getpid()) + ".txt.zst";
};

TEST_CASE_METHOD(FilesTest, "FilesTest.PackedText", "[FilesTest]") {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  write(pack(text) + pack("and more"));
  Result<std::string> read = read_text_file(path_);
  REQUIRE_OK(read);
  CHECK(*read == text + "and more");
}

TEST_CASE_METHOD(FilesTest, "FilesTest.DamagedFiles", "[FilesTest]") {
  std::string packed = pack(std::string(1000, 'a') + "b");
  write(packed.substr(0, packed.size() - 3));
  CHECK(read_text_file(path_).status().code() == StatusCode::corruption);
  write("this is not Zstandard");
  CHECK(read_text_file(path_).status().code() == StatusCode::corruption);
  write("");
  CHECK(read_text_file(path_).status().code() == StatusCode::corruption);
  Status absent = read_text_file(path_ + ".absent").status();
  CHECK(absent.code() == StatusCode::not_found);
}

}  // namespace
}  // namespace stride::benchmark
