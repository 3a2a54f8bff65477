// Commands on tables of prefixes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/cli_fixture.h"

namespace stride::cli {

class PrefixTest : public CliFixture {
 protected:
  // load DB t FILE --key-type prefix, and then these.
  int load_prefixes(const std::string& rows, std::vector<std::string> options = {},
                    const std::string& table = "t") {
    options.insert(options.begin(), {"--key-type", "prefix"});
    return load(file("p.tsv", rows), options, table);
  }
  // A bad row, which is the second, of a table that is not made.
  void expect_bad(const std::string& key, const std::string& reason, const std::string& bits,
                  const std::string& good) {
    std::string path = file("bad.tsv", good + "\tgood\n" + key + "\tbad\n");
    for (const char* bytes : {"3", "100000"}) {
      expect_refused({"load", database_, "bad", path, "--key-type", "prefix", "--address-bits",
                      bits, "--block-bytes", bytes},
                     3, path + ":2: " + reason);
    }
  }
  void expect_bad4(const std::string& key, const std::string& reason) {
    expect_bad(key, reason, "32", "1.0.0.0/8");
  }
  nlohmann::json json() const { return nlohmann::json::parse(out_); }
  std::string match(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {"match", database_, "t"});
    CHECK_MESSAGE(run(arguments, input) == 0, error_);
    return out_;
  }
};

}  // namespace stride::cli
