#include "benchmark/datasets/dedup_data.h"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <random>
#include <vector>

#include "benchmark/datasets/text_source.h"
#include "benchmark/harness/random_bits.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t default_rows = 10'000'000;
constexpr const char* genome = "benchmark/data/genome_ecoli_536.fa.zst";
constexpr const char* urls = "benchmark/data/urls_web_specs.txt.zst";
constexpr const char* line_files[] = {"benchmark/data/text_austen_sensesensibility.txt.zst",
                                      "benchmark/data/text_austen_prideprejudice.txt.zst",
                                      "benchmark/data/text_austen_mansfieldpark.txt.zst",
                                      "benchmark/data/text_kjv_bible.txt.zst"};

OwnedColumn vector_column(uint32_t words, uint64_t n) {
  OwnedColumn column;
  column.rows = n;
  column.width = words * 4;
  column.data.resize(n * column.width);
  return column;
}

// The vector of that number: the first two words, or the one, are different for all.
void write_vector(uint64_t number, uint32_t words, uint64_t seed, std::byte* to) {
  if (words == 1) {
    uint32_t word = scramble32(static_cast<uint32_t>(number) ^ scramble32(seed & 0xFFFFFFFF));
    std::memcpy(to, &word, 4);
    return;
  }
  uint64_t bits = scramble(number ^ scramble(seed));
  for (uint32_t at = 0; at < words; at += 2) {
    std::memcpy(to + at * 4, &bits, at + 1 < words ? 8 : 4);
    bits = scramble(bits + 0x9E3779B97F4A7C15ull);
  }
}

Result<std::string> read_all(const std::string& kind) {
  if (kind == "kmers") return read_text_file(genome);
  if (kind == "urls") return read_text_file(urls);
  if (kind != "lines") return read_text_file(kind);
  std::string all;
  for (const char* file : line_files) {
    Result<std::string> text = read_text_file(file);
    if (!text.ok()) return text;
    all += *text;
  }
  return all;
}

// The rows over and over until there are n; 0: once.
OwnedColumn repeated(const KeyColumn& rows, uint64_t n, Parallel* parallel) {
  return make_column(rows.is_fixed() ? rows.width : 0, n ? n : rows.size, parallel,
                     [&](uint64_t i) { return rows[i % rows.size]; });
}

Result<OwnedColumn> rows_of_file(const DedupDataOptions& options, Parallel* parallel) {
  Result<std::string> text = read_all(options.kind);
  if (!text.ok()) return text.status();
  OwnedColumn column;
  if (options.kind == "kmers") {
    column = canonical_kmers(*text, kmer_bases);
    if (options.n != 0) column = repeated(column.view(), options.n, parallel);
  } else {
    std::vector<std::string_view> lines = split_lines(*text);
    if (lines.empty()) {
      return Status::invalid("--data " + options.kind + ": the file has no lines")
          .with_remedy("name a file with a row of text a line");
    }
    column = make_column(0, options.n ? options.n : lines.size(), parallel,
                         [&](uint64_t i) { return as_bytes(lines[i % lines.size()]); });
  }
  if (column.rows > max_dedup_rows) {
    return Status::invalid("--data " + options.kind + ": " + std::to_string(column.rows) +
                           " rows in the file")
        .with_remedy("set --n to at most " + std::to_string(max_dedup_rows));
  }
  return column;
}

struct HashedRow {
  uint64_t hash;
  uint32_t row;
};

uint64_t hash_of(Bytes bytes) {
  uint64_t hash = bytes.size();
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t part = 0;
    std::memcpy(&part, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    hash = scramble(hash ^ part);
  }
  return hash;
}

}  // namespace

bool is_text(const std::string& kind) { return !has_words(kind) && kind != "kmers"; }

OwnedColumn random_vectors(uint32_t words, uint64_t n, uint64_t distinct, uint64_t seed,
                           Parallel* parallel) {
  OwnedColumn column = vector_column(words, n);
  RandomOrder order(n, seed);
  parallel->for_parts(n, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      uint64_t number = order[i];
      if (number >= distinct) number = below(scramble(number + scramble(~seed)), distinct);
      write_vector(number, words, seed, column.data.data() + i * column.width);
    }
  });
  return column;
}

OwnedColumn state_vectors(uint32_t words, uint64_t n, uint32_t values, uint64_t seed) {
  OwnedColumn column = vector_column(words, n);
  std::mt19937_64 random(seed);
  std::vector<uint32_t> state(words);
  // Which value, and what stands for it in that word.
  auto value = [&](uint32_t word, uint32_t number) {
    return scramble32((word * values + number) ^ scramble32(seed & 0xFFFFFFFF));
  };
  std::vector<uint32_t> numbers(words, 0);
  for (uint32_t w = 0; w < words; ++w) state[w] = value(w, 0);
  for (uint64_t i = 0; i < n; ++i) {
    std::memcpy(column.data.data() + i * column.width, state.data(), column.width);
    uint64_t bits = random();
    uint32_t changes = std::min(words, static_cast<uint32_t>(1 + below(bits, 3)));
    uint32_t changed[3];
    for (uint32_t c = 0; c < changes; ++c) {
      do {
        changed[c] = static_cast<uint32_t>(below(random(), words));
      } while (std::find(changed, changed + c, changed[c]) != changed + c);
      uint32_t& number = numbers[changed[c]];
      number = (number + 1 + static_cast<uint32_t>(below(random(), values - 1))) % values;
      state[changed[c]] = value(changed[c], number);
    }
  }
  return column;
}

OwnedColumn canonical_kmers(std::string_view fasta, uint32_t bases) {
  uint64_t mask = bases == 32 ? ~uint64_t{0} : (uint64_t{1} << 2 * bases) - 1;
  OwnedColumn column = vector_column(2, fasta.size());
  uint64_t forward = 0, backward = 0;
  uint32_t known = 0;  // bases since the last one that is none
  uint64_t rows = 0;
  for (std::string_view line : split_lines(fasta)) {
    if (line.starts_with('>')) {
      known = 0;
      continue;
    }
    for (char letter : line) {
      constexpr std::string_view letters = "ACGTacgt";
      size_t base = letters.find(letter);
      if (base == std::string_view::npos) {
        known = 0;
        continue;
      }
      base %= 4;
      forward = (forward << 2 | base) & mask;
      backward = backward >> 2 | uint64_t{3 - base} << (2 * bases - 2);
      if (++known < bases) continue;
      known = bases;
      uint64_t kmer = std::min(forward, backward);
      uint32_t words[2] = {static_cast<uint32_t>(kmer), static_cast<uint32_t>(kmer >> 32)};
      std::memcpy(column.data.data() + rows++ * sizeof words, words, sizeof words);
    }
  }
  column.rows = rows;
  column.data.resize(rows * column.width);
  return column;
}

Result<DedupData> make_dedup_data(const DedupDataOptions& options, Parallel* parallel) {
  DedupData data;
  data.name = options.kind;
  uint64_t n = options.n ? options.n : default_rows;
  if (options.kind == "random") {
    auto distinct =
        static_cast<uint64_t>(std::llround(static_cast<double>(n) * (1 - options.duplication)));
    distinct = std::max<uint64_t>(distinct, 1);
    if (options.words == 1 && distinct > uint64_t{1} << 32) {
      return Status::invalid(std::to_string(distinct) + " different vectors of 1 word")
          .with_remedy("lower --n, or give --words 2");
    }
    data.rows = random_vectors(options.words, n, distinct, options.seed, parallel);
  } else if (options.kind == "states") {
    data.rows = state_vectors(options.words, n, options.values, options.seed);
  } else {
    Result<OwnedColumn> rows = rows_of_file(options, parallel);
    if (!rows.ok()) return rows.status();
    data.rows = std::move(*rows);
    if (options.kind != "kmers" && options.kind != "urls" && options.kind != "lines")
      data.name = std::filesystem::path(options.kind).filename().string();
  }
  return data;
}

FirstRows find_first_rows(const KeyColumn& rows, Parallel* parallel) {
  BulkVector<HashedRow> sorted(rows.size);
  parallel->for_parts(rows.size, min_rows_per_part, [&](unsigned, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) sorted[i] = {hash_of(rows[i]), static_cast<uint32_t>(i)};
  });
  auto less = [&](const HashedRow& a, const HashedRow& b) {
    if (a.hash != b.hash) return a.hash < b.hash;
    int c = compare(rows[a.row], rows[b.row]);
    return c != 0 ? c < 0 : a.row < b.row;
  };
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer cannot see the order that an uninstrumented TBB keeps.
  std::sort(sorted.begin(), sorted.end(), less);
#else
  parallel->run([&] { tbb::parallel_sort(sorted.begin(), sorted.end(), less); });
#endif
  FirstRows found;
  found.first.resize(rows.size);
  for (uint64_t i = 0; i < rows.size; ++i) {
    bool again = i > 0 && sorted[i].hash == sorted[i - 1].hash &&
                 compare(rows[sorted[i].row], rows[sorted[i - 1].row]) == 0;
    found.distinct += !again;
    found.first[sorted[i].row] = again ? found.first[sorted[i - 1].row] : sorted[i].row;
  }
  return found;
}

}  // namespace stride::benchmark
