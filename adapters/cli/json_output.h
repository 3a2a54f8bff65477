#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace stride::cli {

// One line. Names may be any bytes: what is not UTF-8 becomes replacement characters.
template <class Json>
std::string text_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stride::cli
