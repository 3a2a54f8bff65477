// Lines that are given to `stride shell`: each command ends with an exit code that docs/cli.md
// lists, says why where it fails, and leaves a database that verify finds whole.
//
// Input: the lines. Those with a slash are passed over, so that nothing is written outside of the
// folder in which the fuzzer runs.
#include "storage/memory_file_system.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/support/cli_fixture.h"
#include "tests/support/forged_database.h"

namespace stride::test {
namespace {

class ShellFuzz : private cli::CliFixture {
 public:
  ShellFuzz() {
    MemoryFileSystem files({.crashable = false});
    files_ = &files;
    fill("people", "id,name,score\n1,Ada,1.5\n2,,\n", {"--format", "csv", "--key-type", "u64"});
    fill("words", "a\tx\nb c\ty\n", {});
    fill("routes", "10.0.0.0/8\tx\n10.1.0.0/16\ty\n", {"--key-type", "prefix"});
    fill("hits", "a\na\nb\n", {"--count"});
    filled_ = files_of(files);
  }
  void check(const std::string& lines) {
    const auto files = file_system_of(filled_);
    files_ = files.get();
    const int code = run({"shell", "db"}, lines);
    REQUIRE_MESSAGE((code >= 0 && code <= 9), "shell: " << code << " " << error_);
    REQUIRE_MESSAGE((code == 0 || !error_.empty()), "shell: " << code);
    REQUIRE_MESSAGE(run({"verify", "db"}) == 0, error_);
  }

 private:
  // Loads a table.
  void fill(const std::string& table, const std::string& text,
            const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"load", "db", table, "-", "--threads", "1"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    REQUIRE_MESSAGE(run(arguments, text) == 0, error_);
  }

  Files filled_;  // what each input begins with
};

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {
      "put people 3 'three  times' 2.5\ndelete people 1\nscan people --format csv\n",
      "scan people --where 'score>=1.5' --columns name --limit 2 --reverse\ncount people\n",
      "scan people --top 2 --of score\ngroup people --by name --count --sum-of score\n",
      "match routes 10.1.2.3 --all\nscan routes --prefix 10.0.0.0/8\n",
      "get words a \"b c\"\nput words k [1,2] '' x\ndelete words --prefix k\n",
      "tables --json\nstats\nexplain words\nverify\ncompact\n",
      "rename words other\ndrop hits\nscan other --from a --to b\nsegments other\n",
      "# nothing\nhelp scan\nput hits c 7\nquit\n",
  };
}

}  // namespace stride::test

using namespace stride::test;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string lines(reinterpret_cast<const char*>(data), size);
  if (lines.find("..") != std::string::npos) return -1;
  std::string kept;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size() - 1) + 1;
    const std::string line = lines.substr(at, end - at);
    if (line.find('/') == std::string::npos || line.starts_with("scan routes")) kept += line;
    at = end;
  }
  static ShellFuzz fuzz;
  fuzz.check(kept);
  return 0;
}
