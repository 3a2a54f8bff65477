// Blocks of vectors lead back to the vectors, are never much longer, and no bytes lead outside.
#include "storage/vector_block.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

using Words = std::vector<uint32_t>;

std::string block_of(const Words& vectors, uint32_t words) {
  const auto n = static_cast<uint32_t>(vectors.size() / words);
  std::string block(max_vector_block_bytes(words, n), '\0');
  block.resize(write_vector_block(std::as_bytes(std::span(vectors)).data(), words, n,
                                  std::as_writable_bytes(std::span(block)).data()));
  return block;
}

// False: it is damaged. The bytes lie at the end of an allocation, where a sanitizer tells what
// is read behind them.
bool read_block(const std::string& block, uint32_t words, Words* vectors) {
  std::unique_ptr<char[]> bytes(new char[block.size()]);
  std::memcpy(bytes.get(), block.data(), block.size());
  VectorBlock reader;
  if (!reader.open(as_bytes({bytes.get(), block.size()}), words)) return false;
  vectors->resize(uint64_t{reader.size()} * words);
  for (uint32_t i = 0; i < reader.size(); ++i)
    if (!reader.read(i, std::as_writable_bytes(std::span(*vectors)).data() + i * words * 4))
      return false;
  return true;
}

// Each column has words of its own kind: alike, small, of a few values, close together, or any.
Words any_vectors(std::mt19937_64* random, uint32_t words, uint32_t n) {
  Words vectors(uint64_t{n} * words);
  for (uint32_t w = 0; w < words; ++w) {
    const auto base = static_cast<uint32_t>((*random)() >> (*random)() % 32);
    const uint64_t kind = (*random)() % 5, bits = (*random)() % 33;
    std::vector<uint32_t> values(1 + (*random)() % 20);
    for (uint32_t& v : values) v = static_cast<uint32_t>((*random)() >> (32 + (*random)() % 32));
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t r = (*random)();
      const auto small = static_cast<uint32_t>(r & ((uint64_t{1} << bits) - 1));
      const uint32_t of_kind[] = {base, small, values[r % values.size()], base + small,
                                  static_cast<uint32_t>(r)};
      vectors[uint64_t{i} * words + w] = of_kind[kind];
    }
  }
  return vectors;
}

TEST_CASE("VectorBlockTest.LeadsBackToTheVectors", "[VectorBlockTest]") {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 1500; ++round) {
    const auto words = static_cast<uint32_t>(1 + random() % max_block_words);
    const uint32_t full = vectors_of_block(words);
    const auto n = static_cast<uint32_t>(random() % 3 ? 1 + random() % full : full);
    const Words vectors = any_vectors(&random, words, n);
    const std::string block = block_of(vectors, words);
    REQUIRE(block.size() <= vectors.size() * 4 + vector_block_header_bytes);
    Words back;
    REQUIRE(read_block(block, words, &back));
    REQUIRE(back == vectors);
  }
}

TEST_CASE("VectorBlockTest.WhatRepeatsTakesFewBytes", "[VectorBlockTest]") {
  std::mt19937_64 random(seed());
  Words vectors(16 * 256), alike(16 * 256, 0x12345678), values(64);
  for (uint32_t& v : values) v = static_cast<uint32_t>(random()) | 1u << 31;
  for (size_t i = 0; i < vectors.size(); ++i) vectors[i] = values[i % 16 * 4 + random() % 4];
  // 2 bits a word, and lists of 4 words of 4 bytes.
  CHECK(block_of(vectors, 16).size() <= 3 + 256 * 4 + 16 * (2 + 16));
  CHECK(block_of(alike, 16).size() == 3 + 16 * 5);
  for (uint32_t& v : vectors) v = static_cast<uint32_t>(random());
  CHECK(block_of(vectors, 16).size() == vectors.size() * 4 + 3);
}

TEST_CASE("VectorBlockTest.DamagedBlocksAreRefusedOrRead", "[VectorBlockTest]") {
  std::mt19937_64 random(seed());
  Words back;
  for (int round = 0; round < 3000; ++round) {
    const auto words = static_cast<uint32_t>(1 + random() % max_block_words);
    std::string block = block_of(
        any_vectors(&random, words, static_cast<uint32_t>(1 + random() % vectors_of_block(words))),
        words);
    const std::string whole = block;
    block.resize(random() % block.size());
    CHECK_FALSE(read_block(block, words, &back));
    CHECK_FALSE(read_block(whole + "x", words, &back));
    block = whole;
    for (uint64_t k = 1 + random() % 3; k > 0; --k) {
      const uint64_t head = std::min<uint64_t>(block.size(), 3 + words * 6);
      block[random() % 2 ? random() % head : random() % block.size()] = static_cast<char>(random());
    }
    // Some words, or none; but nothing outside of the block.
    read_block(block, words, &back);
  }
}

// Eight vectors of 4 words.
const char* const golden_block = R"(
0000 | 08 00                                           | 8 vectors
0002 | 01                                              | form 1: columns
0003 | 40 07                                           | word 0: no bits, a base of 1 byte: 7
0005 | 03                                              | word 1: 3 bits, no base
0006 | 82 e8 03                                        | word 2: 2 bits, a base of 2 bytes: 1000
0009 | ff 02 ff ff ff ff 00 00 00 80                   | word 3: a list of 2 words of 4 bytes
0013 | 40 22 6f 44 6b 7d                               | 6 bits a vector: 0 0 0, 1 1 0, 2 2 1, 3 3 0, 4 0 0, ...
)";

TEST_CASE("VectorBlockTest.GoldenBlock", "[VectorBlockTest]") {
  Words vectors;
  for (uint32_t i = 0; i < 8; ++i) {
    vectors.insert(vectors.end(), {7, i, 1000 + i % 4, i % 3 == 2 ? 0x80000000 : 0xFFFFFFFF});
  }
  const std::string block = block_of(vectors, 4);
  expect_dump(block, golden_block);
  Words back;
  REQUIRE(read_block(block, 4, &back));
  CHECK(back == vectors);
  std::ifstream page(std::string(STRIDE_SOURCE_DIR) + "/docs/format-dedup.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  CHECK(text.find(golden_block) != std::string::npos);
}

}  // namespace
}  // namespace stride::test
