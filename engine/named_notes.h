// What `.stride` keeps of tables by their names, as the command line does: keys are a kind, a colon
// and the name, such as "table:users". Schemas are kept by id (engine/table_schema.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/catalog/version.h"
#include "storage/status.h"

namespace stride {

struct NamedNote {
  std::string kind;  // "table:" and so on
  std::string value;
};

// The notes of a table, as of a version and of the commit up to which it has rows (see
// VersionSet::current()). None where there is no table `.stride`.
Status read_named_notes(const std::shared_ptr<const Version>& version, uint32_t commit,
                        const std::string& table, std::vector<NamedNote>* notes);

}  // namespace stride
