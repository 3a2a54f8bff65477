#include <gtest/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdio>
#include <fstream>

#include "benchmark/datasets/text_source.h"
#include "benchmark/workloads/dedup/dictionary.h"

namespace stride::benchmark {
namespace {

TEST(TextSourceTest, Words) {
  using Words = std::vector<std::string_view>;
  EXPECT_EQ(split_words("Don't 'quote' o'er-the x2y rock'n'roll it''s d'"),
            (Words{"Don't", "quote", "o'er", "the", "x", "y", "rock'n'roll", "it", "s", "d"}));
  EXPECT_EQ(split_words(""), Words{});
  EXPECT_EQ(split_words(" 12 -- '"), Words{});
  EXPECT_EQ(to_lower("ZaZ's"), "zaz's");
}

TEST(TextSourceTest, Lines) {
  using Lines = std::vector<std::string_view>;
  EXPECT_EQ(split_lines("a\nb\r\n\nc"), (Lines{"a", "b", "", "c"}));
  EXPECT_EQ(split_lines("a\n"), Lines{"a"});
  EXPECT_EQ(split_lines(""), Lines{});
}

TEST(TextSourceTest, Names) {
  EXPECT_EQ(text_name("a/text_kjv_bible.txt.zst"), "kjv_bible");
  EXPECT_EQ(text_name("novel"), "novel");
}

class FilesTest : public testing::Test {
 protected:
  ~FilesTest() override { std::remove(path_.c_str()); }
  void write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  static std::string pack(const std::string& text) {
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
    return packed;
  }

  std::string path_ = testing::TempDir() + "stride-text-" + std::to_string(getpid()) + ".txt.zst";
};

TEST_F(FilesTest, PackedText) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  write(pack(text) + pack("and more"));
  Result<std::string> read = read_text_file(path_);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(*read, text + "and more");
}

TEST_F(FilesTest, DamagedFiles) {
  std::string packed = pack(std::string(1000, 'a') + "b");
  write(packed.substr(0, packed.size() - 3));
  EXPECT_EQ(read_text_file(path_).status().code(), StatusCode::corruption);
  write("this is not Zstandard");
  EXPECT_EQ(read_text_file(path_).status().code(), StatusCode::corruption);
  write("");
  EXPECT_EQ(read_text_file(path_).status().code(), StatusCode::corruption);
  Status absent = read_text_file(path_ + ".absent").status();
  EXPECT_EQ(absent.code(), StatusCode::not_found);
}

}  // namespace
}  // namespace stride::benchmark
