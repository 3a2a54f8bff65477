// stride-bench dedup as a person meets it, and what it is made of.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "benchmark/datasets/dedup_data.h"
#include "benchmark/peers/unordered_peer.h"
#include "benchmark/workloads/dedup/report.h"
#include "tests/benchmark/harness/command_line_fixture.h"
#include "tests/support/catch.h"

namespace stride::benchmark {
namespace {

class DedupTest : public CommandLineFixture {
 protected:
  std::string file(const std::string& name, const std::string& lines) {
    std::string path = directory_ + "/" + name;
    std::ofstream(path) << lines;
    return path;
  }
  // With small defaults.
  int dedup(const std::vector<std::string>& arguments) {
    return run_with("dedup",
                    {{"--n", "3000"}, {"--backend", "host"}, {"--threads", "2"}, {"--repeat", "1"}},
                    arguments);
  }
  std::string json_ = directory_ + "/rows.json", plot_ = directory_ + "/plot.svg";
  Parallel parallel_{2};
};

std::set<std::string> different(const KeyColumn& rows) {
  std::set<std::string> found;
  for (uint64_t i = 0; i < rows.size; ++i) found.emplace(as_text(rows[i]));
  return found;
}

uint32_t word(const KeyColumn& rows, uint64_t row, uint32_t at) {
  uint32_t found;
  std::memcpy(&found, rows[row].data() + 4 * at, 4);
  return found;
}

TEST_CASE_METHOD(DedupTest, "DedupTest.RandomVectorsHaveSoManyDifferentOnes", "[DedupTest]") {
  for (uint32_t words : {1u, 2u, 3u, 5u, 64u}) {
    for (uint64_t distinct : {1u, 7u, 500u, 1000u}) {
      OwnedColumn column = random_vectors(words, 1000, distinct, 5, &parallel_);
      CHECK(column.rows == 1000u);
      CHECK(column.width == words * 4);
      CHECK_MESSAGE(different(column.view()).size() == distinct, words);
    }
  }
  CHECK(random_vectors(2, 0, 1, 5, &parallel_).rows == 0u);
}

TEST_CASE_METHOD(DedupTest, "DedupTest.DuplicatesLieAnywhere", "[DedupTest]") {
  constexpr uint64_t n = 100'000, distinct = 50'000;
  OwnedColumn column = random_vectors(2, n, distinct, 9, &parallel_);
  FirstRows first = find_first_rows(column.view(), &parallel_);
  CHECK(first.distinct == distinct);
  // Vectors that come for the first time: most in the first tenth, fewest in the last, where about
  // as many duplicates as different ones have come before.
  std::map<uint64_t, uint64_t> fresh;
  for (uint64_t i = 0; i < n; ++i) fresh[i * 10 / n] += first.first[i] == i;
  CHECK(fresh[0] > 8'500u);
  CHECK(fresh[9] > 1'500u);
  for (uint64_t part = 0; part < 9; ++part) CHECK(fresh[part] > fresh[part + 1]);
  // The same for any number of threads, and others for another seed.
  Parallel one(1);
  CHECK(random_vectors(2, n, distinct, 9, &one).data == column.data);
  CHECK(random_vectors(2, n, distinct, 10, &one).data != column.data);
}

TEST_CASE_METHOD(DedupTest, "DedupTest.StatesDifferInOneToThreeWords", "[DedupTest]") {
  for (uint32_t words : {1u, 2u, 16u}) {
    constexpr uint32_t values = 3;
    OwnedColumn column = state_vectors(words, 5000, values, 1);
    KeyColumn rows = column.view();
    std::set<uint32_t> changes, all;
    std::vector<std::set<uint32_t>> taken(words);
    for (uint64_t i = 0; i < rows.size; ++i) {
      uint32_t changed = 0;
      for (uint32_t w = 0; w < words; ++w) {
        taken[w].insert(word(rows, i, w));
        all.insert(word(rows, i, w));
        changed += i > 0 && word(rows, i, w) != word(rows, i - 1, w);
      }
      if (i > 0) changes.insert(changed);
    }
    std::set<uint32_t> expected;
    for (uint32_t c = 1; c <= std::min(words, 3u); ++c) expected.insert(c);
    CHECK_MESSAGE(changes == expected, words);
    for (const auto& values_of_word : taken) CHECK(values_of_word.size() == values);
    CHECK(all.size() == words * values);  // none is of two words
  }
}

TEST_CASE_METHOD(DedupTest, "DedupTest.KmersAreCanonical", "[DedupTest]") {
  // K-mers of 3 bases, A C G T being 0 to 3: ACG = 6, its reverse complement CGT = 27; CGT
  // likewise; TTG = 62 and CAA = 16, after a new sequence has begun; N is no base, and GGG = 42,
  // CCC = 21.
  OwnedColumn column = canonical_kmers(">one\nAC\nGT\n>two\nttg\nNGGG\n", 3);
  KeyColumn rows = column.view();
  REQUIRE(rows.size == 4u);
  REQUIRE(rows.width == 8u);
  uint32_t expected[] = {6, 6, 16, 21};
  for (uint64_t i = 0; i < 4; ++i) {
    CHECK_MESSAGE(word(rows, i, 0) == expected[i], i);
    CHECK(word(rows, i, 1) == 0u);
  }
  // 31 of T are 31 of A the other way round; 17 bases reach into the high word: C and 16 times A.
  CHECK(word(canonical_kmers(std::string(31, 'T'), 31).view(), 0, 1) == 0u);
  OwnedColumn wide = canonical_kmers("C" + std::string(16, 'A'), 17);
  CHECK(word(wide.view(), 0, 0) == 0u);
  CHECK(word(wide.view(), 0, 1) == 1u);
  CHECK(canonical_kmers("ACG", 4).rows == 0u);
}

TEST_CASE_METHOD(DedupTest, "DedupTest.FirstRowsOfText", "[DedupTest]") {
  std::vector<std::string> texts = {"b", "", "a", "b", "b\0c", "", "a"};
  OwnedColumn column = make_column(0, texts.size(), &parallel_, [&](uint64_t i) {
    return as_bytes(std::string_view(texts[i]));
  });
  FirstRows first = find_first_rows(column.view(), &parallel_);
  CHECK(first.distinct == 3u);
  CHECK(std::vector<uint32_t>(first.first.begin(), first.first.end()) ==
        (std::vector<uint32_t>{0, 1, 2, 0, 0, 1, 2}));
  CHECK(find_first_rows(KeyColumn::fixed(nullptr, 8, 0), &parallel_).distinct == 0u);
}

TEST_CASE_METHOD(DedupTest, "DedupTest.UnorderedPeerFindsDuplicates", "[DedupTest]") {
  for (uint32_t words : {0u, 1u, 2u, 3u, 5u, 16u, 32u, 33u, 64u}) {
    OwnedColumn column = random_vectors(std::max(words, 1u), 1000, 400, 3, &parallel_);
    if (words == 0) {
      OwnedColumn fixed = std::move(column);
      column = make_column(0, 1000, &parallel_, [&](uint64_t i) { return fixed.view()[i]; });
    }
    auto peer = UnorderedPeer::make(words * 4, 400);
    for (int round = 0; round < 2; ++round) {
      Bitmap fresh(1000);
      peer->find_or_put(column.view(), fresh.words());
      CHECK(fresh.count() == 400u);
      CHECK(peer->size() == 400u);
      CHECK(peer->find(column.view()) == 1000u);
      CHECK(peer->memory_bytes() > 400u * (8 + words * 4));
      peer->clear();
      CHECK(peer->find(column.view()) == 0u);
    }
  }
}

TEST_CASE_METHOD(DedupTest, "DedupTest.TablesAndFiles", "[DedupTest]") {
  REQUIRE_MESSAGE(dedup({"--form", "dense,slots,compressed", "--words", "1,2", "--load", "0.5,0.9",
                         "--json", json_, "--plot", plot_}) == 0,
                  error_);
  CHECK(error_ == "");
  CHECK_MESSAGE(out_.find("random, 2 words: 3,000 rows, 1,500 different, duplication 0.500") !=
                    std::string::npos,
                out_);
  CHECK_MESSAGE(out_.find("\nstride:slots, 2 threads") != std::string::npos, out_);
  CHECK_MESSAGE(out_.find("\nstd::unordered_set:1 thread") != std::string::npos, out_);
  auto rows = read_rows(json_);
  std::vector<std::string> four_times;
  for (int i = 0; i < 4; ++i)
    for (const char* phase : {"find_or_put", "find", "get"}) four_times.push_back(phase);
  for (const char* form : {"dense, ", "slots, ", "compressed, "}) {
    for (const char* threads : {"1 thread", "2 threads"})
      CHECK_MESSAGE(phases_of(rows, "stride", std::string(form) + threads) == four_times, form);
  }
  CHECK(phases_of(rows, "std::unordered_set", "1 thread") ==
        (std::vector<std::string>{"find_or_put", "find", "find_or_put", "find"}));
  for (const auto& row : rows) {
    CHECK(row["workload"] == "dedup");
    CHECK(row["data"] == "random");
    CHECK(row["records_per_second"] > 0);
    CHECK(row["records"] == (row["phase"] == "get" ? 1500 : 3000));
    CHECK(row["distinct"] == 1500);
    CHECK(row["duplication"] == 0.5);
    CHECK(row["bytes_per_vector"] > 4.0);
    CHECK(row["gathers_per_second"] > 0);
    CHECK(row["threads"] >= 1);
    CHECK((row["words"] == 1 || row["words"] == 2));
    if (row["engine"] != "stride") continue;
    CHECK((row["load"] == 0.5 || row["load"] == 0.9));
    CHECK(row.contains("nodes") == (row["form"] == "compressed"));
  }
  CHECK(read_text(plot_).find("</svg>") != std::string::npos);
  CHECK(read_text(directory_ + "/plot-bytes.svg").find("bytes a vector") != std::string::npos);
}

TEST_CASE_METHOD(DedupTest, "DedupTest.CompressedStatesInBatches", "[DedupTest]") {
  for (bool wide : {false, true}) {
    std::vector<std::string> arguments = {
        "--data",    "states", "--words",  "16",  "--load",       "0.95",
        "--batch",   "1000",   "--values", "3",   "--engine",     "stride",
        "--threads", "1",      "--json",   json_, "--compressed", "yes"};
    if (wide) arguments.push_back("--wide");
    REQUIRE_MESSAGE(dedup(arguments) == 0, error_);
    auto rows = read_rows(json_);
    CHECK(phases_of(rows, "stride", wide ? "compressed wide, 1 thread" : "compressed, 1 thread") ==
          (std::vector<std::string>{"find_or_put", "find", "get"}));
    CHECK(rows.size() == 3u);
    for (const auto& row : rows) {
      CHECK(row["batch"] == 1000);
      CHECK(row["words"] == 16);
      CHECK(row["nodes"] > 0);
    }
  }
}

TEST_CASE_METHOD(DedupTest, "DedupTest.BucketsAndNeighbours", "[DedupTest]") {
  REQUIRE_MESSAGE(dedup({"--bucket", "2,64", "--neighbours", "1", "--engine", "stride", "--threads",
                         "1", "--json", json_}) == 0,
                  error_);
  auto rows = read_rows(json_);
  REQUIRE(rows.size() == 6u);
  CHECK(rows[0]["bucket"] == 2);
  CHECK(rows[5]["bucket"] == 64);
  CHECK(rows[5]["neighbours"] == 1);
  CHECK_MESSAGE(out_.find("stride:dense, 1 thread, 64 slots") != std::string::npos, out_);
}

TEST_CASE_METHOD(DedupTest, "DedupTest.LinesOfAFile", "[DedupTest]") {
  std::string lines = file("lines.txt", "a\nbb\na\n\n\na\n");
  REQUIRE_MESSAGE(dedup({"--data", lines, "--n", "8", "--batch", "3", "--json", json_}) == 0,
                  error_);
  CHECK_MESSAGE(out_.find("lines.txt: 8 rows, 3 different") != std::string::npos, out_);
  auto rows = read_rows(json_);
  CHECK(phases_of(rows, "stride", "byte strings, 2 threads") ==
        std::vector<std::string>{"find_or_put"});
  CHECK(phases_of(rows, "std::unordered_set", "1 thread") ==
        (std::vector<std::string>{"find_or_put", "find"}));
}

TEST_CASE_METHOD(DedupTest, "DedupTest.Sweep", "[DedupTest]") {
  REQUIRE_MESSAGE(dedup({"--sweep", "--json", json_, "--plot", plot_}) == 0, error_);
  std::map<std::string, std::set<std::string>> values;
  for (const auto& row : read_rows(json_)) values[row["sweep"]].insert(row["value"]);
  std::set<std::string> buckets = {"default",  "2 slots",  "4 slots", "8 slots",
                                   "16 slots", "32 slots", "64 slots"};
  CHECK(values["bucket"] == buckets);
  CHECK(values["bucket, no neighbours"] == buckets);
  CHECK(values["words"] == (std::set<std::string>{"1", "2", "4", "8", "16", "32", "64"}));
  CHECK(values["load"].size() == 3u);
  CHECK(values["duplication"].size() == 3u);
  CHECK(values["nodes of 16-word states"] == (std::set<std::string>{"32 bits", "64 bits"}));
  CHECK_MESSAGE(out_.find("\n0.800 *") != std::string::npos, out_);
  // Rates are compared with the ordinary choice, and its own ratio is 1.
  CHECK_MESSAGE(out_.find("1.00x") != std::string::npos, out_);
}

TEST_CASE_METHOD(DedupTest, "DedupTest.RefusesWhatIsWrong", "[DedupTest]") {
  expect_refused(dedup({"--words", "0"}), "--words must be a number from 1 to 64");
  expect_refused(dedup({"--words", "65"}), "--words must be a number from 1 to 64");
  expect_refused(dedup({"--words", ""}), "--words is empty");
  expect_refused(dedup({"--load", "0"}), "--load must be a number above 0 to 1");
  expect_refused(dedup({"--load", "0.5,1.1"}), "--load must be a number above 0 to 1");
  expect_refused(dedup({"--load", "nan"}), "--load must be");
  expect_refused(dedup({"--duplication", "1.5"}), "--duplication must be a number from 0 to 1");
  expect_refused(dedup({"--duplication", "half"}), "not 'half'");
  expect_refused(dedup({"--data", "genomes"}),
                 "give random, states, kmers, urls, lines, or a file");
  expect_refused(dedup({"--data", file("none.txt", "")}), "the file has no lines");
  expect_refused(dedup({"--n", "0"}), "--n must be");
  expect_refused(dedup({"--values", "1"}), "--values must be");
  expect_refused(dedup({"--batch", "0"}), "--batch must be");
  expect_refused(dedup({"--bucket", "3"}), "powers of two from 2 to 64");
  expect_refused(dedup({"--bucket", "128"}), "--bucket must be");
  expect_refused(dedup({"--form", "sparse"}), "there are dense, slots and compressed");
  expect_refused(dedup({"--form", "compressed", "--compressed", "no"}), "give one of the two");
  expect_refused(dedup({"--form", "slots", "--words", "2,3"}),
                 "use --form dense, or --words 1,2,4");
  expect_refused(dedup({"--engines", "rocksdb"}), "there are stride and unordered_set");
  expect_refused(dedup({"--sweep", "--data", "urls"}), "give random, states or kmers");
  CHECK(dedup({"--neighbours", "3"}) != 0);
}

TEST_CASE_METHOD(DedupTest, "DedupTest.Help", "[DedupTest]") {
  CHECK(run({"dedup", "--help"}) == 0);
  for (const char* option :
       {"--words", "--n", "--duplication", "--load", "--form", "--compressed", "--bucket",
        "--neighbours", "--batch", "--data", "--backend", "--threads", "--repeat", "--seed",
        "--json", "--plot", "--wide", "--sweep", "--engine"})
    CHECK_MESSAGE(out_.find(option) != std::string::npos, option);
}

}  // namespace
}  // namespace stride::benchmark
