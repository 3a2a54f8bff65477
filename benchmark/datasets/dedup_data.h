// Vectors and rows of text with duplicates among them, and which rows are equal.
//
//   Result<DedupData> data = make_dedup_data({.kind = "random", .words = 2, .n = 1'000'000},
//   &pool); FirstRows first = find_first_rows(data->rows.view(), &pool);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "benchmark/datasets/key_columns.h"
#include "storage/status.h"

namespace stride::benchmark {

// Rows are numbered with 32 bits.
inline constexpr uint64_t max_dedup_rows = 0xFFFFFFFE;
inline constexpr uint32_t kmer_bases = 31;

struct DedupDataOptions {
  std::string kind = "random";  // states, kmers, urls, lines, or a file of text
  uint32_t words = 2;           // of random and states
  uint64_t n = 0;               // 0: 10m, or all rows of a file once
  double duplication = 0.5;     // of random: share of rows that came before
  uint32_t values = 4;          // of states: that a word takes
  uint64_t seed = 1;
};

// Whether the rows are byte strings rather than vectors of words.
bool is_text(const std::string& kind);
// Whether the length of a vector is to be chosen.
inline bool has_words(const std::string& kind) { return kind == "random" || kind == "states"; }

struct DedupData {
  std::string name;  // "random", "urls", the name of a file
  OwnedColumn rows;  // of fixed width: vectors; else byte strings

  uint32_t words() const { return rows.width / 4; }
};

// invalid_argument: a file without rows, or more different vectors than there are. Else what
// read_text_file() returns.
Result<DedupData> make_dedup_data(const DedupDataOptions& options, Parallel* parallel);

// n vectors in a random order: `distinct` different ones, once each, and n - distinct that are
// chosen at random among these. Precondition: distinct is 1 to n, and of one word at most 2^32.
OwnedColumn random_vectors(uint32_t words, uint64_t n, uint64_t distinct, uint64_t seed,
                           Parallel* parallel);
// A walk: a vector differs from the one before in 1 to 3 words, as far as it has so many. A word
// takes one of `values` values, others than the next word does. Precondition: values is at least 2.
OwnedColumn state_vectors(uint32_t words, uint64_t n, uint32_t values, uint64_t seed);
// The k-mers of the sequences of a FASTA file, in their order: 2 bits a base (A, C, G, T in upper
// or lower case: 0 to 3), the first one in the highest bits of 2 * bases, and of each k-mer and its
// reverse complement the smaller one. The low word comes first. A k-mer with any other letter is
// left out. Precondition: bases is at most 32.
OwnedColumn canonical_kmers(std::string_view fasta, uint32_t bases);

// Which rows are equal, found by sorting them.
struct FirstRows {
  BulkVector<uint32_t> first;  // of each row, the first row that is equal to it
  uint64_t distinct = 0;
};
FirstRows find_first_rows(const KeyColumn& rows, Parallel* parallel);

}  // namespace stride::benchmark
