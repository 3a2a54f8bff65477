// Counts k-mers: how often each string of K bases comes in the sequences of a FASTA file. The
// counts are a table, to which the next file adds.
//
//   g++ -std=c++20 -O2 kmer_counter.cc $(pkg-config --cflags --libs stridedb) -o kmer_counter
//   zstdcat benchmark/data/genome_ecoli_536.fa.zst | ./kmer_counter kmers.db 11
//
// Reads from standard input. Counts bases as they are written, on that strand alone; k-mers with
// other letters than A, C, G and T, which stand for bases that are not known, are left out.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/database.h"
#include "engine/group_by.h"

namespace {

using stride::Column;

void check(const stride::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}
template <class T>
T take(stride::Result<T> result) {
  check(result.status());
  return std::move(*result);
}

// Adds 1 to the count of each k-mer that comes by. Many are added in one commit: it sorts them,
// looks each different one up once and writes the sums.
class Counter {
 public:
  Counter(stride::Database& db, const stride::Table& table, uint32_t k)
      : db_(db), table_(table), k_(k) {}

  void sequence_begins() { window_.clear(); }
  void base(char letter) {
    letter = static_cast<char>(letter & ~0x20);  // upper case
    if (!std::strchr("ACGT", letter)) return window_.clear();
    window_ += letter;
    if (window_.size() < k_) return;
    kmers_.append(window_, window_.size() - k_, k_);
    if (window_.size() > 1 << 16) window_.erase(0, window_.size() - k_ + 1);
    if (++rows_ == rows_of_a_commit) commit();
  }
  void commit() {
    const std::vector<int64_t> ones(rows_, 1);
    stride::WriteTransaction t = db_.begin();
    check(t.accumulate(table_, Column::fixed(kmers_.data(), k_, rows_), ones));
    check(t.commit());
    kmers_.clear();
    rows_ = 0;
  }

 private:
  static constexpr uint64_t rows_of_a_commit = 4'000'000;

  stride::Database& db_;
  const stride::Table& table_;
  const uint32_t k_;
  std::string window_;  // the sequence's last bases
  std::string kmers_;   // rows_ of them, k_ bytes each
  uint64_t rows_ = 0;
};

struct Count {
  int64_t times;
  std::string kmer;
};

// The k-mers that come most often: one pass over the table, in batches of columns.
std::vector<Count> most_frequent(const stride::Snapshot& now, const stride::Table& table,
                                 size_t n) {
  std::vector<Count> top;
  stride::Scan scan = take(now.scan(table));
  const auto more = [](const Count& a, const Count& b) {
    return a.times != b.times ? a.times > b.times : a.kmer < b.kmer;
  };
  for (stride::ScanBatch batch; scan.next(&batch);) {
    for (uint64_t i = 0; i < batch.keys.size; ++i) {
      int64_t times;
      std::memcpy(&times, batch.values[i].data(), sizeof times);
      if (top.size() == n && times <= top.back().times) continue;
      Count count{times, std::string(stride::as_text(batch.keys[i]))};
      top.insert(std::upper_bound(top.begin(), top.end(), count, more), count);
      if (top.size() > n) top.pop_back();
    }
  }
  check(scan.status());
  return top;
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long k = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 0;
  if (k < 1 || k > 1000) {
    std::fprintf(stderr, "usage: %s DATABASE K < FASTA    (K: 1 to 1000)\n", argv[0]);
    return 2;
  }
  auto db = take(stride::Database::open(argv[1]));
  // Opening it again with another K is an error, because its keys have another width.
  const stride::Table table = take(db->open_or_create_table(
      "kmers", {.key_width = static_cast<uint32_t>(k), .numbers = stride::NumberType::i64}));

  Counter counter(*db, table, static_cast<uint32_t>(k));
  for (std::string line; std::getline(std::cin, line);) {
    if (line.starts_with('>')) {
      counter.sequence_begins();
    } else {
      for (char letter : line)
        if (letter != '\r') counter.base(letter);
    }
  }
  counter.commit();

  // A group for each first base: how many different k-mers begin with it, and how often they come.
  const stride::Snapshot now = db->snapshot();
  auto groups = take(stride::group_by(now, table, {}, {.prefix_bytes = 1, .sum = true}));
  for (uint64_t g = 0; g < groups.size(); ++g) {
    std::printf("%s...\t%llu different\t%lld in all\n",
                std::string(stride::as_text(groups.keys()[g])).c_str(),
                static_cast<unsigned long long>(groups.counts()[g]),
                static_cast<long long>(groups.integer_sums()[g]));
  }
  for (const Count& count : most_frequent(now, table, 3))
    std::printf("%s\t%lld\n", count.kmer.c_str(), static_cast<long long>(count.times));
  check(db->close());
}
