#include "benchmark/workloads/ycsb/mix.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/random_bits.h"

namespace stride::benchmark {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

const char* operation_name(Operation operation) {
  constexpr const char* names[operation_kinds] = {"read", "update", "insert", "scan", "rmw"};
  return names[static_cast<size_t>(operation)];
}

Operation YcsbMix::draw(uint64_t random_bits) const {
  uint64_t at = below(random_bits, 100);
  for (size_t kind = 0; kind + 1 < operation_kinds; ++kind) {
    if (at < percent[kind]) return static_cast<Operation>(kind);
    at -= percent[kind];
  }
  return Operation::read_modify_write;
}

const std::vector<YcsbMix>& ycsb_mixes() {
  static const std::vector<YcsbMix> mixes = {
      {"A", "50 % reads, 50 % updates", {50, 50, 0, 0, 0}},
      {"B", "95 % reads, 5 % updates", {95, 5, 0, 0, 0}},
      {"C", "reads alone", {100, 0, 0, 0, 0}},
      {"D", "95 % reads of the latest, 5 % inserts", {95, 0, 5, 0, 0}, true},
      {"E", "95 % scans of 1 to 100 rows, 5 % inserts", {0, 0, 5, 95, 0}},
      {"F", "50 % reads, 50 % read, modify and write", {50, 0, 0, 0, 50}},
      {"rewrite",
       "every record is updated --rounds times, each round in a random order",
       {0, 100, 0, 0, 0},
       false,
       true},
  };
  return mixes;
}

Result<std::vector<YcsbMix>> choose_ycsb_mixes(const std::string& list) {
  std::vector<YcsbMix> chosen;
  std::string known;
  for (const YcsbMix& mix : ycsb_mixes()) known += (known.empty() ? "" : ", ") + mix.name;
  for (const std::string& name : split_list(list, ',')) {
    bool found = false;
    for (const YcsbMix& mix : ycsb_mixes()) {
      if (lower_case(name) != "all" && lower_case(name) != lower_case(mix.name)) continue;
      found = true;
      if (std::ranges::find(chosen, mix.name, &YcsbMix::name) == chosen.end())
        chosen.push_back(mix);
    }
    if (!found)
      return Status::invalid("--workload: there is no '" + name + "', but " + known + " and all");
  }
  if (chosen.empty()) return Status::invalid("--workload is empty: " + known + " or all");
  return chosen;
}

std::string KeyChoice::to_string() const {
  if (distribution == KeyDistribution::uniform) return "uniform";
  char text[32];
  std::snprintf(text, sizeof(text), "%s:%g",
                distribution == KeyDistribution::zipf ? "zipf" : "latest", theta);
  return text;
}

Result<KeyChoice> parse_key_choice(const std::string& text) {
  const Status refused = Status::invalid(
      "--distribution must be uniform, zipf:THETA or latest:THETA with a theta from 0 to less than "
      "1 (0.99 where none is given), not '" +
      text + "'");
  KeyChoice choice;
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  if (name == "uniform")
    choice.distribution = KeyDistribution::uniform;
  else if (name == "latest")
    choice.distribution = KeyDistribution::latest;
  else if (name != "zipf")
    return refused;
  if (colon == std::string::npos) return choice;
  const std::string theta = text.substr(colon + 1);
  char* end = nullptr;
  choice.theta = std::strtod(theta.c_str(), &end);
  const bool is_number = !theta.empty() && *end == '\0';
  if (name == "uniform" || !is_number || !(choice.theta >= 0 && choice.theta < 1)) return refused;
  return choice;
}

}  // namespace stride::benchmark
