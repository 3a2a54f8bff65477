// Files that `stride load` reads, of each format: what it loads, verify finds whole, and a file
// that is cut into small blocks gives the same table and the same answer as one that is not. Types
// that are told from the first rows depend on how many rows the first block has: those files are
// not cut.
//
// Input: a byte that chooses the format and options, and the file.
#include "storage/memory_file_system.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/support/cli_fixture.h"

namespace stride::test {
namespace {

using Arguments = std::vector<std::string>;
const Arguments formats[] = {
    {"--format", "csv"},
    {"--format", "csv", "--schema", "a string, b i64?, c f64, d date?", "--key", "a"},
    {"--format", "csv", "--schema", "a u8, b bool, c timestamp", "--header", "--rejects",
     "/dev/null"},
    {"--format", "csv", "--schema", "none"},
    {"--format", "tsv", "--schema", "none", "--key", "2", "--rejects", "/dev/null"},
    {"--format", "tsv", "--key", "2", "--rejects", "/dev/null"},
    {"--format", "tsv", "--schema", "none", "--key-type", "prefix"},
    {"--format", "tsv", "--count"},
    {"--format", "jsonl"},
    {"--format", "jsonl", "--schema", "none"},
    {"--format", "jsonl", "--schema", "a string, b json?", "--key", "a", "--rejects", "/dev/null"},
    {"--format", "json", "--rejects", "/dev/null"},
    {"--format", "raw", "--key-bytes", "3", "--value-bytes", "2"},
    {"--format", "parquet"},
    {"--format", "arrow"},
    {},  // guessed
};

class ImportFuzz : private cli::CliFixture {
 public:
  void check(const Arguments& format, const std::string& bytes) {
    const cli::MemoryFile file(bytes);
    const std::string path = "/proc/self/fd/" + std::to_string(file.fd());
    const Answer whole = load(path, format);
    if (std::find(format.begin(), format.end(), "--schema") == format.end()) return;
    Arguments small = format;
    small.insert(small.end(), {"--block-bytes", "16"});
    const Answer cut = load(path, small);
    REQUIRE_MESSAGE(whole.code == cut.code, whole.error << "\n" << cut.error);
    REQUIRE_MESSAGE(whole.rows == cut.rows, whole.rows << "\n" << cut.rows);
  }

 private:
  struct Answer {
    int code;
    std::string error, rows;
  };
  Answer load(const std::string& path, const Arguments& options) {
    MemoryFileSystem files({.crashable = false});
    files_ = &files;
    Arguments arguments = {"load", "db", "t", path, "--threads", "1"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    Answer answer{run(arguments), "", ""};
    answer.error = error_;
    const bool told = answer.code == 0 || !error_.empty();
    const bool known = answer.code == 0 || answer.code == 2 || answer.code == 3 || answer.code == 8;
    REQUIRE_MESSAGE((told && known), "load: " << answer.code << " " << error_);
    if (answer.code != 0) return answer;
    REQUIRE_MESSAGE(run({"verify", "db"}) == 0, error_);
    REQUIRE_MESSAGE(run({"scan", "db", "t", "--format", "jsonl"}) == 0, error_);
    answer.rows = out_;
    return answer;
  }
};

}  // namespace

std::vector<std::string> fuzz_seeds() {
  const std::string texts[] = {
      "a,b,c,d\nk1,1,1.5,2021-04-01\n\"k,\"\"2\",,-2e3,\n",
      "a,b,c\n1,true,2021-04-01T10:00:00Z\n300,maybe,1999-02-30\n",
      "k\tv\n10.0.0.0/8\tx\n2001:db8::/32\ty\n",
      "{\"a\":\"k\",\"b\":[1,{\"c\":null}],\"\\u00e9\":1.5e-3}\n{\"a\":\"l\"}\n",
      "[{\"a\":1},\n {\"a\":2,\"b\":\"x\"}]",
      "abc12def34",
  };
  std::vector<std::string> seeds;
  for (size_t i = 0; i < std::size(formats); ++i)
    for (const std::string& text : texts) {
      seeds.push_back(static_cast<char>(i) + text);
      if (i % 3 == 0) seeds.push_back(static_cast<char>(i) + stride::cli::gzip(text));
    }
  return seeds;
}

}  // namespace stride::test

using namespace stride::test;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const size_t format = input.take<uint8_t>();
  if (format >= std::size(formats)) return -1;
  static ImportFuzz fuzz;
  fuzz.check(formats[format], input.rest());
  return 0;
}
