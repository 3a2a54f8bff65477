// Keys and bounds of a scan as they are written on the command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "adapters/cli/exit_status.h"
#include "adapters/cli/text/key_codec.h"
#include "engine/scan.h"

namespace CLI {
class App;
}

namespace stride::cli {

// usage: the text is no key of the form. before: what the message begins with.
ExitStatus encode_argument(std::string_view before, const KeyForm& form, const std::string& text,
                           std::string* key);

struct BoundArguments {
  std::optional<std::string> from, to, prefix;
};

// --from, --to, --prefix
void add_bounds(CLI::App* command, BoundArguments* arguments);
// usage: texts that are no keys of the form.
ExitStatus parse_bounds(const BoundArguments& arguments, const KeyForm& form, ScanOptions* options);

}  // namespace stride::cli
