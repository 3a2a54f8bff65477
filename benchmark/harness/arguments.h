// Numbers and lists as they are written on the command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/status.h"

namespace stride::benchmark {

// "1000", "100k", "1m": whole numbers from `least` to `largest`, in thousands or millions.
// invalid_argument says what `what` must be.
Result<uint64_t> parse_count(const std::string& what, const std::string& text, uint64_t largest,
                             uint64_t least = 1);

// "1,10k"
Result<std::vector<uint64_t>> parse_counts(const std::string& what, const std::string& list,
                                           uint64_t largest);

// What stands between the separators; nothing after the last one where the text ends there.
std::vector<std::string> split_list(std::string_view list, char separator);

// 1,000,000
std::string with_commas(uint64_t number);

// "1k", "100k", "1m", "1234"
std::string batch_name(uint64_t batch);

}  // namespace stride::benchmark
