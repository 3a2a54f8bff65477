// Numbers and lists as they are written on the command line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/cli/text/with_commas.h"
#include "storage/status.h"

namespace stride::benchmark {

// "1000", "100k", "1m": whole numbers from `min` to `max`, in thousands or millions.
// invalid_argument says what `what` must be.
Result<uint64_t> parse_count(const std::string& what, const std::string& text, uint64_t max,
                             uint64_t min = 1);

// "1,10k"
Result<std::vector<uint64_t>> parse_counts(const std::string& what, const std::string& list,
                                           uint64_t max);

// What stands between the separators; nothing after the last one where the text ends there.
std::vector<std::string> split_list(std::string_view list, char separator);

template <class T>
using Choices = std::vector<std::pair<std::string, T>>;  // each value under its name

// The values that a list names, each once. invalid_argument: a name that is not among the choices,
// or none at all.
template <class T>
Status parse_choices(const std::string& option, const std::string& list, const Choices<T>& choices,
                     std::vector<T>* values) {
  std::string known;
  for (const auto& [name, value] : choices) known += (known.empty() ? "" : ", ") + name;
  values->clear();
  for (const std::string& name : split_list(list, ',')) {
    auto choice = std::ranges::find(choices, name, &std::pair<std::string, T>::first);
    if (choice == choices.end())
      return Status::invalid(option + ": there is no '" + name + "', but " + known);
    if (std::ranges::find(*values, choice->second) == values->end())
      values->push_back(choice->second);
  }
  return values->empty() ? Status::invalid(option + " is empty: " + known) : Status();
}

// "1k", "100k", "1m", "1234"
std::string batch_name(uint64_t batch);

}  // namespace stride::benchmark
